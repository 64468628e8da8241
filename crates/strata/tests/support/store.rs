//! A store of each kind for the tests that kill: what an acknowledgement promises does not depend on where memory lies.

use std::path::{Path, PathBuf};
use std::process::Command;

use strata_postgres::test_server::{self, Database};
use tempfile::TempDir;

use super::{Server, Shim, show, store_url, strata};

/// The fraction of a test's usual rounds on the stores other than SQLite, where a round takes longer.
const FEWER: u64 = 10;

/// A store of one test with a folder of its own, which is removed with it.
pub(crate) struct TestStore {
    folder: TempDir,
    place: Place,
}

/// Where the store lies.
enum Place {
    File(PathBuf),
    Vault(PathBuf),
    Database(Database),
}

impl TestStore {
    /// A SQLite file.
    pub(crate) fn sqlite() -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let place = Place::File(folder.path().join("strata.db"));
        Self { folder, place }
    }

    /// A folder of Markdown files.
    pub(crate) fn vault() -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let place = Place::Vault(folder.path().join("vault"));
        Self { folder, place }
    }

    /// A PostgreSQL database.
    pub(crate) fn postgres() -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
        let place = Place::Database(runtime.block_on(test_server::database()));
        Self { folder, place }
    }

    /// The address for `--store`.
    pub(crate) fn address(&self) -> String {
        match &self.place {
            Place::File(path) => store_url(path),
            Place::Vault(path) => format!("vault:{}", path.display()),
            Place::Database(database) => database.address(),
        }
    }

    /// The file or the folder; `None` for a database.
    pub(crate) fn path(&self) -> Option<&Path> {
        match &self.place {
            Place::File(path) | Place::Vault(path) => Some(path),
            Place::Database(_) => None,
        }
    }

    /// The database, if the store is one.
    pub(crate) fn database(&self) -> Option<&Database> {
        match &self.place {
            Place::Database(database) => Some(database),
            Place::File(_) | Place::Vault(_) => None,
        }
    }

    /// The folder around the store.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The rounds of a test that repeats itself.
    pub(crate) fn rounds(&self, usual: u64) -> u64 {
        let is_file = matches!(self.place, Place::File(_));
        super::rounds(if is_file { usual } else { usual.div_ceil(FEWER) })
    }

    /// Starts a server on the store.
    pub(crate) fn serve(&self, settings: &[&str]) -> Server {
        self.serve_as("strata", settings, None)
    }

    /// Starts a server of this name, under faults of the disk and the clock if there is a shim.
    pub(crate) fn serve_as(&self, name: &str, settings: &[&str], shim: Option<&Shim>) -> Server {
        let mut command = strata();
        command.envs(shim.iter().flat_map(|shim| shim.variables()));
        let log = self.folder.path().join(name).with_extension("log");
        Server::start_as(command, &self.address(), &log, settings)
    }

    /// A command on the store.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = strata();
        command.args(args).args(["--store", &self.address()]);
        command
    }

    /// Fails unless `strata doctor` finds nothing wrong.
    #[track_caller]
    pub(crate) fn assert_well(&self) {
        let output = self.command(&["doctor"]).output().expect("the binary runs");
        assert!(output.status.success(), "{}", show(&output));
    }
}

/// Makes a test on each kind of store of a function that takes a [`TestStore`].
#[allow(unused_macros, reason = "the tests that kill use it")]
macro_rules! on_each_store {
    ($name:ident, $run:expr) => {
        mod $name {
            #[allow(unused_imports, reason = "what the function needs")]
            use super::*;

            #[test]
            fn on_sqlite() {
                ($run)(&crate::support::TestStore::sqlite());
            }

            #[test]
            fn on_a_vault() {
                ($run)(&crate::support::TestStore::vault());
            }

            #[test]
            fn on_postgres() {
                ($run)(&crate::support::TestStore::postgres());
            }
        }
    };
}

pub(crate) use on_each_store;
