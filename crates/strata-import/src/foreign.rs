//! Conversations and memories of other programs, on their way into a store.
//!
//! Every id follows from the source, so a second import adds nothing and an interrupted one is simply run again. A conversation
//! is recorded whole or not at all. Deliberately absent: the forms of the files, which [`crate::formats`] reads.

use std::collections::{BTreeMap, HashMap, HashSet};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use strata_core::id::TurnId;
use strata_core::memory::{MemoryKind, MemoryNotes, TodoState};
use strata_core::nul::check_nul;
use strata_core::store::{Change, ChangeSet, MemoryQuery, MemorySelect, TurnQuery};
use strata_core::turn::{Hidden, Metadata, NewMessage};
use strata_core::{Error, Memory, MemoryId, Result, Role, SessionId, Turn, UserId};
use strata_engine::prompt::strip_injected;
use strata_engine::{Engine, ImportedSession, ReadInto};
use uuid::Uuid;

/// The memories of one change set.
const MEMORIES_A_BATCH: usize = 200;

/// A conversation of another program.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Chat {
    /// The user that the source names.
    pub(crate) user: Option<String>,
    /// The name of the session.
    pub(crate) session: String,
    /// Whether the name is made from the name of the file.
    pub(crate) is_named_by_file: bool,
    /// The title.
    pub(crate) title: Option<String>,
    /// The place in the file, for messages to a person.
    pub(crate) place: String,
    /// The messages in their order.
    pub(crate) messages: Vec<Said>,
}

/// A message of another program.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Said {
    /// The id in the source, unique in the conversation; `None` derives one from the content.
    pub(crate) id: Option<String>,
    pub(crate) role: Role,
    pub(crate) name: Option<String>,
    pub(crate) content: String,
    pub(crate) created_at: Option<Timestamp>,
}

impl Said {
    /// A message without an id, a name and a time.
    pub(crate) fn new(role: Role, content: impl Into<String>) -> Self {
        Self { id: None, role, name: None, content: content.into(), created_at: None }
    }
}

/// A memory of another program.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Remembered {
    /// The id in the source.
    pub(crate) id: String,
    pub(crate) user: Option<String>,
    /// Whether it holds for all users.
    pub(crate) is_shared: bool,
    pub(crate) agent: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) kind: MemoryKind,
    pub(crate) content: String,
    /// From 0 to 1; `None` if the source does not say.
    pub(crate) confidence: Option<f32>,
    /// How a todo ended.
    pub(crate) todo: Option<TodoState>,
    pub(crate) valid_from: Option<Timestamp>,
    /// The end of its validity; `None` while it is valid.
    pub(crate) valid_to: Option<Timestamp>,
    /// The id, in the source, of the memory that replaced it.
    pub(crate) replaced_by: Option<String>,
    /// The id, in the source, of a memory that it may contradict.
    pub(crate) disputed_with: Option<String>,
    pub(crate) certainty: Option<u8>,
    pub(crate) hidden: Option<Hidden>,
    pub(crate) created_at: Option<Timestamp>,
    pub(crate) updated_at: Option<Timestamp>,
    pub(crate) metadata: Metadata,
    /// The place in the file.
    pub(crate) place: String,
}

impl Remembered {
    /// Whether the source believes it now.
    pub(crate) fn is_current(&self) -> bool {
        self.valid_to.is_none() && self.hidden.is_none()
    }
}

/// The content of a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Contents {
    pub(crate) chats: Vec<Chat>,
    pub(crate) memories: Vec<Remembered>,
    /// The number of parts that are left out, by the reason.
    pub(crate) skipped: Skips,
}

/// Reasons for leaving something out, each with a number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Skips(BTreeMap<String, u64>);

impl Skips {
    pub(crate) fn add(&mut self, reason: impl Into<String>) {
        *self.0.entry(reason.into()).or_default() += 1;
    }

    /// The reasons with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(reason, count)| (reason.as_str(), *count))
    }
}

impl Contents {
    /// The number of messages and memories.
    pub(crate) fn items(&self) -> u64 {
        self.chats.iter().map(|chat| chat.messages.len() as u64).sum::<u64>() + self.memories.len() as u64
    }
}

/// Where the content of a file goes.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// The user, whatever the source says.
    pub(crate) user: Option<UserId>,
    /// The user of parts for which the source names none.
    pub(crate) default_user: UserId,
    pub(crate) session_prefix: String,
    /// The name of the form, for the metadata of turns.
    pub(crate) form: &'static str,
}

impl Target {
    fn user(&self, named: Option<&str>) -> Result<UserId> {
        match (&self.user, named) {
            (Some(user), _) => Ok(user.clone()),
            (None, Some(name)) => UserId::new(name),
            (None, None) => Ok(self.default_user.clone()),
        }
    }

