//! Reads the data of a benchmark from a folder and checks it. Without the checks, a wrong id would silently count as a miss.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use jiff::{Span, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use strata_core::{Error, Result, Role};

const CONVERSATIONS: &str = ".conversations.jsonl";
const QUESTIONS: &str = ".questions.jsonl";

/// One labelled set: conversations, and questions about them.
#[derive(Debug, Clone)]
pub struct Set {
    /// The name, with which its file names begin.
    pub name: String,
    /// The conversations.
    pub conversations: Vec<Conversation>,
    /// The questions, in the order of the file.
    pub questions: Vec<Question>,
}

/// One conversation: all sessions of one user.
#[derive(Debug, Clone, Deserialize)]
pub struct Conversation {
    /// The id, unique in the set.
    pub conversation_id: String,
    /// The sessions, in order.
    pub sessions: Vec<Session>,
    /// The place in the data: `FILE:LINE`.
    #[serde(skip)]
    pub place: String,
}

/// One session of a conversation.
#[derive(Debug, Clone, Deserialize)]
pub struct Session {
    /// The id, unique in the conversation.
    pub session_id: String,
    /// When the session began.
    #[serde(default, deserialize_with = "moment")]
    pub timestamp: Option<Timestamp>,
    /// The turns, in order.
    pub turns: Vec<Turn>,
}

/// One turn of a session.
#[derive(Debug, Clone, Deserialize)]
pub struct Turn {
    /// The id, unique in the conversation.
    pub turn_id: String,
    /// The speaker: `user`, `assistant`, or a name.
    pub speaker: String,
    /// The text.
    pub text: String,
    /// When the turn was said, if that is known more exactly than the session's beginning.
    #[serde(default, deserialize_with = "moment")]
    pub timestamp: Option<Timestamp>,
}

/// One question with its evidence.
#[derive(Debug, Clone, Deserialize)]
pub struct Question {
    /// The id, unique in the set.
    pub question_id: String,
    /// The conversation that the question is about.
    pub conversation_id: String,
    /// The question itself.
    pub question: String,
    /// The row of the report that the question counts in.
    #[serde(default = "all")]
    pub category: String,
    /// When the question is asked. A date without a time is the end of that day.
    #[serde(default, deserialize_with = "end_of_day")]
    pub question_date: Option<Timestamp>,
    /// The question is asked before this session began, so only earlier sessions may be recalled.
    #[serde(default)]
    pub as_of_session: Option<String>,
    /// The turns that hold the answer.
    pub evidence_turns: Vec<String>,
    /// The sessions that hold the answer. Defaults to the sessions of the evidence turns.
    #[serde(default)]
    pub evidence_sessions: Option<Vec<String>>,
    /// The conflicting turns that are true now.
    #[serde(default)]
    pub latest_turns: Vec<String>,
    /// The conflicting turns that were true earlier.
    #[serde(default)]
    pub stale_turns: Vec<String>,
    /// Whether the question is scored; questions without an answer in the data are not.
    #[serde(default = "yes")]
    pub scored: bool,
    /// The place in the data: `FILE:LINE`.
    #[serde(skip)]
    pub place: String,
}

impl Question {
    /// Whether nothing in its own conversation answers the question.
    pub(crate) fn is_unanswerable(&self) -> bool {
        !self.scored && self.category.to_lowercase().contains("abstention")
    }
}

/// The role of a speaker, and the name if the speaker has one.
pub(crate) fn speaker(name: &str) -> (Role, Option<String>) {
    match name.to_lowercase().parse() {
        Ok(role) => (role, None),
        Err(_) if name.trim().is_empty() => (Role::User, None),
        Err(_) => (Role::User, Some(name.to_owned())),
    }
}

fn all() -> String {
    "all".to_owned()
}

fn yes() -> bool {
    true
}

