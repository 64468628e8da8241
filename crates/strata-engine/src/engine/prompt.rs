//! Prompts and the state behind them: what the model is shown of a session, whatever its length.
//!
//! A prompt reads the session's state, its last rolling summary, the turns after that, and for a chat what recall finds:
//! the same few rows for ten turns and for a hundred thousand. The pure parts are in [`crate::prompt`].

mod fold;
mod observe;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use super::Engine;
use crate::index::Saying;
use crate::prompt::{
    ChatLayers, FlatLayers, Message, Prompt, PromptFormat, PromptSettings, Rules, build_prompt_with, chat,
    filter_content_with, speaks_of_device,
};
use crate::recall::{Budget, MAX_LIMIT, MAX_QUERY_CHARS, RecallRequest, RecalledItem, Shown, cut};
use strata_core::error::{Error, Result};
use strata_core::id::{ItemId, RequestId, SessionId, UserId};
use strata_core::metric::RequestMetric;
use strata_core::ports::ChatMessage;
use strata_core::scope::Scope;
use strata_core::state::State;
use strata_core::store::{Change, ChangeSet};
use strata_core::turn::{Role, Turn};

use fold::Unfolded;
pub(in crate::engine) use observe::{MAX_TRIES, was_overtaken};

/// Settings of prompts with their rules made ready.
pub(crate) struct Prompting {
    pub(super) settings: PromptSettings,
    pub(super) rules: Rules,
}

impl Prompting {
    /// The defaults, compiled once for all engines.
    pub(super) fn built_in() -> Arc<Self> {
        static BUILT_IN: LazyLock<Arc<Prompting>> = LazyLock::new(|| {
            Arc::new(Prompting { settings: PromptSettings::default(), rules: Rules::built_in().clone() })
        });
        Arc::clone(&BUILT_IN)
    }
}

/// Asks for a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptRequest {
    /// The session it is for. It need not exist: then there is nothing to remember of it.
    pub session: SessionId,
    /// The current request.
    pub question: String,
    /// In which form.
    pub format: PromptFormat,
    /// The most tokens; the setting `max_tokens` where not given.
    pub max_tokens: Option<u32>,
    /// For a chat, the client's own messages with the request last, instead of the session's turns. They are passed on
    /// as they are, and without `max_tokens` none of them gives way.
    pub messages: Option<Vec<ChatMessage>>,
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
        }
    }
}

/// What recall found for a prompt, and the row of that.
pub(super) struct Remembered {
    /// Best first, without what the prompt shows anyway.
    pub(super) items: Vec<RecalledItem>,
    /// Not noted yet.
    pub(super) row: RequestMetric,
    /// Why there is nothing.
    pub(super) problem: Option<Error>,
}

/// What a session says before a question is put to it.
struct Prepared {
    turn_count: u64,
    state: State,
    unfolded: Unfolded,
}

/// A prompt, and what was asked of recall for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompted {
    /// The prompt.
    pub prompt: Prompt,
    /// The recall that a chat's memories came from.
    pub request_id: Option<RequestId>,
}

impl Engine {
    /// Makes prompts and reads states by other settings than the defaults; *invalid* where a profile cannot be right.
    pub fn with_prompts(mut self, settings: PromptSettings) -> Result<Self> {
        let rules = Rules::new(&settings.profiles)?;
        if settings.enrichment.as_ref().is_some_and(|template| !template.contains("{question}")) {
            return Err(Error::invalid("`enrichment` does not hold `{question}`; the request would be lost"));
        }
        self.prompting = Arc::new(Prompting { settings, rules });
        Ok(self)
    }

    /// How prompts are made.
    pub fn prompt_settings(&self) -> &PromptSettings {
        &self.prompting.settings
    }

