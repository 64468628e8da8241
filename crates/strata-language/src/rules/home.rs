//! A sentence in which the speaker moves home, beside a remembered sentence that says where the speaker lives.
//!
//! A reader does not know most names of places, and «I just moved to Oslo» looks to it like a remark. The grammars know that
//! the sentence is about the home. What they do not know is whether its value is a place at all («we moved to GitLab»):
//! the names of well-known programs are no places, well-known cities are, and a reader is asked about the others in
//! plain sentences.

use jiff::Timestamp;

use super::claim::{Claim, Hold, ReadClaim};
use super::sentence::{self, Clause, Language};
use super::{chinese, compare, english};
use crate::Pattern;

/// What a sentence in which the speaker moves means for a remembered home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HomeMove {
    /// It is replaced.
    Replaces,
    /// It is not touched: the speaker moved to a program.
    IsElsewhere,
    /// It is replaced if a reader takes the second of these sentences for a change of the first one.
    Perhaps {
        /// Where somebody lives.
        remembered: String,
        /// Where they moved.
        new: String,
    },
}

static MOVES: Pattern = Pattern::new(r"(?i)\b(?:mov(?:e|ed|ing)|relocat(?:e|ed|ing))\b|搬|移居|定居");
/// A move of long ago may lie before the remembered home.
static LONG_AGO: Pattern = Pattern::new(
    r"(?i)\b(?:19|20)\d\d\b|\b(?:years|decades|ages) (?:ago|before|earlier)\b|\bwhen (?:i|we) (?:was|were)\b|\bas a (?:child|kid|teenager|student)\b|\bonce\b|年前|小时候|当年|那年|那时|曾经?|以前|\d{4}年",
);
/// Programs and services to which people move their work.
static PROGRAM: Pattern = Pattern::new(
    r"(?i)^(?:the )?(?:git(?:hub|lab|ea)|bitbucket|jira|confluence|linear|notion|obsidian|slack|discord|(?:microsoft )?teams|zoom|signal|telegram|whatsapp|mastodon|bluesky|threads|figma|trello|asana|basecamp|airtable|evernote|gmail|outlook|proton(?:mail)?|dropbox|google \w+|office|aws|azure|gcp|heroku|vercel|netlify|cloudflare|kubernetes|docker|podman|terraform|linux|ubuntu|debian|fedora|windows|macos|android|ios|rust|python|typescript|java|kotlin|swift|go(?:lang)?|postgres(?:ql)?|mysql|sqlite|mongodb|redis|kafka|vim|neovim|emacs|vs ?code|excel|salesforce|hubspot|shopify|stripe|wordpress|firefox|chrome|safari|teamcity|jenkins|circleci)$|^(?:钉钉|飞书|企业微信|企微|微信|语雀|石墨(?:文档)?|腾讯(?:文档|会议|云)|阿里云|华为云|百度网盘|码云|云效|简书|知乎|豆瓣|小红书|抖音|微博|支付宝|有道云笔记|印象笔记|鸿蒙|安卓|云上|线上)$",
);

/// What a sentence means for a remembered one, if the speaker moves in it and lives somewhere else in that one.
pub fn home_move(remembered: &str, new: &str) -> Option<HomeMove> {
    if !MOVES.is_match(new) || LONG_AGO.is_match(new) {
        return None;
    }
    let known = only(remembered)?.claim;
    let (moved, language) = readings(new).find(|(reading, _)| reading.begins && is_home(&reading.claim))?;
    let is_change = is_home(&known) && known.slot == moved.claim.slot && compare::ends(&moved.claim, &known);
    is_change.then(|| meaning(place(&moved.content, language), language)).flatten()
}

/// The claim of a sentence that says nothing else.
fn only(text: &str) -> Option<ReadClaim> {
    let is_one = sentence::clauses(text).len() == 1;
    let mut readings = readings(text).filter(|_| is_one);
    let (reading, _) = readings.next()?;
    readings.next().is_none().then_some(reading)
}

fn readings(text: &str) -> impl Iterator<Item = (ReadClaim, Language)> {
    let mut subject = None;
    let sure = sentence::clauses(text).into_iter().filter(|clause| !clause.hedged);
    sure.flat_map(move |Clause { text, language, .. }| {
        let readings = match language {
            Language::English => english::read(&text, "The user", Timestamp::UNIX_EPOCH),
            Language::Chinese => chinese::read(&text, "用户", Timestamp::UNIX_EPOCH, &mut subject),
        };
        readings.into_iter().map(move |reading| (reading, language))
    })
}

