//! API keys: who may ask, for whom, for what, how often and until when.
//!
//! A key's secret is shown once and never kept: a store has its SHA-256 alone. A slow hash, as passwords need, would only
//! cost every request its time, since nobody guesses 160 random bits however fast they try. Randomness comes in through
//! [`SecretSource`]; the core has none of its own. What is deliberately left alone: headers and status codes.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use strum::{EnumString, IntoStaticStr, VariantArray};
use subtle::ConstantTimeEq;

use crate::error::{Error, Result, shown};
use crate::hash::hex;
use crate::id::{KeyId, UserId};

/// What every key begins with, so that people, programs and scanners for leaked secrets recognise one.
pub const KEY_PREFIX: &str = "strata_";

/// The random bytes of a secret: 160 bits.
pub const SECRET_BYTES: usize = 20;

/// The characters of a secret after [`KEY_PREFIX`], five bits each.
const SECRET_CHARS: usize = SECRET_BYTES * 8 / 5;

/// How many of them lists show. 30 bits tell a person's keys apart; 130 stay unknown.
const SHOWN_CHARS: usize = 6;

/// Without `i`, `l`, `o` and `u`, which are taken for others when read aloud or copied by hand.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// A key as the store knows it, without its secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApiKey {
    /// Its id, under which it is revoked.
    pub id: KeyId,
    /// Whom it speaks for. [`UserId::global`] is a key that is bound to nobody and names its user in each request.
    #[serde(with = "owner")]
    pub user: UserId,
    /// What it is for, in somebody's own words.
    pub name: Option<String>,
    /// What it may do.
    pub scopes: Scopes,
    /// The digest of its secret.
    pub hash: KeyHash,
    /// How its secret begins.
    pub prefix: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// From when on it is no longer good.
    pub expires_at: Option<Timestamp>,
    /// When somebody took it back.
    pub revoked_at: Option<Timestamp>,
    /// How much it may ask.
    pub limits: KeyLimits,
}

impl ApiKey {
    /// Whether the key names its user in each request instead of having one.
    pub fn is_unbound(&self) -> bool {
        self.user == UserId::global()
    }

    /// How the key stands at a moment.
    pub fn state(&self, now: Timestamp) -> KeyState {
        match (self.revoked_at, self.expires_at) {
            (Some(_), _) => KeyState::Revoked,
            (None, Some(end)) if end <= now => KeyState::Expired,
            (None, _) => KeyState::Live,
        }
    }
}

/// Whether a key is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[derive(IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum KeyState {
    /// It is.
    Live,
    /// Its time is over.
    Expired,
    /// Somebody took it back.
    Revoked,
}

impl KeyState {
    /// The name people see.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// One thing that a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, EnumString, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum KeyScope {
    /// Reads, searches and makes prompts.
    Read,
    /// Records and changes.
    Write,
    /// Changes what all users share, and sees what is the operator's.
    Admin,
}

impl KeyScope {
    /// The name people write.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// What a key may do. None includes another: a key that only writes is for what collects, one that only administers for
/// what watches the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Scopes {
    /// [`KeyScope::Read`].
    pub read: bool,
    /// [`KeyScope::Write`].
    pub write: bool,
    /// [`KeyScope::Admin`].
    pub admin: bool,
}

impl Scopes {
    /// Everything.
    pub const ALL: Self = Self { read: true, write: true, admin: true };

    /// Whether `scope` is among them.
    pub fn contain(self, scope: KeyScope) -> bool {
        match scope {
            KeyScope::Read => self.read,
            KeyScope::Write => self.write,
            KeyScope::Admin => self.admin,
        }
    }
}

impl Default for Scopes {
    /// What an application needs: to read and to write.
    fn default() -> Self {
        Self { read: true, write: true, admin: false }
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scopes = KeyScope::VARIANTS.iter().copied();
        let names = scopes.filter(|scope| self.contain(*scope)).map(KeyScope::as_str);
        f.write_str(&names.collect::<Vec<_>>().join(","))
    }
}

impl FromStr for Scopes {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut scopes = Self { read: false, write: false, admin: false };
        for name in text.split(',') {
            let scope = KeyScope::from_str(name.trim()).map_err(|_| {
                Error::invalid(format!(
                    "scope `{}` is unknown; use `read`, `write` and `admin`, with commas between",
                    shown(name.trim())
                ))
            })?;
            match scope {
                KeyScope::Read => scopes.read = true,
                KeyScope::Write => scopes.write = true,
                KeyScope::Admin => scopes.admin = true,
            }
        }
        Ok(scopes)
    }
}

