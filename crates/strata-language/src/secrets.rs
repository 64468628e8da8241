//! Secrets in a text: API keys by their prefixes, passwords by the words before them, card and identity numbers by their
//! checksums.
//!
//! A memory is shown to models and may be exported, so a secret in it is a risk: learning leaves such statements out, and
//! `strata doctor --memories` names the memories that hold one. The checks here prefer to miss an unusual secret over calling
//! an ordinary number or word one. Start reading at [`secrets`].

use std::sync::LazyLock;

use regex::Regex;

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
    /// The number of an identity card.
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
            Self::Identity => "an identity card number",
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

#[allow(clippy::unwrap_used, reason = "a test compiles every pattern")]
fn pattern(text: &str) -> Regex {
    Regex::new(text).unwrap()
}

/// Prefixes that services give their keys.
static KEY: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}|\bsk_(?:live|test)_[A-Za-z0-9]{16,}|\bgh[pousr]_[A-Za-z0-9]{30,}",
        r"|\bgithub_pat_[A-Za-z0-9_]{30,}|\bglpat-[A-Za-z0-9_-]{20,}|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
        r"|\bxox[abprs]-[A-Za-z0-9-]{10,}|\bAIza[0-9A-Za-z_-]{35}|\bhf_[A-Za-z0-9]{30,}|\bnpm_[A-Za-z0-9]{30,}",
        r"|\bstrata_[0-9a-hjkmnp-tv-z]{32}\b|\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    ))
});

static PRIVATE_KEY: LazyLock<Regex> = LazyLock::new(|| pattern(r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----"));

/// Words after which a password stands. The value is the last group.
static PASSWORD: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?i)\b(?:password|passcode|passphrase|passwd|pwd|pin(?: code| number)?|api[ _-]?key|secret[ _-]?key|access[ _-]?token)\b",
        r#"[^.!?。！？\n:=]{0,40}?(?:\bis\b|\bare\b|:|=)\s*["'`«“]?([^\s"'`»”,;。，；]{4,})"#,
    ))
});
static CHINESE_PASSWORD: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"(?:密码|口令|密钥|令牌|验证码|支付码)[^。！？\n：:=是为]{0,12}?(?:是|为|：|:|=|改成|改为|换成|设成|设为)\s*["'“「]?([\x21-\x7e]{4,})"#,
    )
});

/// The other forms of a password, each with its value as the last group: in an address, after «changed … to», and in quotation
/// marks, where a plain word is one too.
static IN_ADDRESS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{1,64}:([^\s/@]{3,})@"));
static CHANGED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?i)\b(?:chang|set|reset|updat)\w*\b[^.!?\n]{0,20}\b(?:password|passcode|passphrase|pin)\b",
        r#"[^.!?\n]{0,30}?\bto\s+["'`«“]?([^\s"'`»”,;]{4,})"#,
    ))
});
static QUOTED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?i)(?:\b(?:password|passcode|passphrase|passwd|pwd)\b|密码|口令)",
        r#"[^.!?。！？\n:=]{0,40}?(?:\bis\b|:|=|是|为|：)\s*["'`«“「]([^\s"'`»”」]{4,})["'`»”」]"#,
    ))
});

/// A setting whose name says that its value is secret, as in `DB_PASSWORD=…`. The value is the last group.
static SETTING: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?i)\b[a-z0-9_.-]{0,64}(?:password|passwd|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|secret[_-]?key)",
        r#"["']?\s{0,2}=\s{0,2}["'`]?([^\s"'`,;&]{4,})"#,
    ))
});

/// The key of a request, as in `Authorization: Bearer …`.
static BEARER: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)\bbearer\s+([a-z0-9._~+/-]{20,}=*)"));

/// Digits in groups, as cards show them.
static DIGITS: LazyLock<Regex> = LazyLock::new(|| pattern(r"\d(?:[ -]?\d){12,18}"));
static IDENTITY: LazyLock<Regex> = LazyLock::new(|| pattern(r"\d{17}[\dXx]"));

