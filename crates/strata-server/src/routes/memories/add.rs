//! `POST /memories`: adds memories, inferred from messages or stored unchanged.
//!
//! As in mem0, statements are inferred from `messages` by default. A `text`, which mem0's server does not know, is a
//! statement. By default it is stored in its own words and reconciled with the known memories. `infer` overrides both
//! defaults: `false` stores unchanged and changes nothing else.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use strata_core::nul::check_nul;
use strata_core::scope::RecallScope;
use strata_core::turn::{Metadata, NewMessage, Owner};
use strata_core::{Error, Role as CoreRole, SessionId, UserId};
use strata_engine::NewMemory;
use utoipa::ToSchema;

use crate::app::App;
use crate::compat::mem0::LenientBody;
use crate::error::ApiError;
use crate::extract::optional_objects;
use crate::identity::Caller;
use crate::identity::memories::checked_agent;
use crate::routes::turns::MessageRequest;
use crate::wire::AddResponse;
use crate::wire::names::{Kind, Role, Scope};

/// The content to remember: give either `text` or `messages`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddRequest {
    /// The messages of a conversation. By default they are recorded as turns, and Strata learns from the user's
    /// messages. With `infer: false`, each message of role `user` becomes one memory, unchanged.
    #[serde(default, deserialize_with = "optional_objects")]
    messages: Option<Vec<MessageRequest>>,
    /// One statement. It is stored in its own words: if it is known already, the memory stays, and if it changes a
    /// memory, it replaces that one. With `infer: false` it is stored in any case, and nothing else changes. With
    /// `infer: true` it counts as a message of the user.
    #[schema(pattern = r"^[^\x00]*[^\s\x00\x85][^\x00]*$")]
    text: Option<String>,
    /// The owner of the memory. Defaults to the user `default`.
    #[schema(min_length = 1, max_length = 256, pattern = r"^(?!\*$)[^\x00-\x1f\x7f-\x9f]+$")]
    user_id: Option<String>,
    /// The same as `user_id`, which takes precedence.
    #[schema(min_length = 1, max_length = 256, pattern = r"^(?!\*$)[^\x00-\x1f\x7f-\x9f]+$")]
    user: Option<String>,
    /// The agent it belongs to.
    #[schema(min_length = 1, max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    agent_id: Option<String>,
    /// The session in which it was said, or to which a statement is bound.
    #[schema(min_length = 1, max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    run_id: Option<String>,
    /// The same as `run_id`, which takes precedence.
    #[schema(min_length = 1, max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    session_id: Option<String>,
    /// A JSON object of the client's own. It is stored with the memories, also with inferred ones.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Metadata>,
    /// Whether statements are inferred and reconciled with the known memories. Defaults to `true` for `messages`. By
    /// default a `text` is reconciled, but not read as a message.
    infer: Option<bool>,
    /// The kind of the statement. Defaults to `fact`. An inferred statement has its own kind.
    kind: Option<Kind>,
    /// Where the memory holds. Defaults to `session` if `run_id` names one, else to `user`. With `session` and no
    /// session named, the session is `default`. For inferred memories the setting `learn.into` decides: omit this
    /// field, or set it to `user`.
    scope: Option<Scope>,
}

impl AddRequest {
    fn infers(&self) -> bool {
        self.infer.unwrap_or(self.messages.is_some())
    }

    /// The owner and the session of memories that are stored unchanged.
    fn place(&self, caller: &Caller) -> Result<(UserId, Option<SessionId>), ApiError> {
        let users = [&self.user_id, &self.user];
        let named = Caller::own_session([&self.run_id, &self.session_id])?;
        if self.scope == Some(Scope::Global) && named.is_none() {
            return Ok((caller.shared_to_change(users)?, None));
        }
        let user = caller.user(users)?;
        match (self.scope, named) {
            // The header alone does not bind a memory to a session, because a client may set it once for all its calls;
            // but without a user the session is a wall.
            (None, None) if !caller.names_user(users) => Ok((user, caller.session([])?)),
            (Some(Scope::Session), None) => Ok((user, Some(caller.session([])?.unwrap_or_default()))),
            (None | Some(Scope::Session), Some(session)) => Ok((user, Some(session))),
            (Some(Scope::User | Scope::Global), Some(_)) => Err(ApiError::invalid(
                "a memory with a `run_id` holds in that session only; leave out `run_id`, or use scope `session`",
            )),
            (_, None) => Ok((user, None)),
        }
    }

    /// The user and the session to learn from.
    fn conversation(&self, caller: &Caller) -> Result<(UserId, SessionId), ApiError> {
        if matches!(self.scope, Some(Scope::Session | Scope::Global)) {
            return Err(ApiError::invalid(
                "the setting `learn.into` decides where an inferred memory holds; leave `scope` out, or use `infer` false",
            ));
        }
        let (user, _) = self.place(caller)?;
        Ok((user, caller.session([&self.run_id, &self.session_id])?.unwrap_or_default()))
    }

