//! The vault: memory as a folder of Markdown files that a person can read, edit and version.
//!
//! The files are the truth. A SQLite index inside the vault answers questions; it is derived from the files and can be deleted
//! at any time. A write goes to the index first, which numbers it and refuses conflicts, then its files are written and
//! flushed, and only then is it acknowledged. After a crash the missing files are written when the vault is opened next.
//!
//! Changes of a person are found by comparing the files with a snapshot of them ([`sync`]). Deliberately absent: the
//! meaning of memories, HTTP, settings. Start reading at [`store`], then [`flush`] and [`sync`]; [`form`] says what a file holds.

mod conflict;
mod dirty;
mod disk;
mod flush;
mod forget;
mod form;
mod front;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod git;
mod keeper;
mod layout;
mod probe;
mod processes;
mod purge;
mod reconcile;
mod row;
mod scope;
mod snapshot;
mod store;
mod sync;
mod vault;
mod watch;

pub use git::{Committed, Git};
pub use store::{VaultOptions, VaultStore};
pub use vault::{Progress, is_vault, remove_index};
