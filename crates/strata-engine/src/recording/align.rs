//! Finds out which of a client's messages a session already has, and where the new ones belong.
//!
//! Clients of chat models are stateless: with every request they send the whole conversation, or the part of it that
//! they kept. A session is the record of the conversation, and several conversations may share one session. So a
//! session is read as a forest: each turn follows another turn, by default the visible one before it ([`Follows`]).
//! The client's messages are matched along those paths, starting at their end. This is robust against clients that
//! cut the beginning, change an old tool result or put other instructions in front. Messages after the last match are
//! new. Turns stored after the last match belong to a branch that the client has left, and are abandoned. The
//! exception: if many turns would be abandoned on little evidence, it is more likely another conversation with the
//! same beginning, and they stay.
//!
//! All functions are pure, and their cost is bounded for any input: see [`MAX_HEARD`], [`MAX_SAME`].

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::prompt::strip_injected;
use strata_core::turn::{Follows, Role, Turn, TurnNotes};

/// How many messages are compared, counted from the last: more turns than any context window of a chat model holds.
const MAX_HEARD: usize = 1_024;

/// How many messages with the same text are compared with a turn: a thousand times «ok» must not cost a million
/// steps.
const MAX_SAME: usize = 16;

/// How many turns may be abandoned for each matching message. The same model answers greetings alike, so two matching
/// messages do not justify abandoning a hundred turns; but an edit within the last few exchanges is an edit.
const ABANDONED_PER_MATCH: usize = 4;

/// How many turns may be abandoned if only a single question matched: a reply that the client sent back changed, and
/// the question after it. Questions are short and repeat themselves; replies seldom do.
const ABANDONED_BY_QUESTION: usize = 2;

/// The fields of a visible turn that alignment compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    /// Its place in the session.
    pub seq: u64,
    /// The hash of its text, see [`key`].
    pub key: u64,
    /// Who said it.
    pub role: Role,
    /// The turn that it follows.
    pub follows: Follows,
}

impl From<&Turn> for Stored {
    fn from(turn: &Turn) -> Self {
        Self {
            seq: turn.seq,
            key: key(turn.role, &turn.content, &turn.notes),
            role: turn.role,
            follows: turn.notes.follows,
        }
    }
}

/// A message that a client sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heard {
    /// The hash of its text, see [`key`].
    pub key: u64,
    /// Who said it.
    pub role: Role,
}

/// The position of a client's messages in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alignment {
    /// The stored turn that the new messages follow; `None` if they begin a conversation.
    pub after: Option<u64>,
    /// How many of the messages are already stored, or are older than the turns compared.
    pub known: usize,
    /// Stored turns on an abandoned branch, by `seq`.
    pub abandoned: Vec<u64>,
    /// Whether the result is final. If not, older turns of the session could change it.
    pub is_certain: bool,
}

/// A hash of a message. Texts that differ only in white space or in blocks injected by Strata have the same hash, and
/// so have replies that ask for the same tool calls.
pub fn key(role: Role, content: &str, notes: &TurnNotes) -> u64 {
    let mut hasher = DefaultHasher::new();
    role.as_str().hash(&mut hasher);
    for word in strip_injected(content).split_whitespace() {
        hasher.write(word.as_bytes());
        hasher.write_u8(b' ');
    }
    let asked = notes.tool_calls.iter().filter_map(|call| call.get("id")).map(|id| id.as_str());
    for id in asked.chain(notes.tool_call_id.as_deref().map(Some)) {
        id.hash(&mut hasher);
    }
    hasher.finish()
}

/// Aligns a client's messages, the newest last, with the visible turns of a session, by ascending `seq`. `stored` may
/// begin at any turn of the session.
pub fn align(stored: &[Stored], heard: &[Heard]) -> Alignment {
    align_since(stored, heard, None)
}

/// Aligns messages that an earlier attempt could not record. Turns from `later` on were stored after that attempt, so the
/// messages are among them if a later request has brought them. Nothing is abandoned.
pub(crate) fn align_again(stored: &[Stored], heard: &[Heard], later: Option<u64>) -> Alignment {
    Alignment { abandoned: Vec::new(), ..align_since(stored, heard, later) }
}

