//! The reference store.
use super::Store;
/// Keeps everything in memory.
#[derive(Default)]
pub struct InMemoryStore;