    /// The owner of a memory: the user, or all users.
    fn owner(&self, memory: &Remembered) -> Result<UserId> {
        match (&self.user, &memory.user, memory.is_shared) {
            (None, None, true) => Ok(UserId::global()),
            _ => self.user(memory.user.as_deref()),
        }
    }

    fn session(&self, name: &str) -> Result<SessionId> {
        let name = format!("{}{name}", self.session_prefix);
        // A name that is too long or that no session may have still tells conversations apart by its digest.
        SessionId::new(name.clone())
            .or_else(|_| SessionId::new(derived_id(&["session", &name]).simple().to_string()))
    }
}

/// The numbers of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FileReport {
    /// The form of the file.
    pub format: String,
    /// Conversations in the file.
    pub conversations: u64,
    /// Turns that were added.
    pub turns_added: u64,
    /// Turns that an earlier run had added.
    pub turns_present: u64,
    /// Memories that were added.
    pub memories_added: u64,
    /// Memories that an earlier run had added.
    pub memories_present: u64,
    /// The number of parts that were left out, by the reason.
    pub skipped: Skips,
}

/// Checks that everything in `contents` can be recorded, so that a bad part stops the import before its first write. With
/// `skip_bad`, bad parts are taken out and counted instead.
pub(crate) fn check(contents: &mut Contents, engine: &Engine, target: &Target, skip_bad: bool) -> Result<()> {
    let Contents { chats, memories, skipped } = contents;
    let mut failed = None;
    let mut holds = |place: &str, checked: Result<()>| match checked {
        Ok(()) => true,
        Err(error) => {
            let message = format!("{place}: {}", error.message());
            if skip_bad {
                skipped.add(message);
            } else {
                failed.get_or_insert_with(|| Error::new(error.kind(), message).with_source(error));
            }
            false
        }
    };
    for chat in chats.iter_mut() {
        let Chat { messages, place, .. } = chat;
        let mut number = 0;
        messages.retain(|said| {
            number += 1;
            let at = format!("{place}, message {number}");
            holds(&at, check_said(said, engine))
        });
    }
    chats.retain(|chat| holds(&chat.place, check_chat(chat, target)));
    memories.retain(|memory| holds(&memory.place, check_memory(memory, engine, target)));
    failed.map_or(Ok(()), Err)
}

fn check_said(said: &Said, engine: &Engine) -> Result<()> {
    engine.imports.check_content(&said.content)?;
    check_names([("`id`", &said.id), ("`name`", &said.name)])
}

/// The conversation's own name is kept in the metadata of its turns.
fn check_chat(chat: &Chat, target: &Target) -> Result<()> {
    target.user(chat.user.as_deref())?;
    check_nul("the conversation's name", chat.session.as_str())?;
    check_names([("`title`", &chat.title)])
}

fn check_memory(memory: &Remembered, engine: &Engine, target: &Target) -> Result<()> {
    target.owner(memory)?;
    engine.imports.check_content(&memory.content)?;
    engine.imports.check_metadata(&memory.metadata)?;
    check_names([("`agent_id`", &memory.agent)])
}

fn check_names<const N: usize>(names: [(&str, &Option<String>); N]) -> Result<()> {
    names.into_iter().try_for_each(|(what, name)| check_nul(what, name.as_deref().unwrap_or_default()))
}

/// Records one conversation, all of its new messages or none.
pub(crate) async fn record(
    engine: &Engine,
    target: &Target,
    chat: &Chat,
    report: &mut FileReport,
) -> Result<()> {
    report.conversations += 1;
    let (user, session) = (target.user(chat.user.as_deref())?, target.session(&chat.session)?);
    let incoming = with_ids(&user, &session, target.form, chat);
    let ids = incoming.iter().map(|(id, _)| *id).collect();
    let present = engine.store().turns(&user, &TurnQuery::Ids(ids)).await?;
    let present: HashMap<TurnId, Turn> = present.into_iter().map(|turn| (turn.id, turn)).collect();
    let (mut new, mut seen) = (Vec::new(), HashSet::new());
    for (id, message) in incoming {
        if !seen.insert(id) {
            report.skipped.add("messages that the file holds twice");
        } else if let Some(turn) = present.get(&id) {
            report.turns_present += 1;
            if turn.content != message.content {
                report
                    .skipped
                    .add("messages that have changed since they were imported; the first text stays");
            }
        } else {
            new.push((id, message));
        }
    }
    if !new.is_empty() {
        let added = engine.imports.record_as(&user, &session, new, ReadInto::State).await?;
        report.turns_added += added.len() as u64;
        if chat.title.is_some() {
            let imported = ImportedSession { title: chat.title.clone(), ..ImportedSession::default() };
            engine.imports.import_session(&user, &session, imported).await?;
        }
    }
    Ok(())
}