impl TryFrom<String> for Scopes {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Scopes> for String {
    fn from(scopes: Scopes) -> Self {
        scopes.to_string()
    }
}

/// How much a key may ask; no limit where there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyLimits {
    /// Requests a minute. As many may come at once after a quiet minute.
    pub per_minute: Option<u32>,
    /// Requests under way at the same time, streams included.
    pub concurrent: Option<u32>,
}

/// Random bytes that nobody can foresee. Tests hand in known ones.
pub trait SecretSource: Send + Sync {
    /// Fills `bytes`; fails where the machine has no randomness to give.
    fn fill(&self, bytes: &mut [u8; SECRET_BYTES]) -> Result<()>;
}

/// A key's secret, as its owner sends it. It is never shown by accident: only [`KeySecret::reveal`] gives it away.
#[derive(Clone, PartialEq, Eq)]
pub struct KeySecret(String);

impl KeySecret {
    /// A fresh secret.
    pub fn generate(source: &dyn SecretSource) -> Result<Self> {
        let mut bytes = [0; SECRET_BYTES];
        source.fill(&mut bytes)?;
        let mut text = String::with_capacity(KEY_PREFIX.len() + SECRET_CHARS);
        text.push_str(KEY_PREFIX);
        for place in 0..SECRET_CHARS {
            let bits = (0..5).fold(0, |value, bit| {
                let at = place * 5 + bit;
                value << 1 | usize::from(bytes[at / 8] >> (7 - at % 8) & 1)
            });
            text.push(char::from(ALPHABET[bits]));
        }
        Ok(Self(text))
    }

    /// What a client sent, if it has a secret's shape.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(KEY_PREFIX)?;
        let is_secret = rest.len() == SECRET_CHARS && rest.bytes().all(|byte| ALPHABET.contains(&byte));
        is_secret.then(|| Self(text.to_owned()))
    }

    /// The secret itself, to show once to whom it belongs.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// How it begins: enough to recognise it by, too little to use it.
    pub fn prefix(&self) -> String {
        self.0.chars().take(KEY_PREFIX.len() + SHOWN_CHARS).collect()
    }

    /// What is kept of it.
    pub fn hash(&self) -> KeyHash {
        KeyHash(Sha256::digest(self.0.as_bytes()).into())
    }
}

impl fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeySecret({}…)", self.prefix())
    }
}

/// The SHA-256 of a secret.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash(pub [u8; 32]);

impl KeyHash {
    /// Whether both are the same, found out in a time that tells nothing about where they differ.
    pub fn matches(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyHash(…)")
    }
}

impl Serialize for KeyHash {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for KeyHash {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let hex = String::deserialize(deserializer)?;
        let wrong = || serde::de::Error::custom("a key's hash is 64 hexadecimal digits");
        if hex.len() != 64 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (place, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&hex[place * 2..place * 2 + 2], 16).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
    }
}

/// A key's owner may be the bucket that no client can name.
mod owner {
    use serde::{Deserialize, Deserializer, Serializer, de};

    use crate::id::UserId;

