//! Passwords after their words: «the wifi password is …», «passphrase: …», 密码是….
//!
//! Anything that is called a password, a passphrase, a PIN, 密码, 口令 or 暗号 and is given with its value is a secret. The code of a
//! door, a gate or a locker is none: people tell it in order to be reminded of it. Plain words are a secret only where the sentence
//! gives nothing but them as the value.

use std::sync::LazyLock;

use regex::{Captures, Match, Regex};

use super::{Secret, SecretKind, is_password, is_placeholder, pattern};

/// Words after which a password stands. The value is the last group.
static PASSWORD: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?i)\b(?:passwords?|passcodes?|passphrase|passwd|pwd|pin(?: code| number)?|api[ _-]?key|secret[ _-]?key|access[ _-]?token",
        r"|wi-?fi (?:key|code|pass)|alarm(?: system)?(?:'s)? code|(?:the|my|our|new|old) (?:safe|vault)(?:'s)? code|(?:safe|vault)(?:'s)? combination|security code|cvv|cvc",
        r"|(?:code|combination) (?:of|to|for) (?:the|my|our) (?:\w+ )?(?:alarm|safe|vault))\b",
        r#"[^.!?。！？\n:=]{0,40}?(?:\bis\b|\bare\b|:|=)\s*["'`«“]?([^\s"'`»”,;。，；]{3,})"#,
    ))
});
/// A value that directly follows its word.
static BESIDE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:password|passcode|passphrase|pwd|pin(?: code| number)?|alarm code)\s+([^\s,;。，；]*\d[^\s,;。，；]*)",
    )
});
static CHINESE_PASSWORD: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?:密码|密碼|口令|密钥|密鑰|令牌|验证码|驗證碼|支付码|暗号|暗號|(?i:pin)码)[^。！？\n：:=是为為]{0,12}?",
        r#"(?:是|为|為|：|:|=|\s|改成|改为|改為|换成|換成|设成|设为|設為)\s*["'“「]?([!-~&&[^"',;]]{4,})"#,
    ))
});
/// Digits that directly follow their word.
static CHINESE_BESIDE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?:密码|密碼|口令|暗号|暗號)[^。！？\n：:=，,锁鎖本箱盒机機\d]{0,6}?(\d{4,12})(?:[^\d年位元块塊个個次天月条條%]|$)",
    )
});
/// The password of a user, after a short word: «user vera pass: …».
static PASS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?i)\b(?:user(?:name)?|log-?in|account|e-?mail|admin|root)\b[^.!?\n]{1,60}?\bpass(?:\s*[:=]\s*|\s+is\s+|\s+)",
        r#"["'`«“]?([^\s"'`»”,;]{4,})"#,
    ))
});
static CHANGED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?i)\b(?:chang|set|reset|updat)\w*\b[^.!?\n]{0,20}\b(?:password|passcode|passphrase|pin|alarm code)\b",
        r#"[^.!?\n]{0,30}?\bto\s+["'`«“]?([^\s"'`»”,;]{4,})"#,
    ))
});
/// In quotation marks plain words are a password too.
static QUOTED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?i)(?:\b(?:password|passcode|passphrase|passwd|pwd)\b|密码|密碼|口令|暗号|暗號)",
        r#"[^.!?。！？\n:=]{0,40}?(?:\bis\b|:|=|是|为|為|：)\s*["'`«“「]([^\n"'`»”」]{3,80}[^\s"'`»”」])["'`»”」]"#,
    ))
});
/// A name and a password with a slash between them. The groups are the sign before the name, and the password.
static LOGIN: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?i)(?:\b(?:log-?in|credentials|creds|wi-?fi)\b|账号|帳號|账户|用户名)[^.!?。！？\n:：=/]{0,30}?(:|：|=|\bis\b|\bare\b|是|\s)\s*",
        r#"["'`]?[^\s/"'`]{2,64}["'`]?\s*/\s*["'`]?([^\s"'`,;/。，；]{4,})"#,
    ))
});
/// Plain words as a value. The groups are the name, the sign and the words.
static WORDS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?i)\b(password|passcode|passphrase|pass phrase|secret word|secret phrase|seed phrase|recovery phrase)\b",
        r"[^.!?。！？\n:=]{0,30}?(\bis\b|:|=)[ \t]*([a-z][a-z' \t-]{3,120})",
    ))
});
/// The same in Chinese. The groups are the sign and the words.
static CHINESE_WORDS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?:密码|密碼|口令|暗号|暗號)[^。！？\n：:=是为為]{0,8}?(是|为|為|：|:|改成|改为|改為|换成|換成|设成|设为|設為)\s*",
        r"(\p{Han}{3,24})(?:[^\p{Han}]|$)",
    ))
});

