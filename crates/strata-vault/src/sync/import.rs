//! Files whose items the index does not have: all of them when the index was deleted, or those that a person has made.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use strata_core::store::{Applied, Change, ChangeSet, Idempotency, SESSION_PURPOSES};
use strata_core::summary::{Summary, SummaryStatus};
use strata_core::turn::{Hidden, HiddenReason, Metadata, NewTurn, Role, TurnNotes};
use strata_core::{Memory, MemoryId, Result, SessionId, Store, Turn, TurnId, UserId};

use super::edits::session_changes;
use super::turns::is_displaced;
use super::{Intake, Item, What};
use crate::form::{Given, Keyed, SessionFile, TurnExtra, derived};
use crate::row::{Content, Row};

/// The turns of one change set.
const TURNS_A_SET: usize = 500;

/// The most places that missing turns may leave. A file that names a place beyond them gets the next one.
const MOST_MISSING: u64 = 10_000;

/// One session's files.
#[derive(Default)]
struct SessionItems {
    file: Option<(Item, SessionFile)>,
    turns: Vec<TurnItem>,
    summaries: Vec<(Item, Summary)>,
}

/// A turn with its file.
struct TurnItem {
    /// `None` for a turn whose file is missing.
    item: Option<Item>,
    turn: Turn,
    seq: Option<u64>,
    extra: TurnExtra,
}

impl TurnItem {
    fn recorded_at(&self) -> Timestamp {
        self.extra.recorded_at.unwrap_or(self.turn.created_at)
    }
}

/// One user's files.
#[derive(Default)]
struct UserItems {
    sessions: BTreeMap<SessionId, SessionItems>,
    memories: Vec<(Item, Memory, Option<Keyed>)>,
    keys: Vec<Item>,
}

