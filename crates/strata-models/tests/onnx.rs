//! ONNX models for real: two tiny ones that `tools/tiny-models` makes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use strata_core::ports::{Embedder, Passage, Reranker, TurnInContext};
use strata_models::onnx::{OnnxEncoder, OnnxReranker};

fn model(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn passage(text: &str) -> Passage {
    Passage { context: None, text: text.to_owned() }
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[tokio::test]
async fn an_encoder_is_loaded_on_first_use() {
    let encoder = OnnxEncoder::open(model("tiny-encoder")).unwrap();
    assert!(!encoder.is_loaded());
    assert!(encoder.model().starts_with("tiny-encoder@"), "{}", encoder.model());
    encoder.embed_question("cat").await.unwrap();
    assert!(encoder.is_loaded());
}

#[tokio::test]
async fn texts_of_one_meaning_point_one_way() {
    let encoder = OnnxEncoder::open(model("tiny-encoder")).unwrap();
    // More texts than one batch holds, of very different lengths, so that padding and order are put to the test.
    let long = "dog ".repeat(400);
    let mut passages: Vec<Passage> =
        (0..40).map(|n| passage(if n % 2 == 0 { "the cat" } else { &long })).collect();
    passages.push(passage("Coffee, tea?"));
    let vectors = encoder.embed_passages(&passages).await.unwrap();
    assert_eq!(vectors.len(), 41);
    for vector in &vectors {
        assert_eq!(vector.len(), 8);
        assert!((cosine(vector, vector) - 1.0).abs() < 1e-5);
    }
    assert!((cosine(&vectors[0], &vectors[38]) - 1.0).abs() < 1e-5);
    assert!((cosine(&vectors[1], &vectors[39]) - 1.0).abs() < 1e-5);
    assert!(cosine(&vectors[0], &vectors[1]) < 0.99);
    let question = encoder.embed_question("the cat").await.unwrap();
    assert!((cosine(&question, &vectors[0]) - 1.0).abs() < 1e-5);
}

#[tokio::test]
async fn a_reranker_reads_question_and_text_together() {
    let reranker = OnnxReranker::open(model("tiny-reranker")).unwrap();
    let item = |text: &str| TurnInContext { before: "likes".to_owned(), text: text.to_owned() };
    let items = ["the user likes tea", "the dog lives in paris", "coffee", ""].map(item);
    let scores = reranker.score("user likes coffee?", &items).await.unwrap();
    assert_eq!(scores, [4.0, -2.0, 1.0, -2.0]);
}

#[test]
fn a_folder_without_a_model_is_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let error = OnnxEncoder::open(dir.path()).err().unwrap();
    assert!(error.message().contains("contains no model"), "{error}");
}

#[tokio::test]
async fn a_damaged_model_says_so() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("model.onnx"), b"not a model").unwrap();
    let encoder = OnnxEncoder::open(dir.path()).unwrap();
    let error = encoder.embed_question("cat").await.unwrap_err();
    assert!(error.message().contains("not an ONNX model"), "{error}");
}