/// Whether a claim says where the speaker lives now.
fn is_home(claim: &Claim) -> bool {
    claim.slot.starts_with("home") && claim.subject == "user" && claim.hold == Hold::Now
}

/// The place in «The user lives in Porto with their sister», 用户住在杭州.
fn place(content: &str, language: Language) -> Option<&str> {
    static BESIDE: Pattern = Pattern::new(r" (?:with|for|near|since|as|on|together|right) |[,，]");
    let lives = if language == Language::English { " lives in " } else { "住在" };
    let (_, place) = content.split_once(lives)?;
    let end = BESIDE.find(place).map_or(place.len(), |beside| beside.start());
    Some(place[..end].trim()).filter(|place| !place.is_empty())
}

fn meaning(place: Option<&str>, language: Language) -> Option<HomeMove> {
    let place = place?;
    let other = |one: &'static str, other: &'static str| if place == one { other } else { one };
    let perhaps = |remembered, new| HomeMove::Perhaps { remembered, new };
    Some(match language {
        _ if PROGRAM.is_match(place) => HomeMove::IsElsewhere,
        Language::Chinese if chinese::is_city(place) => HomeMove::Replaces,
        Language::Chinese => {
            perhaps(format!("我住在{}。", other("上海", "杭州")), format!("我搬到了{place}。"))
        }
        Language::English => {
            perhaps(format!("I live in {}.", other("Bergen", "Turin")), format!("I relocated to {place}."))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_is_about_the_home() {
        for moved in [
            "我搬到杭州了。",
            "我上周搬到杭州了。",
            "我已经搬到杭州了。",
            "其实我上周搬到杭州了。",
            "我搬到了杭州。",
            "我们刚搬到大理。",
        ] {
            assert_eq!(home_move("我住在上海。", moved), Some(HomeMove::Replaces), "{moved}");
        }
        let new = "I relocated to Porto.".to_owned();
        let perhaps = HomeMove::Perhaps { remembered: "I live in Bergen.".to_owned(), new };
        for moved in [
            "I moved to Porto.",
            "I just moved to Porto.",
            "We moved to Porto in May.",
            "I have already moved to Porto.",
            "Actually, I moved to Porto last week.",
        ] {
            for home in ["I live in Lisbon.", "The user lives in Lisbon with their sister."] {
                assert_eq!(home_move(home, moved), Some(perhaps.clone()), "{home} {moved}");
            }
        }
        let unknown = home_move("我住在上海。", "我搬到桃源里了。");
        assert!(matches!(unknown, Some(HomeMove::Perhaps { .. })), "{unknown:?}");
    }

    #[test]
    fn other_moves_leave_the_home() {
        for (home, moved) in [
            ("I live in Lisbon.", "We moved to GitLab."),
            ("I live in Lisbon.", "We just moved to Kubernetes."),
            ("我住在上海。", "我们搬到了钉钉。"),
            ("我住在上海。", "我们上周搬到GitLab了。"),
        ] {
            let meaning = home_move(home, moved);
            assert!(matches!(meaning, None | Some(HomeMove::IsElsewhere)), "{moved} {meaning:?}");
        }
        for (home, moved) in [
            ("I live in Lisbon.", "My sister moved to Porto."),
            ("My sister lives in Lisbon.", "I moved to Porto."),
            ("I live in Lisbon.", "I moved to Porto in 2009."),
            ("I live in Lisbon.", "Maybe I moved to Porto."),
            ("I live in Lisbon.", "I am moving to Porto next year."),
            ("I live in Porto.", "I just moved to Porto."),
            ("I work in Lisbon.", "I just moved to Porto."),
            ("I live in Lisbon and I work at the port.", "I just moved to Porto."),
            ("我住在上海。", "我妹妹搬到杭州了。"),
            ("我住在上海。", "我打算搬到杭州。"),
            ("我住在上海。", "我小时候搬到了杭州。"),
            ("我喜欢上海。", "我搬到杭州了。"),
        ] {
            assert_eq!(home_move(home, moved), None, "{home} {moved}");
        }
    }
}