impl Intake<'_> {
    /// Adds items.
    pub(super) async fn import(&mut self, items: Vec<Item>) -> Result<()> {
        let mut users: BTreeMap<UserId, UserItems> = BTreeMap::new();
        for item in items {
            users.entry(item.user.clone()).or_default().add(item);
        }
        for (user, mut items) in users {
            items.place_strays();
            for (session, items) in items.sessions {
                self.import_session(&user, &session, items).await?;
            }
            self.import_memories(&user, items.memories).await?;
            for item in items.keys {
                self.import_key(&user, item).await?;
            }
        }
        Ok(())
    }

    async fn import_session(
        &mut self,
        user: &UserId,
        session: &SessionId,
        items: SessionItems,
    ) -> Result<()> {
        let SessionItems { file, turns, summaries } = items;
        let known = self.vault.index.session(user, session).await?;
        if known.is_none() {
            let said = turns.iter().map(TurnItem::recorded_at).min();
            let summarised = || summaries.iter().map(|(_, summary)| summary.created_at).min();
            let made = file.as_ref().map(|(_, file)| file.created_at);
            let at = made.or(said).or_else(summarised).unwrap_or(self.now);
            let begin = Change::AppendTurns { session: session.clone(), turns: Vec::new() };
            self.vault.index.apply(user, ChangeSet::one(at, begin)).await?;
        }
        let next = known.map_or(0, |known| known.turn_count);
        self.import_turns(user, session, placed(user, session, turns, next)).await?;
        if let Some((item, file)) = file {
            let mut changes = session_changes(&file);
            changes.retain(|change| match change {
                Change::SetProgress { space, .. } => {
                    SESSION_PURPOSES.iter().any(|purpose| space.starts_with(&format!("session:{purpose}:")))
                }
                _ => true,
            });
            match self.vault.index.apply(user, ChangeSet::new(file.updated_at, changes)).await {
                Ok(_) => {
                    let row = Row::new(user, Content::Session(Box::new(file)));
                    self.adopt(&item.found, &row)?;
                }
                Err(error) => self.report(&item.found.path, error.message().to_owned()),
            }
        }
        self.import_summaries(user, summaries).await
    }

    async fn import_turns(&mut self, user: &UserId, session: &SessionId, turns: Vec<TurnItem>) -> Result<()> {
        let mut turns = turns.into_iter().peekable();
        while let Some(first) = turns.next() {
            let keyed = first.extra.keyed.clone();
            let most = keyed.as_ref().map_or(TURNS_A_SET, |keyed| keyed.turns);
            let mut batch = vec![first];
            while batch.len() < most
                && let Some(next) = turns.next_if(|next| next.extra.keyed.is_none())
            {
                batch.push(next);
            }
            let idempotency = keyed
                .filter(|keyed| keyed.turns == batch.len())
                .map(|keyed| Idempotency { key: keyed.key, fingerprint: keyed.fingerprint });
            self.append(user, session, batch, idempotency).await?;
        }
        Ok(())
    }

    async fn append(
        &mut self,
        user: &UserId,
        session: &SessionId,
        batch: Vec<TurnItem>,
        idempotency: Option<Idempotency>,
    ) -> Result<()> {
        let at = batch.iter().map(TurnItem::recorded_at).max().unwrap_or(self.now);
        let new = batch.iter().map(|item| again(&item.turn)).collect();
        let change = Change::AppendTurns { session: session.clone(), turns: new };
        let set = ChangeSet { idempotency, ..ChangeSet::one(at, change) };
        match self.apply_anew(user, set).await {
            Ok(applied) => {
                for (item, appended) in batch.into_iter().zip(applied.turns) {
                    self.adopt_turn(user, item, appended.seq)?;
                }
                Ok(())
            }
            Err(error) if batch.len() > 1 && error.kind() != strata_core::ErrorKind::Unavailable => {
                for item in batch {
                    Box::pin(self.append(user, session, vec![item], None)).await?;
                }
                Ok(())
            }
            Err(error) if error.kind() == strata_core::ErrorKind::Unavailable => Err(error),
            Err(error) => {
                let paths: Vec<String> =
                    batch.iter().filter_map(|item| Some(item.item.as_ref()?.found.path.clone())).collect();
                paths.iter().for_each(|path| self.report(path, error.message().to_owned()));
                Ok(())
            }
        }
    }

    /// Applies a change set of items that the index does not have. A copy of a file has the key of the write that made the first
    /// one: its item is added all the same, without the key.
    async fn apply_anew(&self, user: &UserId, set: ChangeSet) -> Result<Applied> {
        let applied = self.vault.index.apply(user, set.clone()).await?;
        if !applied.replayed {
            return Ok(applied);
        }
        self.vault.index.apply(user, ChangeSet { idempotency: None, ..set }).await
    }

    /// Notes an appended turn. Its file is written again if it says another place, or lacks its id.
    fn adopt_turn(&mut self, user: &UserId, appended: TurnItem, seq: u64) -> Result<()> {
        let TurnItem { item, turn, extra, .. } = appended;
        let turn = Turn { seq, ..turn };
        // A placeholder has no file: the turns behind it tell of it.
        let Some(item) = item else { return Ok(()) };
        let What::Entry(reading) = &item.what else { return Ok(()) };
        let row = Row::new(user, Content::Turn(Box::new(turn), extra));
        if reading.incomplete || is_displaced(&item, &row) {
            self.note_changed(&item);
            return Ok(());
        }
        self.adopt(&item.found, &row)
    }

    async fn import_memories(
        &mut self,
        user: &UserId,
        memories: Vec<(Item, Memory, Option<Keyed>)>,
    ) -> Result<()> {
        let begun: BTreeMap<MemoryId, Timestamp> =
            memories.iter().map(|(_, memory, _)| (memory.id, memory.valid_from)).collect();
        let mut memories = memories;
        memories.iter_mut().for_each(|(_, memory, _)| close_replaced(memory, &begun));
        let (keyed, plain): (Vec<_>, Vec<_>) =
            memories.into_iter().partition(|(_, _, keyed)| keyed.is_some());
        let mut sets = Vec::with_capacity(plain.len());
        for (item, memory, _) in &plain {
            let change = Change::AddMemory(Box::new(memory.clone()));
            sets.push((item.found.path.clone(), ChangeSet::one(memory.recorded_at, change)));
        }
        let mut applied = self.apply(user, sets).await?;
        for (item, memory, key) in &keyed {
            let set = ChangeSet::one(memory.recorded_at, Change::AddMemory(Box::new(memory.clone())));
            let idempotency = key
                .as_ref()
                .map(|keyed| Idempotency { key: keyed.key.clone(), fingerprint: keyed.fingerprint });
            match self.apply_anew(user, ChangeSet { idempotency, ..set }).await {
                Ok(_) => drop(applied.insert(item.found.path.clone())),
                Err(error) => self.report(&item.found.path, error.message().to_owned()),
            }
        }
        for (item, memory, _) in plain.into_iter().chain(keyed) {
            if !applied.contains(&item.found.path) {
                continue;
            }
            let What::Entry(reading) = &item.what else { continue };
            if reading.incomplete {
                self.note_changed(&item);
            } else {
                self.adopt(&item.found, &Row::new(user, Content::Memory(Box::new(memory), None)))?;
            }
        }
        Ok(())
    }

    async fn import_summaries(&mut self, user: &UserId, summaries: Vec<(Item, Summary)>) -> Result<()> {
        for (item, summary) in summaries {
            let put = |summary: Summary| {
                self.vault
                    .index
                    .apply(user, ChangeSet::one(summary.updated_at, Change::PutSummary(Box::new(summary))))
            };
            let mut outcome = put(summary.clone()).await;
            if outcome.is_err() && summary.status == SummaryStatus::Processing {
                // Two files of one session say that a summary is being made: one of them was left behind.
                outcome = put(Summary { status: SummaryStatus::Failed, ..summary.clone() }).await;
            }
            let What::Entry(reading) = &item.what else { continue };
            match outcome {
                Ok(_) if reading.incomplete => self.note_changed(&item),
                Ok(_) => self.adopt(&item.found, &Row::new(user, Content::Summary(Box::new(summary))))?,
                Err(error) => self.report(&item.found.path, error.message().to_owned()),
            }
        }
        Ok(())
    }

    async fn import_key(&mut self, user: &UserId, item: Item) -> Result<()> {
        let What::Key(key) = &item.what else { return Ok(()) };
        let added = Change::AddKey(key.clone());
        match self.vault.index.apply(user, ChangeSet::one(key.created_at, added)).await {
            Ok(_) => self.adopt(&item.found, &Row::new(user, Content::Key(key.clone()))),
            Err(error) => {
                self.report(&item.found.path, error.message().to_owned());
                Ok(())
            }
        }
    }
}

