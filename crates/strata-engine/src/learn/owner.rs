//! To whom the memories belong that are learned from a message, and what is attached to them: the message's metadata says so,
//! so that whoever learns from it, now or after a crash, does the same.

use serde_json::Value;

use strata_core::turn::Metadata;

/// The field that names the agent a memory is for.
const AGENT: &str = "agent_id";

/// The field with what is attached to a memory.
const ATTACHED: &str = "memory_metadata";

/// The field that binds a memory to the session in which it was said.
const BOUND: &str = "memory_in_session";

/// What a message says about the memories that are learned from it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Owner {
    /// The agent they are for.
    pub agent: Option<String>,
    /// Whether they are bound to the session in which they were said, whatever the settings say.
    pub in_session: bool,
    /// What is attached to each.
    pub metadata: Metadata,
}

impl Owner {
    /// What a turn's metadata says; fields that cannot be right say nothing.
    pub fn read(metadata: &Metadata) -> Self {
        Self {
            agent: metadata.get(AGENT).and_then(Value::as_str).map(str::to_owned),
            in_session: metadata.get(BOUND).and_then(Value::as_bool).unwrap_or(false),
            metadata: metadata.get(ATTACHED).and_then(Value::as_object).cloned().unwrap_or_default(),
        }
    }

    /// Writes it into a message's metadata.
    pub fn write(&self, metadata: &mut Metadata) {
        if let Some(agent) = &self.agent {
            metadata.insert(AGENT.to_owned(), agent.as_str().into());
        }
        if self.in_session {
            metadata.insert(BOUND.to_owned(), true.into());
        }
        if !self.metadata.is_empty() {
            metadata.insert(ATTACHED.to_owned(), Value::Object(self.metadata.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut attached = Metadata::new();
        attached.insert("topic".to_owned(), "food".into());
        let owner = Owner { agent: Some("cook".to_owned()), in_session: true, metadata: attached };
        let mut metadata = Metadata::new();
        owner.write(&mut metadata);
        assert_eq!(Owner::read(&metadata), owner);
        for field in [AGENT, ATTACHED, BOUND] {
            metadata.insert(field.to_owned(), 7.into());
        }
        assert_eq!(Owner::read(&metadata), Owner::default(), "junk of a client's says nothing");
    }
}
