//! The other doors: each client is a user of its own, who is forgotten now and then.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::Ledger;
use crate::support::{Client, Random, made_up_word};

/// What a client has written as a user of its own, through the other doors.
#[derive(Debug, Clone, Default)]
pub(crate) struct Person {
    client: u64,
    number: u64,
    /// Through the client of mem0, through MCP, and learned from a message.
    memories: BTreeSet<String>,
    /// The place in the session's working context.
    context: Option<String>,
    /// A request, and how often its user has complained about it.
    asked: Option<(String, u64)>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum PersonWrite {
    Mem0,
    Mcp,
    Learn,
    DeleteAll,
    Context,
    Ask,
    Complain,
    Prompt,
    ForgetUser,
    ForgetUserByMcp,
}

impl Person {
    fn user(&self) -> String {
        format!("person{}", self.client)
    }

    fn text(&self) -> String {
        format!("person {} has {} lanterns", self.client, self.number)
    }

    /// What the user says, and what is learned from it.
    fn liking(&self) -> (String, String) {
        let what = made_up_word("la", self.client * 100_000 + self.number);
        (format!("I like {what}"), format!("The user likes {what}"))
    }

    fn place(&self) -> String {
        format!("place {}", self.number)
    }

    /// The method, the path and the body of a write.
    fn request(
        &self,
        write: PersonWrite,
        client: &mut Client,
    ) -> std::io::Result<(&'static str, String, Value)> {
        let (user, text) = (self.user(), self.text());
        let asked = self.asked.as_ref().map_or("", |(id, _)| id.as_str());
        let said = json!([{ "role": "user", "content": text }]);
        let tool = json!({ "name": "add_memory", "arguments": { "text": text, "user_id": user } });
        Ok(match write {
            PersonWrite::Mem0 => {
                ("POST", "/memories".to_owned(), json!({ "messages": said, "user_id": user, "infer": false }))
            }
            PersonWrite::Mcp => {
                let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": tool });
                ("POST", "/mcp".to_owned(), call)
            }
            PersonWrite::Learn => {
                let said = json!([{ "role": "user", "content": self.liking().0 }]);
                (
                    "POST",
                    "/memories".to_owned(),
                    json!({ "messages": said, "user_id": user, "run_id": "talk" }),
                )
            }
            PersonWrite::DeleteAll => ("DELETE", format!("/memories?user_id={user}"), Value::Null),
            PersonWrite::Context => {
                let path = format!("/sessions/s/context?user_id={user}");
                // The rest of the document stays as it is.
                let read = client.get(&path)?;
                let mut document =
                    if read.status == 200 { read.json() } else { json!({ "session_id": "s" }) };
                document["last_known_environment"]["workspace"] = json!(self.place());
                ("PUT", path, document)
            }
            PersonWrite::Ask => ("POST", "/search".to_owned(), json!({ "query": text, "user_id": user })),
            PersonWrite::Complain => {
                let body = json!({ "text": format!("complaint {}", self.number), "user_id": user });
                ("POST", format!("/requests/{asked}/feedback"), body)
            }
            PersonWrite::Prompt => {
                let body = json!({ "question": text, "format": "chat", "user_id": user });
                ("POST", "/sessions/talk/prompt".to_owned(), body)
            }
            PersonWrite::ForgetUser => ("DELETE", format!("/users/{user}"), Value::Null),
            PersonWrite::ForgetUserByMcp => {
                let tool =
                    json!({ "name": "forget_user", "arguments": { "user_id": user, "confirmed": true } });
                let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": tool });
                ("POST", "/mcp".to_owned(), call)
            }
        })
    }
}

impl Ledger for Person {
    type Write = PersonWrite;

    fn of(client: u64) -> Self {
        Self { client, ..Self::default() }
    }

    fn client(&self) -> u64 {
        self.client
    }

    fn is_repeated(write: PersonWrite) -> bool {
        matches!(write, PersonWrite::Learn | PersonWrite::DeleteAll)
    }

