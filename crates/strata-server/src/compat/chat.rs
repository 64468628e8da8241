//! Chats in the APIs of model providers: the body of a request, in which memory changes only a few bytes, and the
//! reply.
//!
//! All APIs share one life of a message (the proxy module). An API differs from the others only in what [`ChatApi`]
//! asks: where its messages are, how a block is put in front of one, and how a reply is read. Each API implements the
//! trait in a module of its own: OpenAI's chat completions and Responses, Anthropic's Messages, Ollama.

mod harness;
mod options;
pub(crate) mod reply;
mod schemas;
pub(crate) mod splice;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use serde_json::{Map, Value};
use strata_core::Role;
use strata_core::turn::NewMessage;

use options::EXTRAS;
pub(crate) use options::{Options, OwnNames, name};
use reply::Reply;
pub(crate) use schemas::schemas;
use splice::{Edits, Object, Piece};

use crate::error::ApiError;

/// The differences between the APIs of model providers.
pub(crate) trait ChatApi: Send + Sync {
    /// Reads the messages of a request. Parts that are not understood are left to the upstream.
    fn prompt(&self, body: &Object<'_>) -> Result<Prompt, ApiError>;

    /// The JSON of a content part with this text, which is escaped already.
    fn text_part(&self, escaped: &str) -> String {
        format!("{{\"type\":\"text\",\"text\":\"{escaped}\"}}")
    }

    /// Whether the provider keeps the conversation, so that the request has only the new messages.
    fn is_kept_upstream(&self, _body: &Object<'_>) -> bool {
        false
    }

    /// Whether the provider stores the reply under its id.
    fn is_stored_upstream(&self, _body: &Object<'_>) -> bool {
        false
    }

    /// Whether the model continues a last message that the assistant has begun.
    fn continues_last(&self) -> bool {
        false
    }

    /// Reads a whole answer.
    fn read_document(&self, document: &Value, reply: &mut Reply);

    /// Reads one event of a stream, or one line of it.
    fn read_event(&self, event: &Value, reply: &mut Reply);
}

/// The messages of a request, and where they are in its body.
pub(crate) struct Prompt {
    pub(crate) messages: Vec<Message>,
    /// The part of the body that has the messages.
    pub(crate) place: Range<usize>,
    /// Whether the messages are elements of one list, so that some of them can be removed.
    pub(crate) is_list: bool,
}

/// One of the client's messages.
#[derive(Debug, Default)]
pub(crate) struct Message {
    pub(crate) place: Range<usize>,
    /// Where a block of memory can be put; `None` if there is no such place.
    pub(crate) slot: Option<Slot>,
    /// `None` for an item without a speaker: it is passed on, but not recorded.
    pub(crate) role: Option<Role>,
    /// Its text, or the texts of its parts joined; empty if its one turn has the same text. Read it with
    /// [`Message::said`].
    pub(crate) said: String,
    /// The number of its parts that are not text.
    pub(crate) other_parts: u32,
    /// The message in the form that is recorded. Instructions have none, and several results of tools in one message
    /// are one turn each.
    pub(crate) turns: Vec<NewMessage>,
}

/// A place in front of a message's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// Inside a string, at this byte.
    Text(usize),
    /// Before the part at this byte of a list of parts.
    Part(usize),
    /// At this byte of an empty list.
    OnlyPart(usize),
}

impl Slot {
    /// The place in front of a content: a string or a list of parts.
    pub(crate) fn before(text: &str, content: &Range<usize>) -> Option<Self> {
        match text.as_bytes().get(content.start)? {
            b'"' => Some(Self::Text(content.start + 1)),
            b'[' if splice::elements(text, content).is_empty() => Some(Self::OnlyPart(content.start + 1)),
            b'[' => Some(Self::Part(content.start + 1)),
            _ => None,
        }
    }
}

impl Message {
    /// The message without what programs have added to it, and with its text once: long conversations would take the
    /// memory twice.
    pub(crate) fn once(self) -> Self {
        self.without_harness().with_one_text()
    }