/// Words that tell that a sentence speaks about a password and does not say it.
const ABOUT: [&str; 84] = [
    "a",
    "an",
    "the",
    "my",
    "your",
    "our",
    "his",
    "her",
    "its",
    "their",
    "this",
    "that",
    "it",
    "they",
    "i",
    "you",
    "we",
    "on",
    "in",
    "at",
    "of",
    "for",
    "to",
    "from",
    "with",
    "under",
    "by",
    "and",
    "or",
    "not",
    "no",
    "never",
    "is",
    "are",
    "was",
    "be",
    "been",
    "being",
    "has",
    "have",
    "must",
    "should",
    "can",
    "will",
    "see",
    "ask",
    "same",
    "too",
    "very",
    "still",
    "now",
    "already",
    "only",
    "stored",
    "kept",
    "saved",
    "written",
    "changed",
    "reset",
    "expired",
    "expires",
    "forgotten",
    "lost",
    "unknown",
    "wrong",
    "correctly",
    "incorrect",
    "invalid",
    "required",
    "needed",
    "missing",
    "strong",
    "weak",
    "long",
    "short",
    "secure",
    "minimum",
    "random",
    "words",
    "characters",
    "letters",
    "unchanged",
    "something",
    "case-sensitive",
];

/// The same in Chinese, as parts of words.
const CHINESE_ABOUT: [&str; 44] = [
    "什么", "什麼", "多少", "怎么", "怎麼", "哪", "谁", "誰", "我", "你", "他", "她", "它", "们", "們", "的",
    "了", "吗", "嗎", "呢", "吧", "这", "這", "那", "忘", "记得", "記得", "需要", "必须", "必須", "应该",
    "應該", "不能", "不是", "不对", "没有", "沒有", "一样", "一樣", "生日", "错误", "错誤", "自动", "安全",
];

/// The fewest words of a value where the sentence could also describe it.
const SURE_WORDS: usize = 3;

/// Passwords after their words.
pub(super) fn in_prose(text: &str) -> impl Iterator<Item = Secret> {
    let quoted = QUOTED.captures_iter(text).filter_map(|captured| captured.get(1));
    let quoted = quoted.filter(|value| !is_placeholder(value.as_str()));
    let named = [&*PASSWORD, &CHANGED, &BESIDE, &PASS, &CHINESE_PASSWORD, &CHINESE_BESIDE].into_iter();
    let named = named.flat_map(move |pattern| pattern.captures_iter(text));
    let named = named.filter_map(|captured| captured.get(1).filter(|value| is_value(value.as_str())));
    let logins = LOGIN.captures_iter(text).filter_map(|captured| of_login(&captured));
    let words = WORDS.captures_iter(text).filter_map(|captured| words_of(text, &captured));
    let chinese = CHINESE_WORDS.captures_iter(text).filter_map(|captured| captured.get(2));
    let chinese = chinese.filter(|value| !CHINESE_ABOUT.iter().any(|word| value.as_str().contains(word)));
    let places = quoted.chain(named).chain(logins).chain(chinese).map(|value| (value.start(), value.end()));
    let places = places.chain(words);
    places.map(|(start, end)| Secret { kind: SecretKind::Password, start, end })
}

/// Whether a value is a password or the digits of a code, and no name of a method such as `sha256`.
fn is_value(value: &str) -> bool {
    const METHODS: [&str; 8] = ["sha", "md5", "base64", "base32", "aes", "utf", "bcrypt", "argon2"];
    let lower = value.to_ascii_lowercase();
    let bare = value.trim_end_matches(['.', '!', '?', ')']);
    let is_code = bare.len() == 3 && bare.bytes().all(|byte| byte.is_ascii_digit());
    (is_password(value) || is_code) && !METHODS.iter().any(|method| lower.starts_with(method))
}

/// The password of a login. After a sign a plain word is one too.
fn of_login<'a>(captured: &Captures<'a>) -> Option<Match<'a>> {
    let (sign, value) = (captured.get(1)?.as_str(), captured.get(2)?);
    let is_given = matches!(sign, ":" | "：" | "=");
    let word = value.as_str().trim_end_matches(['.', '!', '?', ')']).to_lowercase();
    let is_word = is_given && !ABOUT.contains(&word.as_str()) && !is_placeholder(&word);
    (is_word || is_password(value.as_str())).then_some(value)
}

/// The place of the words that are the value of a password. After a colon one word is enough; elsewhere the words have to be a
/// phrase, because «the password is strong» tells none.
fn words_of(text: &str, captured: &Captures<'_>) -> Option<(usize, usize)> {
    let (name, sign, value) = (captured.get(1)?.as_str(), captured.get(2)?.as_str(), captured.get(3)?);
    let is_about = |word: &str| ABOUT.contains(&word.to_lowercase().as_str()) || is_placeholder(word);
    let words: Vec<&str> = value.as_str().split_whitespace().collect();
    let count = words.iter().take_while(|word| !is_about(word)).count();
    let rest = &text[value.end()..];
    let is_whole =
        count == words.len() && (rest.is_empty() || rest.starts_with(['.', '!', '?', ',', ';', '\n']));
    let least = match sign {
        ":" | "=" if is_whole => 1,
        ":" | "=" => SURE_WORDS,
        _ if is_whole && name.to_lowercase().contains("phrase") => SURE_WORDS,
        _ => return None,
    };
    let last = words.get(count.checked_sub(1)?).filter(|_| count >= least)?;
    let end = last.as_ptr() as usize - value.as_str().as_ptr() as usize + last.len();
    Some((value.start(), value.start() + end))
}
