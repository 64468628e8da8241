//! Sentence encoders: Strata's own, which reads a turn together with the previous turn, and any other.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use strata_core::ports::{Embedder, EmbedderCost, Passage};
use strata_core::{Error, Result};

use super::gloss;
use super::lazy::LazyModel;
use super::session::{Sequence, Session, Urgency};

/// The number of tokens of the previous turn that Strata's encoder reads, as in its training.
const CONTEXT_PIECES: usize = 40;

/// The number of tokens of the turn or the question that Strata's encoder reads, as in its training.
const TEXT_PIECES: usize = 254;

/// How to use the model of a folder: the optional file `strata.json`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Profile {
    /// How the token vectors become one vector.
    pooling: Pooling,
    /// A prefix that some models need before a question.
    query_prefix: String,
    /// A prefix that some models need before a passage.
    passage_prefix: String,
    /// The maximum number of tokens of a text.
    max_tokens: usize,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            pooling: Pooling::Mean,
            query_prefix: String::new(),
            passage_prefix: String::new(),
            max_tokens: TEXT_PIECES + 2,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Pooling {
    Mean,
    Cls,
}

/// A sentence encoder, in a folder or inside the program. Its weights are read on first use.
#[derive(Clone)]
pub struct OnnxEncoder {
    model: Arc<LazyModel<Loaded>>,
    profile: Arc<Profile>,
}

struct Loaded {
    session: Session,
    format: Format,
    start: u32,
    end: u32,
}

/// The input format of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// `[CLS]` previous turn `[SEP]` turn `[SEP]`; the previous turn is read but not part of the average.
    Strata,
    /// `[CLS]` text `[SEP]`.
    Plain,
}

impl OnnxEncoder {
    /// The encoder in `dir`. This fails if the folder holds no model, and reads no weights yet.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self> {
        let dir = dir.into();
        let profile = read_profile(&dir)?;
        Ok(Self::new(LazyModel::open(dir, Loaded::of)?, profile))
    }

    /// Strata's own encoder, whose weights are inside the program.
    pub fn of_program(name: &str, weights: &'static [u8]) -> Result<Self> {
        Ok(Self::new(LazyModel::of_program(name, weights, Loaded::of)?, Profile::default()))
    }

    fn new(model: LazyModel<Loaded>, profile: Profile) -> Self {
        Self { model: Arc::new(model), profile: Arc::new(profile) }
    }

    /// Whether the weights are in memory.
    pub fn is_loaded(&self) -> bool {
        self.model.is_loaded()
    }
}

impl Loaded {
    fn of(session: Session) -> Result<Self> {
        // Only Strata's own format has these outputs.
        let format = if session.has_output("token_vectors") { Format::Strata } else { Format::Plain };
        let (start, end) = (session.start()?, session.end()?);
        Ok(Self { session, format, start, end })
    }

    fn embed(
        &self,
        passages: &[Passage],
        prefix: &str,
        profile: &Profile,
        urgency: Urgency,
    ) -> Result<Vec<Vec<f32>>> {
        let sequences = passages
            .iter()
            .map(|passage| self.sequence(passage, prefix, profile))
            .collect::<Result<Vec<_>>>()?;
        let inputs: Vec<_> = sequences.iter().map(|(sequence, _)| sequence.clone()).collect();
        let mut vectors = vec![Vec::new(); passages.len()];
        self.session.run(&inputs, None, urgency, |index, values, width| {
            vectors[index] = pool(values, width, sequences[index].1, profile.pooling);
        })?;
        Ok(vectors)
    }

    /// The token ids of a passage, and the first position that counts towards its vector (position 0 always counts).
    fn sequence(&self, passage: &Passage, prefix: &str, profile: &Profile) -> Result<(Sequence, usize)> {
        let most = match self.format {
            Format::Strata => TEXT_PIECES,
            Format::Plain => profile.max_tokens.saturating_sub(2),
        };
        let mut ids = vec![self.start];
        if let (Format::Strata, Some(context)) = (self.format, &passage.context) {
            let context = gloss::last_pieces(&self.session, context, CONTEXT_PIECES)?;
            if !context.is_empty() {
                ids.extend(context);
                ids.push(self.end);
            }
        }
        let counted_from = ids.len();
        let text = format!("{prefix}{}", passage.text);
        ids.extend(match self.format {
            Format::Strata => gloss::first_pieces(&self.session, &text, most)?,
            Format::Plain => self.session.first_pieces(&text, most)?,
        });
        ids.push(self.end);
        Ok((Sequence::single(ids), counted_from))
    }
}

fn pool(values: &[f32], width: usize, counted_from: usize, pooling: Pooling) -> Vec<f32> {
    let mut tokens = values.chunks_exact(width);
    let mut vector = tokens.next().map(<[f32]>::to_vec).unwrap_or_default();
    if pooling == Pooling::Mean {
        // The first token is already in the sum; the context's tokens are skipped.
        for token in tokens.skip(counted_from.saturating_sub(1)) {
            for (sum, value) in vector.iter_mut().zip(token) {
                *sum += value;
            }
        }
    }
    let norm = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    if norm > 0.0 {
        vector.iter_mut().for_each(|value| *value /= norm);
    }
    vector
}

#[async_trait]
impl Embedder for OnnxEncoder {
    fn model(&self) -> &str {
        self.model.name()
    }

    fn cost(&self) -> EmbedderCost {
        EmbedderCost::Local
    }

    async fn embed_passages(&self, passages: &[Passage]) -> Result<Vec<Vec<f32>>> {
        let (passages, profile) = (passages.to_vec(), Arc::clone(&self.profile));
        self.model
            .run(move |model| model.embed(&passages, &profile.passage_prefix, &profile, Urgency::Background))
            .await
    }

    async fn embed_question(&self, question: &str) -> Result<Vec<f32>> {
        let passage = Passage { context: None, text: question.to_owned() };
        let profile = Arc::clone(&self.profile);
        let run = self
            .model
            .run(move |model| model.embed(&[passage], &profile.query_prefix, &profile, Urgency::Foreground));
        run.await?.pop().ok_or_else(|| Error::internal("the encoder gave no vector"))
    }
}

fn read_profile(dir: &Path) -> Result<Profile> {
    let path = dir.join("strata.json");
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return pooling_of_hub(dir),
        Err(error) => {
            return Err(Error::unavailable(format!("`{}` cannot be read", path.display())).with_source(error));
        }
    };
    serde_json::from_str(&text).map_err(|error| {
        Error::invalid(format!("`{}` is not a valid description of an encoder: {error}", path.display()))
            .with_source(error)
    })
}

/// The pooling of a sentence encoder as model hubs describe it, in `1_Pooling/config.json`.
fn pooling_of_hub(dir: &Path) -> Result<Profile> {
    #[derive(Deserialize)]
    struct Hub {
        #[serde(default)]
        pooling_mode_cls_token: bool,
    }
    let mut profile = Profile::default();
    if let Ok(text) = std::fs::read_to_string(dir.join("1_Pooling").join("config.json"))
        && let Ok(hub) = serde_json::from_str::<Hub>(&text)
        && hub.pooling_mode_cls_token
    {
        profile.pooling = Pooling::Cls;
    }
    Ok(profile)
}
