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
            /// The user whose memory is used. Omit it unless you act for several users.
            pub(crate) user_id: Option<String>,
        }
    };
}

owned! {
    /// For `add_memory`.
    AddMemory {
        /// The statement to remember, as one complete sentence that can be understood without the conversation: name
        /// people and things instead of "he" or "it", and write dates instead of "tomorrow".
        text: String,
        /// `fact`: something that is true; `preference`: what a person likes or how they want things done; `schedule`:
        /// a time or a rhythm; `todo`: something to be done; `decision`: something that was decided; `event`: something
        /// that happened; `relation`: a person or an animal; `work`: a detail of work; `instruction`: how you should
        /// always answer. Defaults to `fact`.
        #[schemars(extend("enum" = ["fact", "preference", "schedule", "todo", "decision", "event", "relation", "work", "instruction", null]))]
        kind: Option<String>,
        /// Binds the memory to one conversation. Omit it if the statement holds everywhere.
        session_id: Option<String>,
        /// The same as `session_id`.
        run_id: Option<String>,
        /// The agent it belongs to, if the user has several agents.
        agent_id: Option<String>,
        /// Any values for finding it later with `filters`, for example `{"project": "garden"}`.
        metadata: Option<Map<String, Value>>,
    }
}

owned! {
    /// For `search_memories`.
    SearchMemories {
        /// Your question, in plain words and with the names in it. A whole question finds more than keywords.
        query: String,
        /// The most results. Omit it to get a few. A higher number returns more short results; all of them together fit
        /// a prompt in any case.
        #[schemars(with = "Option<u32>", range(min = 1, max = 1000))]
        limit: Option<Number>,
        /// The same as `limit`.
        #[schemars(with = "Option<u32>", range(min = 1, max = 1000))]
        top_k: Option<Number>,
        /// The conversation in which the question is asked. It is searched first; the rest is searched too if it
        /// contains too little. Without a user, only this conversation is searched.
        session_id: Option<String>,
        /// `session`: only that conversation; `user`: all conversations and memories of the user; `global`: also the
        /// memories that all users share.
        #[schemars(extend("enum" = ["session", "user", "global", null]))]
        scope: Option<String>,
        /// The kinds of items: `memory` for learned or stored statements, `turn` for the messages of conversations, word
        /// by word, `summary` for short forms of conversations. Defaults to `memory` and `turn`.
        #[schemars(extend("items" = {"enum": ["memory", "turn", "summary"]}))]
        kinds: Option<Vec<String>>,
        /// Finds only items with these fields: values of `metadata`, or `agent_id`, `run_id`, `kind`, `created_at`.
        /// For example `{"project": "garden"}` or `{"AND": [{"kind": "todo"}, {"created_at": {"gte":
        /// "2026-01-31"}}]}`. The operators are `eq ne in nin gt gte lt lte contains icontains`, `AND OR NOT` combine
        /// conditions, and `"*"` means that a field exists.
        filters: Option<Map<String, Value>>,
        /// Searches the items that were known at this time, instead of now, for example `2026-01-31T12:00:00Z`.
        as_of: Option<String>,
        /// Excludes items with a lower relevance, from 0 to 1. Lower it to 0 if a search does not find something that
        /// it should find.
        #[schemars(range(min = 0.0, max = 1.0))]
        threshold: Option<f64>,
        /// Whether a cross-encoder reads the best candidates with the query and reorders them. Slower, and better where
        /// the words of the answer differ from the query's.
        rerank: Option<bool>,
    }
}

owned! {
    /// For `get_memories`.
    GetMemories {
        /// Only this kind.
        #[schemars(extend("enum" = ["fact", "preference", "schedule", "todo", "decision", "event", "relation", "work", "instruction", null]))]
        kind: Option<String>,
        /// Only memories bound to this conversation.
        session_id: Option<String>,
        /// The same as `session_id`.
        run_id: Option<String>,
        /// Only memories of this agent.
        agent_id: Option<String>,
        /// Only memories with these fields, as in `search_memories`.
        filters: Option<Map<String, Value>>,
        /// Lists the memories that were believed at this time, instead of now, for example `2026-01-31T12:00:00Z`.
        as_of: Option<String>,
        /// The most memories. Defaults to 50.
        #[schemars(with = "Option<u32>", range(min = 1, max = 1000))]
        limit: Option<Number>,
        /// Where the list continues: the `next_offset` of the previous answer.
        #[schemars(with = "Option<u32>")]
        offset: Option<Number>,
    }
}

owned! {
    /// For `get_memory`.
    GetMemory {
        /// The memory's id, from `search_memories` or `get_memories`.
        memory_id: String,
        /// Whether to include its former statements and the statements that replaced it.
        history: Option<bool>,
    }
}

owned! {
    /// For `update_memory`.
    UpdateMemory {
        /// The memory's id, from `search_memories` or `get_memories`.
        memory_id: String,
        /// The new statement, as one complete sentence. It replaces the old one, which stays in the history.
        text: String,
        /// Replaces the metadata. Omit it to keep the metadata.
        metadata: Option<Map<String, Value>>,
    }
}

owned! {
    /// For `delete_memory`.
    DeleteMemory {
        /// The memory's id, from `search_memories` or `get_memories`.
        memory_id: String,
    }
}

owned! {
    /// For `delete_all_memories`.
    DeleteAllMemories {
        /// Only memories bound to this conversation.
        session_id: Option<String>,
        /// The same as `session_id`.
        run_id: Option<String>,
        /// Only memories of this agent.
        agent_id: Option<String>,
    }
}

owned! {
    /// For `get_context`.
    GetContext {
        /// The conversation. Omit it for the conversation of this connection.
        session_id: Option<String>,
        /// How many of its last messages. Defaults to 20.
        #[schemars(with = "Option<u32>", range(min = 1, max = 1000))]
        turns: Option<Number>,
    }
}

owned! {
    /// For `explain_recall`.
    ExplainRecall {
        /// The `request_id` of an answer of `search_memories`.
        request_id: String,
        /// A memory or turn, to ask why this one was or was not found. Omit it to list all candidates.
        item_id: Option<String>,
    }
}

/// For `forget_user`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForgetUser {
    /// The user to forget. It has to be named, also if the connection belongs to one user.
    pub(crate) user_id: String,
    /// Whether the user has confirmed that everything is to be destroyed for good.
    pub(crate) confirmed: bool,
}
