//! Stores the sliding window of a session (sliding-window design): first a `processing` row, then the text, then
//! `completed` together with the job's end.
//!
//! A job finds a session in one of three states:
//!
//! - No `processing` row exists: the job inserts one.
//! - An earlier attempt left a row behind, and its lease has ended: the job takes the row over with its id, range and
//!   base.
//! - Another worker works on the row: the job has nothing to do.
//!
//! The store allows one `processing` row per session. Each version names the last *completed* one as its base, so that
//! a failed version leaves no hole in the chain.
//!
//! Deliberately absent: the wording of a summary ([`crate::learn::summarising`], [`crate::learn::extractive`]).

mod due;
mod reading;
mod text;
mod todos;
mod tree;

pub use reading::{StructuredPoint, SummaryReport, SummaryVersion};
pub use text::{TextNode, TextSummary};

use crate::case::salient;
use crate::jobs::Jobs;
use crate::learn::LearnSettings;
use crate::line::{Days, turn_head};
use crate::prompt::FilterSettings;
use crate::sessions::Sessions;
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;
use strata_core::ports::{ChatModel, Clock, IdSource, TokenCounter};
use strata_core::store::Store;

use self::due::{DueWindow, end_of_due, rests_until, says_something};
use crate::ask::ask;
use crate::jobs::{Ended, JobKind, Work, after};
use crate::learn::answer;
use crate::learn::extractive::{self, Part};
use crate::learn::structured::{Answered, Structured};
use crate::learn::summarising::{self, WindowQuestion};
use crate::learn::window::Window;
use crate::withdrawn::Withdrawn;
use strata_core::error::{Error, ErrorKind, Result};
use strata_core::id::{LeaseId, SessionId, SummaryId, UserId};
use strata_core::job::Job;
use strata_core::ports::Spent;
use strata_core::session::Session;
use strata_core::state::Observed;
use strata_core::store::{Change, ChangeSet, SummaryQuery, TurnQuery};
use strata_core::summary::{MODEL_FIELD, Strategy, Summary, SummaryStatus};
use strata_core::turn::Turn;
use strata_language::secrets::redacted;
use strata_language::sentences::beginning;

/// The most turns that a job reads to check whether a summary is due.
const MAX_LOOK: u64 = 1_000;

/// The most characters that a judged turn contributes, before the sentences of the window are chosen.
const MAX_SALIENT_CHARS: usize = 2_000;

/// Summaries of sessions: the sliding window, the tree, and their readers.
#[derive(Clone)]
pub struct Summaries {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) tokens: Arc<dyn TokenCounter>,
    pub(crate) settings: Arc<LearnSettings>,
    pub(crate) model: Option<Arc<dyn ChatModel>>,
    pub(crate) jobs: Jobs,
    pub(crate) sessions: Sessions,
}

impl Summaries {
    /// Whether enough turns have no summary that the trigger of the evolution plan may be due. It does not need a
    /// reply.
    pub(super) async fn may_need_summary(
        &self,
        user: &UserId,
        session: &SessionId,
        turn_count: u64,
    ) -> Result<bool> {
        let settings = &self.settings.summaries;
        let every = settings.window.summarise_every_user_turns;
        if !settings.enable_summarization || every == 0 {
            return Ok(false);
        }
        let base = self.latest(user, session, SummaryStatus::Completed).await?;
        Ok(turn_count.saturating_sub(base.map_or(0, |base| base.end_seq + 1)) >= every)
    }

