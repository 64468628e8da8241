//! The normal form by which identical statements are recognised.

use crate::text;

/// The normal form of a statement: normalised, lower case, one space between words, no full stop at the end.
/// Punctuation inside stays, because `C` is not `C++`.
pub fn normalised(content: &str) -> String {
    let folded = text::fold(content);
    folded.trim_end_matches(['.', '!', ';', ',', ' ', '。', '！', '；', '，', '｡']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_is_no_difference_and_meaning_is() {
        let check =
            |a: &str, b: &str, same: bool| assert_eq!(normalised(a) == normalised(b), same, "{a} / {b}");
        check("The user lives in Lisbon", "the user  lives in LISBON.", true);
        check("用户住在杭州。", "用户住在杭州", true);
        check("Ｔｈｅ user likes tea!", "The user likes tea", true);
        check("The user writes C", "The user writes C++", false);
        check("It is -5", "It is 5", false);
        check("The user lives in Lisbon", "The user lived in Lisbon", false);
    }
}
