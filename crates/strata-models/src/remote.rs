//! Embeddings from any endpoint with OpenAI's `/v1/embeddings`.

use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;
use strata_core::ports::{Embedder, EmbedderCost, Passage};
use strata_core::{Error, Result};

use crate::http::{Answer, HttpClient};

/// The number of texts in one call: every known server accepts this many.
const BATCH: usize = 96;

/// The maximum number of tries of a call in the background.
const TRIES: u32 = 3;

/// The longest wait between two tries, even if the server asks for more.
const MAX_WAIT: Duration = Duration::from_secs(20);

/// The maximum number of characters of a text: about 8,000 tokens, the limit of the common models.
const MAX_TEXT_CHARS: usize = 24_000;

/// An embedder behind an OpenAI-compatible endpoint.
pub struct RemoteEmbedder {
    client: HttpClient,
    url: String,
    key: Option<String>,
    /// The model's name at the endpoint.
    name: String,
    /// The name of the vector space: the model and its host.
    space: String,
    /// The dimension of the first answer. A later answer of another dimension is refused, because the vectors of one space
    /// must be comparable.
    dimension: OnceLock<usize>,
}

#[derive(Deserialize)]
struct EmbeddingsResponse {
    data: Vec<Embedding>,
}

#[derive(Deserialize)]
struct Embedding {
    index: usize,
    embedding: Vec<f32>,
}

impl RemoteEmbedder {
    /// An embedder for `model` at `base`, with or without `/v1`.
    pub fn new(base: &str, model: &str, key: Option<String>, timeout: Duration) -> Result<Self> {
        if !base.starts_with("http://") && !base.starts_with("https://") {
            return Err(Error::invalid(format!(
                "`{base}` is not the URL of an embeddings endpoint; begin with `https://`"
            )));
        }
        let base = base.trim_end_matches('/').trim_end_matches("/embeddings");
        let url = if base.ends_with("/v1") {
            format!("{base}/embeddings")
        } else {
            format!("{base}/v1/embeddings")
        };
        let host = base.split("://").nth(1).unwrap_or(base).split(['/', '@']).next_back().unwrap_or(base);
        Ok(Self {
            client: HttpClient::new(timeout),
            space: format!("{model}@{host}"),
            name: model.to_owned(),
            url,
            key,
            dimension: OnceLock::new(),
        })
    }

    async fn embed(&self, texts: &[String], most_tries: u32) -> Result<Vec<Vec<f32>>> {
        let body = json!({ "model": self.name, "input": texts, "encoding_format": "float" });
        let mut tries = 0;
        loop {
            tries += 1;
            let (error, wait) = match self.client.post_json(&self.url, self.key.as_deref(), &body).await {
                Ok(answer) if answer.status.is_success() => return self.read(&answer, texts.len()),
                Ok(answer) => (refusal(&answer), answer.retry_after),
                Err(error) => (error, None),
            };
            if tries == most_tries || !error.is_retryable() {
                return Err(error);
            }
            tokio::time::sleep(wait.unwrap_or(Duration::from_millis(200) * tries).min(MAX_WAIT)).await;
        }
    }

    fn read(&self, answer: &Answer, expected: usize) -> Result<Vec<Vec<f32>>> {
        let wrong = |what: String| Error::unavailable(format!("the embeddings endpoint {what}"));
        let mut response: EmbeddingsResponse = serde_json::from_slice(&answer.body).map_err(|error| {
            wrong("answers with something other than embeddings".to_owned()).with_source(error)
        })?;
        if response.data.len() != expected {
            return Err(wrong(format!("gave {} vectors for {expected} texts", response.data.len())));
        }
        response.data.sort_by_key(|embedding| embedding.index);
        for embedding in &response.data {
            let length = embedding.embedding.len();
            let dimension = *self.dimension.get_or_init(|| length);
            if length == 0 || length != dimension {
                return Err(wrong(format!("gave a vector of {length} numbers, but {dimension} before")));
            }
        }
        Ok(response.data.into_iter().map(|embedding| embedding.embedding).collect())
    }
}

/// The error for a refusal. Too many requests and server errors are temporary, other refusals are permanent.
fn refusal(answer: &Answer) -> Error {
    let said: String = String::from_utf8_lossy(&answer.body).chars().take(200).collect();
    let error = Error::unavailable(format!("the embeddings endpoint answers {}: {said}", answer.status));
    let is_temporary = answer.status.is_server_error() || answer.status.as_u16() == 429;
    if is_temporary { error.retryable() } else { error }
}

fn cut(text: &str) -> String {
    // An endpoint refuses empty texts.
    if text.trim().is_empty() { "-".to_owned() } else { text.chars().take(MAX_TEXT_CHARS).collect() }
}

#[async_trait]
impl Embedder for RemoteEmbedder {
    fn model(&self) -> &str {
        &self.space
    }

    fn cost(&self) -> EmbedderCost {
        EmbedderCost::Remote
    }

    async fn embed_passages(&self, passages: &[Passage]) -> Result<Vec<Vec<f32>>> {
        let mut vectors = Vec::with_capacity(passages.len());
        for batch in passages.chunks(BATCH) {
            let texts: Vec<String> = batch.iter().map(|passage| cut(&passage.text)).collect();
            vectors.extend(self.embed(&texts, TRIES).await?);
        }
        Ok(vectors)
    }

    async fn embed_question(&self, question: &str) -> Result<Vec<f32>> {
        // A caller waits. Recall without a vector is better than recall after several time-outs.
        let mut vectors = self.embed(&[cut(question)], 1).await?;
        vectors.pop().ok_or_else(|| Error::unavailable("the embeddings endpoint gave no vector"))
    }
}
