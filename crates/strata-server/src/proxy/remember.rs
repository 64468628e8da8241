//! Recall for a chat: in two steps, so that the question is recorded while memory is ranked.

use std::time::{Duration, Instant};

use strata_core::metric::RequestMetric;
use strata_core::scope::RecallScope;
use strata_core::turn::NewMessage;
use strata_core::{RequestId, Role};
use strata_engine::align::key;
use strata_engine::index::TextFingerprint;
use strata_engine::prompt::strip_injected;
use strata_engine::{BlockSources, ChatMemory, ChatQuestion, ChatSnapshot};
use tokio::task::JoinHandle;

use super::chat::ProxiedChat;
use super::recalled::{Recalled, WhyNothing};
use crate::upstream::{Injected, hash};

/// The share of the remaining time that recall waits for models. The rest is for choosing and loading the items: a model
/// that is late costs quality, and not the memory.
const MODELS_SHARE: f64 = 0.8;

/// More of a question is not read: recall itself uses far less.
const MAX_QUESTION_BYTES: usize = 256 * 1024;

/// The state of the question to memory.
pub(super) enum Remembering {
    /// There is nothing to recall, or the block of the previous request is used again.
    Known(Recalled, Box<ChatQuestion>),
    /// The session and the index have been read.
    Prepared {
        question: Box<ChatQuestion>,
        /// A hash of the messages up to the question.
        upto: u64,
        snapshot: Box<ChatSnapshot>,
    },
    /// Memory failed.
    Failed(Box<ChatQuestion>, Problem),
}

/// Why memory has no result.
pub(super) struct Problem {
    why: WhyNothing,
    text: String,
}

/// The text of a question, with NUL characters replaced as they are where it is recorded. Of a very long one, only the
/// beginning and the end are read.
fn question_text(said: &str) -> String {
    if said.len() <= MAX_QUESTION_BYTES {
        return strip_injected(said).replace('\0', "\u{fffd}");
    }
    let (head, tail) = (
        said.floor_char_boundary(MAX_QUESTION_BYTES / 2),
        said.ceil_char_boundary(said.len() - MAX_QUESTION_BYTES / 2),
    );
    strip_injected(&format!("{}\n{}", &said[..head], &said[tail..])).replace('\0', "\u{fffd}")
}

