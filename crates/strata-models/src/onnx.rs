//! ONNX models in a folder, run in this process: the sentence encoder and the cross-encoder.
//!
//! A folder holds `model.onnx` (or `model_int8.onnx`, `model_quantized.onnx`) and `tokenizer.json`, as model hubs lay them
//! out. Weights are read on first use. The engine is `rten`; `docs/encoder.md` says why.

mod encoder;
mod reranker;
mod session;

pub use encoder::OnnxEncoder;
pub use reranker::OnnxReranker;
