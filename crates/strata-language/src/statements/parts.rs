//! The parts of a statement, for a change that speaks about only one of them.

use super::chinese::is_chinese;
use crate::Pattern;

/// The least number of characters of a part, in English and Chinese. Shorter ones join their neighbour.
const ENGLISH_PART: usize = 7;
const CHINESE_PART: usize = 4;

/// Where an English statement may be cut. The match itself is the gap between two parts.
static ENGLISH: Pattern = Pattern::new(
    r"(?i)[;,:.)](?P<gap>\s+)|(?P<dash>\s+[-–—]+\s+)|(?P<open>\s+)\(|(?P<join>\s+)(?:but|and|so|because|which)\s",
);

/// The parts of a statement, in order.
pub fn parts(text: &str) -> Vec<String> {
    let chinese = is_chinese(text);
    let (raw, least) =
        if chinese { (chinese_parts(text), CHINESE_PART) } else { (english_parts(text), ENGLISH_PART) };
    let mut parts: Vec<String> = Vec::new();
    for part in raw {
        match parts.last_mut() {
            Some(last) if last.chars().count() < least || part.chars().count() < least => {
                if !chinese {
                    last.push(' ');
                }
                last.push_str(&part);
            }
            _ => parts.push(part),
        }
    }
    parts
}

fn chinese_parts(text: &str) -> Vec<String> {
    let cut = text
        .split_inclusive(|c: char| matches!(c, '，' | '；' | ',' | ';' | '。' | '、') || c.is_whitespace());
    cut.map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn english_parts(text: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut from = 0;
    let mut at = 0;
    while let Some(found) = ENGLISH.get().and_then(|cut| cut.captures_at(text, at)) {
        let gap = ["gap", "dash", "open", "join"].iter().find_map(|name| found.name(name));
        let Some(gap) = gap else { break };
        at = gap.end();
        // A date in brackets belongs to the words around it.
        let is_digit = |c: char| c.is_ascii_digit();
        let opens = text[gap.end()..].strip_prefix('(').is_some_and(|rest| rest.starts_with(is_digit));
        let closes = text[..gap.start()].strip_suffix(')').is_some_and(|before| before.ends_with(is_digit));
        let is_amount =
            ["and a half", "and a quarter"].iter().any(|more| text[gap.end()..].starts_with(more));
        if opens || closes || is_amount || ends_in_abbreviation(&text[from..gap.start()]) {
            continue;
        }
        parts.push(text[from..gap.start()].trim().to_owned());
        from = gap.end();
    }
    parts.push(text[from..].trim().to_owned());
    parts.retain(|part| !part.is_empty());
    parts
}

/// Whether a text ends in a dot that ends no sentence: «St.», «Dr.», «8 a.m.», «R.», «e.g.».
fn ends_in_abbreviation(text: &str) -> bool {
    const TITLES: [&str; 14] =
        ["st", "dr", "mr", "mrs", "ms", "prof", "jr", "sr", "no", "vs", "approx", "ave", "rd", "mt"];
    let Some(word) = text.strip_suffix('.').and_then(|body| body.split_whitespace().next_back()) else {
        return false;
    };
    let letters = word.trim_start_matches(|c: char| !c.is_alphabetic());
    let is_initials = letters.split('.').all(|part| part.chars().count() == 1);
    TITLES.contains(&letters.to_lowercase().as_str()) || (is_initials && !letters.eq("I"))
}

/// The parts that are left as one statement; `None` if they are too little to say anything.
pub fn joined(parts: &[&str]) -> Option<String> {
    let chinese = parts.iter().any(|part| is_chinese(part));
    let text = parts.join(if chinese { "" } else { " " });
    let text = text.trim().trim_end_matches(['，', ',', '；', ';', ':', '、', ' ']);
    let lead = ["and ", "but ", "so ", "because ", "which "].iter().find_map(|lead| text.strip_prefix(lead));
    let text = lead.unwrap_or(text);
    let text = match text.strip_prefix("their ") {
        Some(rest) => format!("The user's {rest}"),
        None => super::sentence_case(text),
    };
    let least = if chinese { CHINESE_PART } else { ENGLISH_PART + 1 };
    (text.chars().count() >= least).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abbreviation_ends_no_part() {
        let check = |text: &str, expected: &[&str]| assert_eq!(parts(text), expected, "{text}");
        check(
            "The user sings at St. Mary's on Sundays and at St. Paul's on Fridays.",
            &["The user sings at St. Mary's on Sundays", "and at St. Paul's on Fridays."],
        );
        check("The ferry takes an hour and a half.", &["The ferry takes an hour and a half."]);
        check(
            "The surgery opens at 8 a.m. on Mondays, 10 a.m. on Thursdays.",
            &["The surgery opens at 8 a.m. on Mondays,", "10 a.m. on Thursdays."],
        );
        check("The boat was built by R. Tovell, in oak.", &["The boat was built by R. Tovell,", "in oak."]);
        check("The user is tall. The dog is not.", &["The user is tall.", "The dog is not."]);
    }
}
