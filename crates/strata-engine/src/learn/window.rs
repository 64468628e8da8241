//! The sliding window (document 1): when a session is summarised, which turns that covers, and what a reader gets of it.
//!
//! A window is the last so many turns, from an even `seq`, so that a question stays with its answer. It slides: what is
//! before its beginning is dropped from the summary. Two triggers exist beside each other. Document 1's is due whenever a
//! round has ended at or after [`WindowSettings::memory_summarize_after_seq`]; document 3's whenever
//! [`WindowSettings::summarise_every_user_turns`] turns of the user's have come since the last summary, answered or not.
//! Either one that is due is enough, 0 switches one off, and none is due while a summary is being made.
//!
//! All of it is pure; the rows and jobs are the engine's (`engine/learn/summaries.rs`).

use strata_core::turn::{Role, Turn};

/// When and over how many turns a session is summarised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowSettings {
    /// The most turns that a window covers (document 1: 14, seven rounds). At least 2: a smaller window could not begin at
    /// an even `seq`.
    pub memory_rolling_window_size: u64,
    /// A round that ends at this `seq` or later is summarised (document 1: 5, from the third round on); 0 for never.
    pub memory_summarize_after_seq: u64,
    /// So many turns of the user's since the last summary are summarised, whoever answered (document 3); 0 for never. 7,
    /// because that many rounds fill document 1's window: nothing leaves it unsummarised.
    pub summarise_every_user_turns: u64,
}

impl Default for WindowSettings {
    fn default() -> Self {
        Self { memory_rolling_window_size: 14, memory_summarize_after_seq: 5, summarise_every_user_turns: 7 }
    }
}

/// What is known of a session when a trigger is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The `seq` of the turn that was appended last.
    pub last_saved_seq: u64,
    /// Whether that turn ended a round: somebody other than the user spoke.
    pub round_ended: bool,
    /// The user's visible turns since the last completed summary.
    pub user_turns: u64,
    /// Whether a summary of the session is being made.
    pub processing: bool,
}

/// Turns from `start` to `end`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The first turn.
    pub start: u64,
    /// The last turn.
    pub end: u64,
}

impl Window {
    /// How many turns it covers.
    pub fn turns(self) -> u64 {
        self.end - self.start + 1
    }

    /// What document 1 says is dropped: all before the window, where there is any.
    pub fn dropped(self) -> Option<Self> {
        Some(Self { start: 0, end: self.start.checked_sub(1)? })
    }

    /// The turns that are not in a summary that reaches to `base_end`; `None` where there are none.
    pub fn after(self, base_end: Option<u64>) -> Option<Self> {
        let start = base_end.map_or(self.start, |end| self.start.max(end + 1));
        (start <= self.end).then_some(Self { start, end: self.end })
    }
}

impl WindowSettings {
    /// Document 1's `should_trigger_summary`, and document 3's beside it.
    pub(crate) fn is_due(&self, progress: Progress) -> bool {
        let after_seq = self.memory_summarize_after_seq;
        let by_seq = after_seq > 0 && progress.round_ended && progress.last_saved_seq >= after_seq;
        let every = self.summarise_every_user_turns;
        let by_user_turns = every > 0 && progress.user_turns >= every;
        (by_seq || by_user_turns) && !progress.processing
    }

    /// Document 1's `calculate_summary_range`.
    pub fn range(&self, last_saved_seq: u64) -> Window {
        let size = self.memory_rolling_window_size.max(2);
        let start = (last_saved_seq + 1).saturating_sub(size);
        // Even, so that no answer stands without its question.
        Window { start: start + start % 2, end: last_saved_seq }
    }
}

/// What a reader is given of a session (document 1's `get_context_for_workflow`).
#[derive(Debug, Clone, PartialEq)]
pub struct WindowContext {
    /// The last completed summary's text; `None` while there is none, and then `gap` is the raw conversation.
    pub memory_text: Option<String>,
    /// The turns after the summary and before the current message of the user's.
    pub gap: Vec<Turn>,
    /// Turns between the two that are left out: only where there is no summary of a very long session.
    pub left_out: u64,
}

