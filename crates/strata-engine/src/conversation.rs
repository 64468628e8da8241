//! A whole exchange for a client that leaves the conversation to Strata: recall, the prompt, the model, the record.
//!
//! What the user said is durable before the model is asked ([`Recording::open_message`]), so that nothing is lost whatever
//! happens then. A model that fails is no error: document 3 wants an error *reply*, which is recorded as a turn that recall
//! never returns, and a row that says so. Where there is no model, memory answers by itself ([`librarian`]).
//!
//! What is deliberately absent: timers and signals, which come in with [`Talk`].

mod librarian;
#[cfg(test)]
mod tests;

use crate::jobs::InferredEvent;
use crate::learning::Learning;
use crate::prompting::{PromptRequest, Prompting};
use crate::recording::{Ending, Exchange, Recording};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use strata_core::ports::{Clock, IdSource};

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::learn::extractive::is_chinese;
use crate::prompt::{PromptBody, PromptFormat};
use crate::prompting::{Gathering, Remembered};
use crate::recall::{RecallRequest, RecalledItem};
use strata_core::error::{Error, Result};
use strata_core::id::{RequestId, SessionId, TurnId, UserId};
use strata_core::metric::ErrorStage;
use strata_core::ports::{ChatAnswer, ChatMessage, ChatModel, ChatRequest, Spent, Timer};
use strata_core::scope::Scope;
use strata_core::turn::NewMessage;
use strata_core::turn::Role;

/// The most characters of why a model failed that are kept.
const MAX_REASON_CHARS: usize = 1_000;

/// How a reply is had.
pub struct Talk<'a> {
    /// Who replies.
    pub model: &'a dyn ChatModel,
    /// What the model is told before everything else.
    pub instructions: Option<&'a str>,
    /// Takes the reply as it comes.
    pub on_text: &'a mut (dyn FnMut(&str) + Send),
    /// When it completes, the reply is broken off; [`std::future::pending`] never does.
    pub stop: Pin<&'a mut (dyn Future<Output = ()> + Send)>,
    /// Lets a reply that takes long stay awaited, see [`Recording::hold_exchange`].
    pub timer: &'a dyn Timer,
}

/// A reply, and what stands behind it.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatReply {
    /// What to show the user.
    pub text: String,
    /// How it came about.
    pub status: ReplyStatus,
    /// The turn of the user's message.
    pub turn: TurnId,
    /// The request's row, for [`crate::Requests::trace`] and [`crate::Requests::explain`].
    pub request_id: RequestId,
    /// What was recalled for it, best first.
    pub recalled: Vec<RecalledItem>,
    /// What was learned from the message, where memory replied alone; otherwise that happens behind the conversation.
    pub learned: Vec<InferredEvent>,
    /// What the model cost.
    pub spent: Spent,
}

/// How a reply came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyStatus {
    /// The model has said all of it.
    Complete,
    /// It was broken off: what came of it is recorded.
    Interrupted,
    /// The model failed; the text says so in the user's language. What was said is recorded.
    Failed {
        /// Why.
        reason: String,
    },
    /// There is no model: memory has replied by itself, and its words are not recorded.
    MemoryAlone,
}

/// Answers what a user says, through a model or from memory alone.
#[derive(Clone)]
pub struct Conversation {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) recording: Recording,
    pub(crate) prompting: Prompting,
    pub(crate) learning: Learning,
}