impl TurnItem {
    /// The conversation whose folder the file lies in, if it is another one than that which the file names.
    fn stray_from(&self) -> Option<&str> {
        let folder = self.item.as_ref()?.found.place.conversation.as_deref()?;
        (folder != self.turn.session.as_str()).then_some(folder)
    }
}

impl UserItems {
    /// Takes from turns that a person has given to another session the places that they had in their former one. In a renamed folder
    /// they keep them: no session has its name.
    fn place_strays(&mut self) {
        let known: BTreeSet<String> = self.sessions.keys().map(ToString::to_string).collect();
        for turn in self.sessions.values_mut().flat_map(|session| &mut session.turns) {
            if turn.stray_from().is_some_and(|folder| known.contains(folder)) {
                turn.seq = None;
            }
        }
    }

    fn add(&mut self, item: Item) {
        match &item.what {
            What::Entry(reading) => match &reading.given {
                Given::Turn { turn, seq, extra } => {
                    let mut turn = (**turn).clone();
                    // The design's tombstones do not say when their item was deleted.
                    if reading.tombstone {
                        turn.hidden = Some(Hidden { reason: HiddenReason::Deleted, at: turn.created_at });
                    }
                    let (seq, extra) = (*seq, extra.clone());
                    let session = self.sessions.entry(turn.session.clone()).or_default();
                    session.turns.push(TurnItem { item: Some(item), turn, seq, extra });
                }
                Given::Memory(memory) => {
                    let (mut memory, keyed) = ((**memory).clone(), reading.keyed.clone());
                    if reading.tombstone {
                        memory.hidden =
                            Some(Hidden { reason: HiddenReason::Deleted, at: memory.recorded_at });
                    }
                    self.memories.push((item, memory, keyed));
                }
                Given::Summary(summary) => {
                    let summary = (**summary).clone();
                    let session = self.sessions.entry(summary.session.clone()).or_default();
                    session.summaries.push((item, summary));
                }
            },
            What::Session(file) => {
                let file = (**file).clone();
                let session = self.sessions.entry(file.session.clone()).or_default();
                session.file = Some((item, file));
            }
            What::Key(_) => self.keys.push(item),
        }
    }
}

