//! Passes a reply on as it arrives, and reads it for the recorder.
//!
//! Frames are passed on unchanged, with the same boundaries. The last one waits until the reply is recorded, so a
//! reply whose end a client has seen is never lost. For a stream, this is the frame with the last event or the end itself.
//! A document is of no use before its end, so all of it waits.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Bytes, HttpBody};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use hyper::body::Frame;
use strata_engine::Ending;

use super::decoding::Decoder;
use super::forward::{BodyError, IdleTimeoutBody};
use super::recorder::{ExchangeRecorder, MayPass};
use super::stored::Place;
use crate::app::App;
use crate::compat::chat::ChatApi;
use crate::compat::chat::reply::{Framing, Reply, StreamReader, document, failure};
use crate::room::{FIRST_BYTES, TakenRoom};
use crate::upstream::BackgroundId;

/// A larger document is passed on without being read: no reply is that long.
const MAX_DOCUMENT_BYTES: usize = 64 * 1024 * 1024;

/// A reply that is being passed on.
pub(crate) struct Relay {
    upstream: IdleTimeoutBody,
    api: &'static dyn ChatApi,
    decoder: Decoder,
    reader: ReplyReader,
    recording: Recording,
    /// The upstream that stores the reply, and for whom.
    place: Place,
    phase: Phase,
    /// Frames that wait for the recording.
    held: VecDeque<Frame<Bytes>>,
    room: Room,
    broken: Option<BodyError>,
}

/// The room that a document takes while it is held, in [`Settings::max_bytes_under_way`](crate::Settings::max_bytes_under_way):
/// twice its size, because it is also read. Small documents take none, and a stream is not held.
struct Room {
    /// The size of the document, if the upstream says it.
    declared: Option<usize>,
    waiting: Option<Pin<Box<dyn Future<Output = TakenRoom> + Send>>>,
    taken: Option<TakenRoom>,
}

impl Room {
    fn new(headers: &HeaderMap) -> Self {
        let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        // The length of a compressed document says little.
        let declared = length.filter(|_| !headers.contains_key(CONTENT_ENCODING));
        Self { declared, waiting: None, taken: None }
    }

    /// Waits until there is room for a document of which `read` bytes have come.
    fn poll(&mut self, app: &App, read: usize, context: &mut Context<'_>) -> Poll<()> {
        if self.taken.is_some() {
            return Poll::Ready(());
        }
        let waiting = match &mut self.waiting {
            Some(waiting) => waiting,
            None => {
                let whole = match self.declared {
                    Some(declared) if declared > FIRST_BYTES => declared.min(MAX_DOCUMENT_BYTES),
                    None if read > FIRST_BYTES => MAX_DOCUMENT_BYTES,
                    _ => return Poll::Ready(()),
                };
                let app = app.clone();
                // All of it at once: documents that each wait for more would wait for each other.
                self.waiting.insert(Box::pin(async move { app.rooms().take(2 * whole).await }))
            }
        };
        self.taken = Some(ready!(waiting.as_mut().poll(context)));
        self.waiting = None;
        Poll::Ready(())
    }
}

/// The recorded part of an answer.
#[derive(Default)]
pub(crate) enum Recording {
    /// Nothing.
    #[default]
    Off,
    /// Nothing, but the id under which the provider stores the reply is noted.
    Ids,
    /// The reply to a chat.
    Live(ExchangeRecorder),
    /// A reply that the provider has worked on in the background, once it has ended.
    Background(BackgroundId),
}

/// The end of an answer.
struct End {
    ending: Ending,
    /// The id under which the client will fetch the reply later.
    fetched_later_as: Option<String>,
    /// Whether nothing more can come, even if the reply is fetched again.
    is_final: bool,
}

impl End {
    fn of(reply: Reply, ending: impl FnOnce(Reply) -> Ending) -> Self {
        let fetched_later_as = reply.fetched_later_as().map(str::to_owned);
        let is_final = reply.is_final();
        Self { ending: ending(reply), fetched_later_as, is_final }
    }

