//! The state of a session, read from the roles of its sentences.
//!
//! Recording fills the state by word patterns at once and enqueues a job. The job asks the reader about the turns that it
//! has not judged yet, and folds the roles into the state ([`crate::case`]), so that no request waits for the reader. The
//! state itself says how far it has been judged, and is only written if it has not changed in the meantime.

use std::collections::HashMap;

use super::Learning;
use crate::case::{Case, Judged, Sentence, judged, sentences};
use crate::jobs::{Ended, JobKind, Work, was_overtaken};
use crate::prompt::{Moment, PromptRules};
use strata_core::error::{Error, Result};
use strata_core::id::{LeaseId, SessionId, TurnId, UserId};
use strata_core::job::Job;
use strata_core::ports::{CaseRole, Reader, SentenceInContext, SentencePair, Speaker, best};
use strata_core::state::State;
use strata_core::store::{Change, ChangeSet, Expectation, TurnQuery};
use strata_core::turn::{Role, Turn};
use strum::VariantArray as _;

/// The number of attempts if other writers change the state in the meantime.
const TRIES: usize = 8;

/// The most turns of one job, so that a long history does not hold the worker.
const MAX_TURNS: u32 = 32;

/// The most turns that are judged of a history that was never judged. Older ones are skipped.
const MAX_CATCH_UP: u64 = 400;

/// The probability from which a sentence ends a hypothesis or a task with which it shares no words.
const ENDS: f32 = 0.8;

/// The reader's answers in the course of a job. A second attempt does not ask again.
#[derive(Default)]
struct Readings {
    turns: HashMap<TurnId, Vec<Judged>>,
    ends: HashMap<(String, String), f32>,
}

impl Learning {
    /// Does a `state` job and writes its changes.
    pub(super) async fn state_job(&self, job: &Job, lease: LeaseId) -> Result<(Ended, Work)> {
        let (Some(session), Some(reader)) = (&job.session, &self.reader) else {
            return self.jobs.settle(job, lease, Work::default()).await;
        };
        let mut readings = Readings::default();
        let mut overtaken = None;
        for _ in 0..TRIES {
            let work = match self.judge_turns(&job.user, session, reader.as_ref(), &mut readings).await {
                Ok(work) => work,
                Err(error) if job.attempts >= self.settings.max_attempts.max(1) => {
                    tracing::warn!(%error, %session, "the reader failed; the state stays as the rules read it");
                    Work::default()
                }
                Err(error) => return Err(error),
            };
            match self.jobs.settle(job, lease, work).await {
                Err(error) if was_overtaken(&error) => overtaken = Some(error),
                settled => return settled,
            }
        }
        Err(overtaken.unwrap_or_else(|| Error::internal("the state made no progress")))
    }

    /// Reads all turns of a session that were not judged yet into its state, for a caller who waits. Without a reader the
    /// state stays as it is.
    pub async fn read_state(&self, user: &UserId, session: &SessionId) -> Result<()> {
        let Some(reader) = &self.reader else { return Ok(()) };
        let mut readings = Readings::default();
        let mut tries = 0;
        loop {
            let work = self.judge_turns(user, session, reader.as_ref(), &mut readings).await?;
            if work.changes.is_empty() {
                return Ok(());
            }
            let mut set = ChangeSet::new(self.clock.now(), work.changes);
            set.expect = work.expect;
            match self.store.apply(user, set).await {
                Err(error) if was_overtaken(&error) && tries < TRIES => tries += 1,
                applied => _ = applied?,
            }
        }
    }

    /// The likeliest role of each sentence of a conversation in the case that it works on; none without a reader.
    pub async fn case_roles(&self, said: &[(Role, &str)]) -> Result<Vec<CaseRole>> {
        let Some(reader) = &self.reader else { return Ok(Vec::new()) };
        let sentence = |(role, text): &(Role, &str)| {
            let speaker = if *role == Role::Assistant { Speaker::Assistant } else { Speaker::User };
            Sentence::new(speaker, *text)
        };
        let asked = in_context(&said.iter().map(sentence).collect::<Vec<_>>(), None);
        let read = reader.sentences(&asked).await?;
        Ok(read.iter().map(|reading| CaseRole::VARIANTS[best(&reading.case)]).collect())
    }

