//! The address of a store.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use strata_core::nul::MayHoldNul;
use strata_core::{Error, Result};

/// A store's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A store in memory, which ends with the process.
    Memory,
}

impl FromStr for StoreUrl {
    type Err = Error;

    /// Reads `sqlite:PATH` or `memory:`. Errors never repeat the address, because the address of a database server may hold
    /// a password.
    fn from_str(text: &str) -> Result<Self> {
        if text == "memory:" || text == "memory" {
            return Ok(Self::Memory);
        }
        let Some((scheme, rest)) = text.split_once(':') else {
            return Err(Error::invalid("a store is written as `sqlite:PATH` or `memory:`"));
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
            "postgres" | "postgresql" | "vault" => {
                Err(Error::invalid(format!("`{scheme}:` stores are not in this version; use `sqlite:PATH`")))
            }
            _ => Err(Error::invalid("a store is written as `sqlite:PATH` or `memory:`")),
        }
    }
}

impl StoreUrl {
    /// The file of a SQLite store.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(path) => Some(path),
            Self::Memory => None,
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Memory => f.write_str("memory:"),
        }
    }
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
    }

    #[test]
    fn what_is_no_store_is_refused_without_being_repeated() {
        let check = |text: &str, expected: &str| {
            let error = text.parse::<StoreUrl>().unwrap_err();
            assert!(error.message().contains(expected), "{text}: {error}");
            assert!(!error.message().contains("secret"), "{error}");
        };
        check("postgres://me:secret@host/db", "not in this version");
        check("postgresql://me:secret@host/db", "not in this version");
        check("vault:notes", "not in this version");
        check("sqlite:", "path is missing");
        check("sqlite::memory:", "`memory:`");
        check("strata.db", "`sqlite:PATH`");
        check("mysql://secret", "`sqlite:PATH`");
    }
}