    /// The end of an answer of which nothing is known.
    fn unknown() -> Self {
        let ending = Ending::Interrupted(Reply::default().into_message());
        Self { ending, fetched_later_as: None, is_final: false }
    }
}

/// The reader, by the kind of the answer.
enum ReplyReader {
    Stream(Box<StreamReader>),
    Document(Vec<u8>),
    Failure(StatusCode, Vec<u8>),
    /// The answer is too large to be read.
    Nothing,
}

impl ReplyReader {
    /// The bytes of a document that is held.
    fn held(&self) -> Option<usize> {
        match self {
            Self::Document(bytes) | Self::Failure(_, bytes) => Some(bytes.len()),
            Self::Stream(_) | Self::Nothing => None,
        }
    }

    /// Reads a piece. Returns whether it may pass at once.
    fn read(&mut self, data: &[u8]) -> bool {
        match self {
            Self::Stream(stream) => {
                stream.feed(data);
                !stream.reply.is_done()
            }
            Self::Document(bytes) | Self::Failure(_, bytes) => {
                if bytes.len() + data.len() > MAX_DOCUMENT_BYTES {
                    *self = Self::Nothing;
                    return true;
                }
                bytes.extend_from_slice(data);
                false
            }
            Self::Nothing => true,
        }
    }
}

enum Phase {
    /// Frames pass.
    Passing,
    /// The end waits for the recording.
    Recording(MayPass),
    /// The held frames pass, and all that follow.
    Passed,
}

impl Relay {
    /// Passes `upstream` on, with this status and these headers. If nothing is recorded or noted, nothing is read.
    pub(crate) fn new(
        upstream: IdleTimeoutBody,
        (status, headers): (StatusCode, &HeaderMap),
        api: &'static dyn ChatApi,
        recording: Recording,
        place: Place,
    ) -> Self {
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let reader = match (status.is_success(), Framing::of(kind)) {
            _ if matches!(recording, Recording::Off) => ReplyReader::Nothing,
            (true, Some(framing)) => ReplyReader::Stream(Box::new(StreamReader::new(api, framing))),
            (true, None) => ReplyReader::Document(Vec::new()),
            (false, _) => ReplyReader::Failure(status, Vec::new()),
        };
        let (phase, held) = (Phase::Passing, VecDeque::new());
        let decoder = Decoder::of(headers);
        let room = Room::new(headers);
        Self { upstream, api, decoder, reader, recording, place, phase, held, room, broken: None }
    }

    /// Reads a piece. Returns whether it may pass at once.
    fn read(&mut self, data: &[u8]) -> bool {
        let reader = &mut self.reader;
        self.decoder.feed(data, |data| reader.read(data))
    }

    /// How the reply ended. `cut` tells whether it was read to its end.
    fn read_end(&mut self, cut: Cut) -> End {
        match std::mem::replace(&mut self.reader, ReplyReader::Nothing) {
            ReplyReader::Stream(mut stream) => {
                if cut == Cut::AtItsEnd {
                    stream.finish();
                }
                self.settle(&stream.reply);
                End::of(stream.reply, |reply| stream_ending(reply, cut))
            }
            ReplyReader::Document(bytes) => {
                let reply = document(self.api, &bytes);
                self.settle(&reply);
                // Not every server says why a reply has ended; a whole document is a whole reply.
                let is_whole = cut == Cut::AtItsEnd && (reply.is_complete() || reply.says_something());
                End::of(reply, |reply| match reply.error() {
                    Some(_) => Ending::Failed(failure(None, &bytes, "it said nothing")),
                    None if is_whole => Ending::Complete(reply.into_message()),
                    None => Ending::Interrupted(reply.into_message()),
                })
            }
            ReplyReader::Failure(status, bytes) => {
                let fallback = status.canonical_reason().unwrap_or("no reason was given");
                let ending = Ending::Failed(failure(Some(status.as_u16()), &bytes, fallback));
                End { ending, ..End::unknown() }
            }
            ReplyReader::Nothing => End::unknown(),
        }
    }

