//! OpenAI's realtime conversations: JSON events over a WebSocket. What the client writes, the transcripts of what it speaks and the
//! replies are put in the order in which they were said. Sounds are never read.

use std::collections::VecDeque;

use serde_json::{Value, json};
use strata_core::Role;
use strata_core::turn::NewMessage;

use super::responses::{Responses, item_message};
use crate::compat::chat::reply::Reply;
use crate::compat::chat::splice::{self, Object};
use crate::compat::chat::{ChatApi, turn};

/// The most text that waits for a reply; the oldest is left out first, as in a chat.
const MAX_WAITING_BYTES: usize = 4 * 1024 * 1024;

/// A reply, and what was said before it and is not recorded yet.
#[derive(Debug)]
pub(crate) struct Spoken {
    pub(crate) messages: Vec<NewMessage>,
    /// Empty if the conversation ended before there was one.
    pub(crate) reply: Reply,
}

/// Messages that are not recorded yet.
#[derive(Debug, Default)]
pub(crate) struct Realtime {
    items: VecDeque<Item>,
    /// The bytes of the items.
    bytes: usize,
    /// Whether speech is transcribed.
    transcribes: bool,
}

#[derive(Debug)]
enum Item {
    Said(Box<NewMessage>),
    /// Speech whose transcript has not come, by its id.
    Speech(String),
    Reply(Box<Reply>),
}

impl Item {
    /// About the memory that it takes.
    fn bytes(&self) -> usize {
        const OVERHEAD: usize = 256;
        let text = match self {
            Self::Said(message) => message.content.len(),
            Self::Speech(id) => id.len(),
            Self::Reply(_) => 0,
        };
        OVERHEAD + text
    }
}

impl Realtime {
    /// Reads an event of the client.
    pub(crate) fn hear(&mut self, event: &[u8]) {
        let Ok((text, place)) = splice::parse(event) else { return };
        let event = Object::at(text, &place);
        if event.string("type").as_deref() != Some("conversation.item.create") {
            return;
        }
        if let Some(place) = event.place("item") {
            item_message(text, place).turns.into_iter().for_each(|turn| self.add(Item::Said(Box::new(turn))));
        }
    }

    /// Reads an event of the server.
    pub(crate) fn read(&mut self, event: &Value) {
        let text = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "session.created" | "session.updated" => {
                // The form of the first versions, and the present one.
                let places = ["/session/input_audio_transcription", "/session/audio/input/transcription"];
                self.transcribes =
                    places.iter().any(|place| event.pointer(place).is_some_and(Value::is_object));
            }
            "input_audio_buffer.committed" => self.add(Item::Speech(text("item_id").to_owned())),
            "conversation.item.input_audio_transcription.completed" => {
                self.transcribed(text("item_id"), text("transcript"));
            }
            "conversation.item.input_audio_transcription.failed" => self.transcribed(text("item_id"), ""),
            "response.done" => {
                event.get("response").and_then(reply).into_iter().for_each(|reply| self.add(reply))
            }
            _ => {}
        }
    }

    /// The next reply that can be recorded. It waits for the transcript of what it answers, but no longer than until the next reply.
    pub(crate) fn next(&mut self) -> Option<Spoken> {
        let is_reply = |item: &Item| matches!(item, Item::Reply(_));
        let place = self.items.iter().position(is_reply)?;
        let is_followed = self.items.iter().skip(place + 1).any(is_reply);
        let awaits = |item: &Item| matches!(item, Item::Speech(_));
        match self.transcribes && !is_followed && self.items.iter().take(place).any(awaits) {
            true => None,
            false => self.until(place + 1),
        }
    }

    /// The messages that are left when the conversation has ended.
    pub(crate) fn rest(&mut self) -> Option<Spoken> {
        let place = self.items.iter().position(|item| matches!(item, Item::Reply(_)));
        let count = place.map_or(self.items.len(), |place| place + 1);
        if count == 0 { None } else { self.until(count) }
    }

    fn add(&mut self, item: Item) {
        self.bytes += item.bytes();
        self.items.push_back(item);
        while self.bytes > MAX_WAITING_BYTES && self.items.len() > 1 {
            self.bytes -= self.items.pop_front().map_or(0, |item| item.bytes());
        }
    }

    fn until(&mut self, count: usize) -> Option<Spoken> {
        let mut spoken = Spoken { messages: Vec::new(), reply: Reply::default() };
        for item in self.items.drain(..count) {
            match item {
                Item::Said(message) => spoken.messages.push(*message),
                Item::Speech(_) => spoken.messages.push(turn(Role::User, "", &[json!("input_audio")])),
                Item::Reply(reply) => spoken.reply = *reply,
            }
        }
        self.bytes = self.items.iter().map(Item::bytes).sum();
        Some(spoken)
    }

    /// The transcript of speech; empty if there is none. Silence is left out.
    fn transcribed(&mut self, id: &str, transcript: &str) {
        let is_it = |item: &Item| matches!(item, Item::Speech(speech) if speech == id);
        let Some(place) = self.items.iter().position(is_it) else { return };
        match transcript.trim() {
            "" => drop(self.items.remove(place)),
            said => self.items[place] = Item::Said(Box::new(turn(Role::User, said, &[]))),
        }
        self.bytes = self.items.iter().map(Item::bytes).sum();
    }
}

