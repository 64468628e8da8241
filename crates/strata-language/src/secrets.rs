//! Secrets in a text: API keys by their prefixes, passwords by the words and names before them or by their place in an address,
//! card, account and identity numbers by their checksums.
//!
//! A memory is shown to models and may be exported, so a secret in it is a risk: learning leaves such statements out, and
//! `strata doctor --memories` names the memories that hold one. The checks here prefer to miss an unusual secret over calling
//! an ordinary number or word one. Start reading at [`secrets`].

mod prose;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::{Match, Regex};

use self::prose::in_prose;
use crate::pattern::small;

/// A kind of secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SecretKind {
    /// An API key or an access token.
    Key,
    /// A private key.
    PrivateKey,
    /// A password, a PIN or a passphrase.
    Password,
    /// The number of a payment card.
    Card,
    /// The number of a bank account.
    Account,
    /// A number that identifies a person.
    Identity,
}

impl SecretKind {
    /// The kind in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Key => "an API key or token",
            Self::PrivateKey => "a private key",
            Self::Password => "a password",
            Self::Card => "a card number",
            Self::Account => "a bank account number",
            Self::Identity => "an identity number",
        }
    }
}

/// A secret and its place in the text, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// The kind.
    pub kind: SecretKind,
    /// The first byte.
    pub start: usize,
    /// The byte after the last one.
    pub end: usize,
}

/// A pattern whose `\b` separates ASCII letters from everything else: no space stands between Chinese and a key, and an ASCII
/// boundary keeps the search fast in any text.
#[allow(clippy::unwrap_used, reason = "a test compiles every pattern")]
fn pattern(text: &str) -> Regex {
    small(&text.replace(r"\b", r"(?-u:\b)")).unwrap()
}

/// Prefixes that services give their keys.
static KEY: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}|\bsk_(?:live|test)_[A-Za-z0-9]{16,}|\bgh[pousr]_[A-Za-z0-9]{30,}",
        r"|\bgithub_pat_[A-Za-z0-9_]{30,}|\bglpat-[A-Za-z0-9_-]{20,}|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
        r"|\bxox[abprs]-[A-Za-z0-9-]{10,}|\bAIza[0-9A-Za-z_-]{35}|\bhf_[A-Za-z0-9]{30,}|\bnpm_[A-Za-z0-9]{30,}",
        r"|\bya29\.[A-Za-z0-9_-]{20,}|\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|\bdop_v1_[0-9a-f]{32,}|\bpypi-[A-Za-z0-9_-]{40,}",
        r"|\bwhsec_[A-Za-z0-9+/=]{20,}|\brk_(?:live|test)_[A-Za-z0-9]{16,}|\b\d{8,10}:AA[A-Za-z0-9_-]{33}",
        r"|hooks\.slack\.com/services/[A-Za-z0-9/]{20,}|(?i:\bbearer\s+)[A-Za-z0-9_~+/-][A-Za-z0-9._~+/-]{19,}=*",
        r"|\bstrata_[0-9a-hjkmnp-tv-z]{32}\b|\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    ))
});

static PRIVATE_KEY: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----"));

/// A name in a program or in its settings to which a secret is assigned, as in `DB_PASSWORD=…`. The first group is the last word of
/// the name, the second what assigns, and the third the value.
static ASSIGNED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?i)(?:\b|_)(password|passwd|passphrase|passcode|pwd|secret|token|api_?key|access_?key|secret_?key|account_?key|private_?key|credentials?)",
        r#"\d*["']?(\s*(?::=|=>|=|:)\s*)["'`]?([^\s"'`,;&|)]{4,})"#,
    ))
});

/// A password in an address, as in `postgres://ada:…@db`, and a token alone.
static IN_ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"\b[A-Za-z][A-Za-z0-9+.-]*://(?:[^\s/:@]*:([^\s/@]{3,})|([A-Za-z0-9_-]{20,}))@")
});

/// A password that a command gets.
static OPTION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"(?:\s-u|\s--user)[ =]["']?[^\s:"']+:([^\s"']{4,})|--(?:password|passwd|token|api-key)[ =]["']?([^\s"']{4,})"#,
    )
});
static BASIC: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)\bauthorization:\s*basic\s+([A-Za-z0-9+/]{8,}=*)"));

/// Digits in groups, as cards show them.
static DIGITS: LazyLock<Regex> = LazyLock::new(|| pattern(r"\d(?:[ -]?\d){12,18}"));
static IDENTITY: LazyLock<Regex> = LazyLock::new(|| pattern(r"\d{17}[\dXx]"));
static SOCIAL_SECURITY: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)\b(?:ssn|social security)\b[^.!?\n]{0,24}?\b(\d{3}-\d{2}-\d{4})\b"));
/// Two letters of a country, two check digits, and the account in groups.
static IBAN: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b"));

