//! The settings of a PostgreSQL store.

use std::path::PathBuf;
use std::time::Duration;

use strata_core::{Error, Result};
use strata_postgres::{Address, PostgresOptions};
use strata_server::Secret;

/// How Strata uses a PostgreSQL store. The address itself is the setting `store`.
#[derive(Debug, Clone)]
pub struct Postgres {
    /// The password, if the address has none.
    pub password: Option<Secret>,
    /// A file with the password.
    pub password_file: Option<PathBuf>,
    /// The most connections of this process.
    pub connections: usize,
    /// The number of hash partitions when the tables are made.
    pub partitions: u32,
    /// The longest time of a statement.
    pub statement_timeout: Duration,
    /// How long a call waits for a connection.
    pub patience: Duration,
    /// The address of a read replica.
    pub replica: Option<Address>,
    /// A file with the certificates of the authorities to trust.
    pub root_certificates: Option<PathBuf>,
    /// The size from which a user's vectors are indexed, with pgvector.
    pub hnsw_from: u64,
}

impl Default for Postgres {
    fn default() -> Self {
        Self {
            password: None,
            password_file: None,
            connections: PostgresOptions::CONNECTIONS,
            partitions: PostgresOptions::PARTITIONS,
            statement_timeout: PostgresOptions::STATEMENT_TIMEOUT,
            patience: PostgresOptions::PATIENCE,
            replica: None,
            root_certificates: None,
            hnsw_from: PostgresOptions::HNSW_FROM,
        }
    }
}

impl Postgres {
    /// These settings for the store at `address`.
    pub(super) fn options(&self, address: &Address) -> Result<PostgresOptions> {
        let password = self.read_password()?;
        let with_password = |address: &Address| match &password {
            Some(password) => address.clone().with_password(password),
            None => address.clone(),
        };
        Ok(PostgresOptions {
            address: with_password(address),
            replica: self.replica.as_ref().map(with_password),
            connections: self.connections,
            partitions: self.partitions,
            statement_timeout: self.statement_timeout,
            patience: self.patience,
            root_certificates: self.root_certificates.clone(),
            hnsw_from: self.hnsw_from,
        })
    }

    fn read_password(&self) -> Result<Option<String>> {
        let Some(path) = &self.password_file else {
            return Ok(self.password.as_ref().map(|password| password.expose().to_owned()));
        };
        let text = std::fs::read_to_string(path).map_err(|error| {
            let message = format!(
                "the password file `{}` cannot be read; correct `postgres.password_file`",
                path.display()
            );
            Error::invalid(message).with_source(error)
        })?;
        Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
    }
}