impl ProxiedChat<'_> {
    /// Prepares recall: reads the session and the index.
    pub(super) async fn remember(&self, heard: &[NewMessage], most: Duration) -> Remembering {
        let place = self.body.question();
        let question = Box::new(self.chat_question(place, heard));
        let upto = self.conversation_upto(place);
        // Within one turn of the user, for instance while tools are called, the block stays the same byte for byte.
        let goes_on = place.is_some_and(|place| place + 1 < self.body.messages().len());
        let sessions = &self.app.proxy().histories;
        let injected = sessions.with(&self.user, &self.session, |known| known.injected.clone());
        let injected = injected.filter(|injected| goes_on && injected.upto == upto);
        match self.still_allowed(injected).await {
            _ if !self.uses.recalls => {
                return Remembering::Known(Recalled::nothing(WhyNothing::WriteOnly), question);
            }
            _ if question.question.trim().is_empty() => {
                return Remembering::Known(Recalled::nothing(WhyNothing::NoQuestion), question);
            }
            Some(Injected { block, items, tokens, .. }) => {
                return Remembering::Known(self.recalled(block, items, tokens), question);
            }
            None => {}
        }
        // On a task of its own, like ranking: loading a large index takes longer than a chat should wait, and does
        // not yield.
        let (engine, user, session) = (self.app.engine().clone(), self.user.clone(), self.session.clone());
        let reading = tokio::spawn(async move { engine.prompting.chat_snapshot(&user, &session).await });
        match self.in_time(most, reading).await {
            Ok(snapshot) => Remembering::Prepared { question, upto, snapshot: Box::new(snapshot) },
            Err(problem) => Remembering::Failed(question, problem),
        }
    }

    /// The block of the previous request, unless something of it was forgotten or deleted meanwhile. A store that cannot
    /// tell counts as one that has forgotten.
    async fn still_allowed(&self, injected: Option<Injected>) -> Option<Injected> {
        let injected = injected?;
        let prompting = &self.app.engine().prompting;
        let is_allowed = prompting.may_repeat(&self.user, &injected.sources).await;
        is_allowed.unwrap_or(false).then_some(injected)
    }

    fn chat_question(&self, place: Option<usize>, heard: &[NewMessage]) -> ChatQuestion {
        let options = &self.body.options;
        let said = place.map(|place| self.body.messages()[place].said()).unwrap_or_default();
        ChatQuestion {
            session: self.session.clone(),
            question: question_text(said),
            shown: heard.iter().map(|message| key(message.role, &message.content, &message.notes)).collect(),
            texts: heard.iter().map(|message| TextFingerprint::new(&message.content)).collect(),
            top_k: options.top_k,
            recency_weight: options.recency_weight,
            score_threshold: options.score_threshold,
            rerank: options.rerank,
            scope: self.scope,
            deadline: None,
        }
    }

    /// The block in front of the question, and the row of the request.
    pub(super) async fn remembered(
        &self,
        id: RequestId,
        remembering: Remembering,
        began: Instant,
        deadline: Duration,
    ) -> (Recalled, RequestMetric) {
        let engine = self.app.engine();
        let (question, problem) = match remembering {
            Remembering::Known(recalled, question) => {
                return (
                    recalled,
                    engine.prompting.chat_without_memory(id, &question, began.elapsed(), false),
                );
            }
            Remembering::Prepared { question, upto, snapshot } => {
                let left = deadline.saturating_sub(began.elapsed());
                let asked =
                    ChatQuestion { deadline: Some(left.mul_f64(MODELS_SHARE)), ..(*question).clone() };
                let (user, engine) = (self.user.clone(), engine.clone());
                let recalling =
                    tokio::spawn(
                        async move { engine.prompting.chat_memory(&user, id, &asked, *snapshot).await },
                    );
                match self.in_time(left, recalling).await {
                    Ok(ChatMemory { block, sources, row }) => {
                        return (self.found(upto, block, sources, &row), row);
                    }
                    Err(problem) => (question, problem),
                }
            }
            Remembering::Failed(question, problem) => (question, problem),
        };
        tracing::warn!(problem = problem.text, "a chat goes on without memory");
        let row = engine.prompting.chat_without_memory(id, &question, began.elapsed(), true);
        (Recalled::nothing(problem.why), row)
    }

    /// Remembers a block for the rest of the user's turn.
    fn found(
        &self,
        upto: u64,
        block: Option<String>,
        sources: BlockSources,
        row: &RequestMetric,
    ) -> Recalled {
        // Items are counted when they are recorded; a block without items is short.
        let (items, tokens) = match (&block, row.context_items) {
            (None, _) => (0, 0),
            (Some(block), 0) => (0, self.app.engine().prompting.count_tokens(block)),
            (Some(_), items) => (items, row.estimated_tokens),
        };
        let injected = Injected { upto, block: block.clone(), items, tokens, sources };
        let sessions = &self.app.proxy().histories;
        sessions.with(&self.user, &self.session, |known| known.injected = Some(injected));
        self.recalled(block, items, tokens)
    }

    fn recalled(&self, block: Option<String>, items: u32, tokens: u32) -> Recalled {
        let why_nothing = block.is_none().then(|| self.why_nothing_found());
        let unreadable = self.app.engine().store().unreadable(&self.user);
        Recalled { block, items, tokens, why_nothing, unreadable }
    }

    fn why_nothing_found(&self) -> WhyNothing {
        match self.scope {
            Some(RecallScope::Session) => WhyNothing::Wall,
            _ => WhyNothing::NothingFound,
        }
    }

    /// The result of a task, or the reason why it has none.
    async fn in_time<T>(
        &self,
        most: Duration,
        task: JoinHandle<strata_core::Result<T>>,
    ) -> Result<T, Problem> {
        let failed = |text: String| Err(Problem { why: WhyNothing::Failed, text });
        match tokio::time::timeout(most, task).await {
            Ok(Ok(Ok(value))) => Ok(value),
            Ok(Ok(Err(error))) => failed(error.to_string()),
            Ok(Err(error)) => failed(error.to_string()),
            Err(_) => {
                let deadline = self.app.settings().proxy.memory_deadline.as_millis();
                Err(Problem { why: WhyNothing::Late, text: format!("it took longer than {deadline} ms") })
            }
        }
    }

    /// A hash of the messages up to and including one.
    fn conversation_upto(&self, place: Option<usize>) -> u64 {
        let messages = self.body.messages().iter().take(place.map_or(0, |place| place + 1));
        // A block is used again only for a question with the same scope.
        let mut all = vec![u8::from(self.scope == Some(RecallScope::Session))];
        // Items without a speaker come and go, like the reminders of a program.
        for message in messages.filter(|message| message.role.is_some_and(|role| role != Role::System)) {
            all.extend_from_slice(&hash(message.said().as_bytes()).to_le_bytes());
        }
        hash(&all)
    }
}
