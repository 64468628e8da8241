//! A case: what a conversation works on, read sentence by sentence.
//!
//! The reader gives the role of each sentence (a finding, a hypothesis, a cause, a decision, a todo …), and this module
//! folds the roles into the session's state: a hypothesis leaves it when it is ruled out or confirmed, a todo ends when it
//! is done, and the last word about the problem decides its status. The word patterns of profiles fill the same lists when
//! a turn is recorded; where the reader contradicts them, their values are removed.
//!
//! All functions are pure. [`crate::Learning`] asks the reader, in the background. Start reading at [`Case`].

mod cues;
mod fold;
mod foreign;
mod offers;
mod plan_cues;
mod roles;
mod salience;
mod sentences;
mod small_talk;
mod status_cues;
mod subject_cues;
mod subjects;
#[cfg(test)]
mod tests;

pub(crate) use fold::Case;
pub(crate) use roles::{Judged, judged};
pub(crate) use salience::{SALIENT_ROOM, salient};
pub(crate) use sentences::{Sentence, sentences};
