//! Eviction: a session's oldest entries leave recall and stay in cold memory.

use super::Work;
use crate::engine::Engine;
use crate::error::Result;
use crate::job::Job;

impl Engine {
    /// What an `evict` job writes.
    pub(super) async fn evict_job(&self, _job: &Job) -> Result<Work> {
        Ok(Work::default())
    }
}