    pub(super) fn serialize<S: Serializer>(user: &UserId, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(user.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<UserId, D::Error> {
        UserId::from_stored(String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives the same byte again and again.
    struct Repeated(u8);

    impl SecretSource for Repeated {
        fn fill(&self, bytes: &mut [u8; SECRET_BYTES]) -> Result<()> {
            bytes.fill(self.0);
            Ok(())
        }
    }

    #[test]
    fn a_secret_holds_every_random_bit() {
        let secret = |byte| KeySecret::generate(&Repeated(byte)).unwrap().reveal().to_owned();
        assert_eq!(secret(0), format!("strata_{}", "0".repeat(32)));
        assert_eq!(secret(0xff), format!("strata_{}", "z".repeat(32)));
        assert_eq!(secret(0xa5), format!("strata_{}", "mpjtb9d5".repeat(4)));
        let mut seen = std::collections::BTreeSet::new();
        for bit in 0..SECRET_BYTES * 8 {
            struct One(usize);
            impl SecretSource for One {
                fn fill(&self, bytes: &mut [u8; SECRET_BYTES]) -> Result<()> {
                    bytes.fill(0);
                    bytes[self.0 / 8] = 1 << (self.0 % 8);
                    Ok(())
                }
            }
            seen.insert(KeySecret::generate(&One(bit)).unwrap().reveal().to_owned());
        }
        assert_eq!(seen.len(), SECRET_BYTES * 8, "each bit makes another secret");
    }

    #[test]
    fn a_secret_is_recognised_by_its_shape() {
        let secret = KeySecret::generate(&Repeated(0x3c)).unwrap();
        assert_eq!(KeySecret::parse(secret.reveal()), Some(secret.clone()));
        let text = secret.reveal();
        for wrong in
            ["", "strata_", "sk-abc", &text[1..], &text[..text.len() - 1], &format!("{text}0"), "strata_Ü"]
        {
            assert_eq!(KeySecret::parse(wrong), None, "{wrong}");
        }
        assert_eq!(KeySecret::parse(&text.to_uppercase()), None);
        assert_eq!(KeySecret::parse(&format!("strata_{}", "u".repeat(32))), None, "`u` is no letter of ours");
    }

    #[test]
    fn neither_secret_nor_hash_is_shown_by_accident() {
        let secret = KeySecret::generate(&Repeated(0x3c)).unwrap();
        let shown = format!("{secret:?} {:?}", secret.hash());
        assert!(shown.contains(&secret.prefix()) && !shown.contains(secret.reveal()), "{shown}");
        assert_eq!(secret.prefix().len(), KEY_PREFIX.len() + SHOWN_CHARS);
    }

    #[test]
    fn a_hash_is_sha_256_and_travels_as_hexadecimal() {
        // `printf strata_00000000000000000000000000000000 | sha256sum`
        let hash = KeySecret::generate(&Repeated(0)).unwrap().hash();
        let text = serde_json::to_string(&hash).unwrap();
        assert_eq!(text, "\"eb15b11f6d8ab02920600ea0cf928f72017af1a3be5342b31df783092ce63ae1\"");
        assert_eq!(serde_json::from_str::<KeyHash>(&text).unwrap(), hash);
        assert!(hash.matches(&hash.clone()));
        let mut other = hash;
        other.0[31] ^= 1;
        assert!(!hash.matches(&other));
        for wrong in
            ["\"\"", "\"00\"", &format!("\"{}\"", "+0".repeat(32)), &format!("\"{}\"", "é".repeat(32))]
        {
            assert!(serde_json::from_str::<KeyHash>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn scopes_are_named() {
        for (text, shown) in [
            ("read", "read"),
            ("write,read", "read,write"),
            ("admin", "admin"),
            (" read , admin,read", "read,admin"),
        ] {
            assert_eq!(text.parse::<Scopes>().unwrap().to_string(), shown);
        }
        for wrong in ["", "all", "read,", "Read", "read;write"] {
            assert!(wrong.parse::<Scopes>().is_err(), "{wrong}");
        }
        assert_eq!(Scopes::default().to_string(), "read,write");
        assert!(!"admin".parse::<Scopes>().unwrap().contain(KeyScope::Read), "none includes another");
    }

    #[test]
    fn a_key_ends_with_its_time_or_when_it_is_taken_back() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let secret = KeySecret::generate(&Repeated(1)).unwrap();
        let key = ApiKey {
            id: KeyId(uuid::Uuid::nil()),
            user: UserId::global(),
            name: None,
            scopes: Scopes::ALL,
            hash: secret.hash(),
            prefix: secret.prefix(),
            created_at: at(0),
            expires_at: Some(at(10)),
            revoked_at: None,
            limits: KeyLimits::default(),
        };
        assert_eq!(key.state(at(9)), KeyState::Live);
        assert_eq!(key.state(at(10)), KeyState::Expired);
        let revoked = ApiKey { revoked_at: Some(at(5)), ..key.clone() };
        assert_eq!(revoked.state(at(4)), KeyState::Revoked, "a clock that goes back brings nothing back");
        assert_eq!(ApiKey { expires_at: None, ..key.clone() }.state(at(i64::from(u32::MAX))), KeyState::Live);
        let text = serde_json::to_string(&key).unwrap();
        assert_eq!(serde_json::from_str::<ApiKey>(&text).unwrap(), key);
        assert!(key.is_unbound());
    }
}
