//! Questions with which an assistant offers its help or asks whether it was understood. They belong in no summary; other
//! questions of an assistant do, because the user's next words answer them.

use super::cues::folded;

/// Phrases of an offer, at the beginning of a clause.
const OFFERS: [&str; 26] = [
    "shall i",
    "should i ",
    "may i ",
    "can i ",
    "could i ",
    "do you want me",
    "do you want to",
    "do you need",
    "would you like",
    "want me to",
    "need me to",
    "need anything",
    "need any ",
    "need help",
    "anything else",
    "is there anything",
    "what else can i",
    "how else can i",
    "how can i help",
    "ready to ",
    "ready for ",
    "does that help",
    "does this help",
    "does that make sense",
    "make sense",
    "how does that sound",
];

/// Phrases of an offer, anywhere.
const CHINESE: [&str; 16] = [
    "要我",
    "需要我",
    "我可以帮",
    "我来帮",
    "要不要",
    "需要帮",
    "还需要",
    "还有什么",
    "还有别的",
    "还有其他",
    "想让我",
    "我能帮",
    "明白了吗",
    "清楚了吗",
    "这样可以吗",
    "可以吗",
];

/// Whether a question offers help, or asks whether the reply was understood.
pub(super) fn is_offer(text: &str) -> bool {
    let folded = folded(text);
    let mut clauses = folded.split([',', ';', '—', '–']).map(|clause| {
        let clause = clause.trim();
        ["so ", "and ", "or ", "now "].iter().find_map(|lead| clause.strip_prefix(lead)).unwrap_or(clause)
    });
    CHINESE.iter().any(|phrase| folded.contains(phrase))
        || clauses.any(|clause| OFFERS.iter().any(|phrase| clause.starts_with(phrase)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_are_told_from_questions() {
        for text in [
            "Shall I draft the letter to the harbour master?",
            "If so, would you like the longer version?",
            "Anything else about the loom?",
            "要我把清单发给你吗？",
            "还需要别的吗？",
        ] {
            assert!(is_offer(text), "{text}");
        }
        for text in ["Which port does the gauge use?", "Is the relay warm after an hour?", "水压是多少？"]
        {
            assert!(!is_offer(text), "{text}");
        }
    }
}
