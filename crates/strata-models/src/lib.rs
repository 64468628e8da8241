//! The models that Strata runs or calls: token counting, embedders, rerankers and chat.
//!
//! Deliberately absent: storage and a web framework. Start reading at [`Tokenizer`].

pub mod chat;
pub mod http;
pub mod lexicon;
pub mod onnx;
pub mod pull;
pub mod remote;
pub mod tokens;

pub use lexicon::BuiltinLexicon;
pub use tokens::Tokenizer;
