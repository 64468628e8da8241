//! Writes statements in the script of the user. The grammar reads simplified characters; each character of a statement
//! then gets the form that it has in the message. This works because both scripts have the same number of characters.

use super::simplified;

/// The characters that the tables themselves add to statements: characters with another form in the traditional script,
/// and some that exist in both scripts but also replace others (了 for 瞭, 出 for 齣).
const OWN: &[(char, char)] = &[
    ('来', '來'),
    ('学', '學'),
    ('单', '單'),
    ('毕', '畢'),
    ('业', '業'),
    ('于', '於'),
    ('个', '個'),
    ('结', '結'),
    ('开', '開'),
    ('岁', '歲'),
    ('对', '對'),
    ('过', '過'),
    ('欢', '歡'),
    ('讨', '討'),
    ('厌', '厭'),
    ('会', '會'),
    ('说', '說'),
    ('决', '決'),
    ('务', '務'),
    ('经', '經'),
    ('辞', '辭'),
    ('职', '職'),
    ('户', '戶'),
    ('没', '沒'),
    ('妈', '媽'),
    ('亲', '親'),
    ('儿', '兒'),
    ('电', '電'),
    ('邮', '郵'),
    ('资', '資'),
    ('长', '長'),
    ('体', '體'),
    ('是', '是'),
    ('出', '出'),
    ('了', '了'),
    ('叫', '叫'),
    ('和', '和'),
    ('吃', '吃'),
    ('以', '以'),
];

/// A statement in the script of the message.
pub(in crate::rules) fn as_written(content: &str, message: &str) -> String {
    let plain = simplified(message);
    if plain == message {
        return content.to_owned();
    }
    // A message with one of these simplified characters is simplified, even if it also contains a few traditional ones.
    let mixed = OWN.iter().any(|(simple, own)| simple != own && message.contains(*simple));
    let (plain, written): (Vec<char>, Vec<char>) = (plain.chars().collect(), message.chars().collect());
    let content: Vec<char> = content.chars().collect();
    let mut shown = String::with_capacity(3 * content.len());
    let mut rest = content.as_slice();
    while let Some(first) = rest.first() {
        let (from, length) = longest(rest, &plain);
        let own = OWN.iter().find(|(simple, _)| simple == first);
        let taken = match own {
            // A single character does not show its origin.
            Some((_, own)) if length < 2 => {
                shown.push(if mixed { *first } else { *own });
                1
            }
            _ if length == 0 => {
                shown.push(*first);
                1
            }
            _ => {
                shown.extend(&written[from..from + length]);
                length
            }
        };
        rest = &rest[taken..];
    }
    shown
}

/// The position of the longest beginning of `wanted` in the text, and its length.
fn longest(wanted: &[char], text: &[char]) -> (usize, usize) {
    let mut best = (0, 0);
    for from in 0..text.len() {
        let length = wanted.iter().zip(&text[from..]).take_while(|(a, b)| a == b).count();
        if length > best.1 {
            best = (from, length);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::table;
    use super::*;

    #[test]
    fn a_statement_is_written_as_the_message_is() {
        for (message, content, expected) in [
            ("我住在台灣", "用户住在台湾", "用戶住在台灣"),
            ("我住在台湾", "用户住在台湾", "用户住在台湾"),
            ("我把頭髮剪短後去了髮廊", "用户去了发廊", "用戶去了髮廊"),
            ("我出發去後面", "用户去后面", "用戶去後面"),
            ("我很瞭解他，我結婚", "用户结婚了", "用戶結婚了"),
            ("我喜欢乾隆", "用户喜欢乾隆", "用户喜欢乾隆"),
            ("我不喜歡貓了", "用户不再喜欢猫", "用戶不再喜歡貓"),
            ("我對花生過敏", "陳先生对花生过敏", "陳先生對花生過敏"),
        ] {
            assert_eq!(as_written(content, message), expected, "{message}");
        }
    }

    #[test]
    fn the_words_of_the_tables_are_known_in_both_scripts() {
        let simple: HashSet<char> = ('\u{4E00}'..='\u{9FFF}')
            .map(|c| (c, simplified(&c.to_string()).chars().next().unwrap()))
            .filter(|(written, simple)| written != simple)
            .map(|(_, simple)| simple)
            .collect();
        let says = table::RULES.iter().map(|rule| rule.say);
        let rewritten = table::REWRITES.iter().map(|(_, to)| *to);
        for said in says.chain(rewritten).chain(["用户", "没", "不再", "以前", "打算", "的", "，而不是"])
        {
            for c in said.chars().filter(|c| simple.contains(c)) {
                assert!(OWN.iter().any(|(own, _)| *own == c), "`{c}` of `{said}` has another form");
            }
        }
        for (simple, own) in OWN {
            assert_eq!(simplified(&own.to_string()), simple.to_string());
        }
    }
}