/// The turns of a session in their order, from place `next` on. Turns without a place take the free ones by their time, and
/// places that stay free belong to turns whose files are missing.
fn placed(user: &UserId, session: &SessionId, turns: Vec<TurnItem>, next: u64) -> Vec<TurnItem> {
    let most = next.saturating_add(turns.len() as u64).saturating_add(MOST_MISSING);
    let mut at_place: BTreeMap<u64, TurnItem> = BTreeMap::new();
    let mut others = Vec::new();
    for turn in turns {
        match turn.seq {
            Some(seq) if seq >= next && seq < most && !at_place.contains_key(&seq) => {
                drop(at_place.insert(seq, turn))
            }
            _ => others.push(turn),
        }
    }
    others.sort_by_key(|item| (item.turn.created_at, item.turn.id));
    let mut others = others.into_iter();
    let mut placed = Vec::new();
    let end = at_place.last_key_value().map_or(next, |(last, _)| last + 1);
    for place in next..end {
        let turn = at_place.remove(&place).or_else(|| others.next());
        placed.push(turn.unwrap_or_else(|| missing(user, session, place, &placed)));
    }
    placed.extend(others);
    placed
}

/// Whether nothing is left of a turn but its place: its file is missing, and it has none.
pub(crate) fn is_placeholder(turn: &Turn) -> bool {
    turn.hidden.is_some_and(|hidden| hidden.reason == HiddenReason::Deleted) && emptied(turn) == *turn
}

/// The place of a turn of which nothing else is left.
pub(super) fn emptied(turn: &Turn) -> Turn {
    Turn {
        role: Role::System,
        name: None,
        content: String::new(),
        token_count: 0,
        metadata: Metadata::new(),
        notes: TurnNotes::default(),
        ..turn.clone()
    }
}

fn id_of_missing(user: &UserId, session: &SessionId, seq: u64) -> TurnId {
    TurnId(derived(&["missing", user.as_str(), session.as_str(), &seq.to_string()]))
}

/// The place of a turn whose file is missing, so that the others keep theirs.
fn missing(user: &UserId, session: &SessionId, seq: u64, before: &[TurnItem]) -> TurnItem {
    let at = before.last().map_or(Timestamp::UNIX_EPOCH, |item| item.turn.created_at);
    let turn = Turn {
        id: id_of_missing(user, session, seq),
        session: session.clone(),
        seq,
        role: Role::System,
        name: None,
        content: String::new(),
        created_at: at,
        token_count: 0,
        metadata: Metadata::new(),
        notes: TurnNotes::default(),
        hidden: Some(Hidden { reason: HiddenReason::Deleted, at }),
    };
    TurnItem { item: None, turn, seq: Some(seq), extra: TurnExtra::default() }
}

fn again(turn: &Turn) -> NewTurn {
    let Turn { id, role, name, content, created_at, token_count, metadata, notes, hidden, .. } = turn.clone();
    NewTurn { id, role, name, content, created_at, token_count, metadata, notes, hidden }
}

/// A memory that an earlier version of the design's program has replaced says by which one; its validity ends with that one's
/// beginning.
fn close_replaced(memory: &mut Memory, begun: &BTreeMap<MemoryId, Timestamp>) {
    if let (None, Some(by)) = (memory.valid_to, memory.replaced_by)
        && let Some(at) = begun.get(&by)
    {
        memory.valid_to = Some(*at);
        memory.hidden = None;
    }
}