/// The turns after a summary that reaches to `covered` and before the user's current message, which is the last turn where
/// the user spoke last. Hidden turns are none.
pub fn gap(mut turns: Vec<Turn>, covered: Option<u64>) -> Vec<Turn> {
    turns.retain(|turn| turn.hidden.is_none() && covered.is_none_or(|end| turn.seq > end));
    if turns.last().is_some_and(|turn| turn.role == Role::User) {
        turns.pop();
    }
    turns
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use strata_core::id::TurnId;
    use strata_core::store::conformance::fixture::{at, fresh, session, turn};
    use strata_core::turn::{Hidden, HiddenReason, NewTurn};

    fn ended(last_saved_seq: u64) -> Progress {
        Progress { last_saved_seq, round_ended: true, user_turns: 0, processing: false }
    }

    /// A conversation in which the user and the assistant take turns, up to `seq`.
    fn said(last: u64) -> Vec<Turn> {
        let role = |seq: u64| if seq.is_multiple_of(2) { Role::User } else { Role::Assistant };
        let new = |seq| NewTurn { id: TurnId(fresh()), role: role(seq), ..turn(&format!("turn {seq}")) };
        (0..=last).map(|seq| new(seq).at(session("s"), seq)).collect()
    }

    fn places(turns: &[Turn]) -> Vec<u64> {
        turns.iter().map(|turn| turn.seq).collect()
    }

    #[test]
    fn the_examples_of_the_document() {
        let check = |last, start, end, turns, dropped: Option<u64>| {
            let window = WindowSettings::default().range(last);
            assert_eq!(window, Window { start, end });
            assert_eq!(window.turns(), turns);
            assert_eq!(window.dropped(), dropped.map(|end| Window { start: 0, end }));
        };
        check(5, 0, 5, 6, None);
        check(13, 0, 13, 14, None);
        check(15, 2, 15, 14, Some(1));
        check(19, 6, 19, 14, Some(5));
    }

    #[test]
    fn an_odd_beginning_moves_on() {
        // A session in which nobody answered, or a system message stands first.
        assert_eq!(WindowSettings::default().range(14), Window { start: 2, end: 14 });
        let settings = WindowSettings { memory_rolling_window_size: 1, ..WindowSettings::default() };
        assert_eq!(settings.range(5), Window { start: 4, end: 5 }, "less than two cannot be");
        assert_eq!(settings.range(0), Window { start: 0, end: 0 });
    }

    #[test]
    fn either_trigger_is_enough_and_nought_is_off() {
        let settings = WindowSettings::default();
        for (seq, due) in [(1, false), (3, false), (4, false), (5, true), (7, true), (99, true)] {
            assert_eq!(settings.is_due(ended(seq)), due, "{seq}");
            assert!(!settings.is_due(Progress { processing: true, ..ended(seq) }), "{seq}");
            assert!(!settings.is_due(Progress { round_ended: false, ..ended(seq) }), "{seq}");
        }
        let alone = |user_turns| Progress { user_turns, round_ended: false, ..ended(user_turns) };
        assert!(!settings.is_due(alone(6)));
        assert!(settings.is_due(alone(7)));
        assert!(!settings.is_due(Progress { processing: true, ..alone(7) }));
        let never =
            WindowSettings { memory_summarize_after_seq: 0, summarise_every_user_turns: 0, ..settings };
        assert!(!never.is_due(ended(99)) && !never.is_due(alone(99)));
        let by_turns = WindowSettings { memory_summarize_after_seq: 0, ..settings };
        assert!(!by_turns.is_due(ended(99)));
        assert!(by_turns.is_due(Progress { user_turns: 7, ..ended(99) }));
    }

    #[test]
    fn the_timeline_of_the_document() {
        let settings = WindowSettings::default();
        // Round 3 ends: seq 5 is saved, nothing is processing.
        assert!(settings.is_due(ended(5)));
        assert_eq!(settings.range(5), Window { start: 0, end: 5 });
        // Round 4 starts: none is completed, the raw messages before the current one serve.
        assert_eq!(places(&gap(said(6), None)), [0, 1, 2, 3, 4, 5]);
        // Round 4 ends: the first is still processing.
        assert!(!settings.is_due(Progress { processing: true, ..ended(7) }));
        // Round 5 starts: the first is completed; the gap ends before the current message.
        assert_eq!(places(&gap(said(8), Some(5))), [6, 7]);
        // Round 5 ends: incremental from the first.
        assert!(settings.is_due(ended(9)));
        assert_eq!(settings.range(9), Window { start: 0, end: 9 });
        assert_eq!(settings.range(9).after(Some(5)), Some(Window { start: 6, end: 9 }));
        // Round 8 ends: sliding starts, round 1 is dropped.
        let window = settings.range(15);
        assert_eq!(window, Window { start: 2, end: 15 });
        assert_eq!(window.dropped(), Some(Window { start: 0, end: 1 }));
    }

    #[test]
    fn the_gap_is_what_nobody_has_summed_up() {
        let mut turns = said(9);
        assert_eq!(places(&gap(turns.clone(), Some(5))), [6, 7, 8, 9], "the user has not spoken again");
        assert_eq!(places(&gap(turns.clone(), Some(9))), [0_u64; 0]);
        turns[7].hidden = Some(Hidden { reason: HiddenReason::Error, at: at(1) });
        assert_eq!(places(&gap(turns, Some(5))), [6, 8, 9]);
        assert_eq!(places(&gap(said(0), None)), [0_u64; 0]);
    }

    #[test]
    fn a_long_absence_leaves_the_base_behind() {
        let window = WindowSettings::default().range(99);
        assert_eq!(window.after(Some(5)), Some(window), "what left the window unread is not read any more");
        assert_eq!(window.after(Some(99)), None, "nothing is new");
    }

    proptest! {
        #[test]
        fn a_window_is_even_bounded_and_slides(last in 0_u64..10_000, size in 0_u64..60) {
            let settings = WindowSettings { memory_rolling_window_size: size, ..WindowSettings::default() };
            let window = settings.range(last);
            prop_assert!(window.start <= window.end && window.end == last);
            prop_assert_eq!(window.start % 2, 0);
            prop_assert!(window.turns() <= size.max(2));
            let next = settings.range(last + 1);
            prop_assert!(next.start >= window.start && next.end > window.end);
            // No turn between two windows is lost to both, where every round is summarised.
            prop_assert!(next.start <= window.end + 1);
            if let Some(new) = next.after(Some(window.end)) {
                prop_assert!(new.start > window.end && new.end == next.end);
            }
        }
    }
}
