//! The source of memories: the rules inside the binary, or a model.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use strata_core::{Error, Result};
use strata_server::Secret;

use super::DEFAULT_MODEL;
use super::slots::{http_url, onnx_folder};

/// The number of jobs that run at once with a model. A job then mostly waits for the model, and uses little of the processor.
const MODEL_WORKERS: usize = 4;

/// The source of memories. [`Learning::model`] and [`Learning::workers`] decide what the settings `auto` stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Learning {
    pub(super) base_url: Option<String>,
    pub(super) memory_model: String,
    pub(super) key: Option<Secret>,
    pub(super) timeout: Duration,
    pub(super) model: Option<LearnModel>,
    pub(super) workers: Option<usize>,
    /// The reader of sentences that no model reads.
    pub reader: ReaderChoice,
}

/// The reader of sentences.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ReaderChoice {
    /// The network inside the binary; in a binary without networks (feature `lite`), the rules.
    #[default]
    Builtin,
    /// The rules inside the binary.
    Off,
    /// A reader in a folder.
    Onnx(PathBuf),
}

impl std::str::FromStr for ReaderChoice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match (text, onnx_folder(text)) {
            ("builtin", _) => Ok(Self::Builtin),
            ("off", _) => Ok(Self::Off),
            (_, Some(folder)) => Ok(Self::Onnx(folder)),
            _ => Err(Error::invalid("use `builtin`, `off` or `onnx:DIR`")),
        }
    }
}

impl fmt::Display for ReaderChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Builtin => f.write_str("builtin"),
            Self::Off => f.write_str("off"),
            Self::Onnx(directory) => write!(f, "onnx:{}", directory.display()),
        }
    }
}

/// The rules inside the binary, or a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LearnModel {
    /// The rules inside the binary.
    Builtin,
    /// A model behind an OpenAI-compatible endpoint.
    Remote {
        /// The endpoint.
        url: String,
        /// The model's name there.
        model: String,
    },
}

impl Default for Learning {
    fn default() -> Self {
        Self {
            base_url: None,
            memory_model: DEFAULT_MODEL.to_owned(),
            key: None,
            timeout: Duration::from_secs(60),
            model: None,
            workers: None,
            reader: ReaderChoice::default(),
        }
    }
}

impl Learning {
    /// The source of memories. Unless it is named, the endpoint's model if there is an endpoint, else the rules.
    pub fn model(&self) -> LearnModel {
        match (&self.model, &self.base_url) {
            (Some(model), _) => model.clone(),
            (None, Some(url)) => LearnModel::Remote { url: url.clone(), model: self.memory_model.clone() },
            (None, None) => LearnModel::Builtin,
        }
    }

    /// How many jobs run at once.
    pub fn workers(&self) -> usize {
        self.workers.unwrap_or(if self.model() == LearnModel::Builtin { 1 } else { MODEL_WORKERS })
    }
}

impl LearnModel {
    /// Reads `builtin` or `URL#MODEL`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text == "builtin" {
            return Some(Self::Builtin);
        }
        let (url, model) = text.rsplit_once('#').filter(|(_, model)| !model.is_empty())?;
        Some(Self::Remote { url: http_url(url)?, model: model.to_owned() })
    }
}