/// The names of the sets in a folder, sorted. A set has a file of conversations and a file of questions.
pub fn sets(dir: &Path) -> Result<Vec<String>> {
    let unreadable = |error: std::io::Error| {
        Error::not_found(format!("folder `{}` cannot be read: {error}", dir.display())).with_source(error)
    };
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(dir).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.file_name();
        let Some(file) = file.to_str() else { continue };
        let file = file.strip_suffix(".gz").unwrap_or(file);
        let Some(name) = file.strip_suffix(CONVERSATIONS) else { continue };
        if file_of(dir, name, QUESTIONS).is_some() {
            names.insert(name.to_owned());
        }
    }
    Ok(names.into_iter().collect())
}

/// Reads one set of a folder and checks it. An error names the file and the line.
pub fn load(dir: &Path, set: &str) -> Result<Set> {
    let path = |suffix| file_of(dir, set, suffix).ok_or_else(|| missing(dir, set, suffix));
    let mut conversations: Vec<Conversation> =
        read_lines(&path(CONVERSATIONS)?, |conversation, place| Conversation { place, ..conversation })?;
    let mut ids = HashSet::new();
    for conversation in &mut conversations {
        check_conversation(conversation)?;
        if !ids.insert(conversation.conversation_id.clone()) {
            return Err(twice(&conversation.place, "conversation", &conversation.conversation_id));
        }
    }
    let mut questions: Vec<Question> =
        read_lines(&path(QUESTIONS)?, |question, place| Question { place, ..question })?;
    check_questions(&conversations, &mut questions)?;
    Ok(Set { name: set.to_owned(), conversations, questions })
}

fn file_of(dir: &Path, set: &str, suffix: &str) -> Option<PathBuf> {
    let names = [format!("{set}{suffix}"), format!("{set}{suffix}.gz")];
    names.into_iter().map(|name| dir.join(name)).find(|path| path.is_file())
}

fn missing(dir: &Path, set: &str, suffix: &str) -> Error {
    let known = sets(dir).unwrap_or_default().join("`, `");
    let known = if known.is_empty() { "no set".to_owned() } else { format!("`{known}`") };
    Error::not_found(format!(
        "set `{set}` has no file `{set}{suffix}` or `{set}{suffix}.gz`; folder `{}` has {known}",
        dir.display()
    ))
}

fn read_lines<T: DeserializeOwned>(path: &Path, place: impl Fn(T, String) -> T) -> Result<Vec<T>> {
    let file = File::open(path).map_err(|error| {
        Error::not_found(format!("file `{}` cannot be read", path.display())).with_source(error)
    })?;
    let compressed = path.extension().is_some_and(|extension| extension == "gz");
    let file: Box<dyn Read> = if compressed { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    let mut items = Vec::new();
    for (number, line) in BufReader::new(file).lines().enumerate() {
        let at = format!("{}:{}", path.display(), number + 1);
        let line = line.map_err(|error| Error::invalid(format!("{at}: {error}")))?;
        if line.trim().is_empty() {
            continue;
        }
        let item = serde_json::from_str(&line).map_err(|error| {
            // The line number is always 1 here, so it is left out.
            let error = error.to_string().replace(" at line 1 column ", " at column ");
            Error::invalid(format!("{at}: {error}"))
        })?;
        items.push(place(item, at));
    }
    Ok(items)
}

fn check_conversation(conversation: &Conversation) -> Result<()> {
    let place = &conversation.place;
    let (mut sessions, mut turns) = (HashSet::new(), HashSet::new());
    for session in &conversation.sessions {
        if !sessions.insert(&session.session_id) {
            return Err(twice(place, "session", &session.session_id));
        }
        for turn in &session.turns {
            if !turns.insert(&turn.turn_id) {
                return Err(twice(place, "turn", &turn.turn_id));
            }
        }
    }
    Ok(())
}

fn twice(place: &str, what: &str, id: &str) -> Error {
    Error::invalid(format!("{place}: {what} `{id}` appears twice; give each its own id"))
}

fn check_questions(conversations: &[Conversation], questions: &mut [Question]) -> Result<()> {
    let known: HashMap<&str, Known<'_>> = conversations
        .iter()
        .map(|conversation| (conversation.conversation_id.as_str(), Known::of(conversation)))
        .collect();
    let mut ids = HashSet::new();
    for question in questions {
        let place = &question.place;
        if !ids.insert(question.question_id.clone()) {
            return Err(twice(place, "question", &question.question_id));
        }
        let unknown = |what: &str, id: &str| {
            Error::invalid(format!("{place}: {what} `{id}` is not in the conversations; correct the id"))
        };
        let known = known
            .get(question.conversation_id.as_str())
            .ok_or_else(|| unknown("conversation", &question.conversation_id))?;
        let labels = [&question.evidence_turns, &question.latest_turns, &question.stale_turns];
        if let Some(id) = labels.into_iter().flatten().find(|id| !known.session_of.contains_key(id.as_str()))
        {
            return Err(unknown("turn", id));
        }
        let sessions = question.evidence_sessions.get_or_insert_with(|| {
            let mut sessions: Vec<String> = Vec::new();
            for turn in &question.evidence_turns {
                let session = known.session_of.get(turn.as_str()).copied().unwrap_or_default();
                if !sessions.iter().any(|known| known == session) {
                    sessions.push(session.to_owned());
                }
            }
            sessions
        });
        let named = sessions.iter().chain(&question.as_of_session);
        if let Some(id) = named.into_iter().find(|id| !known.sessions.contains(id.as_str())) {
            return Err(unknown("session", id));
        }
    }
    Ok(())
}

/// The ids of a conversation.
struct Known<'a> {
    sessions: HashSet<&'a str>,
    session_of: HashMap<&'a str, &'a str>,
}

