//! The use-cases of Strata over the ports of `strata-core`: record, recall, prompt, learn.
//!
//! This crate deliberately knows no database, no HTTP, no file system, no environment variable, no wall clock and no
//! async runtime. Time, ids, token counts, models and storage come in through ports. Start reading at [`Engine`],
//! which lists the parts.

mod ask;
mod case;
mod clock;
mod contexts;
mod conversation;
mod disputes;
mod engine;
pub mod filter;
mod forgetting;
mod forgotten;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod hygiene;
mod imports;
pub mod index;
mod jobs;
mod keys;
pub mod learn;
mod learning;
mod limits;
mod line;
mod maintenance;
mod memories;
mod neutral;
pub mod prompt;
mod prompting;
pub mod recall;
mod recording;
pub mod report;
mod reporting;
mod requests;
mod sessions;
mod summaries;
mod withdrawn;

pub use contexts::{Contexts, IfMatch};
pub use conversation::{ChatReply, Conversation, ReplyStatus, Talk};
pub use engine::{Engine, Settings};
pub use filter::Filter;
pub use forgetting::Forgetting;
pub use imports::{ImportedParts, ImportedSession, ImportedSummary, Imports, ReadInto};
pub use jobs::{Ended, Event, InferredEvent, JobRecord, Jobs, Learned};
pub use keys::{Keys, NewKey};
pub use learning::{
    CandidateExplanation, Learning, MODEL_FAILED, ModelRecord, SentenceExplanation, StatementExplanation,
    TextExplanation,
};
pub use limits::Limits;
pub use maintenance::{EmbedItems, EmbeddingProgress, Maintenance};
pub use memories::{HistoryStep, Memories, MemoryEdit, NewMemory, Quote};
pub use neutral::neutral;
pub use prompting::{
    BlockSources, ChatMemory, ChatQuestion, ChatSnapshot, Preview, PromptRequest, Prompted, Prompting,
};
pub use recall::Recall;
pub use recording::{Ending, Exchange, ExchangeIds, KeptBy, Recorded, Recording, align};
pub use reporting::{REPORT_DAYS, Reporting};
pub use requests::{CLIENTS_SPACE, Requests};
pub use sessions::Sessions;
pub use summaries::{
    StructuredPoint, Summaries, SummaryReport, SummaryVersion, TextNode, TextSummary, WITHOUT_MODEL,
};
