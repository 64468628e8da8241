//! API keys: the user they act for, their scopes, their limits and their expiry.
//!
//! A key's secret is shown once and never stored: a store has only its SHA-256. A slow hash, as passwords need, would
//! only delay every request, because 160 random bits cannot be guessed at any speed. Random bytes come from
//! [`SecretSource`]; the core has no source of randomness. Deliberately absent: headers and status codes.

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
use crate::scope::RecallScope;

/// The prefix of every key. People, programs and scanners for leaked secrets recognise a key by it.
pub const KEY_PREFIX: &str = "strata_";

/// The random bytes of a secret: 160 bits.
pub const SECRET_BYTES: usize = 20;

/// The number of characters of a secret after [`KEY_PREFIX`], five bits each.
const SECRET_CHARS: usize = SECRET_BYTES * 8 / 5;

/// The number of these characters that lists show. 30 bits tell one user's keys apart; 130 bits stay unknown.
const SHOWN_CHARS: usize = 6;

/// The alphabet leaves out `i`, `l`, `o` and `u`, which people confuse with other characters.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// A key as the store keeps it, without its secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApiKey {
    /// The id, which a revocation names.
    pub id: KeyId,
    /// The user it acts for. [`UserId::global`] marks a key without a user: each request names its user.
    #[serde(with = "owner")]
    pub user: UserId,
    /// The purpose, as the creator of the key describes it.
    pub name: Option<String>,
    /// The scopes of the key.
    pub scopes: Scopes,
    /// The digest of its secret.
    pub hash: KeyHash,
    /// The first characters of its secret.
    pub prefix: String,
    /// The time of its creation.
    pub created_at: Timestamp,
    /// The time from which on it is expired.
    pub expires_at: Option<Timestamp>,
    /// The time of its revocation.
    pub revoked_at: Option<Timestamp>,
    /// The limits on its requests.
    pub limits: KeyLimits,
    /// How far its questions in a session look, instead of the setting. A request may narrow it and not widen it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recall_scope: Option<RecallScope>,
}

impl ApiKey {
    /// Whether the key has no user of its own, so that each request names one.
    pub fn is_unbound(&self) -> bool {
        self.user == UserId::global()
    }

    /// The state of the key at a moment.
    pub fn state(&self, now: Timestamp) -> KeyState {
        match (self.revoked_at, self.expires_at) {
            (Some(_), _) => KeyState::Revoked,
            (None, Some(end)) if end <= now => KeyState::Expired,
            (None, _) => KeyState::Live,
        }
    }
}

/// The state of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[derive(IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum KeyState {
    /// The key is valid.
    Live,
    /// The key has expired.
    Expired,
    /// The key was revoked.
    Revoked,
}

impl KeyState {
    /// The name that people see.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// One permission of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, EnumString, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum KeyScope {
    /// Read, search and make prompts.
    Read,
    /// Record and change.
    Write,
    /// Change data that all users share, and see the operator's data.
    Admin,
    /// Chat through the proxy, with as much memory as `read` and `write` allow: with `read` alone nothing is recorded,
    /// with `write` alone nothing is recalled.
    Chat,
}

impl KeyScope {
    /// The name that people write.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The permissions of a key. None includes another: a key that only writes suits a collector of data, a key that only
/// administers suits a monitor of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Scopes {
    /// [`KeyScope::Read`].
    pub read: bool,
    /// [`KeyScope::Write`].
    pub write: bool,
    /// [`KeyScope::Admin`].
    pub admin: bool,
    /// [`KeyScope::Chat`].
    pub chat: bool,
}

impl Scopes {
    /// All scopes that an administrator needs.
    pub const ALL: Self = Self { read: true, write: true, admin: true, chat: false };

    /// No scopes.
    pub const NONE: Self = Self { read: false, write: false, admin: false, chat: false };

    /// Whether `scope` is among the permissions.
    pub fn contain(self, scope: KeyScope) -> bool {
        match scope {
            KeyScope::Read => self.read,
            KeyScope::Write => self.write,
            KeyScope::Admin => self.admin,
            KeyScope::Chat => self.chat,
        }
    }
}

impl Default for Scopes {
    /// The permissions that an application needs: read and write.
    fn default() -> Self {
        Self { read: true, write: true, ..Self::NONE }
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
        let mut scopes = Self::NONE;
        for name in text.split(',') {
            let scope = KeyScope::from_str(name.trim()).map_err(|_| {
                Error::invalid(format!(
                    "scope `{}` is unknown; use `read`, `write`, `admin` or `chat`, separated by commas",
                    shown(name.trim())
                ))
            })?;
            match scope {
                KeyScope::Read => scopes.read = true,
                KeyScope::Write => scopes.write = true,
                KeyScope::Admin => scopes.admin = true,
                KeyScope::Chat => scopes.chat = true,
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

/// The limits on a key's requests; `None` means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyLimits {
    /// Requests per minute. After a quiet minute as many may come at once.
    pub per_minute: Option<u32>,
    /// Requests in progress at the same time, streams included.
    pub concurrent: Option<u32>,
}

/// Unpredictable random bytes. Tests pass known ones.
pub trait SecretSource: Send + Sync {
    /// Fills `bytes`; fails if the machine cannot provide random bytes.
    fn fill(&self, bytes: &mut [u8; SECRET_BYTES]) -> Result<()>;
}

/// A key's secret, as its owner sends it. Only [`KeySecret::reveal`] shows it, so that no log prints it by accident.
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

    /// Reads the text that a client sent; `None` if it does not have the form of a secret.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(KEY_PREFIX)?;
        let is_secret = rest.len() == SECRET_CHARS && rest.bytes().all(|byte| ALPHABET.contains(&byte));
        is_secret.then(|| Self(text.to_owned()))
    }

    /// The secret itself, to be shown once to its owner.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The first characters: enough to recognise the key, too few to use it.
    pub fn prefix(&self) -> String {
        self.0.chars().take(KEY_PREFIX.len() + SHOWN_CHARS).collect()
    }

    /// The digest that a store keeps.
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
    /// Compares two digests in constant time.
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

/// A key's owner may be the global bucket, which no client can name.
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

    /// Fills the bytes with one value.
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
        assert_eq!(
            KeySecret::parse(&format!("strata_{}", "u".repeat(32))),
            None,
            "`u` is not in the alphabet"
        );
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
            ("chat,read", "read,chat"),
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
            recall_scope: Some(RecallScope::Session),
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