    fn next(&mut self, random: &mut Random) -> PersonWrite {
        self.number += 1;
        match (random.below(15), &self.asked) {
            (0..=2, _) => PersonWrite::Mem0,
            (3..=4, _) => PersonWrite::Mcp,
            (5..=6, _) => PersonWrite::Context,
            (7..=8, None) => PersonWrite::Ask,
            (7..=8, Some(_)) => PersonWrite::Complain,
            (9..=10, _) => PersonWrite::Learn,
            _ if self.memories.is_empty() => PersonWrite::Mem0,
            (11, _) => PersonWrite::DeleteAll,
            (12, _) => PersonWrite::Prompt,
            (13, _) => PersonWrite::ForgetUserByMcp,
            _ => PersonWrite::ForgetUser,
        }
    }

    fn send(&self, write: PersonWrite, client: &mut Client) -> std::io::Result<Value> {
        let (method, path, body) = self.request(write, client)?;
        let headers = [
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("If-Match", "*"),
        ];
        let headers = if matches!(write, PersonWrite::Context) { &headers[..] } else { &headers[..2] };
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut answer = client.send(method, &path, headers, body.as_bytes())?;
        if let (PersonWrite::Complain, Some((_, complaints))) = (write, &self.asked) {
            while answer.status == 503 && answer.text().contains("still being written") {
                answer = client.send(method, &path, headers, body.as_bytes())?;
            }
            // The row of a question is written in the background, so a kill may have lost it.
            if answer.status == 404 && *complaints == 0 {
                return Ok(Value::Null);
            }
        }
        assert!((200..300).contains(&answer.status), "{write:?}: {} {}", answer.status, answer.text());
        Ok(answer.json())
    }

    fn after(&self, write: PersonWrite, answer: Option<&Value>) -> Self {
        let mut after = self.clone();
        match write {
            PersonWrite::Mem0 | PersonWrite::Mcp => drop(after.memories.insert(self.text())),
            PersonWrite::Learn => drop(after.memories.insert(self.liking().1)),
            PersonWrite::DeleteAll => after.memories.clear(),
            PersonWrite::Context => after.context = Some(self.place()),
            PersonWrite::Ask => {
                let id = answer.and_then(|answer| answer["request_id"].as_str());
                after.asked = id.map(|id| (id.to_owned(), 0));
            }
            PersonWrite::Complain if answer == Some(&Value::Null) => after.asked = None,
            PersonWrite::Complain => {
                after.asked = after.asked.map(|(id, complaints)| (id, complaints + 1));
            }
            PersonWrite::Prompt => {}
            PersonWrite::ForgetUser | PersonWrite::ForgetUserByMcp => {
                (after.memories, after.context, after.asked) = (BTreeSet::new(), None, None);
            }
        }
        after
    }

    fn differences(&self, client: &mut Client) -> String {
        let mut differences = String::new();
        let mut check = |what: &str, found: Value, expected: Value| {
            if found != expected {
                differences.push_str(&format!("{what}: {found}, not {expected}; "));
            }
        };
        let user = self.user();
        let listed = client.get(&format!("/memories?user_id={user}&limit=1000")).unwrap().json();
        let results = listed["results"].as_array().cloned().unwrap_or_default();
        let mut texts: Vec<&str> = results.iter().filter_map(|result| result["memory"].as_str()).collect();
        texts.sort_unstable();
        check("the memories", json!(texts), json!(self.memories));
        let context = client.get(&format!("/sessions/s/context?user_id={user}")).unwrap();
        let place = context.json()["last_known_environment"]["workspace"].as_str().map(str::to_owned);
        check(
            "the context",
            json!(place.unwrap_or_default()),
            json!(self.context.clone().unwrap_or_default()),
        );
        // A complaint is durable, and so is its request then.
        if let Some((id, complaints)) = self.asked.as_ref().filter(|(_, complaints)| *complaints > 0) {
            let row = client.get(&format!("/requests/{id}?user_id={user}")).unwrap();
            let found =
                if row.status == 200 { row.json()["feedback"].as_array().map(Vec::len) } else { None };
            check("the complaints", json!(found), json!(complaints));
        }
        differences
    }
}