/// The secrets of a text, in their order.
pub fn secrets(text: &str) -> Vec<Secret> {
    let mut found: Vec<Secret> = Vec::new();
    let mut add = |kind, start, end| {
        let overlaps = |secret: &Secret| secret.start < end && start < secret.end;
        if !found.iter().any(overlaps) {
            found.push(Secret { kind, start, end });
        }
    };
    for place in PRIVATE_KEY.find_iter(text) {
        add(SecretKind::PrivateKey, place.start(), text.len());
    }
    for place in KEY.find_iter(text) {
        add(SecretKind::Key, place.start(), place.end());
    }
    for place in IDENTITY.find_iter(text) {
        if is_alone(text, place.start(), place.end()) && is_identity(place.as_str()) {
            add(SecretKind::Identity, place.start(), place.end());
        }
    }
    for place in DIGITS.find_iter(text) {
        if is_alone(text, place.start(), place.end()) && is_card(place.as_str()) {
            add(SecretKind::Card, place.start(), place.end());
        }
    }
    let any: fn(&str) -> bool = |_| true;
    for (pattern, kind, accepts) in [
        (&BEARER, SecretKind::Key, has_digit as fn(&str) -> bool),
        (&IN_ADDRESS, SecretKind::Password, is_set),
        (&SETTING, SecretKind::Password, is_set),
        (&QUOTED, SecretKind::Password, any),
        (&PASSWORD, SecretKind::Password, is_password),
        (&CHANGED, SecretKind::Password, is_password),
        (&CHINESE_PASSWORD, SecretKind::Password, is_password),
    ] {
        for captured in pattern.captures_iter(text) {
            if let Some(value) = captured.get(1).filter(|value| accepts(value.as_str())) {
                add(kind, value.start(), value.end());
            }
        }
    }
    found.sort_by_key(|secret| secret.start);
    found
}

