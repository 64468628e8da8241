//! Which models make vectors and judge candidates.

use std::path::PathBuf;
use std::time::Duration;

use strata_core::{Error, Result};

use super::layers::Layers;

/// The folder in which models are installed, inside the data directory.
const MODELS: &str = "models";

/// Strata's own encoder, as `strata models pull` installs it.
pub const STRATA_ENCODER: &str = "strata-encoder";

/// What makes vectors, and what judges candidates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Models {
    /// Where models are installed; `None` where there is no data directory.
    pub directory: Option<PathBuf>,
    /// What makes vectors.
    pub embedder: EmbedderChoice,
    /// The API key of a remote embedder.
    pub embedder_key: Option<String>,
    /// How long a remote embedder may take.
    pub embedder_timeout: Duration,
    /// The folder of a cross-encoder.
    pub reranker: Option<PathBuf>,
}

/// What makes vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EmbedderChoice {
    /// Strata's encoder where it is installed, else the words inside the binary.
    Auto,
    /// The words inside the binary.
    Builtin,
    /// An ONNX model in a folder.
    Onnx(PathBuf),
    /// A model behind an OpenAI-compatible endpoint.
    Remote {
        /// The endpoint.
        url: String,
        /// The model's name there.
        model: String,
    },
}

impl Models {
    pub(super) fn load(layers: &Layers) -> Result<Self> {
        let directory = layers.given("data_dir")?.map(|directory| PathBuf::from(directory).join(MODELS));
        Ok(Self {
            directory,
            embedder: layers.parsed("embedder", str::parse)?,
            embedder_key: layers.given("embedder_key")?,
            embedder_timeout: Duration::from_secs(layers.number("embedder_timeout_secs", 1, 3_600)?),
            reranker: layers.parsed("reranker", parse_reranker)?,
        })
    }

    /// The folder of Strata's encoder, if it is installed.
    pub fn installed_encoder(&self) -> Option<PathBuf> {
        let directory = self.directory.as_ref()?.join(STRATA_ENCODER);
        directory.join("tokenizer.json").is_file().then_some(directory)
    }
}

impl std::str::FromStr for EmbedderChoice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "auto" => return Ok(Self::Auto),
            "builtin" => return Ok(Self::Builtin),
            _ => {}
        }
        if let Some(directory) = text.strip_prefix("onnx:").filter(|directory| !directory.is_empty()) {
            return Ok(Self::Onnx(directory.into()));
        }
        match text.rsplit_once('#') {
            Some((url, model)) if url.contains("://") && !model.is_empty() => {
                Ok(Self::Remote { url: url.to_owned(), model: model.to_owned() })
            }
            _ => Err(Error::invalid("use `auto`, `builtin`, `onnx:DIR` or `URL#MODEL`")),
        }
    }
}

fn parse_reranker(text: &str) -> Result<Option<PathBuf>> {
    match (text, text.strip_prefix("onnx:")) {
        ("none", _) => Ok(None),
        (_, Some(directory)) if !directory.is_empty() => Ok(Some(directory.into())),
        _ => Err(Error::invalid("use `none` or `onnx:DIR`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_embedder_is_named_in_one_of_four_ways() {
        let parse_embedder = str::parse::<EmbedderChoice>;
        assert_eq!(parse_embedder("auto").unwrap(), EmbedderChoice::Auto);
        assert_eq!(parse_embedder("onnx:/m").unwrap(), EmbedderChoice::Onnx("/m".into()));
        let remote = EmbedderChoice::Remote { url: "https://host/v1".to_owned(), model: "small".to_owned() };
        assert_eq!(parse_embedder("https://host/v1#small").unwrap(), remote);
        for wrong in ["onnx:", "https://host/v1", "https://host#", "host#model", "other"] {
            assert!(parse_embedder(wrong).is_err(), "{wrong}");
        }
    }
}