/// A reply; `None` if it belongs to no conversation.
fn reply(response: &Value) -> Option<Item> {
    if response.get("conversation_id").is_some_and(Value::is_null) {
        return None;
    }
    let mut reply = Reply::default();
    Responses.read_document(response, &mut reply);
    reply.fail(response.pointer("/status_details/error").unwrap_or(&Value::Null));
    Some(Item::Reply(Box::new(reply)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hear(realtime: &mut Realtime, text: &str) {
        let content = json!([{"type": "input_text", "text": text}]);
        let item = json!({"type": "message", "role": "user", "content": content});
        realtime.hear(json!({"type": "conversation.item.create", "item": item}).to_string().as_bytes());
    }

    fn commit(realtime: &mut Realtime, id: &str) {
        realtime.read(&json!({"type": "input_audio_buffer.committed", "item_id": id}));
    }

    fn transcribe(realtime: &mut Realtime, id: &str, text: &str) {
        let kind = "conversation.item.input_audio_transcription.completed";
        realtime.read(&json!({"type": kind, "item_id": id, "transcript": text}));
    }

    fn speak(realtime: &mut Realtime, kind: &str, text: &str) {
        let field = if kind.ends_with("audio") { "transcript" } else { "text" };
        let content = json!([{"type": kind, field: text}]);
        let output = json!([{"type": "message", "role": "assistant", "content": content}]);
        let response = json!({"status": "completed", "conversation_id": "c", "output": output});
        realtime.read(&json!({"type": "response.done", "response": response}));
    }

    fn next(realtime: &mut Realtime) -> Option<(Vec<String>, String)> {
        let Spoken { messages, reply } = realtime.next()?;
        assert!(reply.is_complete() && reply.is_done(), "{reply:?}");
        Some((messages.into_iter().map(|message| message.content).collect(), reply.into_message().content))
    }

    fn transcribing() -> Realtime {
        let mut realtime = Realtime::default();
        let input = json!({"transcription": {"model": "t"}});
        realtime.read(&json!({"type": "session.updated", "session": {"audio": {"input": input}}}));
        realtime
    }

    #[test]
    fn texts_and_replies_come_in_their_order_in_every_form() {
        for kind in ["output_text", "text", "output_audio", "audio"] {
            let mut realtime = Realtime::default();
            hear(&mut realtime, "one");
            assert!(next(&mut realtime).is_none());
            speak(&mut realtime, kind, "reply");
            assert_eq!(next(&mut realtime), Some((vec!["one".to_owned()], "reply".to_owned())), "{kind}");
            assert!(next(&mut realtime).is_none() && realtime.rest().is_none());
        }
    }

    #[test]
    fn a_reply_waits_for_the_transcript_of_its_question() {
        let mut realtime = transcribing();
        commit(&mut realtime, "i1");
        speak(&mut realtime, "output_audio", "first");
        assert!(next(&mut realtime).is_none(), "the transcript comes later");
        transcribe(&mut realtime, "i1", " where is the key ");
        assert_eq!(next(&mut realtime), Some((vec!["where is the key".to_owned()], "first".to_owned())));
        // A transcript that never comes delays until the next reply.
        commit(&mut realtime, "i2");
        speak(&mut realtime, "output_audio", "second");
        speak(&mut realtime, "output_audio", "third");
        assert_eq!(next(&mut realtime), Some((vec![String::new()], "second".to_owned())));
        assert_eq!(next(&mut realtime), Some((Vec::new(), "third".to_owned())));
        // Silence is nothing.
        commit(&mut realtime, "i3");
        transcribe(&mut realtime, "i3", "");
        assert!(realtime.rest().is_none());
    }

    #[test]
    fn speech_that_nobody_transcribes_is_a_message_without_words() {
        let mut realtime = Realtime::default();
        commit(&mut realtime, "i1");
        speak(&mut realtime, "output_audio", "reply");
        let Spoken { messages, .. } = realtime.next().unwrap();
        assert_eq!(
            (messages[0].content.as_str(), messages[0].metadata.get("parts")),
            ("", Some(&json!(["input_audio"])))
        );
    }

    #[test]
    fn replies_outside_the_conversation_and_failures_are_told_apart() {
        let mut realtime = Realtime::default();
        let done = |response: Value| json!({"type": "response.done", "response": response});
        realtime.read(&done(json!({"status": "completed", "conversation_id": null, "output": []})));
        assert!(realtime.next().is_none());
        let error = json!({"type": "failed", "error": {"message": "no quota"}});
        realtime.read(&done(json!({"status": "failed", "status_details": error, "output": []})));
        assert_eq!(realtime.next().unwrap().reply.error(), Some("no quota"));
        realtime.read(&done(json!({"status": "cancelled", "output": []})));
        assert!(!realtime.next().unwrap().reply.is_complete());
        hear(&mut realtime, "still there?");
        let Spoken { messages, reply } = realtime.rest().unwrap();
        assert!(messages.len() == 1 && !reply.is_complete() && realtime.rest().is_none());
        for event in ["", "[]", "{\"type\": 5}", "{\"type\": \"conversation.item.create\", \"item\": 7}"] {
            realtime.hear(event.as_bytes());
        }
        assert!(realtime.rest().is_none());
    }
}