/// The text with each secret replaced by its first two characters and dots.
pub fn masked(text: &str) -> String {
    let mut shown = String::new();
    let mut after = 0;
    for Secret { start, end, .. } in secrets(text) {
        shown.push_str(&text[after..start]);
        shown.extend(text[start..end].chars().take(2));
        shown.push('…');
        after = end;
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

fn has_digit(value: &str) -> bool {
    value.chars().any(|c| c.is_ascii_digit())
}

/// Whether the value of a setting is a secret, and neither a placeholder nor a small number.
fn is_set(value: &str) -> bool {
    const PLACEHOLDERS: [&str; 10] = [
        "null",
        "none",
        "true",
        "false",
        "undefined",
        "required",
        "optional",
        "your",
        "placeholder",
        "redacted",
    ];
    let word = value.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_ascii_lowercase();
    let is_hidden =
        value.starts_with(['<', '$', '{', '%', '[']) || word.chars().all(|c| c == 'x' || c == '*');
    let is_small_number = word.len() < 6 && word.chars().all(|c| c.is_ascii_digit());
    let is_placeholder = PLACEHOLDERS.iter().any(|one| word == *one || word.starts_with("your"));
    !word.is_empty() && !is_hidden && !is_small_number && !is_placeholder
}

/// Whether a value looks like a password: it has a digit or a sign, or letters of both cases, and is not a plain word.
fn is_password(value: &str) -> bool {
    let value = value.trim_end_matches(['.', '!', '?', ')', '）']);
    let has = |is: fn(char) -> bool| value.chars().any(is);
    let is_mixed = has(|c| c.is_ascii_uppercase())
        && value.chars().skip(1).any(|c| c.is_ascii_uppercase())
        && has(|c| c.is_ascii_lowercase());
    value.chars().count() >= 4
        && value.is_ascii()
        && has(|c| c.is_ascii_alphanumeric())
        && (has(|c| c.is_ascii_digit()) || has(|c| "!@#$%^&*_+=".contains(c)) || is_mixed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[(SecretKind, &str)]) {
        let found: Vec<_> =
            secrets(text).into_iter().map(|one| (one.kind, &text[one.start..one.end])).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn keys_are_known_by_their_prefixes() {
        let key = format!("sk-{}", "a1B2".repeat(8));
        check(&format!("The key for staging is {key}, do not share"), &[(SecretKind::Key, &key)]);
        let token = format!("ghp_{}", "Zz9".repeat(12));
        check(&format!("令牌 {token} 放在保险柜里"), &[(SecretKind::Key, &token)]);
        check(
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE",
            &[(SecretKind::PrivateKey, "-----BEGIN RSA PRIVATE KEY-----\nMIIE")],
        );
        check("The risk-averse plan uses sk-learn", &[]);
    }

    #[test]
    fn passwords_stand_after_their_words() {
        check("The wifi password for the cabin is Birch-77x", &[(SecretKind::Password, "Birch-77x")]);
        check("PIN: 4711", &[(SecretKind::Password, "4711")]);
        check("家里路由器的密码是 qingdao2024，记得换", &[(SecretKind::Password, "qingdao2024")]);
        for text in [
            "Rosa forgot her password",
            "The password is on the note under the desk",
            "The password policy is strict",
            "密码是什么？",
            "My password manager is great",
        ] {
            check(text, &[]);
        }
    }

    #[test]
    fn settings_and_addresses_hold_passwords() {
        let password = |value| [(SecretKind::Password, value)];
        check("The staging server has DB_PASSWORD=hunter2hunter in its .env", &password("hunter2hunter"));
        check("export STRIPE_SECRET='wombat-lane'", &password("wombat-lane"));
        check("测试环境的 MYSQL_ROOT_PASSWORD=qingdao 别忘了", &password("qingdao"));
        check("We use postgres://app:s3same@db.example/app", &password("s3same"));
        check(
            "curl -H 'Authorization: Bearer 0a1b2c3d4e5f6a7b8c9d0e1f'",
            &[(SecretKind::Key, "0a1b2c3d4e5f6a7b8c9d0e1f")],
        );
        for text in [
            "I set DB_PASSWORD=${DB_PASSWORD} in the compose file",
            "max_tokens=4096 is enough, token=1024 is not",
            "API_KEY=<your key>",
            "password=****",
            "The site is https://example.com:8080/path@home",
            "He is the bearer of internationalisation",
        ] {
            check(text, &[]);
        }
    }

    #[test]
    fn a_plain_word_is_a_password_where_the_sentence_says_so() {
        check("My password is \"swordfish\"", &[(SecretKind::Password, "swordfish")]);
        check("我的密码是「芝麻开门吧」", &[(SecretKind::Password, "芝麻开门吧")]);
        check("I changed my PIN to 4711", &[(SecretKind::Password, "4711")]);
        check("wifi 密码改成 abc12345 了", &[(SecretKind::Password, "abc12345")]);
        for text in
            ["I changed my password to something longer", "密码改成什么好呢", "My password is swordfish-free"]
        {
            check(text, &[]);
        }
    }

    #[test]
    fn cards_are_known_by_their_checksum() {
        check("The card 4539 5787 6362 1486 expires in May", &[(SecretKind::Card, "4539 5787 6362 1486")]);
        check("卡号6222021234567890128。", &[(SecretKind::Card, "6222021234567890128")]);
        for text in [
            "The card 4539 5787 6362 1487 expires in May",
            "Order 1234567890123456 was shipped",
            "4444444444444444",
            "It took 1700000000000000 microseconds",
            "version 4.5395787636214860",
        ] {
            check(text, &[]);
        }
    }

    #[test]
    fn identity_numbers_have_a_date_and_a_check_digit() {
        check("身份证号 11010519491231002X", &[(SecretKind::Identity, "11010519491231002X")]);
        check("身份证号 110105194912310021", &[]);
    }

    #[test]
    fn a_secret_is_masked() {
        assert_eq!(masked("The PIN is 4711, and the dog is Kiwi"), "The PIN is 47…, and the dog is Kiwi");
        assert_eq!(masked("nothing here"), "nothing here");
    }
}