    /// Does a `summarise` job: the window if it is due, else a step of the tree.
    pub(super) async fn summarise_job(&self, job: &Job, lease: LeaseId) -> Result<(Ended, Work)> {
        let Some(session) = &job.session else { return self.jobs.settle(job, lease, Work::default()).await };
        let Some(stored) = self.store.session(&job.user, session).await? else {
            return self.jobs.settle(job, lease, Work::default()).await;
        };
        let Some(due) = self.find_window(job, &stored).await? else {
            let mut work = self.grow_tree_or_fall_back(job, &stored).await?;
            let base = self.latest(&job.user, session, SummaryStatus::Completed).await?;
            let now = self.clock.now();
            let later = rests_until(&stored, base.as_ref()).filter(|until| now < *until);
            work.changes.extend(
                later.map(|until| self.jobs.enqueue_once(&job.user, session, JobKind::Summarise, until, now)),
            );
            return self.jobs.settle(job, lease, work).await;
        };
        let Some(row) = self.begin(job, &due).await? else {
            tracing::debug!("Summarization already in progress for {session}");
            return self.jobs.settle(job, lease, Work::default()).await;
        };
        let began = self.clock.now();
        let (mut done, spent) = match self.summarised(&row, &due, &stored.state.observed).await {
            Ok(made) => made,
            Err(error) if job.attempts < self.settings.max_attempts.max(1) => return Err(error),
            Err(error) => {
                tracing::warn!(%error, %session, "the model made no summary; it is made without one");
                (
                    self.summarised_without_model(&row, &due, &stored.state.observed, error.message()),
                    Spent::default(),
                )
            }
        };
        done.generation_ms = self.millis_since(began);
        done.updated_at = self.clock.now();
        let mut work = Work { spent, ..Work::default() };
        work.details.insert("summary".to_owned(), done.id.to_string().into());
        let failure = done.structured.as_ref().and_then(|structured| structured.get(WITHOUT_MODEL));
        work.details.extend(failure.map(|failure| (WITHOUT_MODEL.to_owned(), failure.clone())));
        work.changes.push(Change::PutSummary(Box::new(done.clone())));
        // The tree gets a job of its own, so that the window does not wait for it.
        if self.tree_is_due(&job.user, &stored).await? {
            let now = self.clock.now();
            work.changes.push(self.jobs.enqueue_once(&job.user, session, JobKind::Summarise, now, now));
        }
        let settled = self.jobs.settle(job, lease, work).await?;
        if settled.0 == Ended::Done {
            log_completed(session, &done);
            self.count_without_model(&done);
        }
        Ok(settled)
    }

    /// Counts a stored summary that the model should have made.
    fn count_without_model(&self, done: &Summary) {
        if done.structured.as_ref().is_some_and(|structured| structured.get(WITHOUT_MODEL).is_some()) {
            self.jobs.count(|counts| *counts.without_model.entry(done.strategy.as_str()).or_default() += 1);
        }
    }

    pub(super) fn millis_since(&self, began: Timestamp) -> Option<u32> {
        u32::try_from(self.clock.now().duration_since(began).as_millis()).ok()
    }

    /// The window that is due, with its turns; `None` if none is due.
    async fn find_window(&self, job: &Job, session: &Session) -> Result<Option<DueWindow>> {
        let settings = self.settings.summaries.window;
        let base = self.latest(&job.user, &session.id, SummaryStatus::Completed).await?;
        let begun = self.latest(&job.user, &session.id, SummaryStatus::Processing).await?;
        if let Some(row) = begun {
            let window = Window { start: row.start_seq, end: row.end_seq };
            return Ok(Some(self.due_window(job, &session.id, base, Some(row), window).await?));
        }
        if rests_until(session, base.as_ref()).is_some_and(|until| self.clock.now() < until) {
            tracing::debug!("Summarization already in progress for {}", session.id);
            return Ok(None);
        }
        let covered = base.as_ref().map_or(0, |base| base.end_seq + 1);
        let look =
            settings.summarise_every_user_turns.saturating_mul(2).max(settings.memory_rolling_window_size);
        let first = covered.max(session.turn_count.saturating_sub(look.clamp(2, MAX_LOOK)));
        let tail = self.visible(&job.user, &session.id, first, session.turn_count).await?;
        let Some(end) = end_of_due(&settings, &tail) else {
            if tail.is_empty() {
                tracing::debug!("No new messages to summarize for {}", session.id);
            }
            return Ok(None);
        };
        let window = settings.range(end);
        let due = self.due_window(job, &session.id, base, None, window).await?;
        let new = window.after(due.base.as_ref().map(|base| base.end_seq));
        if !new.is_some_and(|new| due.turns.iter().any(|turn| says_something(turn, new))) {
            tracing::debug!("No new messages to summarize for {}", session.id);
            return Ok(None);
        }
        Ok(Some(due))
    }

