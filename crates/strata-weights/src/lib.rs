//! The weights of Strata's two networks as bytes inside the binary: `strata-models` runs them, `data/README.md` describes them.
//!
//! They are a crate of their own, so that only programs that use the networks link 69 MB. Deliberately absent: code.

/// The encoder: it makes the vector of a turn or a question. ONNX, int8.
pub static ENCODER: &[u8] = include_bytes!("../data/strata-encoder.onnx");

/// The reader: it judges sentences, and pairs of sentences. ONNX, int8.
pub static READER: &[u8] = include_bytes!("../data/strata-reader.onnx");
