//! Compacts a conversation that the client keeps: a summary replaces older messages, in whole steps.
//!
//! A provider's prompt cache works as long as the beginning of the prompt stays the same byte for byte. So the cut
//! moves only when the conversation exceeds its budget, and then far enough to stay for a while. The cut depends only
//! on the sizes of the messages, from the first to the last. Later messages never change an earlier decision, so that a
//! growing conversation keeps its cut until the next step.

use strata_core::turn::Role;

/// The size of a message, for compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageSize {
    /// The speaker. System messages always stay.
    pub role: Role,
    /// Its tokens.
    pub tokens: u32,
}

/// The cut of a conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compaction {
    /// The first message that stays. All messages before it, except system messages, are replaced. It is a message of
    /// the user, so that tool calls stay with their results. 0 if there is no cut.
    pub first_kept: usize,
    /// How often the cut has moved.
    pub steps: u32,
}

/// The most tokens of the summary that replaces messages. The budget includes them.
pub fn summary_share(budget: u32) -> u32 {
    budget / 4
}

/// Computes the cut for a budget of so many tokens. A step keeps at most half of the budget, with the summary's share
/// ([`summary_share`]), and always the user's last message with all messages after it.
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
        // The cut stays until the budget is full again, without the summary's share.
        check("uauauauauauaua", 80, 8);
        check("uauauauauauauau", 80, 14);
        // A tool call and its result belong to one exchange.
        check("uattatua", 60, 6);
        // One exchange that exceeds the budget stays whole.
        check("uatatatatat", 60, 0);
        check("uauatatatatat", 60, 2);
    }

    fn message() -> impl Strategy<Value = MessageSize> {
        let role = prop_oneof![Just(Role::User), Just(Role::Assistant), Just(Role::Tool), Just(Role::System)];
        (role, 0u32..50).prop_map(|(role, tokens)| MessageSize { role, tokens })
    }

    proptest! {
        /// A growing conversation keeps its cut, except for whole steps forward. The cut is at a message of the user,
        /// and never after the last one.
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