    fn with_one_text(mut self) -> Self {
        if matches!(self.turns.as_slice(), [turn] if turn.content == self.said) {
            self.said = String::new();
        }
        self
    }

    /// Its text, or the texts of its parts joined.
    pub(crate) fn said(&self) -> &str {
        match self.turns.as_slice() {
            [turn] if self.said.is_empty() => &turn.content,
            _ => &self.said,
        }
    }

    /// The number of bytes that it takes in the body. Images count with their full size.
    pub(crate) fn bytes(&self) -> usize {
        self.place.len()
    }
}

/// A request's body.
pub(crate) struct ChatBody<'a> {
    api: &'static dyn ChatApi,
    object: Object<'a>,
    prompt: Prompt,
    pub(crate) names: OwnNames,
    pub(crate) options: Options,
}

/// A body for the upstream: pieces of the client's body, and the blocks between them. The client's bytes are not
/// copied, because a body may be large.
pub(crate) struct Forwarded {
    pieces: Vec<Piece>,
    /// Where the messages are, in the forwarded body.
    prompt: Range<usize>,
}

impl Forwarded {
    /// The messages, as the model will be shown them, in pieces of the client's `body` and blocks.
    pub(crate) fn prompt<'p>(&'p self, body: &'p [u8]) -> impl Iterator<Item = &'p [u8]> {
        let mut at = 0;
        self.pieces.iter().map(move |piece| {
            let bytes = piece.bytes(body);
            let begins = at;
            at += bytes.len();
            let from = self.prompt.start.saturating_sub(begins).min(bytes.len());
            let to = self.prompt.end.saturating_sub(begins).min(bytes.len());
            &bytes[from..to.max(from)]
        })
    }

    /// The pieces as one text. `body` is the client's.
    #[cfg(any(test, feature = "fuzz"))]
    pub(crate) fn bytes(&self, body: &[u8]) -> Vec<u8> {
        self.pieces.iter().flat_map(|piece| piece.bytes(body).to_vec()).collect()
    }

    /// The pieces as a body. `body` is the client's.
    pub(crate) fn body(&self, body: &Bytes) -> Body {
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Kept(range) => body.slice(range.clone()),
            Piece::New(text) => Bytes::copy_from_slice(text.as_bytes()),
        });
        Body::new(PiecesBody(pieces.filter(|piece| !piece.is_empty()).collect()))
    }
}

/// A body that is known in pieces.
struct PiecesBody(VecDeque<Bytes>);

impl HttpBody for PiecesBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.iter().map(|piece| piece.len() as u64).sum())
    }
}

impl<'a> ChatBody<'a> {
    /// Reads a body. Fields that memory does not need are not checked; that is left to the upstream.
    pub(crate) fn read(api: &'static dyn ChatApi, bytes: &'a [u8]) -> Result<Self, ApiError> {
        let (text, place) = splice::parse(bytes)
            .map_err(|reason| ApiError::invalid(format!("the body is not JSON: {reason}; send an object")))?;
        if !text[place.clone()].starts_with('{') {
            return Err(ApiError::invalid("the body is not a JSON object; send one"));
        }
        let object = Object::at(text, &place);
        let (names, options) = (OwnNames::read(&object)?, Options::read(&object)?);
        let prompt = api.prompt(&object)?;
        Ok(Self { api, object, prompt, names, options })
    }