    /// The changes for the next turns of a session that were not judged.
    async fn judge_turns(
        &self,
        user: &UserId,
        id: &SessionId,
        reader: &dyn Reader,
        readings: &mut Readings,
    ) -> Result<Work> {
        let Some(session) = self.store.session(user, id).await? else { return Ok(Work::default()) };
        let mut state = session.state.clone();
        let from = state.observed.judged.max(session.turn_count.saturating_sub(MAX_CATCH_UP));
        // The turn before is read for its last sentence.
        let (after, limit) = (from.checked_sub(2), MAX_TURNS + u32::from(from > 0));
        let query = TurnQuery::Range { session: id.clone(), after, limit };
        let turns = self.store.turns(user, &query).await?;
        let mut before: Option<Sentence> = None;
        let mut to = from;
        for turn in turns {
            let said = self.sentences_of(&turn);
            let last = said.last().cloned();
            if turn.seq >= from {
                self.judge_turn(&turn, said, before.as_ref(), reader, readings, &mut state).await?;
                to = turn.seq + 1;
            }
            before = last.or(before);
        }
        let mut work = Work::default();
        if to == from {
            return Ok(work);
        }
        work.details.insert("turns".to_owned(), vec![from, to].into());
        state.observed.judged = to;
        work.expect.push(Expectation::unchanged(&session));
        work.changes.push(Change::PutState { session: id.clone(), state: Box::new(state) });
        if to < session.turn_count {
            let now = self.clock.now();
            work.changes.push(self.jobs.enqueue_once(user, id, JobKind::State, now, now));
        }
        Ok(work)
    }

    fn sentences_of(&self, turn: &Turn) -> Vec<Sentence> {
        if !turn.is_in_conversation() {
            return Vec::new();
        }
        sentences(turn.role, &turn.content, &self.recording.prompts.settings.filter)
    }

    /// Judges the sentences of a turn and folds them into the state.
    async fn judge_turn(
        &self,
        turn: &Turn,
        said: Vec<Sentence>,
        before: Option<&Sentence>,
        reader: &dyn Reader,
        readings: &mut Readings,
        state: &mut State,
    ) -> Result<()> {
        if said.is_empty() {
            return Ok(());
        }
        let known = match readings.turns.get(&turn.id) {
            Some(known) => known.clone(),
            None => {
                let read = read_roles(reader, said, before).await?;
                readings.turns.insert(turn.id, read.clone());
                read
            }
        };
        state.observed.keep_roles(turn.seq, known.iter().map(|one| one.role.letter()).collect());
        let PromptRules { settings, rules } = &*self.recording.prompts;
        let by_rules = rules.read_alone(turn.role, &turn.content, &settings.filter);
        let mut case = Case::new(state, Moment { seq: turn.seq, at: turn.created_at }, &by_rules);
        let mut before = before.map_or("", |sentence| sentence.text.as_str());
        for judged in &known {
            let endings = case.endings(judged);
            let mut ended = endings.by_words;
            if ended.is_empty() {
                ended.extend(ended_by(reader, judged, before, &endings.to_compare, readings).await?);
            }
            case.take(judged, &ended);
            before = &judged.sentence.text;
        }
        case.correct(&known);
        Ok(())
    }
}

/// The sentences of a turn with their roles.
async fn read_roles(
    reader: &dyn Reader,
    said: Vec<Sentence>,
    before: Option<&Sentence>,
) -> Result<Vec<Judged>> {
    let read = reader.sentences(&in_context(&said, before)).await?;
    Ok(said.into_iter().zip(&read).map(|(sentence, reading)| judged(sentence, reading)).collect())
}

/// The question about each sentence, with the one before it.
fn in_context(said: &[Sentence], before: Option<&Sentence>) -> Vec<SentenceInContext> {
    let befores = [before].into_iter().chain(said.iter().map(Some));
    said.iter().zip(befores).map(|(sentence, before)| sentence.after(before)).collect()
}

/// The place of the item that a sentence ends, by the reader's word.
async fn ended_by(
    reader: &dyn Reader,
    judged: &Judged,
    before: &str,
    items: &[(usize, String)],
    readings: &mut Readings,
) -> Result<Option<usize>> {
    let pair = |item: &String| (item.clone(), judged.sentence.text.clone());
    let unknown: Vec<_> =
        items.iter().map(|(_, item)| pair(item)).filter(|pair| !readings.ends.contains_key(pair)).collect();
    let pairs: Vec<SentencePair> = unknown
        .iter()
        .map(|(remembered, new)| SentencePair {
            remembered: remembered.clone(),
            before: before.to_owned(),
            new: new.clone(),
        })
        .collect();
    if !pairs.is_empty() {
        let read = reader.relations(&pairs).await?;
        readings.ends.extend(unknown.into_iter().zip(read.iter().map(|one| one.change())));
    }
    let change = |item: &String| readings.ends.get(&pair(item)).copied().unwrap_or_default();
    let likeliest =
        items.iter().map(|(place, item)| (change(item), *place)).max_by(|a, b| a.0.total_cmp(&b.0));
    Ok(likeliest.filter(|(probability, _)| *probability >= ENDS).map(|(_, place)| place))
}
