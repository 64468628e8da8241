//! The requests for responses on one WebSocket, and which of them an event of the server belongs to.
//!
//! A connection has lanes (`stream_id`), which work at the same time; in each lane a response follows the other. A client may steer a
//! response that is under way (`response.steer`): the server then ends it early and goes on with a successor by itself.

use serde_json::Value;
use strata_core::turn::NewMessage;

use crate::compat::chat::ChatApi;
use crate::compat::chat::reply::Reply;
use crate::compat::openai::responses::Responses;
use crate::proxy::names::Asker;
use crate::proxy::recorder::{ExchangeRecorder, MayPass};
use crate::proxy::relay::ending_of;

/// The most requests of a connection that are recorded at once; more lanes than any client uses.
const MAX_RECORDED: usize = 64;

/// With so many requests under way, a client only sends and does not wait for replies.
const MAX_UNDER_WAY: usize = 1_024;

/// A request whose reply has not ended.
pub(super) struct Asked {
    pub(super) asker: Asker,
    lane: Option<String>,
    /// `None` if it is not recorded.
    recorder: Option<ExchangeRecorder>,
    pub(super) reply: Reply,
    /// Messages of the client since then, which steer the reply.
    pub(super) steered: Vec<NewMessage>,
}

impl Asked {
    pub(super) fn new(asker: Asker, lane: Option<String>, recorder: Option<ExchangeRecorder>) -> Self {
        Self { asker, lane, recorder, reply: Reply::default(), steered: Vec::new() }
    }

    /// Ends the recording with what has come of the reply.
    pub(super) fn end(self) -> Option<MayPass> {
        let Self { recorder, reply, .. } = self;
        recorder.map(|recorder| recorder.end(ending_of(reply)))
    }
}

/// Messages of the client that steered a reply that has ended.
pub(super) struct Steered {
    pub(super) asker: Asker,
    pub(super) lane: Option<String>,
    pub(super) messages: Vec<NewMessage>,
}

/// The requests of a connection.
#[derive(Default)]
pub(super) struct Requests {
    /// In their order.
    asked: Vec<Asked>,
    steered: Vec<Steered>,
}

impl Requests {
    pub(super) fn add(&mut self, asked: Asked) {
        self.asked.push(asked);
    }

    /// Whether another request can be recorded.
    pub(super) fn has_room(&self) -> bool {
        self.asked.len() < MAX_RECORDED
    }

    /// Whether there are more requests than any client makes.
    pub(super) fn are_too_many(&self) -> bool {
        self.asked.len() > MAX_UNDER_WAY
    }

    /// All requests, when the connection has ended.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Asked> {
        self.asked.drain(..)
    }

    /// The recorded request whose reply has this id.
    pub(super) fn of(&mut self, id: &str) -> Option<&mut Asked> {
        self.asked.iter_mut().find(|asked| asked.recorder.is_some() && asked.reply.id() == Some(id))
    }

    /// The messages that steered the last reply of a lane.
    pub(super) fn steered_in(&mut self, lane: Option<&str>) -> Option<Steered> {
        let place = self.steered.iter().position(|steered| steered.lane.as_deref() == lane)?;
        Some(self.steered.remove(place))
    }

    /// The words with which the server begins a response by itself, if this event says so.
    pub(super) fn successor(&mut self, event: &Value) -> Option<Steered> {
        let lane = lane(event);
        match kind(event) {
            "response.created" if !self.asked.iter().any(|asked| asked.lane.as_deref() == lane) => {
                self.steered_in(lane)
            }
            // The client gets its words back.
            "response.steer.failed" => {
                let in_lane = self.asked.iter_mut().filter(|asked| asked.lane.as_deref() == lane);
                in_lane.for_each(|asked| asked.steered.clear());
                self.steered_in(lane);
                None
            }
            _ => None,
        }
    }

    /// Reads an event of the server. Returns the request whose reply ends with it.
    pub(super) fn read(&mut self, event: &Value) -> Option<Asked> {
        let lane = lane(event);
        let place = self.asked.iter().position(|asked| asked.lane.as_deref() == lane)?;
        let asked = &mut self.asked[place];
        Responses.read_event(event, &mut asked.reply);
        if !asked.reply.is_done() {
            return None;
        }
        let mut ended = self.asked.remove(place);
        if !ended.steered.is_empty() {
            let (asker, lane) = (ended.asker.clone(), ended.lane.clone());
            self.steered.push(Steered { asker, lane, messages: std::mem::take(&mut ended.steered) });
        }
        Some(ended)
    }
}

fn lane(event: &Value) -> Option<&str> {
    event.get("stream_id").and_then(Value::as_str)
}

fn kind(event: &Value) -> &str {
    event.get("type").and_then(Value::as_str).unwrap_or_default()
}