impl Conversation {
    /// Answers what the user says: recalls, shows the model a prompt within the budget, and records both sides.
    ///
    /// The message is durable before the model is asked. A model that fails gives a reply that says so
    /// ([`ReplyStatus::Failed`]); an error is one of the store's, or of a message that cannot be recorded. When this call is
    /// dropped halfway, the reply is recorded as interrupted by whoever works on jobs next.
    pub async fn chat(
        &self,
        user: &UserId,
        session: &SessionId,
        message: &str,
        talk: Talk<'_>,
    ) -> Result<ChatReply> {
        check_message(message)?;
        let said = NewMessage::new(Role::User, message);
        let mut exchange = self.recording.open_message(user, session, said).await?;
        let question = exchange.question().map(|question| question.id);
        let turn = question.ok_or_else(|| Error::internal("a message was recorded without a place"))?;
        let request =
            PromptRequest { format: PromptFormat::Chat, ..PromptRequest::new(session.clone(), message) };
        let (mut messages, Remembered { items, mut row, problem }) = self.shown(user, &request).await;
        if let Some(error) = problem {
            tracing::warn!(%error, "a chat goes on without memory");
        }
        if let Some(instructions) = talk.instructions {
            messages.insert(0, ChatMessage { role: Role::System, content: instructions.to_owned() });
        }
        let asked = ChatRequest { messages, ..ChatRequest::default() };
        let began = self.clock.now();
        let (said, heard) = self.ask_model(user, &mut exchange, &asked, talk).await;
        row.latency_llm_us = Some(micros(began, self.clock.now()));
        let Closing { text, status, ending, spent } = Closing::new(message, said, heard);
        if matches!(status, ReplyStatus::Failed { .. }) {
            row.error_stage = Some(ErrorStage::LlmReply);
        }
        let request_id = row.id;
        self.prompting.recall.log.note(user, row);
        self.recording.close_exchange(user, exchange, ending).await?;
        Ok(ChatReply { text, status, turn, request_id, recalled: items, learned: Vec::new(), spent })
    }

    /// Answers from memory alone, without a model: what was learned from the message, and what is known about it. The
    /// message is recorded and learned from before this returns; the reply is not recorded, because it says nothing new.
    pub async fn chat_alone(&self, user: &UserId, session: &SessionId, message: &str) -> Result<ChatReply> {
        check_message(message)?;
        let said = NewMessage::new(Role::User, message);
        let recorded = self.recording.record(user, session, vec![said], None).await?;
        let first = recorded.turns.first().map(|turn| turn.id);
        let turn = first.ok_or_else(|| Error::internal("a message was recorded without a place"))?;
        let learned = match self.learning.settings.enabled {
            true => self.learning.learn_from(user, session, &recorded).await?,
            false => Vec::new(),
        };
        let request = PromptRequest::new(session.clone(), message);
        let gathering = Gathering::of_prompt(&request, Vec::new(), Some(Scope::User));
        let Remembered { items, row, problem } =
            self.prompting.gather(user, RequestId(self.ids.next()), &gathering).await;
        let request_id = row.id;
        self.prompting.recall.log.note(user, row);
        if let Some(error) = problem {
            // What was said is recorded, and says so; the row says why nothing is recalled.
            tracing::warn!(%error, "memory replies without what it recalls");
        }
        let (text, recalled) = librarian::reply(message, &learned, items);
        let status = ReplyStatus::MemoryAlone;
        Ok(ChatReply { text, status, turn, request_id, recalled, learned, spent: Spent::default() })
    }

    /// What the model is shown; where the session cannot be read, the message alone.
    async fn shown(&self, user: &UserId, request: &PromptRequest) -> (Vec<ChatMessage>, Remembered) {
        match self.prompting.prompt_of_chat(user, request).await {
            Ok((prompt, remembered)) => match prompt.body {
                PromptBody::Messages(messages) => (messages, remembered),
                PromptBody::Text(text) => (vec![ChatMessage { role: Role::User, content: text }], remembered),
            },
            Err(error) => {
                let question = ChatMessage { role: Role::User, content: request.question.clone() };
                let recall = RecallRequest {
                    session: Some(request.session.clone()),
                    ..RecallRequest::new(request.question.clone())
                };
                let row = self.prompting.recall.log.row(
                    &recall,
                    RequestId(self.ids.next()),
                    None,
                    SignedDuration::ZERO,
                );
                (vec![question], Remembered { items: Vec::new(), row, problem: Some(error) })
            }
        }
    }

