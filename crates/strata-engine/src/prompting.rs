//! Prompts for a session of any length.
//!
//! A prompt reads the session's state, its latest rolling summary, the turns after that summary, and for a chat the
//! items that recall finds: the same few rows for ten turns and for a hundred thousand. The pure parts are in
//! [`crate::prompt`].

mod chat;
mod fill;
mod flat;
mod gather;
mod history;
mod standing;
#[cfg(test)]
mod tests;

use crate::limits::Limits;
use crate::line::{Days, day, turn_head};
use crate::neutral::{neutral, neutral_tags};
use crate::recall::Recall;
use crate::recording::Recording;
use jiff::civil::Date;
use std::sync::Arc;
use std::time::Duration;
use strata_core::ports::{Clock, IdSource, Load, TokenCounter, compute};

use crate::prompt::{
    ChatLayers, History, Prompt, PromptFormat, PromptRules, PromptSettings, chat_filled, filter_content_with,
    without_said,
};
use strata_core::error::{Error, Result};
use strata_core::id::{ItemId, RequestId, SessionId, UserId};
use strata_core::metric::PromptUse;
use strata_core::ports::ChatMessage;
use strata_core::scope::{RecallScope, Scope};
use strata_core::state::State;
use strata_core::turn::{Role, Turn};

use crate::recording::{Unfolded, session_now};
pub use chat::{BlockSources, ChatMemory, ChatQuestion, ChatSnapshot};
pub(crate) use gather::{Gathering, Remembered};

/// Prompts of at most this many bytes are rendered on the thread of the request: counting their tokens takes less than a
/// millisecond.
const INLINE_BYTES: usize = 4 * 1024;

/// A request for a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptRequest {
    /// The session that the prompt is for. It need not exist; then the prompt shows no history.
    pub session: SessionId,
    /// The current request.
    pub question: String,
    /// The form of the prompt.
    pub format: PromptFormat,
    /// The most tokens of the prompt. Defaults to the setting `max_tokens`.
    pub max_tokens: Option<u32>,
    /// For a chat: the client's own messages, the request last, instead of the session's turns. They are passed on
    /// unchanged. Without `max_tokens` none of them is cut.
    pub messages: Option<Vec<ChatMessage>>,
    /// How far recall may look from the session, instead of the setting.
    pub scope: Option<RecallScope>,
    /// How long recall may wait for models. Defaults to no limit.
    pub deadline: Option<Duration>,
}

impl PromptRequest {
    /// A flat prompt for a question.
    pub fn new(session: SessionId, question: impl Into<String>) -> Self {
        Self {
            session,
            question: question.into(),
            format: PromptFormat::Flat,
            max_tokens: None,
            messages: None,
            scope: None,
            deadline: None,
        }
    }
}

/// The data of a session that a prompt is made from.
struct Prepared {
    turn_count: u64,
    state: State,
    unfolded: Unfolded,
    /// The text for the turns before those of `unfolded`.
    history: String,
    /// The block of the standing instructions of a flat prompt.
    standing: String,
    /// The tokens of all turns of the session and of the question.
    raw_tokens: u64,
}

/// A prompt, and the id of the recall that was made for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompted {
    /// The prompt.
    pub prompt: Prompt,
    /// The id of the recall that found a chat's memories.
    pub request_id: Option<RequestId>,
}

/// The prompt that a chat would be shown now, beside the size of sending everything.
#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    /// The prompt.
    pub prompt: Prompt,
    /// The tokens of all turns of the session and of the question.
    pub raw_tokens: u64,
}

/// Makes prompts, and the block of memory that goes into a chat.
#[derive(Clone)]
pub struct Prompting {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) tokens: Arc<dyn TokenCounter>,
    pub(crate) limits: Limits,
    pub(crate) prompts: Arc<PromptRules>,
    pub(crate) recall: Recall,
    pub(crate) recording: Recording,
}

impl Prompting {
    /// The settings for making prompts.
    pub fn settings(&self) -> &PromptSettings {
        &self.prompts.settings
    }

