//! A whole exchange for a client that leaves the conversation to Strata: recall, prompt, model, recording.
//!
//! The user's message is durable before the model is asked ([`Recording::open_message`]), so it is never lost. A
//! failing model is not an error: the evolution plan asks for an error *reply*. It is recorded as a turn that recall
//! never returns, and the request's row names the failure. Without a model, memory answers by itself ([`librarian`]).
//!
//! Timers and signals are deliberately absent; they come in with [`Talk`].

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

use crate::line::is_chinese;
use crate::prompt::{PromptBody, PromptFormat};
use crate::prompting::{Gathering, Remembered};
use crate::recall::{RecallRequest, RecalledItem};
use strata_core::error::{Error, Result};
use strata_core::id::{RequestId, SessionId, TurnId, UserId};
use strata_core::metric::ErrorStage;
use strata_core::ports::{ChatAnswer, ChatMessage, ChatModel, ChatRequest, Spent, Timer};
use strata_core::scope::Scope;
use strata_core::store::TurnQuery;
use strata_core::turn::{NewMessage, Role, Turn};

/// The most characters of the reason of a failure that are recorded.
const MAX_REASON_CHARS: usize = 1_000;

/// How to get a reply.
pub struct Talk<'a> {
    /// The model that replies.
    pub model: &'a dyn ChatModel,
    /// The instructions that the model gets first.
    pub instructions: Option<&'a str>,
    /// Receives the reply piece by piece.
    pub on_text: &'a mut (dyn FnMut(&str) + Send),
    /// When this future completes, the reply is interrupted. [`std::future::pending`] never completes.
    pub stop: Pin<&'a mut (dyn Future<Output = ()> + Send)>,
    /// The timer for renewing the lease of a reply that takes long, see [`Recording::hold_exchange`].
    pub timer: &'a dyn Timer,
}

/// A reply and its background.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatReply {
    /// The text for the user.
    pub text: String,
    /// How it came about.
    pub status: ReplyStatus,
    /// The turn of the user's message.
    pub turn: TurnId,
    /// The request's row, for [`crate::Requests::trace`] and [`crate::Requests::explain`].
    pub request_id: RequestId,
    /// The items that were recalled for the reply, the best first.
    pub recalled: Vec<RecalledItem>,
    /// The memories learned from the message, if memory replied by itself. With a model, learning happens in the
    /// background.
    pub learned: Vec<InferredEvent>,
    /// The tokens that the model used.
    pub spent: Spent,
}

/// How a reply came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyStatus {
    /// The model has finished its reply.
    Complete,
    /// The reply was interrupted. The part that arrived is recorded.
    Interrupted,
    /// The model failed; the text says so in the user's language. The user's message is recorded.
    Failed {
        /// The reason.
        reason: String,
    },
    /// There is no model: memory has replied by itself. Its reply is not recorded.
    MemoryAlone,
}

/// Answers a user's messages, through a model or from memory alone.
#[derive(Clone)]
pub struct Conversation {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) recording: Recording,
    pub(crate) prompting: Arc<Prompting>,
    pub(crate) learning: Arc<Learning>,
}

impl Conversation {
    /// Answers a message: recalls, shows the model a prompt within the budget, and records both sides.
    ///
    /// The message is durable before the model is asked. If the model fails, the reply says so
    /// ([`ReplyStatus::Failed`]). An error is returned only if the store fails or the message cannot be recorded. If
    /// this call is cancelled, a worker later records the reply as interrupted.
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
        if spent.calls > 0 {
            row.prompt.input_tokens = Some(spent.input_tokens);
            row.prompt.output_tokens = Some(spent.output_tokens);
        }
        let request_id = row.id;
        self.prompting.recall.log.note(user, row);
        self.recording.close_exchange(user, exchange, ending).await?;
        Ok(ChatReply { text, status, turn, request_id, recalled: items, learned: Vec::new(), spent })
    }

    /// Answers from memory alone, without a model: the memories learned from the message, and the items known about
    /// it. The message is recorded and learned from before this call returns. The reply is not recorded, because it
    /// says nothing new.
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
        let gathering = Gathering {
            answers_alone: true,
            ..Gathering::of_prompt(&request, Vec::new(), Some(Scope::User))
        };
        let Remembered { items, row, problem } =
            self.prompting.gather(user, RequestId(self.ids.next()), &gathering).await;
        let request_id = row.id;
        self.prompting.recall.log.note(user, row);
        if let Some(error) = problem {
            // The message is recorded, and the reply says so. The row says why nothing is recalled.
            tracing::warn!(%error, "memory replies without what it recalls");
        }
        let last = self.said_before(user, session, recorded.turns.first().map_or(0, |turn| turn.seq)).await?;
        let (text, recalled) = librarian::reply(message, &learned, items, last, self.clock.now());
        let status = ReplyStatus::MemoryAlone;
        Ok(ChatReply { text, status, turn, request_id, recalled, learned, spent: Spent::default() })
    }

    /// The turn right before `seq`, if it belongs to the conversation and gave no standing instruction.
    async fn said_before(&self, user: &UserId, session: &SessionId, seq: u64) -> Result<Option<Turn>> {
        if seq == 0 {
            return Ok(None);
        }
        let query = TurnQuery::Range { session: session.clone(), after: seq.checked_sub(2), limit: 1 };
        let turns = self.recording.store.turns(user, &query).await?;
        let Some(turn) = turns.into_iter().find(Turn::is_in_conversation) else { return Ok(None) };
        // An instruction to the assistant answers no question.
        let standing = self.prompting.standing(user, session, None).await;
        let instructs = standing.iter().any(|memory| memory.source_turns.contains(&turn.id));
        Ok(Some(turn).filter(|_| !instructs))
    }

    /// The messages for the model; only the user's message if the session cannot be read.
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

    /// Asks until the model has answered or the caller stops it. Returns the text that arrived, and the answer.
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
                    ReplyEvent::Answered(answer) => break Some(answer),
                    ReplyEvent::Stopped => break None,
                    ReplyEvent::HoldDue => {
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

/// An event while a reply is awaited.
enum ReplyEvent {
    Answered(Result<ChatAnswer>),
    Stopped,
    HoldDue,
}

/// The event that comes first. If the answer and the stop come together, the answer counts.
async fn first_of(
    asking: &mut (impl Future<Output = Result<ChatAnswer>> + Unpin),
    stop: &mut (impl Future<Output = ()> + Unpin),
    resting: &mut (impl Future<Output = ()> + Unpin),
) -> ReplyEvent {
    poll_fn(|context| {
        if let Poll::Ready(answer) = Pin::new(&mut *asking).poll(context) {
            return Poll::Ready(ReplyEvent::Answered(answer));
        }
        if Pin::new(&mut *stop).poll(context).is_ready() {
            return Poll::Ready(ReplyEvent::Stopped);
        }
        Pin::new(&mut *resting).poll(context).map(|()| ReplyEvent::HoldDue)
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

/// The text for the user when the model fails, in the language of the message.
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
