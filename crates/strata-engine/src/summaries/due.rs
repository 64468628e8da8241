//! A window that is due: when it is, and what its summary is made from.

use jiff::Timestamp;

use crate::jobs::after;
use crate::learn::structured::Structured;
use crate::learn::tree::Level;
use crate::learn::window::{Progress, Window, WindowSettings};
use crate::withdrawn::Withdrawn;
use strata_core::session::Session;
use strata_core::summary::Summary;
use strata_core::turn::{Role, Turn};

/// The range of a window summary's length in tokens. It is short, because every request reads it.
const TARGET_TOKENS: std::ops::RangeInclusive<u32> = 80..=300;

/// How long a session rests, in seconds, before the turns that were said while a summary was being made are summarised
/// by themselves. A round that ends earlier takes them along.
const REST_SECS: u64 = 120;

/// A window that is due, with its input.
pub(super) struct DueWindow {
    pub(super) base: Option<Summary>,
    /// The row that an earlier attempt left behind.
    pub(super) begun: Option<Summary>,
    pub(super) window: Window,
    /// The visible turns of the window and of the base, by `seq`.
    pub(super) turns: Vec<Turn>,
    /// The statements that the summary has to leave out. The base no longer says them.
    pub(super) withdrawn: Withdrawn,
}

impl DueWindow {
    /// The turns inside the window.
    pub(super) fn inside(&self) -> Vec<&Turn> {
        self.turns.iter().filter(|turn| turn.seq >= self.window.start).collect()
    }

    /// The turns that the base does not cover.
    pub(super) fn new_turns(&self) -> Vec<&Turn> {
        let covered = self.base.as_ref().map(|base| base.end_seq);
        self.inside().into_iter().filter(|turn| covered.is_none_or(|end| turn.seq > end)).collect()
    }

    /// The new turns without the sentences that were taken back.
    pub(super) fn new_as_said(&self) -> Vec<Turn> {
        let as_said = |turn: &&Turn| Turn {
            content: self.withdrawn.removed_from(&turn.content).into_owned(),
            ..(*turn).clone()
        };
        self.new_turns().iter().map(as_said).collect()
    }

    /// The tokens inside the window, and those that its summary should have.
    pub(super) fn lengths(&self) -> (u64, u32) {
        let tokens: u64 = self.inside().iter().map(|turn| u64::from(turn.token_count)).sum();
        let target = Level::of(tokens).target_tokens(tokens);
        (tokens, target.clamp(*TARGET_TOKENS.start(), *TARGET_TOKENS.end()))
    }

    /// The base's structured part, without the points that have left the window.
    pub(super) fn structured(&self) -> Structured {
        let row = self.base.as_ref().and_then(|base| base.structured.as_ref());
        let mut structured = row.map(Structured::of_row).unwrap_or_default();
        structured.slide(self.window.start);
        structured.retain(|text| self.may_say(text));
        structured
    }

    /// Whether a point of the summary may say this: it was not taken back, and every part of it is still said.
    pub(super) fn may_say(&self, text: &str) -> bool {
        let is_said = || {
            let said = |turn: &&Turn| self.withdrawn.removed_from(&turn.content).contains(text);
            self.inside().iter().any(said)
        };
        !self.withdrawn.is_said_by(text) && (!self.withdrawn.mentions(text) || is_said())
    }
}

/// The moment until which turns that were said while the last summary was being made wait for the next round
/// (sliding-window design); `None` if there are no such turns.
pub(super) fn rests_until(session: &Session, base: Option<&Summary>) -> Option<Timestamp> {
    let came_meanwhile =
        |base: &&Summary| session.updated_at > base.created_at && session.updated_at < base.updated_at;
    base.filter(came_meanwhile).map(|_| after(session.updated_at, REST_SECS))
}

/// The turn at which a due summary ends; `None` if no trigger is due. A summary ends with a round, unless the user's
/// turns after the round are due by themselves.
pub(super) fn end_of_due(settings: &WindowSettings, tail: &[Turn]) -> Option<u64> {
    let last = tail.last()?.seq;
    let user_turns = |from: &[Turn]| from.iter().filter(|turn| turn.role == Role::User).count() as u64;
    let is_due = |last_saved_seq, round_ended, user_turns| {
        settings.is_due(Progress { last_saved_seq, round_ended, user_turns, processing: false })
    };
    let round = tail.iter().rposition(|turn| turn.role != Role::User);
    let unanswered = round.map_or(tail, |round| &tail[round + 1..]);
    if is_due(last, false, user_turns(unanswered)) {
        return Some(last);
    }
    let round = round.map(|round| tail[round].seq);
    round
        .filter(|end| is_due(*end, true, user_turns(tail)))
        .or_else(|| is_due(last, false, user_turns(tail)).then_some(last))
}

pub(super) fn says_something(turn: &Turn, window: Window) -> bool {
    (window.start..=window.end).contains(&turn.seq) && !turn.content.trim().is_empty()
}
