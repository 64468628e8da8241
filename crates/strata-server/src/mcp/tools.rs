//! The list of tools: for each a description that helps a model to choose, its arguments, its answer and its effects.

use std::sync::{Arc, LazyLock};

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use rmcp::schemars::JsonSchema;
use rmcp::schemars::generate::SchemaSettings;
use serde_json::Value;
use strata_core::key::KeyScope;

use super::answers::{
    AddedAnswer, DeletedAnswer, ExplainAnswer, ForgottenAnswer, MemoriesAnswer, MemoryAnswer, OneAnswer,
    SearchAnswer,
};
use super::arguments::{
    AddMemory, DeleteAllMemories, DeleteMemory, ExplainRecall, ForgetUser, GetContext, GetMemories,
    GetMemory, SearchMemories, UpdateMemory,
};

/// The effect of a tool on stored data.
#[derive(Clone, Copy)]
enum Effect {
    Reads,
    Adds,
    /// A second call with the same arguments has no further effect.
    Replaces,
    Deletes,
}

impl Effect {
    fn annotations(self, title: &str) -> ToolAnnotations {
        let annotations = ToolAnnotations::with_title(title).open_world(false);
        match self {
            Self::Reads => annotations.read_only(true).destructive(false).idempotent(true),
            Self::Adds => annotations.read_only(false).destructive(false).idempotent(false),
            Self::Replaces | Self::Deletes => annotations.read_only(false).destructive(true).idempotent(true),
        }
    }
}

fn tool<Arguments>(name: &'static str, title: &str, effect: Effect, description: &'static str) -> Tool
where
    Arguments: JsonSchema,
{
    let schema = schema::<Arguments>(SchemaSettings::draft2020_12());
    Tool::new(name, description, schema).with_title(title).with_annotations(effect.annotations(title))
}

fn answering<Answer: JsonSchema>(tool: Tool) -> Tool {
    // The schema of the written form, in which fields may be absent.
    let schema = schema::<Answer>(SchemaSettings::draft2020_12().for_serialize());
    tool.with_raw_output_schema(Arc::new(schema))
}

/// Removes the formats of Rust's unsigned numbers. No standard has them, and clients print a warning for each.
fn without_number_formats(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let is_rusts = |format: &Value| format.as_str().is_some_and(|format| format.starts_with("uint"));
            fields.retain(|name, value| !(name == "format" && is_rusts(value)));
            fields.values_mut().for_each(without_number_formats);
        }
        Value::Array(schemas) => schemas.iter_mut().for_each(without_number_formats),
        _ => {}
    }
}

fn schema<T: JsonSchema>(settings: SchemaSettings) -> JsonObject {
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let Value::Object(mut schema) = Value::from(schema) else { return JsonObject::new() };
    // The names of these types are of no use to a model; every field has a description.
    schema.retain(|name, _| name != "title" && name != "description");
    schema.values_mut().for_each(without_number_formats);
    schema
}

/// All tools, in the order in which an agent probably needs them.
pub(crate) fn all() -> &'static [Tool] {
    static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| {
        vec![
            answering::<SearchAnswer>(search_memories()),
            answering::<AddedAnswer>(add_memory()),
            answering::<MemoriesAnswer>(get_memories()),
            answering::<OneAnswer>(get_memory()),
            answering::<MemoryAnswer>(update_memory()),
            answering::<DeletedAnswer>(delete_memory()),
            answering::<DeletedAnswer>(delete_all_memories()),
            answering::<ForgottenAnswer>(forget_user()),
            // The working context is a document that may have fields of the client.
            get_context(),
            answering::<ExplainAnswer>(explain_recall()),
        ]
    });
    &TOOLS
}

/// The scope that a key needs for a tool.
pub(super) fn scope(tool: &Tool) -> KeyScope {
    let reads = tool.annotations.as_ref().and_then(|annotations| annotations.read_only_hint);
    if reads == Some(true) { KeyScope::Read } else { KeyScope::Write }
}

