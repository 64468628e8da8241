//! Which method applies which change.

use strata_core::store::Change;

use super::Writing;
use crate::error::Outcome;
use crate::terms::Terms;

impl Writing<'_> {
    /// Applies one change; `terms` are those of its texts.
    pub(super) async fn change(&mut self, change: &Change, terms: &[Terms]) -> Outcome<()> {
        match change {
            Change::AppendTurns { session, turns } => self.append(session, turns, terms).await,
            Change::HideTurns { ids, hidden } => self.hide_turns(ids, *hidden).await,
            Change::PutState { session, state } => self.put_state(session, state).await,
            Change::PutSummary(summary) => self.put_summary(summary).await,
            Change::AddMemory(memory) => self.add_memory(memory, terms).await,
            Change::ReviseMemory { id, archive_as, content, metadata } => {
                self.revise_memory(*id, *archive_as, content, metadata.as_ref(), terms).await
            }
            Change::CloseMemory { id, valid_to, replaced_by } => {
                self.close_memory(*id, *valid_to, *replaced_by).await
            }
            Change::NoteMemory { id, notes } => self.note_memory(*id, *notes).await,
            Change::ConfirmMemory { id, turns } => self.confirm_memory(*id, turns).await,
            Change::HideMemory { id, hidden } => self.hide_memory(*id, *hidden).await,
            Change::PutVectors(vectors) => self.put_vectors(vectors).await,
            Change::PutSegment { segment, epoch } => self.put_segment(segment, *epoch).await,
            Change::MergeSegments { segment, epoch } => self.merge_segments(segment, *epoch).await,
            Change::DropSegments { space } => self.drop_segments(space).await,
            Change::SetProgress { space, revision } => self.set_progress(space, *revision).await,
            Change::EnqueueJob(job) => self.enqueue_job(job).await,
            Change::EnqueueOnce(job) => self.enqueue_once(job).await,
            Change::FinishJob { id, lease, outcome } => self.finish_job(*id, *lease, outcome).await,
            Change::RetryJob { id } => self.retry_job(*id).await,
            Change::PruneJobs { before } => self.prune_jobs(*before).await,
            Change::AddRequest(request) => self.add_request(request).await,
            Change::AddFeedback { id, feedback } => self.add_feedback(*id, feedback).await,
            Change::PruneRequests { before } => self.prune("requests", *before).await,
            Change::PruneIdempotency { before } => self.prune("idempotency", *before).await,
            Change::AddKey(key) => self.add_key(key).await,
            Change::RevokeKey { id } => self.revoke_key(*id).await,
            Change::Forget(what) => self.forget(what).await,
        }
    }
}
