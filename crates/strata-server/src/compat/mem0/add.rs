//! Adding memories in the form of mem0's client.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use strata_core::scope::RecallScope;
use strata_core::turn::{Metadata, NewMessage, Owner, TurnNotes};
use strata_core::{Error, MemoryId, Role, SessionId, UserId};
use strata_engine::{InferredEvent, NewMemory};

use super::Entities;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::JsonBody;
use crate::identity::Caller;
use crate::identity::memories::checked_agent;
use crate::moment::Moment;

#[derive(Debug, Deserialize)]
pub(super) struct AddRequest {
    messages: Value,
    #[serde(flatten)]
    named: Entities,
    #[serde(default)]
    filters: Option<Entities>,
    metadata: Option<Metadata>,
    timestamp: Option<Moment>,
    expiration_date: Option<String>,
    /// `true` infers statements. Otherwise the messages are stored unchanged, with their metadata.
    #[serde(default)]
    infer: Option<bool>,
}

/// The text of one message: a string, or the text parts of a list.
fn said(message: &Value) -> Option<String> {
    if message.get("role").and_then(Value::as_str).is_some_and(|role| role != "user") {
        return None;
    }
    match message.get("content")? {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part.get("text")?.as_str()).collect();
            Some(texts.join("\n"))
        }
        _ => None,
    }
    .filter(|text| !text.trim().is_empty())
}

#[derive(Debug, Serialize)]
struct Added {
    id: MemoryId,
    memory: String,
    event: &'static str,
    metadata: Metadata,
}

pub(super) async fn add_memories(
    State(app): State<App>,
    caller: Caller,
    JsonBody(request): JsonBody<AddRequest>,
) -> Result<Json<Value>, ApiError> {
    let AddRequest { messages, named, filters, metadata, timestamp, expiration_date, infer } = request;
    if expiration_date.is_some() {
        return Err(ApiError::invalid(
            "`expiration_date` is not supported; leave it out, and delete the memory when it expires",
        ));
    }
    let inside = filters.unwrap_or_default();
    let user = caller.user([&named.user_id, &inside.user_id])?;
    let names_user = caller.names_user([&named.user_id, &inside.user_id]);
    let agent = named.agent_id.or(inside.agent_id).map(checked_agent).transpose()?;
    let session = named.run_id.or(inside.run_id).map(SessionId::new).transpose()?;
    let mut metadata = metadata.unwrap_or_default();
    if let Some(application) = named.app_id.or(inside.app_id) {
        metadata.insert("app_id", application.into());
    }
    let messages = listed(messages)?;
    let memories: Vec<NewMemory> = messages
        .iter()
        .filter_map(said)
        .map(|content| NewMemory {
            session: session.clone(),
            agent: agent.clone(),
            valid_from: timestamp.map(Moment::at),
            metadata: metadata.clone(),
            ..NewMemory::new(content)
        })
        .collect();
    let most = app.engine().settings().limits.max_turns_per_call;
    if memories.len() > most {
        let message = format!("{} messages in one call; the most is {most}", memories.len());
        return Err(Error::too_large(message).into());
    }
    if memories.is_empty() {
        return Ok(Json(json!({ "results": [] })));
    }
    if infer == Some(true) {
        return inferred(&app, &user, memories, is_apart(&caller, names_user, session.as_ref())).await;
    }
    if infer.is_none() {
        let events = app.engine().learning.add(&user, memories).await?;
        return Ok(Json(json!({ "results": results(events) })));
    }
    let added = app.engine().memories.add(&user, memories).await?;
    app.meters().memories_added(added.len());
    let results: Vec<Added> = added
        .into_iter()
        .map(|memory| Added {
            id: memory.id,
            memory: memory.content,
            event: "ADD",
            metadata: memory.metadata,
        })
        .collect();
    Ok(Json(json!({ "results": results })))
}

/// The messages as a list: a string is one message of the user.
fn listed(messages: Value) -> Result<Vec<Value>, ApiError> {
    match messages {
        Value::Array(messages) => Ok(messages),
        Value::String(text) => Ok(vec![json!({ "role": "user", "content": text })]),
        message @ Value::Object(_) => Ok(vec![message]),
        _ => Err(ApiError::invalid(
            "`messages` is not a string, a message or a list of messages; send one of them",
        )),
    }
}

/// Whether what is said in a session stays behind its wall.
fn is_apart(caller: &Caller, names_user: bool, session: Option<&SessionId>) -> bool {
    caller.recall_scope(names_user, session, None) == Some(RecallScope::Session)
}

/// Learns from messages, as `POST /memories` does. `apart` says whether their session stands behind a wall.
async fn inferred(
    app: &App,
    user: &UserId,
    said: Vec<NewMemory>,
    apart: bool,
) -> Result<Json<Value>, ApiError> {
    let session = said.first().and_then(|memory| memory.session.clone()).unwrap_or_default();
    let messages = said.into_iter().map(|memory| {
        let in_session = memory.session.is_some() || apart;
        let owner = Owner { agent: memory.agent, in_session, apart, metadata: memory.metadata };
        let notes = TurnNotes { owner, ..TurnNotes::default() };
        let created_at = memory.valid_from;
        NewMessage { created_at, notes, ..NewMessage::new(Role::User, memory.content) }
    });
    let events = app.engine().learning.infer(user, &session, messages.collect(), None).await?;
    Ok(Json(json!({ "results": results(events) })))
}

fn results(events: Vec<InferredEvent>) -> Vec<Value> {
    let result = |event: InferredEvent| json!({ "id": event.id, "memory": event.memory, "event": event.event.as_str() });
    events.into_iter().map(result).collect()
}