    /// The metadata for all of it, and the messages or the text.
    fn given(&mut self) -> Result<(Metadata, Given), ApiError> {
        let metadata = self.metadata.take().unwrap_or_default();
        // The core checks these with each memory, but there may be no memory.
        check_nul("`metadata`", metadata.fields())?;
        if let Some(agent) = &self.agent_id {
            checked_agent(agent.clone())?;
        }
        let messages = match (self.text.take(), self.messages.take()) {
            (Some(text), None) => return Ok((metadata, Given::Text(text))),
            (None, Some(messages)) if !messages.is_empty() => messages,
            (Some(_), Some(_)) => {
                return Err(ApiError::invalid("`text` and `messages` exclude each other; give one of them"));
            }
            (None, _) => {
                return Err(ApiError::invalid("there is nothing to remember; give `text` or `messages`"));
            }
        };
        // Messages that become no memory are checked too: a request with an invalid message is invalid.
        messages.iter().try_for_each(MessageRequest::check)?;
        if messages.iter().any(|message| message.content.trim().is_empty()) {
            return Err(ApiError::invalid("a message is empty; say something in it or leave it out"));
        }
        Ok((metadata, Given::Messages(messages)))
    }

    /// The statements, each with its time and metadata.
    fn statements(&mut self) -> Result<Vec<NewMemory>, ApiError> {
        let (metadata, given) = self.given()?;
        let messages = match given {
            Given::Text(text) => return Ok(vec![NewMemory { metadata, ..NewMemory::new(text) }]),
            Given::Messages(messages) => messages,
        };
        let said = messages.into_iter().filter(|message| message.role == Role::User).map(|message| {
            let metadata = metadata.clone().merged(message.metadata.unwrap_or_default());
            let valid_from = message.created_at.map(crate::moment::Moment::at);
            NewMemory { metadata, valid_from, ..NewMemory::new(message.content) }
        });
        Ok(said.collect())
    }

    /// The messages to record, each with the metadata for all.
    fn messages(&mut self, caller: &Caller) -> Result<Vec<NewMessage>, ApiError> {
        let (metadata, given) = self.given()?;
        let session = caller.session([&self.run_id, &self.session_id])?;
        let names_user = caller.names_user([&self.user_id, &self.user]);
        let within = caller.recall_scope(names_user, session.as_ref(), None);
        let apart = within == Some(RecallScope::Session);
        let in_session = self.run_id.is_some() || self.session_id.is_some() || apart;
        let owner = Owner { agent: self.agent_id.clone(), in_session, apart, metadata };
        let messages = match given {
            Given::Text(text) if text.trim().is_empty() => {
                return Err(ApiError::invalid("`text` is empty; say what to remember"));
            }
            Given::Text(text) => vec![NewMessage::new(CoreRole::User, text)],
            Given::Messages(messages) => messages.into_iter().map(MessageRequest::into_message).collect(),
        };
        let attach = |mut message: NewMessage| {
            // The metadata of the request belongs to the memories, the metadata of a message to its turn.
            message.notes.owner = owner.clone();
            message
        };
        Ok(messages.into_iter().map(attach).collect())
    }
}

enum Given {
    Text(String),
    Messages(Vec<MessageRequest>),
}

/// Add memories
///
/// With `infer`, messages are recorded as turns and Strata learns from them before it answers. A `text` is stored in its
/// own words and reconciled with the known memories. With `infer: false` statements are stored unchanged, all or none.
#[utoipa::path(post, path = "/memories", tag = "memories", request_body = AddRequest,
    responses((status = 200, description = "remembered", body = AddResponse)))]
pub(crate) async fn add_memories(
    State(app): State<App>,
    caller: Caller,
    LenientBody(mut request): LenientBody<AddRequest>,
) -> Result<Json<AddResponse>, ApiError> {
    let response = if request.infers() {
        infer(&app, &caller, &mut request).await?
    } else {
        store(&app, &caller, &mut request).await?
    };
    app.meters().memories_added(response.added());
    Ok(Json(response))
}

async fn infer(app: &App, caller: &Caller, request: &mut AddRequest) -> Result<AddResponse, ApiError> {
    let (user, session) = request.conversation(caller)?;
    let messages = request.messages(caller)?;
    Ok(AddResponse::inferred(&app.engine().learning.infer(&user, &session, messages, None).await?))
}