    /// What the model is to be shown for a question: document 0's flat text, or the messages of a chat with what recall
    /// finds. Nothing is recorded by it.
    pub async fn prompt(&self, user: &UserId, request: &PromptRequest) -> Result<Prompted> {
        let prepared = self.prepared(user, request).await?;
        if request.format == PromptFormat::Flat {
            return Ok(self.flat_prompt(request, &prepared.state, prepared.unfolded));
        }
        let (prompt, remembered) = self.chat_prompt(user, request, prepared, None).await;
        let Remembered { row, problem, .. } = remembered;
        let request_id = Some(row.id);
        self.note_metric(user, row);
        problem.map_or(Ok(Prompted { prompt, request_id }), Err)
    }

    /// The messages of a chat whose session is kept here. What recall finds is not noted, and its failure is no error.
    pub(super) async fn prompt_of_chat(
        &self,
        user: &UserId,
        request: &PromptRequest,
    ) -> Result<(Prompt, Remembered)> {
        let prepared = self.prepared(user, request).await?;
        // A prompt that shows all of the session has room for what was said elsewhere.
        let shows_all = prepared.unfolded.summary.is_none() && prepared.unfolded.skipped == 0;
        let scope = shows_all.then_some(Scope::User);
        Ok(self.chat_prompt(user, request, prepared, scope).await)
    }

    async fn prepared(&self, user: &UserId, request: &PromptRequest) -> Result<Prepared> {
        if request.question.trim().is_empty() {
            return Err(Error::invalid("the question is empty; say what is asked"));
        }
        self.check_text("`question`", &request.question)?;
        let (turn_count, mut state) = self.session_now(user, &request.session).await?;
        let Prompting { settings, rules } = &*self.prompting;
        // Which device is meant is known before the answer is.
        rules.observe(Role::User, &request.question, &settings.filter, &mut state);
        let mut unfolded = self.unfolded(user, &request.session, turn_count).await?;
        if self.is_behind(&unfolded) {
            unfolded = self.catch_up(user, &request.session, unfolded).await;
        }
        // A client may record the question before it asks for the prompt.
        let is_question =
            |turn: &Turn| turn.role == Role::User && turn.content.trim() == request.question.trim();
        if unfolded.turns.last().is_some_and(is_question) {
            unfolded.turns.pop();
        }
        Ok(Prepared { turn_count, state, unfolded })
    }

    fn flat_prompt(&self, request: &PromptRequest, state: &State, unfolded: Unfolded) -> Prompted {
        let Prompting { settings, rules } = &*self.prompting;
        let settings = match request.max_tokens {
            Some(max_tokens) => &PromptSettings { max_tokens, ..settings.clone() },
            None => settings,
        };
        let summary = unfolded.text(settings);
        let recent: Vec<Message> = unfolded.turns.into_iter().map(Message::from).collect();
        let layers = FlatLayers {
            question: &request.question,
            state,
            summary: &summary,
            recent: &recent,
            is_device: speaks_of_device(&request.question, state),
        };
        let built = build_prompt_with(layers, rules, settings, self.tokens.as_ref());
        Prompted { prompt: built.prompt, request_id: None }
    }

    async fn chat_prompt(
        &self,
        user: &UserId,
        request: &PromptRequest,
        prepared: Prepared,
        scope: Option<Scope>,
    ) -> (Prompt, Remembered) {
        let Prepared { turn_count, state, unfolded } = prepared;
        let Prompting { settings, rules } = &*self.prompting;
        let (messages, shown, covers_all) = match &request.messages {
            Some(messages) => {
                let said = messages.iter().filter(|message| message.role != Role::System).count();
                (messages.clone(), Vec::new(), said as u64 > turn_count)
            }
            None => {
                let shown: Vec<_> = unfolded.turns.iter().map(|turn| ItemId::Turn(turn.id)).collect();
                let said = unfolded.turns.iter().map(|turn| self.shown_turn(turn));
                let question = ChatMessage { role: Role::User, content: request.question.clone() };
                (said.chain([question]).collect(), shown, false)
            }
        };
        let remembered = self.memories_for(user, request, &shown, scope).await;
        let max_tokens = match (request.max_tokens, &request.messages) {
            (None, Some(_)) => None,
            (given, _) => Some(given.unwrap_or(settings.max_tokens)),
        };
        // A client that sends all that was said needs no summary of it.
        let summary = if covers_all { String::new() } else { unfolded.text(settings) };
        let memories = &remembered.items;
        let layers =
            ChatLayers { messages: &messages, state: &state, summary: &summary, memories, max_tokens };
        let prompt = chat(layers, rules, settings, self.tokens.as_ref());
        (prompt, remembered)
    }