    pub(crate) fn api(&self) -> &'static dyn ChatApi {
        self.api
    }

    pub(crate) fn messages(&self) -> &[Message] {
        &self.prompt.messages
    }

    /// The fields of the body.
    pub(crate) fn fields(&self) -> &Object<'a> {
        &self.object
    }

    /// The model that the request asks for.
    pub(crate) fn model(&self) -> Option<Cow<'a, str>> {
        self.object.string("model")
    }

    /// The ids of the stored response and conversation that the request goes on with.
    pub(crate) fn stored(&self) -> Vec<String> {
        let names = ["previous_response_id", "conversation"];
        names.iter().filter_map(|path| name(&self.object, path, "session").ok().flatten()).collect()
    }

    /// Those of [`ChatBody::stored`] that bind the request to the upstream which keeps them. In an API whose provider keeps no
    /// conversation they are labels of the client's.
    pub(crate) fn kept(&self) -> Vec<String> {
        if self.is_kept_upstream() { self.stored() } else { Vec::new() }
    }

    /// Whether the provider keeps the conversation.
    pub(crate) fn is_kept_upstream(&self) -> bool {
        self.api.is_kept_upstream(&self.object)
    }

    /// Whether the provider stores the reply.
    pub(crate) fn is_stored_upstream(&self) -> bool {
        self.api.is_stored_upstream(&self.object)
    }

    /// The beginning of the reply, if the client writes it and the model continues it.
    pub(crate) fn begun_reply(&self) -> Option<&str> {
        let last = self.messages().last().filter(|_| self.api.continues_last())?;
        let [turn] = last.turns.as_slice() else { return None };
        (turn.role == Role::Assistant && turn.notes.tool_calls.is_empty()).then_some(&turn.content)
    }

    /// Whether the request has nothing that is recorded, and goes on with nothing that the provider keeps.
    pub(crate) fn is_silent(&self) -> bool {
        self.messages().iter().all(|message| message.turns.is_empty()) && !self.is_kept_upstream()
    }

    /// The index of the user's last message into which memory can be inserted.
    pub(crate) fn question(&self) -> Option<usize> {
        let messages = self.messages();
        let place = messages.iter().rposition(|message| message.role == Some(Role::User))?;
        messages[place].slot?;
        Some(place)
    }

    /// The body for the upstream: without the fields for Strata, with blocks in front of some messages' contents, and
    /// without the messages that were compacted.
    pub(crate) fn forwarded(&self, blocks: &[(usize, String)], is_gone: impl Fn(usize) -> bool) -> Forwarded {
        let text = self.object.text();
        let mut edits = Edits::default();
        let is_extra = |place: usize| EXTRAS.contains(&&*self.object.name(place));
        edits.remove(&self.object.places(), is_extra);
        if self.prompt.is_list {
            let messages: Vec<Range<usize>> =
                self.messages().iter().map(|message| message.place.clone()).collect();
            edits.remove(&messages, is_gone);
        }
        for (place, block) in blocks {
            let Some(slot) = self.messages()[*place].slot else { continue };
            let escaped = splice::escaped(&format!("{block}\n\n"));
            match slot {
                Slot::Text(at) => edits.insert(at, escaped),
                Slot::Part(at) => edits.insert(at, format!("{},", self.api.text_part(&escaped))),
                Slot::OnlyPart(at) => edits.insert(at, self.api.text_part(&escaped)),
            }
        }
        let Range { start, end } = self.prompt.place;
        let prompt = edits.moved(start)..edits.moved(end);
        Forwarded { pieces: edits.pieces(text.len()), prompt }
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
impl ChatBody<'_> {
    /// The body for the upstream as one text.
    pub(crate) fn forwarded_text(
        &self,
        blocks: &[(usize, String)],
        is_gone: impl Fn(usize) -> bool,
    ) -> String {
        let bytes = self.forwarded(blocks, is_gone).bytes(self.object.text().as_bytes());
        String::from_utf8(bytes).unwrap()
    }
}

/// Appends a text to others, on a line of its own.
pub(crate) fn add_line(text: &mut String, more: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(more);
}

/// A tool call in the form that is recorded: `{id, name, arguments}`, without those that are missing.
pub(crate) fn tool_call(id: Option<&Value>, name: Option<&Value>, arguments: Option<&Value>) -> Value {
    let mut call = Map::new();
    for (field, value) in [("id", id), ("name", name), ("arguments", arguments)] {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            call.insert(field.to_owned(), value.clone());
        }
    }
    Value::Object(call)
}

/// A message in the form that is recorded. `other_parts` are the types of its parts that are not text.
pub(crate) fn turn(role: Role, said: &str, other_parts: &[Value]) -> NewMessage {
    let mut turn = NewMessage::new(role, said);
    if !other_parts.is_empty() {
        turn.metadata.insert("parts", other_parts.to_vec().into());
    }
    turn
}
