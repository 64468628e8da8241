//! Cross-encoders: models that read a question and a text together and score how well they match.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use strata_core::ports::{Reranker, TurnInContext};
use strata_core::{Error, Result};

use super::session::{Sequence, Session, Urgency, space_name};

/// The maximum number of tokens of a pair, as in the training of these models.
const MAX_PAIR_TOKENS: usize = 512;

/// The maximum number of tokens of the question in a pair, so that a long question leaves room for the text.
const MAX_QUESTION_TOKENS: usize = 128;

/// A sequence-classification model in a folder. Its weights are read on first use.
#[derive(Clone)]
pub struct OnnxReranker {
    dir: PathBuf,
    name: String,
    session: Arc<OnceLock<Result<Session, String>>>,
}

impl OnnxReranker {
    /// The cross-encoder in `dir`. This fails if the folder holds no model, and reads no weights yet.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self> {
        let dir = dir.into();
        let name = space_name(&dir)?;
        Ok(Self { dir, name, session: Arc::new(OnceLock::new()) })
    }

    fn session(&self) -> Result<&Session> {
        self.session
            .get_or_init(|| Session::open(&self.dir).map_err(|error| error.to_string()))
            .as_ref()
            .map_err(|message| Error::unavailable(message.clone()))
    }

    fn score_now(&self, question: &str, items: &[TurnInContext]) -> Result<Vec<f32>> {
        let session = self.session()?;
        let (start, end) = (session.start()?, session.end()?);
        let question = session.first_pieces(question, MAX_QUESTION_TOKENS)?;
        let sequences = items
            .iter()
            .map(|item| {
                let mut ids = vec![start];
                ids.extend(&question);
                ids.push(end);
                let second_from = ids.len();
                ids.extend(session.first_pieces(&item.text, MAX_PAIR_TOKENS - second_from - 1)?);
                ids.push(end);
                Ok(Sequence { ids, second_from })
            })
            .collect::<Result<Vec<_>>>()?;
        let mut scores = vec![0.0; items.len()];
        session.run(&sequences, None, Urgency::Foreground, |index, values, width| {
            // A single logit is the score. If there are two, the second one stands for «relevant».
            scores[index] = match width {
                1 => values.first().copied().unwrap_or_default(),
                _ => values.get(1).copied().unwrap_or_default() - values.first().copied().unwrap_or_default(),
            };
        })?;
        Ok(scores)
    }
}

#[async_trait]
impl Reranker for OnnxReranker {
    fn model(&self) -> &str {
        &self.name
    }

    fn reads(&self) -> (usize, usize) {
        (MAX_QUESTION_TOKENS, MAX_PAIR_TOKENS - MAX_QUESTION_TOKENS)
    }

    async fn score(&self, question: &str, items: &[TurnInContext]) -> Result<Vec<f32>> {
        let (this, question, items) = (self.clone(), question.to_owned(), items.to_vec());
        tokio::task::spawn_blocking(move || this.score_now(&question, &items))
            .await
            .map_err(|error| Error::internal("the reranker's thread has panicked").with_source(error))?
    }
}
