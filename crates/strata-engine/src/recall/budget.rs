//! Guardrails: how much of what was recalled a prompt may hold.

use serde::{Deserialize, Serialize};
use unicode_segmentation::UnicodeSegmentation;

/// How much may be given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// The most tokens of all items together (document 3).
    pub max_tokens: u32,
    /// The most turns (document 3).
    pub max_turns: u32,
    /// The most characters of one item. Half of what document 0 lets a recent message have: a recalled one is a reminder.
    pub max_item_chars: u32,
}

impl Default for Budget {
    fn default() -> Self {
        Self { max_tokens: 2_000, max_turns: 6, max_item_chars: 1_500 }
    }
}

/// What became of one item under a budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Share {
    /// It fits as it is.
    Whole {
        /// Its tokens.
        tokens: u32,
    },
    /// It was shortened.
    Cut {
        /// What is left of it.
        text: String,
        /// The tokens of what is left.
        tokens: u32,
    },
    /// It does not fit, for this reason.
    Dropped(&'static str),
}

/// Shares a budget out over items in order, each a text and whether it is a turn; `count` tells the tokens of a text. What
/// does not fit is left out and what comes after it is still tried: a short item may fit where a long one did not.
pub fn share<'a>(
    items: impl IntoIterator<Item = (&'a str, bool)>,
    budget: Budget,
    count: impl Fn(&str) -> u32,
) -> Vec<Share> {
    let (mut tokens_left, mut turns_left) = (budget.max_tokens, budget.max_turns);
    let mut shares = Vec::new();
    for (text, is_turn) in items {
        if is_turn && turns_left == 0 {
            shares.push(Share::Dropped("over the most turns"));
            continue;
        }
        let short = cut(text, budget.max_item_chars as usize);
        let tokens = count(short.as_deref().unwrap_or(text));
        if tokens > tokens_left {
            shares.push(Share::Dropped("over the token budget"));
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

/// The first characters of a text that is too long, with an ellipsis; `None` for one that is not. No grapheme is split.
pub fn cut(text: &str, max_chars: usize) -> Option<String> {
    // Bytes bound characters from above: most texts are not counted at all.
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

    /// A token a character.
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
        assert_eq!(cut(family, 4).as_deref(), Some("…"), "a family is not taken apart");
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