/// The messages with the ids that follow from their source.
fn with_ids(user: &UserId, session: &SessionId, form: &str, chat: &Chat) -> Vec<(TurnId, NewMessage)> {
    let mut same: HashMap<(Role, &str), u32> = HashMap::new();
    let messages = chat.messages.iter().map(|said| {
        let id = match &said.id {
            Some(id) => derived_id(&["turn", user.as_str(), session.as_str(), id]),
            None => {
                // A message that is said twice is told apart by its number.
                let times = same.entry((said.role, &said.content)).or_default();
                *times += 1;
                let parts = ["said", user.as_str(), session.as_str(), said.role.as_str(), &said.content];
                let number = times.to_string();
                derived_id(&[&parts[..], &[number.as_str()]].concat())
            }
        };
        // The content is compared with recorded turns, which never contain text that Strata injected.
        let mut message = NewMessage::new(said.role, strip_injected(&said.content));
        message.name.clone_from(&said.name);
        message.created_at = said.created_at;
        message.metadata = Metadata::from_iter([("import".to_owned(), origin(form, chat, said))]);
        (TurnId(id), message)
    });
    messages.collect()
}

fn origin(form: &str, chat: &Chat, said: &Said) -> Value {
    let mut origin = json!({ "format": form, "conversation": chat.session });
    if let Some(id) = &said.id {
        origin["message"] = id.as_str().into();
    }
    origin
}

/// Adds the memories that the store does not have. `tell` is called with the number of those that are done.
pub(crate) async fn remember(
    engine: &Engine,
    target: &Target,
    memories: &[Remembered],
    report: &mut FileReport,
    mut tell: impl FnMut(u64) + Send,
) -> Result<()> {
    let mut by_user: BTreeMap<UserId, Vec<&Remembered>> = BTreeMap::new();
    for memory in memories {
        by_user.entry(target.owner(memory)?).or_default().push(memory);
    }
    for (user, memories) in by_user {
        for batch in memories.chunks(MEMORIES_A_BATCH) {
            remember_batch(engine, target, &user, batch, report).await?;
            tell(batch.len() as u64);
        }
    }
    Ok(())
}

async fn remember_batch(
    engine: &Engine,
    target: &Target,
    user: &UserId,
    batch: &[&Remembered],
    report: &mut FileReport,
) -> Result<()> {
    let now = engine.now();
    let made: Vec<Memory> =
        batch.iter().map(|memory| memory_of(memory, user, target, now)).collect::<Result<_>>()?;
    let ids = made.iter().map(|memory| memory.id).collect();
    let present = engine.store().memories(user, &MemoryQuery::new(MemorySelect::Ids(ids))).await?;
    let mut present: HashSet<MemoryId> = present.into_iter().map(|memory| memory.id).collect();
    let mut changes = Vec::new();
    for memory in made {
        if present.insert(memory.id) {
            report.memories_added += 1;
            changes.push(Change::AddMemory(Box::new(memory)));
        } else {
            report.memories_present += 1;
        }
    }
    if !changes.is_empty() {
        engine.store().apply(user, ChangeSet::new(now, changes)).await?;
    }
    Ok(())
}

fn memory_of(memory: &Remembered, user: &UserId, target: &Target, now: Timestamp) -> Result<Memory> {
    let created_at = memory.created_at.unwrap_or(now).min(now);
    let recorded_at = memory.updated_at.unwrap_or(created_at).clamp(created_at, now);
    // A program that keeps the ids of its memories finds them again.
    let id_of = |id: &str| {
        MemoryId(
            Uuid::parse_str(id).unwrap_or_else(|_| derived_id(&["memory", user.as_str(), target.form, id])),
        )
    };
    let first_recorded_at = (recorded_at > created_at).then_some(created_at);
    let notes = MemoryNotes {
        first_recorded_at,
        todo: memory.todo,
        disputed: memory.disputed_with.as_deref().map(id_of),
        certainty: memory.certainty,
        ..MemoryNotes::default()
    };
    Ok(Memory {
        id: id_of(&memory.id),
        session: memory.session.as_deref().map(|name| target.session(name)).transpose()?,
        agent: memory.agent.clone(),
        kind: memory.kind,
        content: memory.content.clone(),
        confidence: memory.confidence.unwrap_or(1.0),
        valid_from: memory.valid_from.unwrap_or(created_at),
        valid_to: memory.valid_to,
        recorded_at,
        replaced_by: memory.replaced_by.as_deref().filter(|_| memory.valid_to.is_some()).map(id_of),
        source_turns: Vec::new(),
        source_summary: None,
        metadata: memory.metadata.clone(),
        notes,
        hidden: memory.hidden.map(|hidden| Hidden { at: hidden.at.clamp(recorded_at, now), ..hidden }),
    })
}

/// An id that is always the same for the same parts.
pub(crate) fn derived_id(parts: &[&str]) -> Uuid {
    let mut hasher = Sha256::new();
    for part in ["strata import"].iter().chain(parts) {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hasher.finalize()[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}
