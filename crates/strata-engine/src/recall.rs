//! Recall: from a question to the few items that answer it.
//!
//! The stages run in this order: [`candidates`] finds the items that may answer (from one of two sources; trigrams if no term
//! matches), [`listing`] adds all memories of a kind that is asked for, and [`walls`] removes those of other sessions. [`rank`] orders them, for each question of the message
//! ([`multi_question`]): it leaves out repetitions and items that say nothing ([`exclusions`]), puts the newest of several
//! statements first ([`newest_first`]), and says how likely each item helps ([`calibration`]). [`validity`] puts current memories
//! before outdated turns, [`second_look`] asks the reader where the scores leave a doubt, and [`rerank`] reorders the best if asked
//! to. [`serve`] chooses the items to return (threshold, recency, [`diversity`], [`budget`]), and [`trace`] explains the choice. If nothing is chosen, [`summaries`] stand in. If a model fails, the results are worse,
//! but recall still answers. Start reading at [`Recall::ask`].

mod best;
mod budget;
mod calibration;
mod candidates;
mod covered;
mod deadline;
mod disputed;
mod diversity;
mod exclusions;
mod filtered;
mod identifiers;
mod index_candidates;
mod lexical;
mod likeness;
mod listing;
mod log;
mod multi_question;
mod newest_first;
mod question;
mod rank;
mod request;
mod rerank;
mod second_look;
mod serve;
mod store_candidates;
mod store_vectors;
mod summaries;
#[cfg(test)]
pub(crate) mod tests;
mod trace;
mod validity;
mod visible;
mod walls;

use std::sync::Arc;
use std::time::Duration;

use strata_core::error::Result;
use strata_core::id::{RequestId, UserId};
use strata_core::ports::{Clock, Compute, Embedder, IdSource, Reader, Reranker, Timer, TokenCounter};
use strata_core::store::{Head, Store};

use strata_language::content::is_courtesy;
use strata_language::cues::{asked_beside_task, is_bare_task};

use crate::index::{Indexes, TextFingerprint};
use crate::maintenance::Maintenance;
use candidates::CandidateSet;
use deadline::in_time;

pub use budget::{Budget, Share, cut, share};
pub use deadline::Deadline;
pub(crate) use disputed::newer_side_first;
pub(crate) use log::RequestLog;
pub(crate) use request::MAX_QUERY_CHARS;
pub use request::{MAX_LIMIT, Order, RecallRequest, RecallSettings, Recalled, RecalledItem, Shown};

use request::RecallPlan;

/// How long a search waits until what was said just now is embedded.
const CATCH_UP: Duration = Duration::from_millis(150);

/// Answers questions from memory.
#[derive(Clone)]
pub struct Recall {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) tokens: Arc<dyn TokenCounter>,
    pub(crate) compute: Arc<dyn Compute>,
    pub(crate) settings: Arc<RecallSettings>,
    pub(crate) indexes: Option<Arc<Indexes>>,
    pub(crate) embedder: Option<Arc<dyn Embedder>>,
    pub(crate) reranker: Option<Arc<dyn Reranker>>,
    /// Reads candidates in cases of doubt.
    pub(crate) reader: Option<Arc<dyn Reader>>,
    /// Without a timer, no deadline ever passes.
    pub(crate) timer: Option<Arc<dyn Timer>>,
    pub(crate) log: RequestLog,
    pub(crate) maintenance: Maintenance,
}

impl Recall {
    /// Answers a question from memory, and adds a row to the request log.
    pub async fn ask(&self, user: &UserId, request: &RecallRequest) -> Result<Recalled> {
        let began = self.clock.now();
        let plan = request.plan(&self.settings)?;
        let id = RequestId(self.ids.next());
        // The row does not store the filter, so a repeated recall would explain a different question. The trace is
        // stored instead.
        let explain = request.explain || request.filter.is_some();
        let traced = RecallRequest { explain, ..request.clone() };
        let mut recalled = self.recall_planned(user, traced, plan, id).await;
        let elapsed = self.clock.now().duration_since(began);
        self.log.note_request(user, request, id, recalled.as_ref().ok(), elapsed);
        if let Ok(recalled) = &mut recalled
            && !request.explain
        {
            recalled.trace = None;
        }
        recalled
    }

