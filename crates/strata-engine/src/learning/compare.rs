//! Compares statements by the reader, without changing anything.

use strata_core::error::Result;
use strata_core::ports::{PairReading, SentencePair};
use strata_language::statements::plainly;

use super::Learning;

impl Learning {
    /// The relation of each second statement to the first one, which is older; `None` without a reader.
    pub async fn compare(&self, pairs: &[(&str, &str)]) -> Result<Option<Vec<PairReading>>> {
        let Some(reader) = &self.reader else { return Ok(None) };
        let pair = |(old, new): &(&str, &str)| SentencePair {
            remembered: plainly(old).into_owned(),
            before: String::new(),
            new: plainly(new).into_owned(),
        };
        let pairs: Vec<SentencePair> = pairs.iter().map(pair).collect();
        reader.relations(&pairs).await.map(Some)
    }
}
