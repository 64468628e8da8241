//! Recording: turns, durable before they are acknowledged.
//!
//! [`Recording::record`] appends messages to a session. [`exchange`] records a client's messages and the reply of a model,
//! [`append`] writes turns together with what follows from them: the session's state, the rolling summary ([`fold`]) and the
//! jobs that learn. Start reading at [`record`].

pub mod align;
mod append;
mod exchange;
mod fold;
mod leave;
mod queue;
mod record;
mod unfold;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use strata_core::ports::{Clock, Compute, IdSource, TokenCounter};
use strata_core::store::Store;

use crate::forgotten::Forgotten;
use crate::jobs::Jobs;
use crate::limits::Limits;
use crate::prompt::PromptRules;

pub(crate) use append::{MAX_TRIES, session_now};
pub use exchange::{Ending, Exchange, ExchangeIds, KeptBy};
pub(crate) use fold::Unfolded;
pub(crate) use leave::left_space;
pub(crate) use queue::Queues;
pub use record::Recorded;

/// Appends turns to sessions.
#[derive(Clone)]
pub struct Recording {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) tokens: Arc<dyn TokenCounter>,
    pub(crate) compute: Arc<dyn Compute>,
    pub(crate) limits: Limits,
    pub(crate) prompts: Arc<PromptRules>,
    /// The writers of each session at the moment.
    pub(crate) queues: Arc<Queues>,
    /// The users and sessions that were forgotten while a chat was under way.
    pub(crate) forgotten: Arc<Forgotten>,
    /// The number of turns recorded through this part and its clones.
    pub(crate) recorded: Arc<AtomicU64>,
    pub(crate) jobs: Jobs,
}
