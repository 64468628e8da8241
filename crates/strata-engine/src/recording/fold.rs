//! The rolling summary in the store: moved on in steps, and read with the few turns that it does not cover.
//!
//! Each version names the one it was built on. Within [`VERSION_TURNS`] turns a version is moved on in place, so that the
//! chain grows by 6,000 characters for that many turns and not for every step.
//!
//! Where a reader judges sentences, the summary keeps the sentences that matter. The reader works in the background, so
//! turns that it has not judged yet wait for it, up to [`MAX_WAITING`].

use super::Recording;
use jiff::Timestamp;
use serde_json::Value;

use crate::case::{SALIENT_ROOM, salient};
use crate::jobs::was_overtaken;
use crate::prompt::PromptRules;
use crate::prompt::{Message, PromptSettings, build_summary_with, recent_start};
use crate::withdrawn::Withdrawn;
use strata_core::error::Result;
use strata_core::id::{SessionId, SummaryId, UserId};
use strata_core::session::Session;
use strata_core::state::Observed;
use strata_core::store::{Change, ChangeSet, Expectation, SummaryQuery, TurnQuery};
use strata_core::summary::{Strategy, Summary, SummaryStatus};
use strata_core::turn::{NewTurn, Turn};

/// The most turns that one fold reads. Older turns are only counted as left out. The size limit of the summary would
/// leave them out anyway: 512 first sentences are several times longer than the summary.
const MAX_FOLD: u64 = 512;

/// The number of turns after which a version stays as it is and a new version is built on it.
const VERSION_TURNS: u64 = 120;

/// The most turns that wait for the reader. Beyond it they are summarised by rule, so that a reader that fails or falls
/// far behind does not stop the summary.
const MAX_WAITING: usize = 200;

/// The field of a summary's structured part that says that a step made it.
const FOLDED: &str = "folded";

/// The structured part of a version that a step builds on another.
fn folded_structured(mut structured: Value) -> Value {
    if let Value::Object(fields) = &mut structured {
        fields.insert(FOLDED.to_owned(), true.into());
    }
    structured
}

/// The latest rolling summary and the turns that it does not cover.
pub(crate) struct Unfolded {
    pub(crate) summary: Option<Summary>,
    /// The number of turns between the summary and `turns` that are skipped.
    pub(crate) skipped: u64,
    /// Without hidden ones, by `seq`.
    pub(crate) turns: Vec<Turn>,
    /// The entries of turns that neither the summary covers nor a prompt has room for.
    pub(crate) uncovered: String,
}

impl Unfolded {
    /// Whether a prompt that shows the turns shows the whole session.
    pub(crate) fn shows_all(&self) -> bool {
        self.summary.is_none() && self.skipped == 0 && self.uncovered.is_empty()
    }

    /// The summary's text with the entries behind it, and with a note if turns after it were left out.
    pub(crate) fn text(&self, settings: &PromptSettings) -> String {
        let existing = self.summary.as_ref().map_or("", |summary| &summary.text);
        let parts = [existing, self.uncovered.as_str()].into_iter().filter(|part| !part.is_empty());
        let text = parts.collect::<Vec<_>>().join("\n");
        if self.skipped == 0 {
            return text;
        }
        build_summary_with(&text, &[], self.skipped, &settings.filter, &settings.summary)
    }
}

impl Recording {
    /// The latest rolling summary and the turns that it does not cover, for a prompt. If the prompt quotes more turns than
    /// that, the summary is returned without them.
    pub(crate) async fn unfolded(
        &self,
        user: &UserId,
        session: &SessionId,
        turn_count: u64,
    ) -> Result<Unfolded> {
        let unfolded = self.stored_unfolded(user, session, turn_count).await?;
        self.with_recent(user, session, unfolded).await
    }

    async fn stored_unfolded(&self, user: &UserId, session: &SessionId, turn_count: u64) -> Result<Unfolded> {
        if turn_count == 0 {
            return Ok(Unfolded { summary: None, skipped: 0, turns: Vec::new(), uncovered: String::new() });
        }
        let query = SummaryQuery {
            session: session.clone(),
            strategy: Some(Strategy::Rolling),
            status: Some(SummaryStatus::Completed),
            limit: 1,
        };
        let summary = self.store.summaries(user, &query).await?.pop();
        let covered = summary.as_ref().map_or(0, |summary| summary.end_seq + 1);
        let first = covered.max(turn_count.saturating_sub(MAX_FOLD));
        let query = TurnQuery::Range {
            session: session.clone(),
            after: first.checked_sub(1),
            limit: MAX_FOLD as u32,
        };
        let mut turns = self.store.turns(user, &query).await?;
        turns.retain(|turn| turn.is_in_conversation() && turn.seq < turn_count);
        Ok(Unfolded { summary, skipped: first - covered, turns, uncovered: String::new() })
    }

