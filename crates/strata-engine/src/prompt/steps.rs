//! Compaction of a conversation that its client keeps: older messages give way to a summary, by whole steps.
//!
//! A provider's cache of the prompt works as long as the beginning stays byte for byte what it was. So the cut moves only
//! when the conversation has outgrown its budget, and then far enough that it need not move again for a while. Where it
//! stands is worked out from the sizes of the messages alone, from the first to the last: what comes later never changes
//! what was decided earlier, so that the same conversation, grown by some messages, has the same cut until the next step.

use strata_core::turn::Role;

/// A message, as far as compaction looks at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageSize {
    /// Who said it. Instructions stay wherever they stand.
    pub role: Role,
    /// Its tokens.
    pub tokens: u32,
}

/// What of a conversation gives way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compaction {
    /// The messages before this one give way, instructions excepted: it is one of the user's, so that calls stay with
    /// their results. 0 where nothing does.
    pub first_kept: usize,
    /// How often the cut has moved.
    pub steps: u32,
}

/// The most tokens that the summary of what gave way may have. It is a part of the budget like the messages themselves.
pub fn summary_share(budget: u32) -> u32 {
    budget / 4
}

/// Where a conversation with a budget of so many tokens is cut. A step leaves at most half of the budget, the share of the
/// summary included ([`summary_share`]), and always the last of the user's messages with all that follows it.
pub fn compacted(messages: &[MessageSize], budget: u32) -> Compaction {
    let mut cut = Compaction::default();
    let mut held: u64 = 0;
    for (place, message) in messages.iter().enumerate() {
        if message.role != Role::System {
            held += u64::from(message.tokens);
        }
        let share = if cut.first_kept == 0 { 0 } else { summary_share(budget) };
        if held <= u64::from(budget - share) {
            continue;
        }
        let mut left = held;
        let mut next = cut.first_kept;
        let held_ones = messages.iter().enumerate().take(place + 1).skip(cut.first_kept);
        for (candidate, &MessageSize { role, tokens }) in held_ones {
            if role == Role::User && candidate > cut.first_kept {
                next = candidate;
                if left <= u64::from(budget / 2 - summary_share(budget)) {
                    break;
                }
            }
            if role != Role::System {
                left -= u64::from(tokens);
            }
        }
        if next > cut.first_kept {
            let gone = &messages[cut.first_kept..next];
            let gone = gone.iter().filter(|message| message.role != Role::System);
            held -= gone.map(|message| u64::from(message.tokens)).sum::<u64>();
            cut = Compaction { first_kept: next, steps: cut.steps + 1 };
        }
    }
    cut
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn sizes(text: &str) -> Vec<MessageSize> {
        let size = |c: char| match c {
            's' => MessageSize { role: Role::System, tokens: 10 },
            'u' => MessageSize { role: Role::User, tokens: 10 },
            't' => MessageSize { role: Role::Tool, tokens: 10 },
            _ => MessageSize { role: Role::Assistant, tokens: 10 },
        };
        text.chars().map(size).collect()
    }

    #[test]
    fn the_cut_moves_by_steps() {
        let check = |text: &str, budget, first_kept| {
            assert_eq!(compacted(&sizes(text), budget).first_kept, first_kept, "{text}");
        };
        check("", 10, 0);
        check("uauauaua", 80, 0);
        check("uauauauau", 80, 8);
        check("suauauauau", 80, 9);
        // It stays there until the budget is full again, less the summary's share.
        check("uauauauauauaua", 80, 8);
        check("uauauauauauauau", 80, 14);
        // A call and its result are of one exchange.
        check("uattatua", 60, 6);
        // One exchange that is larger than the budget stays whole.
        check("uatatatatat", 60, 0);
        check("uauatatatatat", 60, 2);
    }

    fn message() -> impl Strategy<Value = MessageSize> {
        let role = prop_oneof![Just(Role::User), Just(Role::Assistant), Just(Role::Tool), Just(Role::System)];
        (role, 0u32..50).prop_map(|(role, tokens)| MessageSize { role, tokens })
    }

    proptest! {
        /// What was decided for a conversation stays decided as it grows, but for whole steps forward; the cut is at one
        /// of the user's messages, and never behind the last.
        #[test]
        fn a_cut_is_only_ever_moved_on(messages in vec(message(), 0..60), budget in 1u32..200) {
            let mut before = Compaction::default();
            for end in 0..=messages.len() {
                let shown = &messages[..end];
                let cut = compacted(shown, budget);
                prop_assert!(cut.first_kept >= before.first_kept);
                prop_assert!(cut.steps == before.steps || cut.first_kept > before.first_kept);
                prop_assert_eq!(cut.steps == before.steps, cut.first_kept == before.first_kept);
                if cut.first_kept > 0 {
                    prop_assert_eq!(shown[cut.first_kept].role, Role::User);
                }
                let last = shown.iter().rposition(|message| message.role == Role::User).unwrap_or(0);
                prop_assert!(cut.first_kept <= last);
                let kept = shown[cut.first_kept..].iter().filter(|message| message.role != Role::System);
                let kept: u64 = kept.map(|message| u64::from(message.tokens)).sum();
                if cut.first_kept > 0 && cut.first_kept < last {
                    prop_assert!(kept <= u64::from(budget - summary_share(budget)), "no room for the summary");
                }
                let all: u64 = shown.iter().map(|message| u64::from(message.tokens)).sum();
                if all <= u64::from(budget) {
                    prop_assert_eq!(cut.first_kept, 0);
                }
                before = cut;
            }
        }
    }
}
