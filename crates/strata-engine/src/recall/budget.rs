//! The budget of recalled items in a prompt.

use serde::{Deserialize, Serialize};
use unicode_segmentation::UnicodeSegmentation;

/// The limits of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// The maximum number of tokens of all items together (context-store design).
    pub max_tokens: u32,
    /// The maximum number of turns (context-store design).
    pub max_turns: u32,
    /// The maximum number of characters of one item. It is half of the limit that the layered-prompt design sets for a
    /// recent message, because a recalled item is only a reminder.
    pub max_item_chars: u32,
}

impl Budget {
    /// The budget of a request for a number of items: all of them may be turns. The tokens stay.
    #[must_use]
    pub fn for_items(self, count: Option<u32>) -> Self {
        Self { max_turns: self.max_turns.max(count.unwrap_or(0)), ..self }
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self { max_tokens: 2_000, max_turns: 6, max_item_chars: 1_500 }
    }
}

/// The outcome for one item under a budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Share {
    /// It fits in full.
    Whole {
        /// Its tokens.
        tokens: u32,
    },
    /// It was shortened.
    Cut {
        /// The remaining text.
        text: String,
        /// The tokens of the remaining text.
        tokens: u32,
    },
    /// It does not fit, for the given reason.
    Dropped(&'static str),
}

/// Applies a budget to items in order. Each item is a text and whether it is a turn; `count` returns the tokens of a
/// text. An item that does not fit is dropped, and the items after it are still tried: a short item may fit after a
/// long one did not.
pub fn share<'a>(
    items: impl IntoIterator<Item = (&'a str, bool)>,
    budget: Budget,
    count: impl Fn(&str) -> u32,
) -> Vec<Share> {
    let (mut tokens_left, mut turns_left) = (budget.max_tokens, budget.max_turns);
    let mut shares = Vec::new();
    for (text, is_turn) in items {
        let short = cut(text, budget.max_item_chars as usize);
        let tokens = count(short.as_deref().unwrap_or(text));
        if tokens > tokens_left {
            shares.push(Share::Dropped("over the token budget"));
            continue;
        }
        if is_turn && turns_left == 0 {
            shares.push(Share::Dropped("over the most turns"));
            continue;
        }
        tokens_left -= tokens;
        turns_left -= u32::from(is_turn);
        shares.push(match short {
            Some(text) => Share::Cut { text, tokens },
            None => Share::Whole { tokens },
        });
    }
    shares
}

/// Shortens a text that is too long and adds an ellipsis; `None` if it is short enough. Graphemes are not split.
pub fn cut(text: &str, max_chars: usize) -> Option<String> {
    // A text has at most as many characters as bytes, so most texts need no count.
    if text.len() <= max_chars || text.chars().count() <= max_chars {
        return None;
    }
    let mut short = String::new();
    let mut left = max_chars.saturating_sub(1);
    for grapheme in text.graphemes(true) {
        let length = grapheme.chars().count();
        if length > left {
            break;
        }
        left -= length;
        short.push_str(grapheme);
    }
    short.push('…');
    Some(short)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use strata_core::ports::TokenCounter;

    /// One token for each character.
    struct Characters;

    impl TokenCounter for Characters {
        fn count(&self, text: &str) -> u32 {
            text.chars().count() as u32
        }
    }

    #[test]
    fn a_long_text_is_cut_between_graphemes() {
        assert_eq!(cut("short", 5), None);
        assert_eq!(cut("西湖很美", 3).as_deref(), Some("西湖…"));
        let family = "👨‍👩‍👧 and more";
        assert_eq!(cut(family, 4).as_deref(), Some("…"), "a grapheme is not split");
    }

    proptest! {
        #[test]
        fn a_budget_is_never_exceeded(
            items in proptest::collection::vec((".{0,60}", any::<bool>()), 0..20),
            max_tokens in 0_u32..200,
            max_turns in 0_u32..6,
            max_item_chars in 1_u32..40,
        ) {
            let budget = Budget { max_tokens, max_turns, max_item_chars };
            let shares = share(items.iter().map(|(text, turn)| (text.as_str(), *turn)), budget, |text| Characters.count(text));
            prop_assert_eq!(shares.len(), items.len());
            let (mut tokens, mut turns) = (0, 0);
            for (share, (text, is_turn)) in shares.iter().zip(&items) {
                let (shown, counted) = match share {
                    Share::Whole { tokens } => (text.as_str(), *tokens),
                    Share::Cut { text, tokens } => (text.as_str(), *tokens),
                    Share::Dropped(_) => continue,
                };
                prop_assert_eq!(counted, Characters.count(shown));
                prop_assert!(shown.chars().count() <= max_item_chars as usize);
                tokens += counted;
                turns += u32::from(*is_turn);
            }
            prop_assert!(tokens <= max_tokens && turns <= max_turns);
        }
    }
}
