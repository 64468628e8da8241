//! Reading an item from its file.

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest, Sha256};
use strata_core::memory::MemoryKind;
use strata_core::moment::parse_moment;
use strata_core::nul::{MayHoldNul, check_nul};
use strata_core::ports::{EstimatedTokens, TokenCounter};
use strata_core::summary::{Strategy, Summary, SummaryStatus};
use strata_core::turn::{Hidden, HiddenReason, Metadata, Role};
use strata_core::{Memory, MemoryId, SessionId, SummaryId, Turn, TurnId};
use uuid::Uuid;

use super::{Keyed, TurnExtra};
use crate::front::{Document, Fault};
use crate::layout::{Folder, GLOBAL, Place};

/// The content of a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReadItem {
    /// The item.
    pub(crate) given: Given,
    /// Whether the file lacks its id or time, so that they have to be written into it.
    pub(crate) incomplete: bool,
    /// Whether the file has no keys at all, and whether it does not say its time.
    pub(crate) bare: bool,
    pub(crate) timeless: bool,
    /// Whether it lies among deleted files without saying that it is hidden or closed.
    pub(crate) tombstone: bool,
    /// The key of the write that made it.
    pub(crate) keyed: Option<Keyed>,
}

/// An item from a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Given {
    /// A turn; `seq` is `None` if the file does not say it.
    Turn {
        turn: Box<Turn>,
        seq: Option<u64>,
        extra: TurnExtra,
    },
    Memory(Box<Memory>),
    Summary(Box<Summary>),
}

impl Given {
    pub(crate) fn uuid(&self) -> Uuid {
        match self {
            Self::Turn { turn, .. } => turn.id.0,
            Self::Memory(memory) => memory.id.0,
            Self::Summary(summary) => summary.id.0,
        }
    }
}

/// Reads a file. `id` and `now` are taken where the file says nothing.
pub(crate) fn read(document: &Document, place: &Place, id: Uuid, now: Timestamp) -> Result<ReadItem, Fault> {
    let keys = Keys { document, place };
    let own_id = keys.string("id")?.filter(|id| !id.is_empty()).map(|id| uuid_of(&id));
    let own_time = keys.time("created_at")?;
    let (id, at) = (own_id.unwrap_or(id), own_time.unwrap_or(now));
    let role = keys.string("role")?;
    let role = role.as_deref().unwrap_or(match place.folder {
        Folder::Turns(role) => role.as_str(),
        Folder::Summaries(_) => "summary",
        Folder::Facts | Folder::Other => "memory",
    });
    let hidden = keys.hidden()?;
    let given = match role {
        "memory" => Given::Memory(Box::new(keys.memory(id, at, hidden)?)),
        "summary" => Given::Summary(Box::new(keys.summary(id, at)?)),
        other => {
            let role: Role = other.parse().map_err(|_| {
                document.fault(
                    "role",
                    format!("role `{other}` is unknown; use memory, user, assistant or summary"),
                )
            })?;
            keys.turn(id, role, at, hidden)?
        }
    };
    let closed = matches!(&given, Given::Memory(memory) if memory.valid_to.is_some());
    let is_summary = matches!(&given, Given::Summary(_));
    Ok(ReadItem {
        incomplete: own_id.is_none() || own_time.is_none(),
        bare: document.fields.is_empty(),
        timeless: own_time.is_none(),
        tombstone: place.deleted && hidden.is_none() && !closed && !is_summary,
        keyed: keys.json("idempotency")?,
        given,
    })
}

/// The id that a file's `id` stands for: itself if it is a UUID, else a digest of it.
pub(crate) fn uuid_of(id: &str) -> Uuid {
    Uuid::parse_str(id).unwrap_or_else(|_| derived(&[id]))
}

