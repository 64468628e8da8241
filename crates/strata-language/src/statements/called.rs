//! Tells the names of two things apart: «my boat is called Wren» says nothing against «my canoe is called Teal».

use crate::Pattern;

/// Whether two sentences name things of different kinds, so that the name of one does not change the other's. A sentence that tells
/// of a change («is now called») may mean the same thing by another word.
pub fn names_another(new: &str, remembered: &str) -> bool {
    let (Some(new_thing), Some(thing)) = (named(new), named(remembered)) else { return false };
    let is_same = new_thing.ends_with(&thing) || thing.ends_with(&new_thing);
    !is_same && !tells_change(new)
}

/// The word for the thing of which a sentence says how it is called, in lower case: the last one before «is called».
fn named(sentence: &str) -> Option<String> {
    static ENGLISH: [Pattern; 2] = [
        Pattern::new(
            r"(?i)\b(?:my|our|his|her|their|user['’]s) (?:[\p{L}-]+ ){0,3}?(?P<thing>[\p{L}-]+)(?: is|['’]s|,? which is| has been| was) (?:called|named|christened) ",
        ),
        Pattern::new(
            r"(?i)\b(?:my|our|his|her|their|user['’]s) (?:[\p{L}-]+ ){0,3}?(?P<thing>[\p{L}-]+)['’]s name is ",
        ),
    ];
    static CHINESE: Pattern = Pattern::new(
        r"(?:我|我们|我們|用户|用戶)(?:家)?(?:的|那(?:只|条|艘|辆)|家)(?P<thing>\p{Han}{1,3}?)(?:的名字)?(?:叫|名叫)",
    );
    let found = ENGLISH.iter().chain([&CHINESE]).find_map(|form| form.get()?.captures(sentence))?;
    Some(found.name("thing")?.as_str().to_lowercase())
}

fn tells_change(sentence: &str) -> bool {
    static CHANGE: Pattern = Pattern::new(
        r"(?i)\b(?:now|renamed|rename|rechristened|instead|no longer|not|actually|changed|meant|correction|wrong|these days|from now on|used to)\b|n['’]t\b|现在|現在|改|其实|其實|不是|更正|说错|說錯|不再",
    );
    CHANGE.is_match(sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_one_thing_says_nothing_about_another() {
        let check = |new: &str, remembered: &str, expected: bool| {
            assert_eq!(names_another(new, remembered), expected, "{new} / {remembered}");
        };
        check("My canoe is called Teal.", "The user's boat is called Wren.", true);
        check("our kitten is named Plum", "my cat is named Moss", true);
        check("my kayak's name is Teal", "The user's old boat is called Wren", true);
        check("我的独木舟叫小翠", "用户的帆船叫海燕", true);
        check("My boat is called Teal.", "The user's boat is called Wren.", false);
        check("My canoe is called Teal.", "The user's red canoe is called Wren.", false);
        check("我的小狗叫豆豆", "用户的狗叫球球", false);
        check("My canoe is now called Teal.", "The user's boat is called Wren.", false);
        check("My canoe is leaking.", "The user's boat is called Wren.", false);
    }
}
