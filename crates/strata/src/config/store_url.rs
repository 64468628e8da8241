//! The address of a store.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use strata_core::nul::MayHoldNul;
use strata_core::{Error, Result};
use strata_postgres::{Address, PostgresOptions};

/// A store's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL database.
    Postgres(Box<PostgresOptions>),
    /// A folder of Markdown files.
    Vault(VaultFolder),
    /// A store in memory, which ends with the process.
    Memory,
}

/// A vault's folder, and how it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultFolder {
    /// The folder.
    pub path: PathBuf,
    /// Whether changes of a person are followed while the vault is open.
    pub watch: bool,
    /// Whether changes are committed to git.
    pub git: bool,
    /// The most bytes of a memory that is taken in from a file.
    pub max_memory_bytes: usize,
}

impl VaultFolder {
    /// A vault without watcher and git.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let max_memory_bytes = strata_engine::Limits::default().max_turn_bytes;
        Self { path: path.into(), watch: false, git: false, max_memory_bytes }
    }
}

/// The forms of an address.
const FORMS: &str =
    "a store is written as `sqlite:PATH`, `vault:DIR`, `postgres://USER@HOST/DATABASE` or `memory:`";

impl FromStr for StoreUrl {
    type Err = Error;

    /// Reads `sqlite:PATH`, `vault:DIR`, `postgres://…` or `memory:`. Errors never repeat the address, because the address of a database server may hold
    /// a password.
    fn from_str(text: &str) -> Result<Self> {
        if text == "memory:" || text == "memory" {
            return Ok(Self::Memory);
        }
        let Some((scheme, rest)) = text.split_once(':') else {
            return Err(Error::invalid(FORMS));
        };
        match scheme {
            "sqlite" => {
                let path = rest.strip_prefix("//").unwrap_or(rest);
                if path.is_empty() {
                    return Err(Error::invalid("the path is missing; write `sqlite:PATH`"));
                }
                if path == ":memory:" {
                    return Err(Error::invalid("for a store that ends with the process, write `memory:`"));
                }
                if path.holds_nul() {
                    return Err(Error::invalid("the path holds a NUL character; remove it"));
                }
                Ok(Self::Sqlite(PathBuf::from(path)))
            }
            "postgres" | "postgresql" => {
                let address: Address = text.parse()?;
                Ok(Self::Postgres(Box::new(PostgresOptions::new(address))))
            }
            "vault" => {
                let path = rest.strip_prefix("//").unwrap_or(rest);
                if path.is_empty() {
                    return Err(Error::invalid("the folder is missing; write `vault:DIR`"));
                }
                if path.holds_nul() {
                    return Err(Error::invalid("the path holds a NUL character; remove it"));
                }
                Ok(Self::Vault(VaultFolder::new(path)))
            }
            _ => Err(Error::invalid(FORMS)),
        }
    }
}

impl StoreUrl {
    /// The file of a SQLite store, or the folder of a vault.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(path) => Some(path),
            Self::Vault(vault) => Some(&vault.path),
            Self::Postgres(_) | Self::Memory => None,
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(options) => options.address.fmt(f),
            Self::Vault(vault) => write!(f, "vault:{}", vault.path.display()),
            Self::Memory => f.write_str("memory:"),
        }
    }
}

/// An address as `strata config` shows it. An address that cannot be read may hold a password anywhere.
pub(super) fn without_password(text: &str) -> String {
    if !text.starts_with("postgres") {
        return text.to_owned();
    }
    text.parse::<StoreUrl>().map_or_else(|_| "(hidden)".to_owned(), |url| url.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_read_from_its_address() {
        let sqlite = |path: &str| StoreUrl::Sqlite(PathBuf::from(path));
        let check = |text: &str, expected| assert_eq!(text.parse::<StoreUrl>().unwrap(), expected, "{text}");
        check("memory:", StoreUrl::Memory);
        check("sqlite:a.db", sqlite("a.db"));
        check("sqlite:/var/lib/a b.db", sqlite("/var/lib/a b.db"));
        check("sqlite:///var/lib/a.db", sqlite("/var/lib/a.db"));
        check("sqlite:C:\\strata.db", sqlite("C:\\strata.db"));
        check("vault:notes", StoreUrl::Vault(VaultFolder::new("notes")));
    }

    #[test]
    fn a_database_is_shown_without_its_password() {
        for scheme in ["postgres", "postgresql"] {
            let address = format!("{scheme}://me:secret@db.example/memory");
            let url: StoreUrl = address.parse().unwrap();
            assert_eq!(url.to_string(), "postgres://me@db.example:5432/memory");
            assert!(!format!("{url:?}").contains("secret"), "{url:?}");
            assert_eq!(without_password(&address), url.to_string());
        }
        assert_eq!(without_password("postgres://me:secret@:x/"), "(hidden)");
        assert_eq!(without_password("sqlite:a.db"), "sqlite:a.db");
    }

    #[test]
    fn what_is_no_store_is_refused_without_being_repeated() {
        let check = |text: &str, expected: &str| {
            let error = text.parse::<StoreUrl>().unwrap_err();
            assert!(error.message().contains(expected), "{text}: {error}");
            assert!(!error.message().contains("secret"), "{error}");
        };
        check("postgres://me:secret@:port/db", "cannot be read");
        check("postgresql:///secret", "no host");
        check("vault:", "folder is missing");
        check("sqlite:", "path is missing");
        check("sqlite::memory:", "`memory:`");
        check("strata.db", "`sqlite:PATH`");
        check("mysql://secret", "`sqlite:PATH`");
    }
}