    /// Like [`Recall::ask`], without a row in the log: for a person who tries questions out.
    pub async fn rehearse(&self, user: &UserId, request: &RecallRequest) -> Result<Recalled> {
        self.ask_unnoted(user, request, RequestId(self.ids.next())).await
    }

    /// Like [`Recall::ask`], with the id of an earlier request and without a new row in the log.
    pub(crate) async fn ask_unnoted(
        &self,
        user: &UserId,
        request: &RecallRequest,
        id: RequestId,
    ) -> Result<Recalled> {
        let plan = request.plan(&self.settings)?;
        self.recall_planned(user, request.clone(), plan, id).await
    }

    async fn recall_planned(
        &self,
        user: &UserId,
        request: RecallRequest,
        plan: RecallPlan,
        id: RequestId,
    ) -> Result<Recalled> {
        let request = Arc::new(without_task(request));
        if request.order == Order::Served && wants_nothing(&request) {
            let nothing = CandidateSet { scope: plan.scope, ..CandidateSet::default() };
            return self.serve(user, &request, &plan, id, nothing).await;
        }
        self.catch_up(user, &request).await;
        let mut found = self.find_candidates(user, &request, &plan).await?;
        if found.term_hits == 0 && request.similar {
            self.add_similar(&request, &plan, &mut found).await?;
        }
        // Boxed, because the futures of all callers hold it.
        Box::pin(self.list_kind(user, &request, &plan, &mut found)).await?;
        if plan.confined {
            self.exclude_learned_elsewhere(&request, &mut found).await?;
        }
        let may_summarise = summaries::may_stand_in(&request, &found);
        let recalled = self.serve(user, &request, &plan, id, found).await?;
        if recalled.items.is_empty() && may_summarise {
            // Boxed, because the futures of all callers hold it.
            return Box::pin(self.summaries_only(user, &request, plan, id, recalled)).await;
        }
        Ok(recalled)
    }

    /// Waits until what the user has said just now can be found by its meaning, but not for long. A chat does not wait: its
    /// deadline is for the models.
    async fn catch_up(&self, user: &UserId, request: &RecallRequest) {
        if request.deadline.is_none() && self.indexes.is_some() {
            let patience = self.timer.as_ref().map(|timer| Deadline::after(timer, CATCH_UP));
            let _ = in_time(patience.as_ref(), Box::pin(self.maintenance.catch_up(user))).await;
        }
    }

    /// Brings a user's index up to date, so that the next recall only has to rank.
    pub(crate) async fn freshen(&self, user: &UserId) -> Result<()> {
        self.freshen_to(user, self.store.head(user).await?).await
    }

    /// As [`Recall::freshen`], up to a head that was read just now.
    pub(crate) async fn freshen_to(&self, user: &UserId, head: Head) -> Result<()> {
        let Some(indexes) = &self.indexes else { return Ok(()) };
        if head.revision <= self.settings.index_max_items {
            let model = self.embedder.as_ref().map(|embedder| embedder.model());
            indexes.fresh(self.store.as_ref(), self.compute.as_ref(), user, head, model).await?;
        }
        Ok(())
    }
}

/// Whether a request asks for nothing that memory has: a greeting, thanks, or a task such as «translate this sentence». A
/// client that names a threshold has asked for everything above it.
fn wants_nothing(request: &RecallRequest) -> bool {
    is_courtesy(&request.query) || (request.score_threshold.is_none() && is_bare_task(&request.query))
}

/// A message that holds a task and a question asks memory the question alone. An earlier copy of the whole message is no
/// answer.
fn without_task(mut request: RecallRequest) -> RecallRequest {
    let asked = asked_beside_task(&request.query).join(" ");
    if !asked.is_empty() {
        request.shown.texts.insert(TextFingerprint::new(&request.query));
        request.query = asked;
    }
    request
}