fn search_memories() -> Tool {
    tool::<SearchMemories>(
        "search_memories",
        "Search memory",
        Effect::Reads,
        "Find what is remembered about something: facts, preferences, todos and decisions of this user, and what was said \
         in earlier conversations. Call this before you answer anything that may depend on the user or on an earlier \
         conversation (\"my\", \"as usual\", \"last time\", a name or project you do not know), and before you say that \
         you do not know. Ask one thing at a time, as a whole question; the question may name a time (\"last March\"). \
         An empty result means that nothing is known: say so rather than guess.",
    )
}

fn add_memory() -> Tool {
    tool::<AddMemory>(
        "add_memory",
        "Remember",
        Effect::Adds,
        "Remember one statement for later conversations. Call this when the user tells you something lasting about \
         themselves, states a preference, settles something, wants to be reminded of something, or says \"remember\". \
         Store one thing per call. Search first: if the same thing is already remembered, call `update_memory` instead. \
         Do not store passwords or other secrets, what is true only for this moment, or what you concluded yourself.",
    )
}

fn get_memories() -> Tool {
    tool::<GetMemories>(
        "get_memories",
        "List memories",
        Effect::Reads,
        "List what is remembered, the newest first, without a question: to show the user everything that is known about \
         them, to look for something to correct or delete, or to go through all todos. To answer a question, \
         `search_memories` is better.",
    )
}

fn get_memory() -> Tool {
    tool::<GetMemory>(
        "get_memory",
        "Show a memory",
        Effect::Reads,
        "Show one memory by its id, complete, with everything known about it; with `history`, also its former statements. \
         Use it if a search result was shortened, or if the user asks since when something is true.",
    )
}

fn update_memory() -> Tool {
    tool::<UpdateMemory>(
        "update_memory",
        "Correct a memory",
        Effect::Replaces,
        "Give a memory a new statement because what it says has changed or was wrong (\"I moved\", \"no, on Tuesday\"). Find its \
         id with `search_memories` first. The old statement stays in its history and is no longer recalled.",
    )
}

fn delete_memory() -> Tool {
    tool::<DeleteMemory>(
        "delete_memory",
        "Delete a memory",
        Effect::Deletes,
        "Remove one memory from recall, because the user wants it forgotten or because it is wrong and nothing replaces it. \
         Find its id with `search_memories` first. A person can restore it; you cannot.",
    )
}

fn delete_all_memories() -> Tool {
    tool::<DeleteAllMemories>(
        "delete_all_memories",
        "Delete all memories",
        Effect::Deletes,
        "Remove all of the user's memories from recall, or all of one conversation or agent. Call this only when the user has \
         asked for exactly that explicitly and confirmed it; for a single memory use `delete_memory`. The messages \
         of conversations stay.",
    )
}

fn forget_user() -> Tool {
    tool::<ForgetUser>(
        "forget_user",
        "Forget a user",
        Effect::Deletes,
        "Destroy everything that is stored of one user: messages, memories, summaries and keys. It cannot be restored. Call \
         this only when the user has asked for exactly that explicitly, and has confirmed it after you said that it \
         cannot be undone; to remove memories only, use `delete_all_memories`.",
    )
}

fn get_context() -> Tool {
    tool::<GetContext>(
        "get_context",
        "Resume a conversation",
        Effect::Reads,
        "Read the working context of one conversation as a whole: its facts, a summary of its beginning with what a model has \
         written about it (`summaries`), its last messages, open tasks and environment. Call this once when you resume a conversation or take over work, instead of many \
         searches.",
    )
}

fn explain_recall() -> Tool {
    tool::<ExplainRecall>(
        "explain_recall",
        "Explain a search",
        Effect::Reads,
        "Explain why an earlier `search_memories` did or did not find something: the outcome of each candidate, or of one item. Use \
         it when the user asks why you know something, or why you do not remember something that they have told you.",
    )
}
