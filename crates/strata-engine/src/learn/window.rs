//! The sliding window (sliding-window design): when a session is summarised, which turns the summary covers, and which
//! turns a reader gets beside it.
//!
//! A window is the last N turns. It begins at an even `seq`, so that a question stays with its answer. The window
//! slides: turns before its beginning are dropped from the summary. There are two triggers. The one of the
//! sliding-window design is due when a round has ended at or after [`WindowSettings::memory_summarize_after_seq`]. The
//! one of the evolution plan is due when [`WindowSettings::summarise_every_user_turns`] turns of the user have come
//! since the last summary, answered or not. Either trigger is enough, 0 switches a trigger off, and no trigger is due
//! while a summary is being made.
//!
//! All functions are pure. [`crate::Summaries`] has the rows and jobs.

use strata_core::turn::{Role, Turn};

/// When a session is summarised, and over how many turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowSettings {
    /// The most turns of a window (sliding-window design: 14, seven rounds). At least 2, because a smaller window could
    /// not begin at an even `seq`.
    pub memory_rolling_window_size: u64,
    /// A round that ends at this `seq` or later is summarised (sliding-window design: 5, from the third round on); 0
    /// means never.
    pub memory_summarize_after_seq: u64,
    /// This many turns of the user since the last summary trigger a summary, answered or not (evolution plan); 0 means
    /// never. The default is 7, because seven rounds fill the window of the sliding-window design: no turn leaves it
    /// before it is summarised.
    pub summarise_every_user_turns: u64,
}

impl Default for WindowSettings {
    fn default() -> Self {
        Self { memory_rolling_window_size: 14, memory_summarize_after_seq: 5, summarise_every_user_turns: 7 }
    }
}

/// The state of a session when the triggers are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The `seq` of the last turn.
    pub last_saved_seq: u64,
    /// Whether that turn ended a round: its speaker is not the user.
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
    /// The number of turns that it covers.
    pub fn turns(self) -> u64 {
        self.end - self.start + 1
    }

    /// The turns that the sliding-window design drops: all turns before the window, if there are any.
    pub fn dropped(self) -> Option<Self> {
        Some(Self { start: 0, end: self.start.checked_sub(1)? })
    }

    /// The turns of the window after `base_end`; `None` if there are none.
    pub fn after(self, base_end: Option<u64>) -> Option<Self> {
        let start = base_end.map_or(self.start, |end| self.start.max(end + 1));
        (start <= self.end).then_some(Self { start, end: self.end })
    }
}

impl WindowSettings {
    /// The `should_trigger_summary` of the sliding-window design, together with the trigger of the evolution plan.
    pub(crate) fn is_due(&self, progress: Progress) -> bool {
        let after_seq = self.memory_summarize_after_seq;
        let by_seq = after_seq > 0 && progress.round_ended && progress.last_saved_seq >= after_seq;
        let every = self.summarise_every_user_turns;
        let by_user_turns = every > 0 && progress.user_turns >= every;
        (by_seq || by_user_turns) && !progress.processing
    }

    /// The `calculate_summary_range` of the sliding-window design.
    pub fn range(&self, last_saved_seq: u64) -> Window {
        let size = self.memory_rolling_window_size.max(2);
        let start = (last_saved_seq + 1).saturating_sub(size);
        // The beginning is even, so that no answer stands without its question.
        Window { start: start + start % 2, end: last_saved_seq }
    }
}

/// The context of a session for a reader (the `get_context_for_workflow` of the sliding-window design).
#[derive(Debug, Clone, PartialEq)]
pub struct WindowContext {
    /// The text of the last completed summary. If it is `None`, `gap` holds the raw conversation.
    pub memory_text: Option<String>,
    /// The turns after the summary and before the user's current message.
    pub gap: Vec<Turn>,
    /// The number of turns between the two that are left out: only in a very long session without a summary.
    pub left_out: u64,
}

/// The visible turns after `covered`, the end of a summary, without the user's current message. That message is the
/// last turn, if the user spoke last.
pub fn gap(mut turns: Vec<Turn>, covered: Option<u64>) -> Vec<Turn> {
    turns.retain(|turn| turn.is_in_conversation() && covered.is_none_or(|end| turn.seq > end));
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

    /// A conversation in which the user and the assistant alternate, up to `seq`.
    fn said(last: u64) -> Vec<Turn> {
        let role = |seq: u64| if seq.is_multiple_of(2) { Role::User } else { Role::Assistant };
        let new = |seq| NewTurn { id: TurnId(fresh()), role: role(seq), ..turn(&format!("turn {seq}")) };
        (0..=last).map(|seq| new(seq).at(session("s"), seq)).collect()
    }

    fn places(turns: &[Turn]) -> Vec<u64> {
        turns.iter().map(|turn| turn.seq).collect()
    }

    #[test]
    fn the_examples_of_the_design() {
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
        // A session without answers, or with a system message at the beginning.
        assert_eq!(WindowSettings::default().range(14), Window { start: 2, end: 14 });
        let settings = WindowSettings { memory_rolling_window_size: 1, ..WindowSettings::default() };
        assert_eq!(settings.range(5), Window { start: 4, end: 5 }, "less than two cannot be");
        assert_eq!(settings.range(0), Window { start: 0, end: 0 });
    }

    #[test]
    fn either_trigger_is_enough_and_zero_is_off() {
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
    fn the_timeline_of_the_design() {
        let settings = WindowSettings::default();
        // Round 3 ends: seq 5 is saved, nothing is processing.
        assert!(settings.is_due(ended(5)));
        assert_eq!(settings.range(5), Window { start: 0, end: 5 });
        // Round 4 starts: no summary is completed, so the gap holds the raw messages before the current one.
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
    fn the_gap_holds_the_turns_without_a_summary() {
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
            // If every round is summarised, two windows in a row leave no turn uncovered between them.
            prop_assert!(next.start <= window.end + 1);
            if let Some(new) = next.after(Some(window.end)) {
                prop_assert!(new.start > window.end && new.end == next.end);
            }
        }
    }
}
