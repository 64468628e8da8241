//! ONNX models, run in this process: sentence encoders and cross-encoders.
//!
//! Strata's own networks are inside the program (`strata-weights`); other models are in folders. A folder holds `model.onnx` (or `model_int8.onnx`, `model_quantized.onnx`) and `tokenizer.json`, as model hubs lay them
//! out. Weights are read on first use. `rten` runs the models; `docs/encoder.md` gives the reason.

mod encoder;
mod gloss;
mod lazy;
mod reader;
mod reranker;
pub(crate) mod session;

pub use encoder::OnnxEncoder;
pub use reader::OnnxReader;
pub use reranker::OnnxReranker;