    /// Makes a prompt for a question: the flat text of the layered-prompt design, or the messages of a chat with the
    /// items that recall finds. It records nothing.
    pub async fn prompt(&self, user: &UserId, request: &PromptRequest) -> Result<Prompted> {
        let prepared = self.prepared(user, request).await?;
        if request.format == PromptFormat::Flat {
            return self.flat_prompt(user, request, prepared).await;
        }
        let (prompt, remembered) = self.chat_prompt(user, request, prepared, None).await?;
        let Remembered { row, problem, .. } = remembered;
        let request_id = Some(row.id);
        self.recall.log.note(user, row);
        problem.map_or(Ok(Prompted { prompt, request_id }), Err)
    }

    /// The prompt that a chat in the session would be shown now. Nothing is recorded, and no row is logged.
    pub async fn preview(&self, user: &UserId, request: &PromptRequest) -> Result<Preview> {
        let (prompt, remembered) = self.prompt_of_chat(user, request).await?;
        let raw_tokens = remembered.row.prompt.raw_tokens.unwrap_or_default();
        remembered.problem.map_or(Ok(Preview { prompt, raw_tokens }), Err)
    }

    /// The messages of a chat whose conversation Strata keeps. The recall's row is not logged yet, and a failing
    /// recall is not an error.
    pub(super) async fn prompt_of_chat(
        &self,
        user: &UserId,
        request: &PromptRequest,
    ) -> Result<(Prompt, Remembered)> {
        let prepared = self.prepared(user, request).await?;
        // A prompt that shows the whole session has room for items of other sessions.
        let shows_all = prepared.unfolded.shows_all();
        let scope = shows_all.then_some(Scope::User);
        self.chat_prompt(user, request, prepared, scope).await
    }

    async fn prepared(&self, user: &UserId, request: &PromptRequest) -> Result<Prepared> {
        if request.question.trim().is_empty() {
            return Err(Error::invalid("the question is empty; say what is asked"));
        }
        self.limits.check_text("`question`", &request.question)?;
        let session =
            session_now(self.recording.store.as_ref(), self.clock.as_ref(), user, &request.session).await?;
        let turn_count = session.turn_count;
        let PromptRules { settings, rules } = &*self.prompts;
        let mut unfolded = self.recording.unfolded(user, &request.session, turn_count).await?;
        if self.recording.is_behind(&unfolded) {
            unfolded = self.recording.catch_up(user, &session, unfolded).await;
        }
        let mut state = session.state;
        // The question may name the device that it is about.
        rules.observe_turn(Role::User, &request.question, turn_count, &settings.filter, &mut state);
        // A client may record the question before it requests the prompt.
        let is_question =
            |turn: &Turn| turn.role == Role::User && turn.content.trim() == request.question.trim();
        let mut raw_tokens = state.observed.tokens;
        if unfolded.turns.last().is_some_and(is_question) {
            unfolded.turns.pop();
        } else {
            let question = vec![request.question.clone()];
            raw_tokens = raw_tokens.saturating_add(u64::from(self.counted(question).await?));
        }
        let standing = self.standing_block(user, request).await;
        if settings.history == History::Auto && request.messages.is_none() {
            let beside = self.counted(vec![standing.clone()]).await?;
            unfolded = self.fill(user, request, &state, unfolded, beside).await?;
        }
        let first_shown = request.messages.as_ref().map(|messages| first_of(messages, turn_count));
        let history = self.history(user, &request.session, &mut unfolded, first_shown).await?;
        Ok(Prepared { turn_count, state, unfolded, history, standing, raw_tokens })
    }

