//! The models that make vectors and rank candidates.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use strata_core::{Error, Result};
use strata_server::Secret;

use super::slots::onnx_folder;

/// The folder of installed models, inside the data directory.
const MODELS: &str = "models";

/// Strata's own encoder: the name of its vector space, and of its folder where it is installed.
pub const STRATA_ENCODER: &str = "strata-encoder";

/// The models that make vectors and rank candidates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Models {
    /// The data directory; `None` if the user has no home directory.
    pub data_dir: Option<PathBuf>,
    /// The source of vectors.
    pub embedder: EmbedderChoice,
    /// The model that makes vectors, as the memory-proxy design names it.
    pub embedding_model: Option<String>,
    /// The API key of a remote embedder.
    pub embedder_key: Option<Secret>,
    /// How long a remote embedder may take.
    pub embedder_timeout: Duration,
    /// The model that ranks the best candidates again.
    pub rerank: RerankChoice,
}

/// The source of vectors.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum EmbedderChoice {
    /// The word vectors and the encoder inside the binary. A binary without the encoder (feature `lite`) uses an installed one,
    /// if there is one.
    #[default]
    Builtin,
    /// The word vectors inside the binary alone.
    Words,
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

/// The model that ranks the best candidates again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum RerankChoice {
    /// Nothing, unless a request asks for it: then the reader.
    #[default]
    Off,
    /// The reader inside the binary, or the one that `learn.reader` names.
    Reader,
    /// A cross-encoder in a folder.
    Onnx(PathBuf),
}

impl Default for Models {
    fn default() -> Self {
        Self {
            data_dir: None,
            embedder: EmbedderChoice::default(),
            embedding_model: None,
            embedder_key: None,
            embedder_timeout: Duration::from_secs(10),
            rerank: RerankChoice::default(),
        }
    }
}

impl Models {
    /// The directory of installed models; `None` without a data directory.
    pub fn directory(&self) -> Option<PathBuf> {
        Some(self.data_dir.as_ref()?.join(MODELS))
    }

    /// The folder of Strata's encoder, if it is installed.
    pub fn installed_encoder(&self) -> Option<PathBuf> {
        let directory = self.directory()?.join(STRATA_ENCODER);
        directory.join("tokenizer.json").is_file().then_some(directory)
    }
}

impl std::str::FromStr for EmbedderChoice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match (text, onnx_folder(text), text.rsplit_once('#')) {
            // `auto` chose an installed encoder before the binary had one.
            ("builtin" | "auto", ..) => Ok(Self::Builtin),
            ("words", ..) => Ok(Self::Words),
            (_, Some(folder), _) => Ok(Self::Onnx(folder)),
            (_, _, Some((url, model))) if url.contains("://") && !model.is_empty() => {
                Ok(Self::Remote { url: url.to_owned(), model: model.to_owned() })
            }
            _ => Err(Error::invalid("use `builtin`, `words`, `onnx:DIR` or `URL#MODEL`")),
        }
    }
}

impl fmt::Display for EmbedderChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Builtin => f.write_str("builtin"),
            Self::Words => f.write_str("words"),
            Self::Onnx(directory) => write!(f, "onnx:{}", directory.display()),
            Self::Remote { url, model } => write!(f, "{url}#{model}"),
        }
    }
}

impl std::str::FromStr for RerankChoice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match (text, onnx_folder(text)) {
            // The setting was called `reranker`, and `none` was its way to say `off`.
            ("off" | "none", _) => Ok(Self::Off),
            ("reader", _) => Ok(Self::Reader),
            (_, Some(folder)) => Ok(Self::Onnx(folder)),
            _ => Err(Error::invalid("use `off`, `reader` or `onnx:DIR`")),
        }
    }
}

impl fmt::Display for RerankChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Reader => f.write_str("reader"),
            Self::Onnx(directory) => write!(f, "onnx:{}", directory.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reranking_is_named_in_one_of_three_ways() {
        for text in ["off", "reader", "onnx:/m"] {
            assert_eq!(text.parse::<RerankChoice>().unwrap().to_string(), text);
        }
        assert_eq!("none".parse::<RerankChoice>().unwrap(), RerankChoice::Off);
        for wrong in ["", "on", "onnx:", "cross-encoder"] {
            assert!(wrong.parse::<RerankChoice>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_embedder_is_named_in_one_of_four_ways() {
        let parse_embedder = str::parse::<EmbedderChoice>;
        assert_eq!(parse_embedder("builtin").unwrap(), EmbedderChoice::default());
        assert_eq!(parse_embedder("auto").unwrap(), EmbedderChoice::Builtin);
        assert_eq!(parse_embedder("onnx:/m").unwrap(), EmbedderChoice::Onnx("/m".into()));
        let remote = EmbedderChoice::Remote { url: "https://host/v1".to_owned(), model: "small".to_owned() };
        assert_eq!(parse_embedder("https://host/v1#small").unwrap(), remote);
        for text in ["builtin", "words", "onnx:/m", "https://host/v1#small"] {
            assert_eq!(parse_embedder(text).unwrap().to_string(), text);
        }
        for wrong in ["onnx:", "https://host/v1", "https://host#", "host#model", "other"] {
            assert!(parse_embedder(wrong).is_err(), "{wrong}");
        }
    }
}