/// The secrets of a text, in their order. Of two that overlap, the one that is named first in [`all`] counts.
pub fn secrets(text: &str) -> Vec<Secret> {
    let mut found: BTreeMap<usize, Secret> = BTreeMap::new();
    for secret in all(text) {
        // No two of them overlap, so the last one that begins before the end is the only one that can.
        let before = found.range(..secret.end).next_back();
        if before.is_none_or(|(_, other)| other.end <= secret.start) {
            found.insert(secret.start, secret);
        }
    }
    found.into_values().collect()
}

/// Everything that looks like a secret, the surest kinds first.
fn all(text: &str) -> impl Iterator<Item = Secret> {
    let private = PRIVATE_KEY.find_iter(text);
    let private =
        private.map(|place| Secret { kind: SecretKind::PrivateKey, start: place.start(), end: text.len() });
    let keys = KEY.find_iter(text).map(|place| secret(SecretKind::Key, place));
    private.chain(keys).chain(numbers(text)).chain(in_programs(text)).chain(in_prose(text))
}

fn secret(kind: SecretKind, place: Match<'_>) -> Secret {
    Secret { kind, start: place.start(), end: place.end() }
}

/// Numbers of accounts, persons and cards.
fn numbers(text: &str) -> impl Iterator<Item = Secret> {
    let is_alone = move |place: &Match<'_>| is_alone(text, place.start(), place.end());
    let accounts = IBAN.find_iter(text).filter(|place| is_iban(place.as_str()));
    let social = SOCIAL_SECURITY.captures_iter(text).filter_map(|captured| captured.get(1));
    let identities =
        IDENTITY.find_iter(text).filter(move |place| is_alone(place) && is_identity(place.as_str()));
    let cards = DIGITS.find_iter(text).filter(move |place| is_alone(place) && is_card(place.as_str()));
    accounts
        .map(|place| secret(SecretKind::Account, place))
        .chain(social.chain(identities).map(|place| secret(SecretKind::Identity, place)))
        .chain(cards.map(|place| secret(SecretKind::Card, place)))
}

/// Secrets in addresses, commands and assignments.
fn in_programs(text: &str) -> impl Iterator<Item = Secret> {
    let is_meant = |place: &Match<'_>| !is_placeholder(place.as_str());
    let addresses = IN_ADDRESS.captures_iter(text).filter_map(move |captured| {
        let password = captured.get(1).filter(is_meant).map(|place| secret(SecretKind::Password, place));
        password.or_else(|| captured.get(2).filter(is_meant).map(|place| secret(SecretKind::Key, place)))
    });
    let given = [&OPTION, &BASIC].into_iter().flat_map(move |pattern| pattern.captures_iter(text));
    let given = given.filter_map(move |captured| {
        let value = captured.iter().skip(1).flatten().next();
        value.filter(is_meant).map(|place| secret(SecretKind::Password, place))
    });
    addresses.chain(given).chain(ASSIGNED.captures_iter(text).filter_map(|captured| {
        let (name, sign, value) = (captured.get(1)?.as_str(), captured.get(2)?.as_str(), captured.get(3)?);
        let is_key = name.to_ascii_lowercase().ends_with("key") || name.eq_ignore_ascii_case("token");
        let kind = if is_key { SecretKind::Key } else { SecretKind::Password };
        is_assigned(name, sign, value.as_str()).then(|| secret(kind, value))
    }))
}

/// The placeholder for a secret in texts that are made from messages.
const REDACTED: &str = "[secret]";

/// The text with each secret replaced by its first two characters and dots.
pub fn masked(text: &str) -> String {
    replaced(text, &secrets(text), |shown, secret| {
        shown.extend(secret.chars().take(2));
        shown.push('…');
    })
}

/// Whether a text holds a secret that no text made from it may repeat. The number of an account is none: it may well be what a
/// person wants to be reminded of.
pub fn is_secret(text: &str) -> bool {
    secrets(text).iter().any(is_withheld)
}

/// The text with `[secret]` in the place of each secret that no text made from it may repeat. A redacted text stays the same if
/// it is redacted again.
pub fn redacted(text: &str) -> Cow<'_, str> {
    let mut found = secrets(text);
    found.retain(is_withheld);
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(replaced(text, &found, |shown, _| shown.push_str(REDACTED)))
}

fn is_withheld(secret: &Secret) -> bool {
    secret.kind != SecretKind::Account
}

/// The text with other words in the places of secrets.
fn replaced(text: &str, found: &[Secret], show: impl Fn(&mut String, &str)) -> String {
    let mut shown = String::new();
    let mut after = 0;
    for Secret { start, end, .. } in found {
        shown.push_str(&text[after..*start]);
        show(&mut shown, &text[*start..*end]);
        after = *end;
    }
    shown.push_str(&text[after..]);
    shown
}

