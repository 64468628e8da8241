//! Sentences that say the same in another order: «Vera is Tom's tutor» and «Tom's tutor is Vera».

use super::chinese::is_chinese;
use crate::normalised;

/// Whether two statements say the same, apart from spelling and the order around «is».
pub fn is_same_fact(a: &str, b: &str) -> bool {
    ordered(a) == ordered(b)
}

/// The normal form of a statement, with whose it is before who it is.
fn ordered(text: &str) -> String {
    let text = normalised(text);
    let turned = if is_chinese(&text) {
        turned(&text, "是", is_owned_chinese, "")
    } else {
        turned(&text, " is ", is_owned, " ")
    };
    turned.unwrap_or(text)
}

/// «X is Y's Z» as «Y's Z is X», if the statement is nothing else.
fn turned(text: &str, is: &str, is_owned: fn(&str) -> bool, gap: &str) -> Option<String> {
    let (left, right) = text.split_once(is)?;
    let is_plain = !right.contains(is) && !text.contains([',', '，', ';', '；', '.']);
    (is_plain && is_owned(right) && !is_owned(left)).then(|| format!("{right}{gap}{}{gap}{left}", is.trim()))
}

/// «Tom's tutor», «the user's tutor».
fn is_owned(side: &str) -> bool {
    const LONGEST: usize = 5;
    let words: Vec<&str> = side.split_whitespace().collect();
    let of = words.iter().position(|word| {
        word.ends_with("'s") || word.ends_with("’s") || matches!(*word, "my" | "our" | "their")
    });
    words.len() <= LONGEST && of.is_some_and(|of| of + 1 < words.len() && of < 2)
}

/// 小明的老师.
fn is_owned_chinese(side: &str) -> bool {
    const LONGEST: usize = 12;
    side.chars().count() <= LONGEST
        && side
            .split_once('的')
            .is_some_and(|(who, what)| !who.is_empty() && !what.is_empty() && !what.contains('的'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_around_is_makes_no_difference() {
        assert!(is_same_fact("Vera is Tom's tutor.", "Tom's tutor is Vera"));
        assert!(is_same_fact("Vera is the user's tutor", "the user's tutor is Vera"));
        assert!(is_same_fact("薇拉是小明的家教", "小明的家教是薇拉。"));
        assert!(!is_same_fact("Vera is Tom's tutor", "Vera's tutor is Tom"));
        assert!(!is_same_fact("Vera likes Tom", "Tom likes Vera"));
        assert!(!is_same_fact("薇拉是小明的家教", "小明是薇拉的家教"));
        assert!(!is_same_fact("Vera is not Tom's tutor", "Tom's tutor is Vera"));
    }
}
