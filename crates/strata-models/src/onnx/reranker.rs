//! Cross-encoders: models that read a question and a text together and score how well they match.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use strata_core::Result;
use strata_core::ports::{Reranker, TurnInContext};

use super::lazy::LazyModel;
use super::session::{Sequence, Session, Urgency};

/// The maximum number of tokens of a pair, as in the training of these models.
const MAX_PAIR_TOKENS: usize = 512;

/// The maximum number of tokens of the question in a pair, so that a long question leaves room for the text.
const MAX_QUESTION_TOKENS: usize = 128;

/// A sequence-classification model in a folder. Its weights are read on first use.
#[derive(Clone)]
pub struct OnnxReranker {
    model: Arc<LazyModel<Session>>,
}

impl OnnxReranker {
    /// The cross-encoder in `dir`. This fails if the folder holds no model, and reads no weights yet.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self> {
        Ok(Self { model: Arc::new(LazyModel::open(dir.into(), Ok)?) })
    }
}

fn scores(session: &Session, question: &str, items: &[TurnInContext]) -> Result<Vec<f32>> {
    let (start, end) = (session.start()?, session.end()?);
    let question = session.first_pieces(question, MAX_QUESTION_TOKENS)?;
    let sequence = |item: &TurnInContext| {
        let mut ids = vec![start];
        ids.extend(&question);
        ids.push(end);
        let second_from = ids.len();
        ids.extend(session.first_pieces(&item.text, MAX_PAIR_TOKENS - second_from - 1)?);
        ids.push(end);
        Ok(Sequence { ids, second_from })
    };
    let sequences = items.iter().map(sequence).collect::<Result<Vec<_>>>()?;
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

#[async_trait]
impl Reranker for OnnxReranker {
    fn model(&self) -> &str {
        self.model.name()
    }

    fn reads(&self) -> (usize, usize) {
        (MAX_QUESTION_TOKENS, MAX_PAIR_TOKENS - MAX_QUESTION_TOKENS)
    }

    async fn score(&self, question: &str, items: &[TurnInContext]) -> Result<Vec<f32>> {
        let (question, items) = (question.to_owned(), items.to_vec());
        self.model.run(move |session| scores(session, &question, &items)).await
    }
}