    /// A turn as a message. What a tool said is passed on as the assistant's words: chat models take a tool's message only
    /// after the call that asked for it, which is not recorded.
    fn shown_turn(&self, turn: &Turn) -> ChatMessage {
        let content = filter_content_with(&turn.content, &self.prompting.settings.filter);
        match turn.role {
            Role::Tool => ChatMessage { role: Role::Assistant, content: format!("Tool: {content}") },
            role => ChatMessage { role, content },
        }
    }

    /// What recall finds for a question, without what is shown anyway.
    pub(super) async fn memories_for(
        &self,
        user: &UserId,
        request: &PromptRequest,
        shown: &[ItemId],
        scope: Option<Scope>,
    ) -> Remembered {
        let query = cut(&request.question, MAX_QUERY_CHARS).unwrap_or_else(|| request.question.clone());
        let settings = &self.settings.recall;
        let top_k = settings.default_top_k;
        // What is shown anyway and the question itself are left out of what was found: so a few more are looked for.
        let spare = (shown.len() as u32 + 1).min(top_k);
        let budget = Budget { max_turns: settings.budget.max_turns + spare, ..settings.budget };
        let recall = RecallRequest {
            session: Some(request.session.clone()),
            scope,
            shared: true,
            limit: Some((top_k + spare).min(MAX_LIMIT)),
            budget: Some(budget),
            shown: Shown {
                items: shown.iter().copied().collect(),
                texts: HashSet::from([Saying::new(&request.question)]),
            },
            ..RecallRequest::new(query)
        };
        let (began, id) = (self.clock.now(), RequestId(self.ids.next()));
        let recalled = self.recall_unnoted(user, &recall, id).await;
        let mut row =
            self.metric(&recall, id, recalled.as_ref().ok(), self.clock.now().duration_since(began));
        let (found, problem) = match recalled {
            Ok(recalled) => (recalled.items, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        let is_question = |item: &RecalledItem| item.item.content().trim() == request.question.trim();
        let found = found.into_iter();
        let found = found.filter(|item| !shown.contains(&item.item.id()) && !is_question(item));
        let items: Vec<RecalledItem> = found.take(top_k as usize).collect();
        row.keep_served(items.iter().map(|item| item.item.id()));
        row.context_items = items.len() as u32;
        row.estimated_tokens =
            items.iter().fold(0, |sum: u32, item| sum.saturating_add(self.tokens_shown(item)));
        Remembered { items, row, problem }
    }

    /// A session's state; *not found* where there is no such session.
    pub async fn state(&self, user: &UserId, session: &SessionId) -> Result<State> {
        Ok(self.session(user, session).await?.state)
    }

    /// Replaces a session's state with one that somebody edited; the session is created if it does not exist. How far the
    /// turns have been read stays as it is, whatever `state` says of it.
    pub async fn put_state(&self, user: &UserId, session: &SessionId, mut state: State) -> Result<State> {
        self.check_state(&state)?;
        let _place = self.queues.enter(user, session).await;
        let mut tries = 0;
        loop {
            let (turn_count, before) = self.session_now(user, session).await?;
            state.observed = before.observed;
            let expect =
                Change::ExpectSession { session: session.clone(), turn_count, state: Box::new(before) };
            let put = Change::PutState { session: session.clone(), state: Box::new(state.clone()) };
            match self.store.apply(user, ChangeSet::new(self.now(), vec![expect, put])).await {
                Ok(_) => return Ok(state),
                Err(error) if was_overtaken(&error) && tries < MAX_TRIES => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }
}