    /// A window with its input. The base no longer says what was taken back.
    async fn due_window(
        &self,
        job: &Job,
        session: &SessionId,
        mut base: Option<Summary>,
        begun: Option<Summary>,
        window: Window,
    ) -> Result<DueWindow> {
        let turns = self.window_turns(&job.user, session, base.as_ref(), window).await?;
        let withdrawn = Withdrawn::read(self.store.as_ref(), &job.user, session, 0..window.end + 1).await?;
        if let Some(base) = &mut base {
            base.text = withdrawn.removed_from_summary(&base.text);
        }
        Ok(DueWindow { base, begun, window, turns, withdrawn })
    }

    /// The visible turns of a window, and those before it that the base still covers.
    async fn window_turns(
        &self,
        user: &UserId,
        session: &SessionId,
        base: Option<&Summary>,
        window: Window,
    ) -> Result<Vec<Turn>> {
        let size = self.settings.summaries.window.memory_rolling_window_size;
        let base = base.filter(|base| base.end_seq >= window.start);
        let first = base.map_or(window.start, |base| base.start_seq.min(window.start));
        let first = first.max(window.start.saturating_sub(size.max(2)));
        self.visible(user, session, first, window.end + 1).await
    }

    /// The visible turns from `first` up to, but not including, `end`.
    pub(super) async fn visible(
        &self,
        user: &UserId,
        session: &SessionId,
        first: u64,
        end: u64,
    ) -> Result<Vec<Turn>> {
        if first >= end {
            return Ok(Vec::new());
        }
        let limit = u32::try_from(end - first).unwrap_or(u32::MAX);
        let query = TurnQuery::Range { session: session.clone(), after: first.checked_sub(1), limit };
        let mut turns = self.store.turns(user, &query).await?;
        turns.retain(|turn| turn.is_in_conversation() && turn.seq < end);
        Ok(turns)
    }

    /// The window summary with this status that reaches furthest.
    pub(super) async fn latest(
        &self,
        user: &UserId,
        session: &SessionId,
        status: SummaryStatus,
    ) -> Result<Option<Summary>> {
        let query = SummaryQuery {
            session: session.clone(),
            strategy: Some(Strategy::Window),
            status: Some(status),
            limit: 1,
        };
        Ok(self.store.summaries(user, &query).await?.pop())
    }

