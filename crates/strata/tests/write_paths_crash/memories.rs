//! Memories that are added, edited, deleted, restored and forgotten, states, and sessions that are forgotten. All clients are one user.

use serde_json::{Value, json};

use crate::Ledger;
use crate::support::{Client, Random};

/// What a client has written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Written {
    client: u64,
    number: u64,
    /// The memory, with all its statements in their order.
    memory: Option<String>,
    statements: Vec<String>,
    is_deleted: bool,
    /// The field of the session's state.
    state: Option<u64>,
    /// A memory that was destroyed.
    forgotten: Option<String>,
}

/// A write.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Write {
    Add,
    Edit,
    Delete,
    Restore,
    Forget,
    State,
    ForgetSession,
}

impl Written {
    fn text(&self) -> String {
        format!("client {} keeps {} kites", self.client, self.number)
    }

    fn session(&self) -> String {
        format!("session{}", self.client)
    }
}

impl Ledger for Written {
    type Write = Write;

    fn of(client: u64) -> Self {
        Self { client, ..Self::default() }
    }

    fn client(&self) -> u64 {
        self.client
    }

    fn next(&mut self, random: &mut Random) -> Write {
        self.number += 1;
        if self.memory.is_none() {
            return Write::Add;
        }
        let others = match random.below(12) {
            0 => Some(Write::Forget),
            1..=3 => Some(Write::State),
            4 if self.state.is_some() => Some(Write::ForgetSession),
            _ => None,
        };
        others.unwrap_or_else(|| match (self.is_deleted, random.below(3)) {
            (true, _) => Write::Restore,
            (false, 0) => Write::Delete,
            (false, _) => Write::Edit,
        })
    }

    fn send(&self, write: Write, client: &mut Client) -> std::io::Result<Value> {
        let json = [("Content-Type", "application/json"), ("X-Strata-User", "ada")];
        let memory = format!("/memories/{}", self.memory.as_deref().unwrap_or_default());
        let state = format!("/sessions/{}/state", self.session());
        let (method, path, body) = match write {
            Write::Add => ("POST", "/memories".to_owned(), json!({ "text": self.text(), "infer": false })),
            Write::Edit => ("PUT", memory, json!({ "text": self.text() })),
            Write::Delete => ("DELETE", memory, Value::Null),
            Write::Restore => ("POST", memory + "/restore", Value::Null),
            Write::Forget => ("DELETE", memory + "?forget=true", Value::Null),
            Write::State => ("PUT", state, json!({ "number": self.number })),
            Write::ForgetSession => ("DELETE", format!("/sessions/{}", self.session()), Value::Null),
        };
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = client.send(method, &path, &json, body.as_bytes())?;
        assert!((200..300).contains(&answer.status), "{write:?}: {} {}", answer.status, answer.text());
        Ok(answer.json())
    }

    fn after(&self, write: Write, answer: Option<&Value>) -> Self {
        let mut after = self.clone();
        match write {
            Write::Add => {
                let id = answer.and_then(|answer| answer["results"][0]["id"].as_str());
                after.memory = id.map(str::to_owned);
                after.statements = vec![self.text()];
                after.is_deleted = false;
            }
            Write::Edit => after.statements.push(self.text()),
            Write::Delete => after.is_deleted = true,
            Write::Restore => after.is_deleted = false,
            Write::Forget => {
                after.forgotten = after.memory.take();
                after.statements.clear();
                after.is_deleted = false;
            }
            Write::State => after.state = Some(self.number),
            Write::ForgetSession => after.state = None,
        }
        after
    }

    fn differences(&self, client: &mut Client) -> String {
        let mut differences = String::new();
        let mut check = |what: &str, found: Value, expected: Value| {
            if found != expected {
                differences.push_str(&format!("{what} is {found}, not {expected}; "));
            }
        };
        if let Some(memory) = &self.memory {
            let history = client.get(&format!("/memories/{memory}/history?user_id=ada")).unwrap().json();
            let steps = history.as_array().or(history["results"].as_array()).cloned().unwrap_or_default();
            let said = |event: &str| -> Vec<Value> {
                let of_kind = steps.iter().filter(|step| event.split(' ').any(|one| step["event"] == one));
                of_kind.map(|step| step["new_memory"].clone()).collect()
            };
            check("the history", said("ADD UPDATE").into(), json!(self.statements));
            let shown = client.get(&format!("/memories/{memory}?user_id=ada")).unwrap();
            let is_deleted = shown.status == 404 && shown.text().contains("was deleted");
            check("deleted", is_deleted.into(), self.is_deleted.into());
        }
        if let Some(forgotten) = &self.forgotten {
            let gone = client.get(&format!("/memories/{forgotten}?user_id=ada")).unwrap().status;
            check("the status of a forgotten memory", gone.into(), 404.into());
        }
        let state = client.get(&format!("/sessions/{}/state?user_id=ada", self.session())).unwrap();
        check("the state", state.json()["number"].clone(), json!(self.state));
        differences
    }
}