    /// The change that moves the summary on, if the `new` turns after the first `turn_count` complete a step.
    pub(crate) async fn fold(
        &self,
        user: &UserId,
        session: &SessionId,
        turn_count: u64,
        new: &[NewTurn],
        observed: &Observed,
    ) -> Result<Option<Change>> {
        let step = self.prompts.settings.fold_step.max(1) as u64;
        // Most turns complete no step. Then nothing is read.
        if turn_count / step == (turn_count + new.len() as u64) / step {
            return Ok(None);
        }
        let unfolded = self.stored_unfolded(user, session, turn_count).await?;
        let new = new.iter().zip(turn_count..).filter(|(turn, _)| turn.hidden.is_none());
        let new = new
            .map(|(turn, seq)| (seq, turn.token_count, Message::from(turn.clone().at(session.clone(), seq))));
        let now = self.clock.now();
        let withdrawn = self.withdrawn(user, session, turn_count).await?;
        Ok(self
            .folded(session, &unfolded, new.collect(), observed, &withdrawn, now)
            .map(|summary| Change::PutSummary(Box::new(summary))))
    }

    /// Whether more than a few steps are pending. This happens if another program has recorded turns, or if there was
    /// no reply for long.
    pub(crate) fn is_behind(&self, unfolded: &Unfolded) -> bool {
        let PromptSettings { recent_exchanges, fold_step, ref summary, .. } = self.prompts.settings;
        // Turns that have waited for the reader are moved on with the next prompt.
        let waited = self.jobs.has_reader && summary.by_reader;
        let steps = if waited { 2 * recent_exchanges } else { 4 * recent_exchanges + 2 * fold_step };
        unfolded.skipped > 0 || unfolded.turns.len() > steps + fold_step.max(1)
    }

    /// Moves the summary on for a prompt and stores it for the next prompt, unless the session has changed since it was
    /// read: then another prompt may have moved the summary on. If it cannot be stored, the prompt is made all the same.
    pub(crate) async fn catch_up(&self, user: &UserId, session: &Session, unfolded: Unfolded) -> Unfolded {
        let (now, id) = (self.clock.now(), &session.id);
        let end = unfolded.turns.last().map_or(0, |turn| turn.seq + 1);
        let withdrawn = match self.withdrawn(user, id, end).await {
            Ok(withdrawn) => withdrawn,
            Err(error) => {
                tracing::warn!(%error, session = %id, "deleted statements could not be read; the next prompt tries again");
                return unfolded;
            }
        };
        let observed = &session.state.observed;
        let Some(summary) = self.folded(id, &unfolded, Vec::new(), observed, &withdrawn, now) else {
            return unfolded;
        };
        if let Err(error) = self.store_moved_on(user, session, &summary).await {
            tracing::warn!(%error, session = %id, "the rolling summary could not be stored; the next prompt tries again");
        }
        let mut turns = unfolded.turns;
        turns.retain(|turn| turn.seq > summary.end_seq);
        Unfolded { summary: Some(summary), skipped: 0, turns, uncovered: String::new() }
    }

    /// Stores a summary that was moved on, if the session is as it was read. The state is written beside it as it is, because
    /// that raises the session's version: of two processes that move the summary on at once, the second meets a conflict.
    /// The session's last write stays what it was, because a prompt only reads.
    async fn store_moved_on(&self, user: &UserId, session: &Session, summary: &Summary) -> Result<()> {
        let state = Change::PutState { session: session.id.clone(), state: Box::new(session.state.clone()) };
        let changes = vec![state, Change::PutSummary(Box::new(summary.clone()))];
        let set = ChangeSet::new(session.updated_at, changes).expecting(Expectation::unchanged(session));
        match self.store.apply(user, set).await {
            Err(error) if was_overtaken(&error) => Ok(()),
            applied => applied.map(|_| ()),
        }
    }

    /// The statements of these turns that were taken back and that the summary may still say.
    async fn withdrawn(&self, user: &UserId, session: &SessionId, turn_count: u64) -> Result<Withdrawn> {
        Withdrawn::read(self.store.as_ref(), user, session, 0..turn_count).await
    }