async fn store(app: &App, caller: &Caller, request: &mut AddRequest) -> Result<AddResponse, ApiError> {
    let (user, session) = request.place(caller)?;
    let kind = request.kind.unwrap_or_default();
    let is_text = request.text.is_some();
    let mut statements = request.statements()?;
    let most = app.engine().settings().limits.max_turns_per_call;
    if statements.len() > most {
        let message =
            format!("{} statements in one call; the most is {most}, so send several calls", statements.len());
        return Err(Error::too_large(message).into());
    }
    for statement in &mut statements {
        statement.kind = kind.into();
        statement.session = session.clone();
        statement.agent = request.agent_id.clone();
    }
    // Messages of the model alone contain no statement of the user. Then nothing is learned, which is not an error.
    if statements.is_empty() {
        return Ok(AddResponse::stored(&[]));
    }
    if request.infer.is_none() && is_text {
        return Ok(AddResponse::reconciled(&app.engine().learning.add(&user, statements).await?));
    }
    Ok(AddResponse::stored(&app.engine().memories.add(&user, statements).await?))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use crate::testing::{ScriptedModel, TestServer};

    fn statement(content: &str) -> Value {
        json!({"content": content, "kind": "fact", "confidence": 0.9, "message": 1, "since": null})
    }

    /// A server whose model answers these, one after the other.
    fn with_answers(answers: &[Value]) -> (TestServer, Arc<ScriptedModel>) {
        let model = Arc::new(ScriptedModel::new(answers.iter().map(Value::to_string)));
        (TestServer::with_model(model.clone()), model)
    }

    #[tokio::test]
    async fn messages_are_learned_from_before_the_answer() {
        let moves = [
            json!({"statements": [statement("The user lives in Lisbon"), statement("The user has a cat")]}),
            json!({"statements": [statement("The user lives in Porto")]}),
            json!({"memories": [{"id": 1, "event": "DELETE", "by": 3}, {"id": 2, "event": "NONE", "by": null},
                {"id": 3, "event": "ADD", "by": null}]}),
        ];
        let (server, model) = with_answers(&moves);
        let said = |content: &str| {
            json!({"user_id": "ada", "run_id": "trip", "agent_id": "cook", "metadata": {"a": 1},
                "messages": [{"role": "user", "content": content}, {"role": "assistant", "content": "Noted."}]})
        };
        let first = server.post("/memories", said("I live in Lisbon with my cat")).await;
        assert_eq!((first.status.as_u16(), &first.json()["inferred"]), (200, &json!(true)), "{}", first.body);
        insta::assert_snapshot!(
            "inferred",
            server.post("/memories", said("I live in Porto now")).await.shown()
        );
        assert_eq!(model.left(), 0);
        let list = server.get("/memories?user_id=ada&agent_id=cook").await.json();
        let memories: Vec<&str> =
            list["results"].as_array().unwrap().iter().filter_map(|m| m["memory"].as_str()).collect();
        assert_eq!(memories, ["The user lives in Porto", "The user has a cat"]);
        let turns = server.get("/sessions/trip/turns?user_id=ada").await.json();
        assert_eq!(turns["turns"].as_array().unwrap().len(), 4, "what was said is recorded");
        let porto = &list["results"][0];
        assert_eq!((&porto["run_id"], &porto["agent_id"]), (&json!("trip"), &json!("cook")), "{porto}");
        assert_eq!(porto["metadata"], json!({"a": 1}), "what was attached is the memory's");
    }

    #[tokio::test]
    async fn the_default_of_infer_is_mem0s() {
        let said = json!([{"role": "user", "content": "I live in Lisbon"}]);
        for (body, inferred) in [
            (json!({"messages": said}), true),
            (json!({"messages": said, "infer": null}), true),
            (json!({"messages": said, "infer": false}), false),
            (json!({"text": "lives in Lisbon"}), false),
            (json!({"text": "I live in Lisbon", "infer": true}), true),
        ] {
            let (server, model) =
                with_answers(&[json!({"statements": [statement("The user lives in Lisbon")]})]);
            let answer = server.post("/memories", body.clone()).await.json();
            assert_eq!(answer["inferred"], inferred, "{body}");
            assert_eq!(answer["results"][0]["event"], "ADD", "{body}: {answer}");
            assert_eq!(model.left(), usize::from(!inferred), "{body}");
        }
    }

    #[tokio::test]
    async fn requests_without_a_valid_inference_are_refused_and_not_recorded() {
        let (server, _) = with_answers(&[]);
        let said = json!([{"role": "user", "content": "I live in Lisbon"}]);
        for wrong in [
            json!({"messages": said, "scope": "session"}),
            json!({"messages": said, "scope": "global"}),
            json!({"messages": said, "scope": "user", "run_id": "s"}),
            json!({"text": " ", "infer": true}),
            json!({"text": "a", "infer": "yes"}),
            json!({"messages": [{"role": "user", "content": ""}]}),
            json!({"messages": said, "agent_id": ""}),
        ] {
            let answer = server.post("/memories", wrong.clone()).await;
            assert_eq!(answer.status, 400, "{wrong}: {}", answer.body);
        }
        assert_eq!(server.get("/sessions").await.json()["sessions"], json!([]));
    }
}
