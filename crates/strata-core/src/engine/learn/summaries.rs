//! Summaries of a session, made behind the conversation.

use super::Work;
use crate::engine::Engine;
use crate::error::Result;
use crate::job::Job;

impl Engine {
    /// What a `summarise` job writes.
    pub(super) async fn summarise_job(&self, _job: &Job) -> Result<Work> {
        Ok(Work::default())
    }
}