    /// Asks until the model has answered or somebody stops it. Gives back what came of the text, and the answer.
    async fn ask_model(
        &self,
        user: &UserId,
        exchange: &mut Exchange,
        request: &ChatRequest,
        talk: Talk<'_>,
    ) -> (String, Option<Result<ChatAnswer>>) {
        let Talk { model, on_text, mut stop, timer, .. } = talk;
        let mut said = String::new();
        let answered = {
            let mut take = |piece: &str| {
                said.push_str(piece);
                on_text(piece);
            };
            let mut asking = model.stream(request, &mut take);
            loop {
                let mut resting = timer.rest(self.recording.exchange_hold());
                match first_of(&mut asking, &mut stop, &mut resting).await {
                    Happened::Answered(answer) => break Some(answer),
                    Happened::Stopped => break None,
                    Happened::Rested => {
                        if let Err(error) = self.recording.hold_exchange(user, exchange).await {
                            tracing::warn!(%error, "a reply that takes long could not be held");
                        }
                    }
                }
            }
        };
        (said, answered)
    }
}

/// What ends waiting for a reply, or not yet.
enum Happened {
    Answered(Result<ChatAnswer>),
    Stopped,
    Rested,
}

/// Whatever comes first. An answer counts even where somebody stops it at the same moment.
async fn first_of(
    asking: &mut (impl Future<Output = Result<ChatAnswer>> + Unpin),
    stop: &mut (impl Future<Output = ()> + Unpin),
    resting: &mut (impl Future<Output = ()> + Unpin),
) -> Happened {
    poll_fn(|context| {
        if let Poll::Ready(answer) = Pin::new(&mut *asking).poll(context) {
            return Poll::Ready(Happened::Answered(answer));
        }
        if Pin::new(&mut *stop).poll(context).is_ready() {
            return Poll::Ready(Happened::Stopped);
        }
        Pin::new(&mut *resting).poll(context).map(|()| Happened::Rested)
    })
    .await
}

/// How a reply is shown and recorded.
struct Closing {
    text: String,
    status: ReplyStatus,
    ending: Ending,
    spent: Spent,
}

impl Closing {
    fn new(message: &str, said: String, heard: Option<Result<ChatAnswer>>) -> Self {
        let reply = |text: &str| NewMessage::new(Role::Assistant, text);
        match heard {
            Some(Ok(ChatAnswer { text, spent })) => {
                let ending = Ending::Complete(reply(&text));
                Self { text, status: ReplyStatus::Complete, ending, spent }
            }
            None => {
                let ending = Ending::Interrupted(reply(&said));
                Self { text: said, status: ReplyStatus::Interrupted, ending, spent: Spent::default() }
            }
            Some(Err(error)) => {
                let reason: String = error.to_string().chars().take(MAX_REASON_CHARS).collect();
                let apology = apology(message);
                let is_begun = !said.trim().is_empty();
                let mut turn = reply(if is_begun { &said } else { apology });
                turn.metadata.insert("error", json!({ "message": reason }));
                let (text, ending) = match is_begun {
                    true => (format!("{said}\n\n{apology}"), Ending::Interrupted(turn)),
                    false => (apology.to_owned(), Ending::Failed(turn)),
                };
                Self { text, status: ReplyStatus::Failed { reason }, ending, spent: Spent::default() }
            }
        }
    }
}

/// What the user is told when the model fails, in the language of the message.
fn apology(message: &str) -> &'static str {
    match is_chinese(std::iter::once(message)) {
        true => "抱歉，模型这次没有回答。您说的话没有丢失，已经记录下来；请稍后再试一次。",
        false => {
            "Sorry, the model did not answer this time. Nothing was lost: what you said is recorded. Please try again \
             in a moment."
        }
    }
}

fn check_message(message: &str) -> Result<()> {
    match message.trim().is_empty() {
        true => Err(Error::invalid("the message is empty; say something")),
        false => Ok(()),
    }
}

fn micros(began: Timestamp, ended: Timestamp) -> u64 {
    u64::try_from(ended.duration_since(began).as_micros()).unwrap_or(0)
}