    /// The summary moved on over all but the recent turns, if that is at least one step.
    fn folded(
        &self,
        session: &SessionId,
        unfolded: &Unfolded,
        new: Vec<(u64, u32, Message)>,
        observed: &Observed,
        withdrawn: &Withdrawn,
        now: Timestamp,
    ) -> Option<Summary> {
        let PromptRules { settings, .. } = &*self.prompts;
        let began = self.clock.now();
        let stored =
            unfolded.turns.iter().map(|turn| (turn.seq, turn.token_count, Message::from(turn.clone())));
        let mut places = Vec::new();
        let mut messages = Vec::new();
        for (seq, tokens, message) in stored.chain(new) {
            places.push((seq, tokens));
            messages.push(message);
        }
        let mut leaving = recent_start(&messages, settings.recent_exchanges);
        let mut lengths = settings.summary.clone();
        if self.jobs.has_reader && lengths.by_reader {
            lengths.entry_chars *= SALIENT_ROOM;
            let judged = places.iter().take_while(|(seq, _)| *seq < observed.judged).count();
            leaving = leaving.min(judged.max(messages.len().saturating_sub(MAX_WAITING)));
            for ((seq, _), message) in places[..leaving].iter().zip(&mut messages) {
                self.keep_salient(message, observed.roles_of(*seq));
            }
        }
        if leaving < settings.fold_step.max(1) {
            return None;
        }
        for message in &mut messages[..leaving] {
            message.content = withdrawn.removed_from(&message.content).into_owned();
        }
        let existing = unfolded.summary.as_ref();
        let text = existing.map(|summary| withdrawn.removed_from_summary(&summary.text)).unwrap_or_default();
        let (messages, skipped) = (&messages[..leaving], unfolded.skipped);
        let text = build_summary_with(&text, messages, skipped, &settings.filter, &lengths);
        let input_tokens =
            places[..leaving].iter().fold(0, |sum: u32, (_, tokens)| sum.saturating_add(*tokens));
        let elapsed = self.clock.now().duration_since(began).as_millis();
        let step = FoldStep {
            end_seq: places[leaving - 1].0,
            input_tokens,
            output_tokens: self.tokens.count(&text),
            generation_ms: u32::try_from(elapsed).ok(),
            text,
            now,
        };
        Some(match existing {
            Some(version) if step.continues(version) => step.moved_on(version),
            base => step.new_version(SummaryId(self.ids.next()), session, base),
        })
    }
}

impl Recording {
    /// The entries that turns would have in the summary.
    pub(crate) fn entries_for(&self, turns: Vec<Turn>, observed: &Observed) -> String {
        let PromptSettings { filter, summary, .. } = &self.prompts.settings;
        let mut lengths = summary.clone();
        let by_reader = self.jobs.has_reader && lengths.by_reader;
        if by_reader {
            lengths.entry_chars *= SALIENT_ROOM;
        }
        let messages = turns.into_iter().map(|turn| {
            let letters = observed.roles_of(turn.seq).filter(|_| by_reader).map(str::to_owned);
            let mut message = Message::from(turn);
            self.keep_salient(&mut message, letters.as_deref());
            message
        });
        build_summary_with("", &messages.collect::<Vec<_>>(), 0, filter, &lengths)
    }

    /// Reduces a message to the sentences that matter, if they are known.
    pub(super) fn keep_salient(&self, message: &mut Message, letters: Option<&str>) {
        let PromptSettings { filter, summary, .. } = &self.prompts.settings;
        let chosen = letters.and_then(|letters| {
            salient(message.role, &message.content, letters, filter, summary.entry_chars)
        });
        if let Some(text) = chosen {
            message.content = text;
        }
    }
}

/// The summary after one step, before it becomes a version.
struct FoldStep {
    end_seq: u64,
    text: String,
    input_tokens: u32,
    output_tokens: u32,
    generation_ms: Option<u32>,
    now: Timestamp,
}

impl FoldStep {
    /// Whether the step changes `version` in place. A summary that was written through a working context is never
    /// overwritten.
    fn continues(&self, version: &Summary) -> bool {
        let is_own = |structured: &Value| structured.get(FOLDED).is_some();
        version.end_seq / VERSION_TURNS == self.end_seq / VERSION_TURNS
            && version.structured.as_ref().is_none_or(is_own)
    }

    fn moved_on(self, version: &Summary) -> Summary {
        Summary {
            end_seq: self.end_seq,
            text: self.text,
            input_tokens: version.input_tokens.saturating_add(self.input_tokens),
            output_tokens: self.output_tokens,
            generation_ms: self.generation_ms,
            updated_at: self.now,
            ..version.clone()
        }
    }

    fn new_version(self, id: SummaryId, session: &SessionId, base: Option<&Summary>) -> Summary {
        Summary {
            id,
            session: session.clone(),
            strategy: Strategy::Rolling,
            level: 0,
            start_seq: 0,
            end_seq: self.end_seq,
            base_id: base.map(|base| base.id),
            status: SummaryStatus::Completed,
            text: self.text,
            structured: base.and_then(|base| base.structured.clone()).map(folded_structured),
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            generation_ms: self.generation_ms,
            created_at: self.now,
            updated_at: self.now,
        }
    }
}
