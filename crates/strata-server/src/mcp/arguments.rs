//! The arguments of the tools. The comments are the descriptions that a model reads in the schemas.

use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde_json::{Map, Number, Value};

/// Whose memory a call is about.
macro_rules! owned {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Default, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            $($(#[$field_doc])* pub(crate) $field: $type,)*
            /// Whose memory. Leave it out unless you act for several users.
            pub(crate) user_id: Option<String>,
        }
    };
}

owned! {
    /// For `add_memory`.
    AddMemory {
        /// What to remember, as one complete sentence that can be understood without the conversation: name people and
        /// things instead of "he" or "it", and write dates instead of "tomorrow".
        text: String,
        /// `fact`: something that is so; `preference`: what somebody likes or how they want things done; `todo`: something
        /// to be done; `decision`: something that was settled. A fact where you do not say.
        #[schemars(extend("enum" = ["fact", "preference", "todo", "decision", null]))]
        kind: Option<String>,
        /// Binds it to one conversation. Leave it out for what holds everywhere.
        session_id: Option<String>,
        /// The same as `session_id`.
        run_id: Option<String>,
        /// The agent it belongs to, where a user keeps several.
        agent_id: Option<String>,
        /// Anything to find it by later with `filters`, as in `{"project": "garden"}`.
        metadata: Option<Map<String, Value>>,
    }
}

owned! {
    /// For `search_memories`.
    SearchMemories {
        /// What you want to know, in plain words and with the names in it. A whole question finds more than keywords.
        query: String,
        /// How many results at the most. Leave it out for a few that fit a prompt.
        #[schemars(with = "Option<u32>", range(min = 1, max = 1000))]
        limit: Option<Number>,
        /// The same as `limit`.
        #[schemars(with = "Option<u32>", range(min = 1, max = 1000))]
        top_k: Option<Number>,
        /// The conversation the question is asked in. It is searched first, and the rest too where it has too little.
        session_id: Option<String>,
        /// `session`: only that conversation; `user`: all of the user's; `global`: also what all users share.
        #[schemars(extend("enum" = ["session", "user", "global", null]))]
        scope: Option<String>,
        /// Which kinds of items: `memory` for what was learned or stored, `turn` for what was said word by word. Both
        /// where you do not say.
        #[schemars(extend("items" = {"enum": ["memory", "turn"]}))]
        kinds: Option<Vec<String>>,
        /// Only what has these fields: values attached with `metadata`, or `agent_id`, `run_id`, `kind`, `created_at`. As in
        /// `{"project": "garden"}` or `{"AND": [{"kind": "todo"}, {"created_at": {"gte": "2026-01-31"}}]}`; operators are
        /// `eq ne in nin gt gte lt lte contains icontains`, `AND OR NOT` combine, and `"*"` means that a field is there.
        filters: Option<Map<String, Value>>,
        /// What was known at that time instead of now, as in `2026-01-31T12:00:00Z`.
        as_of: Option<String>,
        /// Leaves out what is less relevant, from 0 to 1. Lower it to 0 where a search that should find something does
        /// not.
        #[schemars(range(min = 0.0, max = 1.0))]
        threshold: Option<f64>,
    }
}

owned! {
    /// For `get_memories`.
    GetMemories {
        /// Only this kind.
        #[schemars(extend("enum" = ["fact", "preference", "todo", "decision", null]))]
        kind: Option<String>,
        /// Only those bound to this conversation.
        session_id: Option<String>,
        /// The same as `session_id`.
        run_id: Option<String>,
        /// Only those of this agent.
        agent_id: Option<String>,
        /// Only what has these fields, as for `search_memories`.
        filters: Option<Map<String, Value>>,
        /// What was believed at that time instead of now, as in `2026-01-31T12:00:00Z`.
        as_of: Option<String>,
        /// How many at the most; 50 where you do not say.
        #[schemars(with = "Option<u32>", range(min = 1, max = 1000))]
        limit: Option<Number>,
        /// Where to go on: the `next_offset` of the answer before.
        #[schemars(with = "Option<u32>")]
        offset: Option<Number>,
    }
}

owned! {
    /// For `get_memory`.
    GetMemory {
        /// The memory's id, as `search_memories` and `get_memories` give it.
        memory_id: String,
        /// Whether to tell also what it said before and what took its place.
        history: Option<bool>,
    }
}

owned! {
    /// For `update_memory`.
    UpdateMemory {
        /// The memory's id, as `search_memories` and `get_memories` give it.
        memory_id: String,
        /// What is so now, as one complete sentence. It takes the place of the old one, which stays in the history.
        text: String,
        /// Replaces what was attached. Leave it out to keep that.
        metadata: Option<Map<String, Value>>,
    }
}

owned! {
    /// For `delete_memory`.
    DeleteMemory {
        /// The memory's id, as `search_memories` and `get_memories` give it.
        memory_id: String,
    }
}

owned! {
    /// For `delete_all_memories`.
    DeleteAllMemories {
        /// Only those bound to this conversation.
        session_id: Option<String>,
        /// The same as `session_id`.
        run_id: Option<String>,
        /// Only those of this agent.
        agent_id: Option<String>,
    }
}

owned! {
    /// For `get_context`.
    GetContext {
        /// The conversation. Leave it out for the one that this connection belongs to.
        session_id: Option<String>,
        /// How many of its last messages; 20 where you do not say.
        #[schemars(with = "Option<u32>", range(min = 1, max = 1000))]
        turns: Option<Number>,
    }
}

owned! {
    /// For `explain_recall`.
    ExplainRecall {
        /// The `request_id` of an answer of `search_memories`.
        request_id: String,
        /// A memory or turn, to ask why this one was or was not found. Leave it out for all candidates.
        item_id: Option<String>,
    }
}
