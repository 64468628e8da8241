//! Lists of things in a statement: «we need candles, ice and plates» without the ice.

use super::chinese::is_chinese;
use super::values::share_content;

/// The least number of items of a list. With two, the other one may belong to the same thing.
const LEAST_ITEMS: usize = 3;
/// The most words of an item, and the most characters of a Chinese one. Longer ones are clauses.
const ITEM_WORDS: usize = 5;
const ITEM_CHARS: usize = 8;

/// A statement that ends in a list, without the items that a sentence speaks about. `None` if the statement has no such list, or
/// if the sentence speaks about all of its items or none.
pub fn without_items(statement: &str, sentence: &str) -> Option<String> {
    let body = statement.trim_end_matches(['.', '。', '!', '！']);
    let end = &statement[body.len()..];
    let list = if is_chinese(body) { chinese(body) } else { english(body) }?;
    let left: Vec<&str> = list.items.iter().copied().filter(|item| !share_content(item, sentence)).collect();
    if list.items.len() < LEAST_ITEMS || left.is_empty() || left.len() == list.items.len() {
        return None;
    }
    Some(format!("{}{}{end}", list.lead, list.joined(&left)))
}

struct List<'s> {
    /// The text before the first item.
    lead: &'s str,
    items: Vec<&'s str>,
    comma: &'s str,
    last: &'s str,
}

impl List<'_> {
    fn joined(&self, items: &[&str]) -> String {
        match items.split_last() {
            Some((last, others)) if !others.is_empty() => {
                format!("{}{}{last}", others.join(self.comma), self.last)
            }
            Some((last, _)) => (*last).to_owned(),
            None => String::new(),
        }
    }
}

/// «… need candles, ice, paper plates and a speaker». The first item begins behind a colon or a verb that takes things.
fn english(body: &str) -> Option<List<'_>> {
    const TAKES: [&str; 14] = [
        "need", "needs", "buy", "get", "order", "pack", "bring", "fetch", "return", "pick up", "call", "pay",
        "print", "clean",
    ];
    let (before, rest) = body.split_once(", ")?;
    let behind_colon = before.find(": ").map(|at| at + 2);
    let behind_verb = || {
        let ends =
            TAKES.iter().filter_map(|verb| before.rfind(&format!(" {verb} ")).map(|at| at + verb.len() + 2));
        ends.max()
    };
    let at = behind_colon.or_else(behind_verb)?;
    let (lead, first) = before.split_at(at);
    let mut items = vec![first];
    items.extend(rest.split(", "));
    let last = items.pop()?;
    let last = last.strip_prefix("and ").unwrap_or(last);
    match last.split_once(" and ") {
        Some((one, other)) => items.extend([one, other]),
        None => items.push(last),
    }
    let items: Vec<&str> = items.into_iter().map(unnumbered).collect();
    let is_item = |item: &&str| (1..=ITEM_WORDS).contains(&item.split_whitespace().count());
    items.iter().all(is_item).then_some(List { lead, items, comma: ", ", last: " and " })
}

/// An item without its number: «2) a new jib» is «a new jib».
fn unnumbered(item: &str) -> &str {
    let digits = item.trim_start_matches('(').trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = digits.len() < item.len() && digits.starts_with([')', '.']);
    if is_numbered { digits[1..].trim_start() } else { item }
}

/// 「要买蜡烛、冰块、纸盘和音箱」
fn chinese(body: &str) -> Option<List<'_>> {
    const TAKES: [&str; 8] = ["买", "買", "带", "帶", "准备", "準備", "订", "訂"];
    let (before, rest) = body.split_once('、')?;
    let behind_colon =
        before.find(['：', ':']).and_then(|at| Some(at + before[at..].chars().next()?.len_utf8()));
    let behind_verb = || TAKES.iter().filter_map(|verb| before.rfind(verb).map(|at| at + verb.len())).max();
    let at = behind_colon.or_else(behind_verb)?;
    let (lead, first) = before.split_at(at);
    let mut items = vec![first];
    items.extend(rest.split('、'));
    if let Some((one, other)) = items.last().and_then(|last| last.split_once(['和', '跟'])) {
        items.pop();
        items.extend([one, other]);
    }
    let is_item =
        |item: &&str| (1..=ITEM_CHARS).contains(&item.chars().count()) && !item.contains(['，', ',']);
    items.iter().all(is_item).then_some(List { lead, items, comma: "、", last: "和" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_leaves_the_list() {
        let check = |statement: &str, sentence: &str, expected: Option<&str>| {
            assert_eq!(without_items(statement, sentence).as_deref(), expected, "{statement} / {sentence}");
        };
        let list = "The user still needs tent pegs, matches, a gas bottle and soap.";
        check(list, "Found the matches", Some("The user still needs tent pegs, a gas bottle and soap."));
        check(list, "got pegs and soap", Some("The user still needs matches and a gas bottle."));
        check(list, "bought everything", None);
        check("To pack: socks, map, lamp", "the lamp is in the bag", Some("To pack: socks and map"));
        check(
            "For the regatta: 1) pay the berth, 2) buy a new jib sheet, 3) call the insurer",
            "Jib sheet: bought.",
            Some("For the regatta: pay the berth and call the insurer"),
        );
        check("The user needs tea and milk", "got milk", None);
        check("The user lives in Ulm, works at Vela and sings", "left Vela", None);
        check("用户要买蜡烛、冰块、纸盘和音箱。", "冰块买好了", Some("用户要买蜡烛、纸盘和音箱。"));
        check("要带：护照、充电器、雨衣", "雨衣装好了", Some("要带：护照和充电器"));
        check("用户住在昆明，养了一条狗", "狗送人了", None);
    }
}