/// A UUID that follows from texts.
pub(crate) fn derived(parts: &[&str]) -> Uuid {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update(part.as_bytes());
        digest.update([0]);
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest.finalize()[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

/// A moment as a file may spell it: with an offset, or without one as UTC, or a day alone.
pub(crate) fn timestamp(text: &str) -> Option<Timestamp> {
    let at = parse_moment(text.trim()).ok()?;
    Timestamp::from_microsecond(at.as_microsecond()).ok()
}

/// The keys of a file.
struct Keys<'a> {
    document: &'a Document,
    place: &'a Place,
}

impl Keys<'_> {
    fn value(&self, key: &str) -> Option<&Value> {
        self.document.fields.get(key).filter(|value| !value.is_null())
    }

    fn fault(&self, key: &str, expected: &str) -> Fault {
        self.document.fault(key, format!("`{key}` is not {expected}; correct or remove it"))
    }

    fn string(&self, key: &str) -> Result<Option<String>, Fault> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::String(text)) => {
                self.without_nul(key, text.as_str())?;
                Ok(Some(text.clone()))
            }
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(_) => Err(self.fault(key, "a text")),
        }
    }

    /// A value that was read, if it holds no NUL character. The file's own text holds none, but an escape may stand for one.
    fn without_nul(&self, key: &str, value: &(impl MayHoldNul + ?Sized)) -> Result<(), Fault> {
        check_nul(&format!("`{key}`"), value)
            .map_err(|error| self.document.fault(key, error.message().to_owned()))
    }

    fn number(&self, key: &str) -> Result<Option<u64>, Fault> {
        self.value(key)
            .map(|value| value.as_u64().ok_or_else(|| self.fault(key, "a whole number")))
            .transpose()
    }

    fn small(&self, key: &str) -> Result<Option<u32>, Fault> {
        let number = self.number(key)?;
        number
            .map(|number| u32::try_from(number).map_err(|_| self.fault(key, "a number below 4294967296")))
            .transpose()
    }

    fn time(&self, key: &str) -> Result<Option<Timestamp>, Fault> {
        let Some(text) = self.string(key)? else { return Ok(None) };
        timestamp(&text).map(Some).ok_or_else(|| self.fault(key, "a time such as `2026-03-01T10:00:00Z`"))
    }

    fn uuid(&self, key: &str) -> Result<Option<Uuid>, Fault> {
        Ok(self.string(key)?.map(|id| uuid_of(&id)))
    }

    fn parsed<T: std::str::FromStr>(&self, key: &str, expected: &str) -> Result<Option<T>, Fault> {
        let Some(text) = self.string(key)? else { return Ok(None) };
        text.parse().map(Some).map_err(|_| self.fault(key, expected))
    }

    /// A value that is kept as JSON in a string.
    fn json<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, Fault> {
        let Some(text) = self.string(key)? else { return Ok(None) };
        let fault = |_| self.fault(key, "what Strata writes there");
        self.without_nul(key, &serde_json::from_str::<Value>(&text).map_err(fault)?)?;
        serde_json::from_str(&text).map(Some).map_err(fault)
    }

    /// The client's metadata: a string with JSON, or a mapping that a person has written.
    fn metadata(&self) -> Result<Metadata, Fault> {
        let fault = || self.fault("metadata", "a JSON object");
        let metadata: Metadata = match self.value("metadata") {
            None => Metadata::new(),
            Some(Value::Object(fields)) => fields.clone().into(),
            Some(Value::String(text)) => Metadata::from_text(text).map_err(|_| fault())?,
            Some(_) => return Err(fault()),
        };
        self.without_nul("metadata", metadata.fields())?;
        Ok(metadata)
    }

    fn hidden(&self) -> Result<Option<Hidden>, Fault> {
        let reason: Option<HiddenReason> = self.parsed("hidden", "a reason such as `deleted`")?;
        let at = self.time("hidden_at")?.or(self.time("created_at")?).unwrap_or(Timestamp::UNIX_EPOCH);
        Ok(reason.map(|reason| Hidden { reason, at }))
    }

    /// The conversation that the file names, or its folder.
    fn conversation(&self) -> Result<String, Fault> {
        let given = self.string("conversation_id")?;
        Ok(given.or_else(|| self.place.conversation.clone()).unwrap_or_else(|| GLOBAL.to_owned()))
    }

    fn session(&self) -> Result<SessionId, Fault> {
        SessionId::new(self.conversation()?)
            .map_err(|error| self.document.fault("conversation_id", error.message().to_owned()))
    }

    fn turn(&self, id: Uuid, role: Role, at: Timestamp, hidden: Option<Hidden>) -> Result<Given, Fault> {
        let content = self.document.body();
        let token_count = self.small("token_count")?.unwrap_or_else(|| EstimatedTokens.count(&content));
        let seq = self.number("seq")?;
        let turn = Turn {
            id: TurnId(id),
            session: self.session()?,
            seq: seq.unwrap_or(0),
            role,
            name: self.string("name")?,
            content,
            created_at: at,
            token_count,
            metadata: self.metadata()?,
            notes: self.json("notes")?.unwrap_or_default(),
            hidden,
        };
        let extra = TurnExtra { recorded_at: self.time("recorded_at")?, keyed: self.json("idempotency")? };
        Ok(Given::Turn { turn: Box::new(turn), seq, extra })
    }

    fn memory(&self, id: Uuid, at: Timestamp, hidden: Option<Hidden>) -> Result<Memory, Fault> {
        let content = self.document.body();
        if content.trim().is_empty() && self.value("id").is_none() {
            return Err(Fault::new("the file is empty; write the statement into it"));
        }
        let unbound = self.conversation()? == GLOBAL && self.string("scope")?.as_deref() != Some("session");
        let confidence = match self.value("confidence") {
            None => 1.0,
            Some(value) => value
                .as_f64()
                .filter(|value| (0.0..=1.0).contains(value))
                .ok_or_else(|| self.fault("confidence", "a number from 0 to 1"))?,
        };
        Ok(Memory {
            id: MemoryId(id),
            session: if unbound { None } else { Some(self.session()?) },
            agent: self.string("agent")?,
            kind: self.parsed::<MemoryKind>("kind", "a kind such as `fact`")?.unwrap_or_default(),
            content,
            confidence: confidence as f32,
            valid_from: self.time("valid_from")?.unwrap_or(at),
            valid_to: self.time("valid_to")?,
            recorded_at: at,
            replaced_by: self.uuid("replaced_by")?.map(MemoryId),
            source_turns: self.sources()?,
            source_summary: self.uuid("source_summary")?.map(SummaryId),
            metadata: self.metadata()?,
            notes: self.json("notes")?.unwrap_or_default(),
            hidden,
        })
    }

    /// The turns that state a memory; the design's own files name one of them as `source_id`.
    fn sources(&self) -> Result<Vec<TurnId>, Fault> {
        let Some(sources) = self.value("sources") else {
            return Ok(self.uuid("source_id")?.map(TurnId).into_iter().collect());
        };
        let fault = || self.fault("sources", "a list of turns");
        let list = sources.as_array().ok_or_else(fault)?;
        list.iter().map(|id| id.as_str().map(|id| TurnId(uuid_of(id))).ok_or_else(fault)).collect()
    }

    fn summary(&self, id: Uuid, at: Timestamp) -> Result<Summary, Fault> {
        let level = match self.number("level")? {
            Some(level) => u8::try_from(level).map_err(|_| self.fault("level", "a level from 0 to 3"))?,
            None => match self.place.folder {
                Folder::Summaries(level) => level,
                _ => 0,
            },
        };
        let strategy: Option<Strategy> = self.parsed("strategy", "rolling, window or tree")?;
        let strategy = strategy.unwrap_or(if level > 0 { Strategy::Tree } else { Strategy::Rolling });
        let status: Option<SummaryStatus> = self.parsed("status", "processing, completed or failed")?;
        let start_seq = self.number("start_seq")?.unwrap_or(0);
        Ok(Summary {
            id: SummaryId(id),
            session: self.session()?,
            strategy,
            level,
            start_seq,
            end_seq: self.number("end_seq")?.unwrap_or(start_seq),
            base_id: self.uuid("base_id")?.map(SummaryId),
            status: status.unwrap_or(SummaryStatus::Completed),
            text: self.document.body(),
            structured: self.json("structured")?,
            input_tokens: self.small("input_tokens")?.unwrap_or(0),
            output_tokens: self.small("output_tokens")?.unwrap_or(0),
            generation_ms: self.small("generation_ms")?,
            created_at: at,
            updated_at: self.time("updated_at")?.unwrap_or(at),
        })
    }
}