impl<'a> Known<'a> {
    fn of(conversation: &'a Conversation) -> Self {
        Self {
            sessions: conversation.sessions.iter().map(|session| session.session_id.as_str()).collect(),
            session_of: conversation.session_of(),
        }
    }
}

impl Conversation {
    /// The session of each turn.
    pub(crate) fn session_of(&self) -> HashMap<&str, &str> {
        let turns =
            self.sessions.iter().flat_map(|session| session.turns.iter().map(move |turn| (turn, session)));
        turns.map(|(turn, session)| (turn.turn_id.as_str(), session.session_id.as_str())).collect()
    }

    /// The time of each turn, session by session: its own time, else its session's, else the time of the turn before it. The
    /// first turns get the first known time. So a turn is never dated before an earlier turn because its time is missing.
    pub fn times(&self) -> Vec<Vec<Option<Timestamp>>> {
        let known = |session: &Session, turn: &Turn| turn.timestamp.or(session.timestamp);
        let mut last =
            self.sessions.iter().flat_map(|s| s.turns.iter().find_map(|turn| known(s, turn))).next();
        let mut times = Vec::with_capacity(self.sessions.len());
        for session in &self.sessions {
            let of_turn = session.turns.iter().map(|turn| {
                last = known(session, turn).or(last);
                last
            });
            times.push(of_turn.collect());
        }
        times
    }
}

/// Reads a time: a date, or a date and a time of day, in UTC or with an offset. The second value is whether it is only a date.
fn parse_moment(text: &str) -> Option<(Timestamp, bool)> {
    if let Ok(timestamp) = text.parse() {
        return Some((timestamp, false));
    }
    let moment: DateTime = text.parse().ok()?;
    let date_only = !text.contains([':', 'T', 't', ' ']);
    Some((Offset::UTC.to_timestamp(moment).ok()?, date_only))
}

fn parsed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<(Timestamp, bool)>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    let moment = parse_moment(&text);
    moment.map(Some).ok_or_else(|| {
        serde::de::Error::custom(format!(
            "`{text}` is not a time; write it as in `2024-05-31` or `2024-05-31T18:00`"
        ))
    })
}

fn moment<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    Ok(parsed(deserializer)?.map(|(moment, _)| moment))
}

/// Reads a time; a date without a time is the end of that day, so that all turns of the day precede the question.
fn end_of_day<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    Ok(parsed(deserializer)?.map(|(moment, date_only)| {
        let end = moment.checked_add(Span::new().hours(24).seconds(-1));
        end.ok().filter(|_| date_only).unwrap_or(moment)
    }))
}