/// Whether neither a letter nor a digit touches a place.
fn is_alone(text: &str, start: usize, end: usize) -> bool {
    let touches = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
    let before = text[..start].chars().next_back().is_some_and(|c| c.is_ascii_alphanumeric() || c == '.');
    let after = text[end..].chars().next().is_some_and(|c| touches(c) && c != '.');
    !before && !after
}

/// Whether digits are the number of a card: the first digit of an issuer, and the check digit of Luhn's formula.
fn is_card(text: &str) -> bool {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(10)).collect();
    let is_issued = matches!(digits.first(), Some(2..=6)) && (13..=19).contains(&digits.len());
    let is_varied = digits.iter().any(|digit| *digit != digits[0]);
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| match (place % 2, digit * 2) {
            (0, _) => *digit,
            (_, double) if double > 9 => double - 9,
            (_, double) => double,
        })
        .sum();
    is_issued && is_varied && sum.is_multiple_of(10)
}

/// Whether a text is an account number: its check digits are those of ISO 7064, MOD 97-10.
fn is_iban(text: &str) -> bool {
    let signs: Vec<char> = text.chars().filter(|c| *c != ' ').collect();
    let rotated = signs.iter().skip(4).chain(signs.iter().take(4));
    let rest = rotated.fold(0, |rest, sign| match sign.to_digit(36) {
        Some(value @ 10..) => (rest * 100 + value) % 97,
        Some(value) => (rest * 10 + value) % 97,
        None => rest,
    });
    (15..=34).contains(&signs.len()) && rest == 1
}

/// Whether a value that is assigned to a name is a secret. In `NAME=value` a password may be a plain word. A value after a colon may
/// be prose, and a token may be a count, so these have to look like secrets.
fn is_assigned(name: &str, sign: &str, value: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_path = value.starts_with(['/', '~', '.', '\\']);
    let is_named_password = matches!(name.as_str(), "password" | "passwd" | "passphrase" | "passcode");
    let is_plain = !value.is_ascii() || is_path || is_placeholder(value);
    let is_long = value.len() >= 12;
    !is_plain
        && match sign.trim() {
            "=" if sign == "=" && is_named_password => true,
            _ if is_named_password => is_password(value),
            _ => is_long && is_password(value),
        }
}

/// Whether a value stands for a secret that is kept elsewhere, or for none.
fn is_placeholder(value: &str) -> bool {
    const WORDS: [&str; 14] = [
        "password", "passwd", "pass", "secret", "token", "true", "false", "null", "none", "example",
        "required", "optional", "redacted", "hidden",
    ];
    let lower = value.trim_end_matches(['.', '!', '?', ')']).to_ascii_lowercase();
    let is_masked = lower.chars().all(|c| matches!(c, '*' | 'x' | '.' | '•' | '-' | '_'));
    let is_reference = lower.starts_with(['$', '<', '{', '[', '(', '%', '@']) || lower.starts_with("your");
    let is_read = lower.contains("env.") || lower.contains("environ") || lower.contains("getenv");
    is_masked || is_reference || is_read || WORDS.contains(&lower.as_str())
}

/// Whether digits are the number of a Chinese identity card: a date of birth, and the check digit of ISO 7064.
fn is_identity(text: &str) -> bool {
    const WEIGHTS: [u32; 17] = [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2];
    const CHECKS: &[u8; 11] = b"10X98765432";
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| text[from..to].parse::<u32>().unwrap_or(0);
    let is_born = (1900..2100).contains(&number(6, 10))
        && (1..=12).contains(&number(10, 12))
        && (1..=31).contains(&number(12, 14));
    let sum: u32 = WEIGHTS.iter().zip(bytes).map(|(weight, digit)| weight * u32::from(digit - b'0')).sum();
    is_born && CHECKS[(sum % 11) as usize] == bytes[17].to_ascii_uppercase()
}

/// Whether a value looks like a password: it has a digit or a sign, or letters of both cases, and is not a plain word.
fn is_password(value: &str) -> bool {
    let value = value.trim_end_matches(['.', '!', '?', ')', '）']);
    if value.starts_with(['/', '~']) || is_placeholder(value) {
        return false;
    }
    let has = |is: fn(char) -> bool| value.chars().any(is);
    let is_mixed = has(|c| c.is_ascii_uppercase())
        && value.chars().skip(1).any(|c| c.is_ascii_uppercase())
        && has(|c| c.is_ascii_lowercase());
    value.chars().count() >= 4
        && value.is_ascii()
        && (has(|c| c.is_ascii_digit()) || has(|c| "!@#$%^&*_+=".contains(c)) || is_mixed)
}

#[cfg(test)]
mod tests;
