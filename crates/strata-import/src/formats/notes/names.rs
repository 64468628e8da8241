//! Transcripts in which people are called by their names: «Nora: I work at the aquarium.»

use std::collections::BTreeSet;

use jiff::Timestamp;
use strata_core::Role;

use super::role;
use crate::foreign::Said;

/// The most characters and words of a name.
const MAX_CHARS: usize = 20;
const MAX_WORDS: usize = 3;
/// The lines from which a single speaker makes a transcript.
const OF_ONE: usize = 3;

/// Words before a colon that are no names.
const LABELS: &str = "from to cc subject date sent title author re note notes todo task tasks error warning info work job home city address phone email hobby hobbies \
    diet food family health school language languages sport goal goals likes dislikes about background name age plan idea problem question answer summary http https \
    发件人 收件人 主题 日期 标题 作者 备注 注意 待办 任务 姓名 年龄 工作 职业 住址 地址 电话 邮箱 爱好 饮食 家庭 健康 学校 目标 计划 问题 回答 总结";

/// The turns of a text in which every line begins with a name, or goes on from one that does; `None` if it is none. In a list of
/// labels («City: Ulm») nobody says «I» or «you».
pub(super) fn transcript(body: &str, at: Option<Timestamp>) -> Option<Vec<Said>> {
    let mut turns: Vec<Said> = Vec::new();
    for line in body.lines().filter(|line| !line.trim().is_empty()) {
        match speaker(line) {
            Some((name, text)) => turns.push(said(name, text, at)),
            None => turns.last_mut()?.content.push_str(&format!("\n{line}")),
        }
    }
    is_conversation(&turns).then_some(turns)
}

fn said(name: &str, text: &str, at: Option<Timestamp>) -> Said {
    let known = role(name);
    let name = known.is_none().then(|| name.to_owned());
    Said { name, created_at: at, ..Said::new(known.unwrap_or(Role::User), text) }
}

fn is_conversation(turns: &[Said]) -> bool {
    let names: BTreeSet<_> = turns.iter().map(|turn| (turn.role.as_str(), &turn.name)).collect();
    let has_name = turns.iter().any(|turn| turn.name.is_some());
    let are_several = if names.len() > 1 { turns.len() > 1 } else { turns.len() >= OF_ONE };
    has_name && are_several && turns.iter().any(|turn| addresses(&turn.content))
}

/// Whether somebody speaks of themselves or to somebody.
fn addresses(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    text.contains(['我', '咱', '你'])
        || words.any(|word| matches!(word, "I" | "my" | "My" | "we" | "We" | "you" | "You"))
}

/// The name before a colon, and the text behind it.
fn speaker(line: &str) -> Option<(&str, &str)> {
    let (name, text) = line.trim().split_once([':', '：'])?;
    let begins = |word: &str| word.starts_with(|c: char| c.is_alphabetic() && !c.is_lowercase());
    let is_letter = |c: char| c.is_alphabetic() || matches!(c, '.' | '-' | '\'' | '’' | ' ');
    let is_short = name.chars().count() <= MAX_CHARS && name.split_whitespace().count() <= MAX_WORDS;
    let is_label = LABELS.split_whitespace().any(|label| label == name.to_lowercase());
    let is_name = is_short && !is_label && name.chars().all(is_letter) && name.split_whitespace().all(begins);
    (is_name && !name.is_empty() && !text.starts_with("//")).then(|| (name, text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Option<Vec<Option<String>>> {
        transcript(text, None).map(|turns| turns.into_iter().map(|turn| turn.name).collect())
    }

    #[test]
    fn lines_with_names_are_turns_of_people() {
        let named =
            |names: &[&str]| Some(names.iter().map(|name| Some((*name).to_owned())).collect::<Vec<_>>());
        let both = named(&["Nora", "Tom"]);
        assert_eq!(names("Nora: I work at the aquarium.\nTom: I work at the zoo.\n"), both);
        assert_eq!(names("Nora: I row.\nOn Sundays.\n\nTom: Me too.\n"), both);
        assert_eq!(names("小蓓：我在水族馆上班。\n老周：真的？\n"), named(&["小蓓", "老周"]));
        let mixed = names("Nora: When do we row?\nAssistant: At nine.\nNora: Thanks.\n");
        assert_eq!(mixed, Some(vec![Some("Nora".to_owned()), None, Some("Nora".to_owned())]));
    }

    #[test]
    fn labels_are_no_speakers() {
        for text in [
            "City: Ulm\nStreet: Hirschgasse\n",
            "城市：绵阳\n街道：花园路\n",
            "The shed is dry.\nNora: I painted it.\nTom: I saw.\n",
            "Buy:\n- peas\nSell:\n- beans\nBuy:\n- salt\n",
            "Nora: I row.\n",
            "From: nora@example.org\nSubject: Boats\nI sold my boat.\n",
            "Work: I teach.\nHome: I live in Ulm.\n",
            "https://example.org\nhttps://example.net\n",
        ] {
            assert_eq!(names(text), None, "{text}");
        }
    }
}