    async fn chat_prompt(
        &self,
        user: &UserId,
        request: &PromptRequest,
        prepared: Prepared,
        scope: Option<Scope>,
    ) -> Result<(Prompt, Remembered)> {
        let Prepared { turn_count, state, unfolded, history, raw_tokens, .. } = prepared;
        let PromptRules { settings, .. } = &*self.prompts;
        let (messages, shown, covers_all) = match &request.messages {
            Some(messages) => {
                let said = messages.iter().filter(|message| message.role != Role::System).count();
                (messages.clone(), Vec::new(), said as u64 > turn_count)
            }
            None => {
                let shown: Vec<_> = unfolded.turns.iter().map(|turn| ItemId::Turn(turn.id)).collect();
                let today = day(self.clock.now());
                let said = unfolded.turns.iter().map(|turn| self.shown_turn(turn, today));
                let question = ChatMessage { role: Role::User, content: request.question.clone() };
                (said.chain([question]).collect(), shown, false)
            }
        };
        let gathering = Gathering::of_prompt(request, shown, scope);
        let mut remembered = self.gather(user, RequestId(self.ids.next()), &gathering).await;
        let max_tokens = match (request.max_tokens, &request.messages) {
            (None, Some(_)) => None,
            (given, _) => Some(given.unwrap_or(settings.max_tokens)),
        };
        // A client that sends the whole conversation needs no summary of it.
        // Nor does a turn that recall shows.
        let recalled = remembered.items.iter().map(|found| found.item.content());
        let said = request.messages.iter().flatten().map(|message| message.content.as_str());
        let summary =
            if covers_all { String::new() } else { without_said(&history, recalled.chain(said), false) };
        let fills = settings.history == History::Auto && request.messages.is_none();
        let render = if fills { chat_filled } else { crate::prompt::chat };
        let memories = remembered.items.clone();
        let bytes = summary.len() + messages.iter().map(|message| message.content.len()).sum::<usize>();
        let (prompts, tokens) = (Arc::clone(&self.prompts), Arc::clone(&self.tokens));
        let now = Some(self.clock.now());
        let rendered = self.computed(bytes, move || {
            let (messages, memories) = (&messages, &memories[..]);
            let layers = ChatLayers { messages, state: &state, summary: &summary, memories, max_tokens, now };
            render(layers, &prompts.rules, &prompts.settings, tokens.as_ref())
        });
        let prompt = rendered.await?;
        remembered.row.prompt = PromptUse {
            raw_tokens: Some(raw_tokens),
            input_tokens: Some(u64::from(prompt.tokens)),
            ..PromptUse::default()
        };
        Ok((prompt, remembered))
    }

    /// The result of work on texts of so many bytes. Long texts go through the compute port, because their tokens are
    /// counted.
    async fn computed<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        if bytes <= INLINE_BYTES {
            return Ok(work());
        }
        compute(self.recall.compute.as_ref(), Load::Short, work).await
    }

    /// The tokens of texts together, through the compute port if they are long.
    async fn counted(&self, texts: Vec<String>) -> Result<u32> {
        let bytes = texts.iter().map(String::len).sum();
        let tokens = Arc::clone(&self.tokens);
        let count = move || texts.iter().fold(0, |sum: u32, text| sum.saturating_add(tokens.count(text)));
        self.computed(bytes, count).await
    }

    /// A turn as a message. The result of a tool is passed on as a message of the assistant: chat models accept a
    /// tool's message only after the call that asked for it, and the call is not part of this prompt.
    ///
    /// A turn with a name, and a user's turn of an earlier day, begin with day and speaker. The model's own turns do
    /// not, because the model would imitate it.
    fn shown_turn(&self, turn: &Turn, today: Date) -> ChatMessage {
        let content = filter_content_with(&turn.content, &self.prompts.settings.filter);
        let is_earlier = turn.role == Role::User && day(turn.created_at) != today;
        let content = match turn.role {
            Role::User | Role::Assistant if turn.name.is_some() || is_earlier => {
                format!("{} {}", neutral_tags(&turn_head(turn, Days::Absolute)), neutral(&content))
            }
            _ => neutral_tags(&content).into_owned(),
        };
        match turn.role {
            Role::Tool => ChatMessage { role: Role::Assistant, content: format!("Tool: {content}") },
            role => ChatMessage { role, content },
        }
    }
}

/// The first turn of a session among a client's messages, which end with the question: as many of the last turns as there
/// are messages before it.
fn first_of(messages: &[ChatMessage], turn_count: u64) -> u64 {
    let said = messages.iter().filter(|message| message.role != Role::System).count() as u64;
    turn_count.saturating_sub(said.saturating_sub(1))
}