    /// Inserts the `processing` row, or takes over the one that was left behind; `None` if another worker works on it.
    async fn begin(&self, job: &Job, due: &DueWindow) -> Result<Option<Summary>> {
        let now = self.clock.now();
        if let Some(row) = &due.begun {
            let held_until = after(row.updated_at, u64::from(self.settings.lease_secs));
            // A job in its first attempt has left no row behind.
            if job.attempts <= 1 && now < held_until {
                return Ok(None);
            }
            tracing::info!(job = %job.id, "an unfinished summary is taken over");
            self.jobs.count(|counts| counts.taken_over += 1);
        }
        let base_id = due.base.as_ref().map(|base| base.id);
        let row = match &due.begun {
            Some(row) => Summary { base_id, updated_at: now, ..row.clone() },
            None => Summary {
                id: SummaryId(self.ids.next()),
                session: job.session.clone().ok_or_else(|| Error::internal("a summary needs a session"))?,
                strategy: Strategy::Window,
                level: 0,
                start_seq: due.window.start,
                end_seq: due.window.end,
                base_id,
                status: SummaryStatus::Processing,
                text: String::new(),
                structured: None,
                input_tokens: 0,
                output_tokens: 0,
                generation_ms: None,
                created_at: now,
                updated_at: now,
            },
        };
        let put = Change::PutSummary(Box::new(row.clone()));
        match self.store.apply(&job.user, ChangeSet::one(now, put)).await {
            Ok(_) => Ok(Some(row)),
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The completed row, with its text and its structured part.
    async fn summarised(
        &self,
        row: &Summary,
        due: &DueWindow,
        observed: &Observed,
    ) -> Result<(Summary, Spent)> {
        let new = due.new_as_said();
        let new: Vec<&Turn> = new.iter().filter(|turn| !turn.content.is_empty()).collect();
        let Some(model) = self.model.as_ref().filter(|_| !new.is_empty()) else {
            // All new turns may have been hidden in the meantime: then there is nothing to ask.
            return Ok((self.summarised_by_rule(row, due, observed), Spent::default()));
        };
        let mut structured = due.structured();
        let mut spent = Spent::default();
        let (_, target) = due.lengths();
        let (text, read) =
            self.ask_for_window(model.as_ref(), due, &new, target, &mut structured, &mut spent).await?;
        let mut about = structured.to_row();
        if let Value::Object(fields) = &mut about {
            fields.insert(MODEL_FIELD.to_owned(), model.model().into());
        }
        Ok((self.completed(row, text, about, read), spent))
    }

    /// The completed row, made without a model: the sentences that matter, in their own words.
    fn summarised_by_rule(&self, row: &Summary, due: &DueWindow, observed: &Observed) -> Summary {
        let mut structured = due.structured();
        structured.observe(&due.new_as_said().iter().collect::<Vec<_>>());
        let (tokens, target) = due.lengths();
        let text = self.extracted(due, observed, target, tokens);
        self.completed(row, text, structured.to_row(), tokens)
    }

    /// Like [`Self::summarised_by_rule`], in the place of a model that failed. The row says so.
    fn summarised_without_model(
        &self,
        row: &Summary,
        due: &DueWindow,
        observed: &Observed,
        error: &str,
    ) -> Summary {
        let mut summary = self.summarised_by_rule(row, due, observed);
        note_without_model(&mut summary, error);
        summary
    }

    fn completed(&self, row: &Summary, text: String, structured: Value, read: u64) -> Summary {
        Summary {
            status: SummaryStatus::Completed,
            output_tokens: self.tokens.count(&text),
            text,
            structured: Some(structured),
            input_tokens: u32::try_from(read).unwrap_or(u32::MAX),
            ..row.clone()
        }
    }

    /// Asks the model for the summary of a window and merges its points into `structured`. Returns the text and the
    /// tokens that the model read.
    async fn ask_for_window(
        &self,
        model: &dyn ChatModel,
        due: &DueWindow,
        new: &[&Turn],
        target: u32,
        structured: &mut Structured,
        spent: &mut Spent,
    ) -> Result<(String, u64)> {
        let DueWindow { base, window, turns, withdrawn, .. } = due;
        // A base that ends before the window says nothing about it.
        let previous = base.as_ref().filter(|base| base.end_seq >= window.start);
        let left: Vec<&Turn> = turns.iter().filter(|turn| turn.seq < window.start).collect();
        let todos: Vec<String> = structured.todos.iter().map(|todo| todo.text.clone()).collect();
        let todos: Vec<&str> = todos.iter().map(String::as_str).collect();
        let said = previous.iter().map(|base| base.text.as_str());
        let said = said.chain(new.iter().map(|turn| turn.content.as_str()));
        let question = WindowQuestion {
            previous: previous.map(|base| base.text.as_str()).filter(|text| !text.is_empty()),
            todos: &todos,
            left: &left,
            new,
            window: *window,
            target,
            max_message_chars: self.settings.max_message_chars,
            leave_out: &withdrawn.named_in(said),
        };
        let request = summarising::window(&question, &self.settings.summaries);
        let read = |text: &str| answer::find(text, Answered::of);
        let answered = ask(model, &request, read, spent).await?;
        structured.absorb(&answered, window.end);
        structured.retain(|text| due.may_say(text));
        let text = withdrawn.removed_from_summary(&summarising::read_text(&answered.summary)?);
        let before: u64 = previous.map_or(0, |base| u64::from(base.output_tokens));
        let said: u64 = new.iter().map(|turn| u64::from(turn.token_count)).sum();
        Ok((beginning(&text, max_chars(target)), before + said))
    }

    /// Summarises a window without a model, in about `target` of its `tokens`. Of a turn that the reader has judged, only
    /// the sentences that matter are read.
    fn extracted(&self, due: &DueWindow, observed: &Observed, target: u32, tokens: u64) -> String {
        let turns = due.inside();
        let filter = FilterSettings::default();
        let texts: Vec<Cow<'_, str>> = turns
            .iter()
            .map(|turn| {
                let letters = observed.roles_of(turn.seq);
                let chosen = letters.and_then(|letters| {
                    salient(turn.role, &turn.content, letters, &filter, MAX_SALIENT_CHARS)
                });
                match chosen {
                    Some(chosen) => Cow::Owned(due.withdrawn.removed_from(&chosen).into_owned()),
                    None => due.withdrawn.removed_from(&turn.content),
                }
            })
            .collect();
        let heads: Vec<String> = turns.iter().map(|turn| turn_head(turn, Days::Absolute)).collect();
        let parts = turns.iter().zip(&heads).zip(&texts);
        let parts: Vec<Part<'_>> =
            parts.map(|((turn, head), text)| Part { speaker: Some(turn.role), head, text }).collect();
        let budget = room_for(&turns, &heads, target, tokens);
        let summary = extractive::summarise(&parts, budget);
        if !summary.is_empty() {
            return summary;
        }
        // The turns hold only pleasantries. They become the summary, because a summary must not be empty.
        let texts: Vec<&str> = texts.iter().map(|text| text.trim()).filter(|text| !text.is_empty()).collect();
        beginning(&redacted(&texts.join("\n")), budget)
    }
}

/// The most characters of a summary of these turns. The heads of its lines take no room from the sentences, as long as the
/// summary is shorter than the turns.
fn room_for(turns: &[&Turn], heads: &[String], target: u32, tokens: u64) -> usize {
    let chars: usize = turns.iter().map(|turn| turn.content.chars().count()).sum();
    let heads: usize = heads.iter().map(|head| head.chars().count()).sum();
    let room = chars_for(target, chars as u64, tokens);
    (room + heads).min(chars).max(room)
}

/// The field of a summary's structured part, and of its job's result, that says why no model made it.
pub const WITHOUT_MODEL: &str = "without_model";

/// Notes in a summary why no model made it.
fn note_without_model(summary: &mut Summary, error: &str) {
    if let Value::Object(fields) = summary.structured.get_or_insert_with(|| Value::Object(Map::new())) {
        fields.insert(WITHOUT_MODEL.to_owned(), error.into());
    }
}

/// The number of characters in `target` tokens, for a text of so many characters and tokens.
pub(super) fn chars_for(target: u32, chars: u64, tokens: u64) -> usize {
    let chars = u64::from(target).saturating_mul(chars) / tokens.max(1);
    // The clamp keeps the ratio between one and eight characters per token.
    usize::try_from(chars).unwrap_or(usize::MAX).clamp(target as usize, target as usize * 8)
}

/// The most characters of a model's summary. The limit keeps a model that ignores its length from filling every prompt.
pub(super) fn max_chars(target: u32) -> usize {
    target as usize * 12
}

fn log_completed(session: &SessionId, done: &Summary) {
    let Summary { id, start_seq, end_seq, generation_ms, .. } = done;
    tracing::debug!("Memory {id} status updated to completed");
    if *start_seq > 0 {
        tracing::info!("Sliding window: dropping seq 0-{} for {session}", start_seq - 1);
    }
    let ms = generation_ms.unwrap_or(0);
    tracing::info!("Summarized messages {start_seq}-{end_seq} for {session} in {ms}ms");
}

#[cfg(test)]
pub(super) mod fixture;
#[cfg(test)]
mod tests;
