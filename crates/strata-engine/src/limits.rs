//! Limits on stored data: sizes, and the NUL character, which some backends cannot store.

use serde_json::Value;

use strata_core::error::{Error, Result};
use strata_core::nul::check_nul;
use strata_core::state::State;
use strata_core::turn::Metadata;

/// The limits on the data that one call may store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes of one turn or memory. Its metadata is counted separately, under the same limit. 1 MiB: a long
    /// document still fits, and a runaway client does not fill the disk.
    pub max_turn_bytes: usize,
    /// The most turns in one call.
    pub max_turns_per_call: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_turn_bytes: 1024 * 1024, max_turns_per_call: 1000 }
    }
}

impl Limits {
    pub(crate) fn check_size(&self, what: &str, text: &str) -> Result<()> {
        let (bytes, most) = (text.len(), self.max_turn_bytes);
        if bytes > most {
            return Err(Error::too_large(format!(
                "{what} has {bytes} bytes; the most is {most} (setting `max_turn_bytes`)"
            )));
        }
        Ok(())
    }

    pub(crate) fn check_text(&self, what: &str, text: &str) -> Result<()> {
        check_nul(what, text)?;
        self.check_size(what, text)
    }

    pub(crate) fn check_metadata(&self, what: &str, metadata: &Metadata) -> Result<()> {
        check_nul(what, metadata.fields())?;
        self.check_size(what, metadata.as_text())
    }

    pub(crate) fn check_json(&self, what: &str, value: &Value) -> Result<()> {
        check_nul(what, value)?;
        self.check_size(what, &value.to_string())
    }

    pub(crate) fn check_state(&self, state: &State) -> Result<()> {
        let value = serde_json::to_value(state)
            .map_err(|error| Error::invalid("the state is no JSON").with_source(error))?;
        self.check_json("the state", &value)
    }
}