    /// The next request that goes on with the reply has to go to the same upstream, for the same user.
    fn settle(&self, reply: &Reply) {
        match (reply.id(), &self.recording) {
            // It was made earlier, perhaps for somebody else.
            (Some(id), Recording::Background(_)) => self.place.used([id]),
            (Some(id), _) => self.place.made(id),
            (None, _) => {}
        }
    }

    /// Sends the reply to the recorder; the held frames wait for it.
    fn end(&mut self, cut: Cut) {
        let End { ending, fetched_later_as, is_final } = self.read_end(cut);
        let Place { app, upstream, .. } = &self.place;
        let background = &app.proxy().background;
        self.phase = match (std::mem::take(&mut self.recording), fetched_later_as) {
            (Recording::Live(recorder), Some(id)) => {
                background.wait_for((*upstream, id), Box::new(|ending| recorder.end(ending)));
                Phase::Passed
            }
            (Recording::Live(recorder), None) => Phase::Recording(recorder.end(ending)),
            (Recording::Background(id), None) if is_final => match background.take(&id) {
                Some(record) => Phase::Recording(record(ending)),
                None => Phase::Passed,
            },
            (Recording::Background(_) | Recording::Ids | Recording::Off, _) => Phase::Passed,
        };
    }
}

/// The place where a reply ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    AtItsEnd,
    Before,
}

/// How a reply ended of which nothing more will come.
pub(super) fn ending_of(reply: Reply) -> Ending {
    stream_ending(reply, Cut::Before)
}

fn stream_ending(reply: Reply, cut: Cut) -> Ending {
    if let Some(error) = reply.error() {
        let error = error.to_owned();
        let mut message = reply.into_message();
        if message.content.is_empty() {
            return Ending::Failed(failure(None, b"", &error));
        }
        message.metadata.insert("error", error.into());
        return Ending::Interrupted(message);
    }
    // A client may disconnect as soon as it has read the end of the reply.
    let is_whole = reply.is_complete() && (cut == Cut::AtItsEnd || reply.is_done());
    match is_whole {
        true => Ending::Complete(reply.into_message()),
        false => Ending::Interrupted(reply.into_message()),
    }
}

impl HttpBody for Relay {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let relay = &mut *self;
        loop {
            if let (Phase::Passing, Some(held)) = (&relay.phase, relay.reader.held()) {
                ready!(relay.room.poll(&relay.place.app, held, context));
            }
            match &mut relay.phase {
                Phase::Passing => match ready!(Pin::new(&mut relay.upstream).poll_frame(context)) {
                    Some(Ok(frame)) => {
                        let passes = frame.data_ref().cloned().is_none_or(|data| relay.read(&data));
                        if passes && !relay.upstream.is_end_stream() {
                            // A document that has become too large is passed on.
                            relay.held.push_back(frame);
                            return Poll::Ready(relay.held.pop_front().map(Ok));
                        }
                        relay.held.push_back(frame);
                        let is_stream = matches!(relay.reader, ReplyReader::Stream(_));
                        if relay.upstream.is_end_stream() || (is_stream && !passes) {
                            relay.end(Cut::AtItsEnd);
                        }
                    }
                    Some(Err(error)) => {
                        tracing::warn!(%error, "a reply broke off");
                        relay.broken = Some(error);
                        relay.end(Cut::Before);
                    }
                    None => relay.end(Cut::AtItsEnd),
                },
                Phase::Recording(may_pass) => {
                    ready!(may_pass.as_mut().poll(context));
                    relay.phase = Phase::Passed;
                }
                Phase::Passed => {
                    if let Some(frame) = relay.held.pop_front() {
                        return Poll::Ready(Some(Ok(frame)));
                    }
                    if let Some(error) = relay.broken.take() {
                        return Poll::Ready(Some(Err(error)));
                    }
                    return Pin::new(&mut relay.upstream).poll_frame(context);
                }
            }
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        if !matches!(self.recording, Recording::Off) {
            self.end(Cut::Before);
        }
    }
}