fn align_since(stored: &[Stored], heard: &[Heard], later: Option<u64>) -> Alignment {
    let first = heard.len().saturating_sub(MAX_HEARD);
    let compared = &heard[first..];
    let forest = Forest::new(stored);
    let best = forest.best_matches(compared);
    // People and models repeat themselves, so a message may match a turn from which an earlier message is at least as far
    // away. Only one of the two can be right, and it is the one with more matches before it.
    let is_contradicted = |place: usize, turn: usize, run: usize| {
        best[..place].iter().flatten().any(|earlier| earlier.turn >= turn && earlier.run > run)
    };
    for (place, found) in best.iter().enumerate().rev() {
        let Some(Match { turn, run }) = *found else { continue };
        if is_contradicted(place, turn, run) {
            continue;
        }
        let descendants = forest.descendants(turn);
        let is_last = place + 1 == compared.len();
        let is_whole = run == place + 1 && first == 0;
        let last_question = forest.last_question();
        let is_convincing = match (is_last, run) {
            // A single match on the newest message counts only if that message is the whole conversation and also the
            // session's last question.
            (true, 1) if is_whole && later.is_some_and(|later| stored[turn].seq >= later) => true,
            (true, 1) => is_whole && last_question == Some(turn),
            (false, 1) => is_whole || descendants.len() <= ABANDONED_BY_QUESTION,
            _ => true,
        };
        if !is_convincing {
            continue;
        }
        let most = match (run, stored[turn].role) {
            (1, Role::User) => ABANDONED_BY_QUESTION,
            _ => ABANDONED_PER_MATCH * run,
        };
        let abandoned = if descendants.len() <= most { descendants } else { Vec::new() };
        return Alignment {
            after: Some(stored[turn].seq),
            known: first + place + 1,
            abandoned: abandoned.into_iter().map(|turn| stored[turn].seq).collect(),
            is_certain: run > 1 || is_whole,
        };
    }
    Alignment { after: None, known: first, abandoned: Vec::new(), is_certain: false }
}

/// A stored turn with the text of a message, and the number of consecutive matches that end with it.
#[derive(Debug, Clone, Copy)]
struct Match {
    turn: usize,
    run: usize,
}

/// A session's turns, each with the index in `stored` of the turn that it follows.
struct Forest<'a> {
    stored: &'a [Stored],
    parents: Vec<Option<usize>>,
}

impl<'a> Forest<'a> {
    fn new(stored: &'a [Stored]) -> Self {
        let parent = |place: usize| match stored[place].follows {
            Follows::Previous => place.checked_sub(1),
            Follows::Nothing => None,
            Follows::Turn(seq) => stored[..place].binary_search_by_key(&seq, |turn| turn.seq).ok(),
        };
        Self { stored, parents: (0..stored.len()).map(parent).collect() }
    }

    /// For each message the turn that matches it with the longest run of matches before it; among equals the newest.
    fn best_matches(&self, heard: &[Heard]) -> Vec<Option<Match>> {
        let places = last_places(heard);
        let mut best: Vec<Option<Match>> = vec![None; heard.len()];
        // For each turn the messages that it matches, with the lengths of their runs.
        let mut runs: Vec<Vec<(usize, usize)>> = Vec::with_capacity(self.stored.len());
        for (turn, stored) in self.stored.iter().enumerate() {
            let before = self.parents[turn].map(|parent| &runs[parent]);
            let mut own = Vec::new();
            for &place in places.get(&stored.key).into_iter().flatten() {
                let earlier = before.into_iter().flatten().find(|(other, _)| other + 1 == place);
                let run = 1 + earlier.map_or(0, |(_, run)| *run);
                own.push((place, run));
                if best[place].is_none_or(|best| run >= best.run) {
                    best[place] = Some(Match { turn, run });
                }
            }
            runs.push(own);
        }
        best
    }

    /// All turns that follow `root`, directly or not.
    fn descendants(&self, root: usize) -> Vec<usize> {
        let mut below = vec![false; self.stored.len()];
        let mut found = Vec::new();
        for turn in root + 1..self.stored.len() {
            if self.parents[turn].is_some_and(|parent| parent == root || below[parent]) {
                below[turn] = true;
                found.push(turn);
            }
        }
        found
    }

    fn last_question(&self) -> Option<usize> {
        self.stored.iter().rposition(|turn| turn.role == Role::User)
    }
}

/// The places of the messages with each key, the last ones first, at most [`MAX_SAME`].
fn last_places(heard: &[Heard]) -> HashMap<u64, Vec<usize>> {
    let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
    for (place, message) in heard.iter().enumerate().rev() {
        let places = places.entry(message.key).or_default();
        if places.len() < MAX_SAME {
            places.push(place);
        }
    }
    places
}

#[cfg(test)]
mod tests;
