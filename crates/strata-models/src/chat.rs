//! Chat models behind any endpoint that speaks OpenAI's `/v1/chat/completions`.
//!
//! If a server does not support an option (a schema, a temperature), its error message says so, and later calls leave the
//! option out. Temporary failures are retried within the time limit of a call; the final error says whether a later retry may
//! succeed. Deliberately absent: prompts, and the judgement of an answer's content; both belong to the engine. Start reading at
//! [`OpenAiChat`].

mod dialect;
mod stream;
mod wire;

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use hyper::StatusCode;
use strata_core::ports::{ChatAnswer, ChatModel, ChatRequest, Spent, TokenCounter};
use strata_core::{Error, Result};
use strata_http::Transport;
use tokio::time::Instant;

use crate::http::{Answer, HttpClient};
use dialect::Dialect;
use wire::{Body, Choice, Completion, Usage};

/// The maximum size of an answer in bytes: a hundred times the longest answer that Strata's prompts ask for.
const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024;

/// The maximum number of characters of a server's message in an error.
const MAX_SAID_CHARS: usize = 200;

/// The wait before the first retry; it doubles with each failure.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// The options of a client of a chat endpoint.
#[derive(Clone)]
pub struct ChatOptions {
    /// The API key.
    pub key: Option<String>,
    /// How long a call may take in total, including retries and the waits between them.
    pub timeout: Duration,
    /// The maximum number of tries of a call.
    pub tries: u32,
    /// The wait before the first retry.
    pub first_wait: Duration,
    /// How the server is reached.
    pub transport: Transport,
    /// Counts tokens if the server does not report them.
    pub counter: Arc<dyn TokenCounter>,
}

impl ChatOptions {
    /// The default options: no key, a limit of one minute, four tries.
    pub fn new(counter: Arc<dyn TokenCounter>) -> Self {
        let (timeout, transport) = (Duration::from_secs(60), Transport::default());
        Self { key: None, timeout, tries: 4, first_wait: FIRST_WAIT, transport, counter }
    }
}

/// A chat model behind an OpenAI-compatible endpoint.
pub struct OpenAiChat {
    client: HttpClient,
    url: String,
    model: String,
    options: ChatOptions,
    /// The options that the server supports, as far as is known.
    dialect: Mutex<Dialect>,
}

impl OpenAiChat {
    /// A client of `model` at `base`, with or without `/v1`. An address that ends with `/chat/completions` is used as it is.
    pub fn new(base: &str, model: &str, options: ChatOptions) -> Result<Self> {
        if !base.starts_with("http://") && !base.starts_with("https://") {
            return Err(Error::invalid(format!(
                "`{base}` is not the URL of a chat endpoint; begin with `https://`"
            )));
        }
        let base = base.trim_end_matches('/');
        let url = match base {
            full if full.ends_with("/chat/completions") => full.to_owned(),
            base if base.ends_with("/v1") => format!("{base}/chat/completions"),
            base => format!("{base}/v1/chat/completions"),
        };
        Ok(Self {
            client: HttpClient::through(&options.transport, options.timeout),
            url,
            model: model.to_owned(),
            options,
            dialect: Mutex::default(),
        })
    }

    /// Retries until there is an answer, a permanent failure, or no time left.
    async fn complete_with_retries(&self, request: &ChatRequest, deadline: Instant) -> Result<ChatAnswer> {
        let mut spent = Spent::default();
        let mut failures = 0;
        let mut wider = None;
        loop {
            let request = wider.as_ref().unwrap_or(request);
            let dialect = *self.dialect();
            let body = serde_json::to_value(Body::new(&self.model, request, dialect)).map_err(|error| {
                Error::internal("a chat request cannot be written as JSON").with_source(error)
            })?;
            spent.calls += 1;
            let key = self.options.key.as_deref();
            let sent = self.client.post_json_within(&self.url, key, &body, MAX_ANSWER_BYTES).await;
            let (error, asked) = match sent {
                Ok(answer) if answer.status.is_success() => {
                    let choice = self.read(&answer, request, &mut spent)?;
                    match with_more_room(request).filter(|_| choice.is_cut() && wider.is_none()) {
                        Some(request) => wider = Some(request),
                        None => return whole_answer(choice, spent),
                    }
                    tracing::debug!(
                        model = self.model,
                        "an answer was cut off; the model is asked again with more room"
                    );
                    continue;
                }
                // Not counted as a failure: each such retry leaves out one option, and there are few.
                Ok(answer) if self.learn_dialect(dialect, &answer) => continue,
                Ok(answer) => (self.refusal(&answer), answer.retry_after),
                Err(error) => (error, None),
            };
            failures += 1;
            self.wait_after(error, failures, asked, deadline).await?;
        }
    }

    /// Waits before the next try; returns the error if there is no next try.
    async fn wait_after(
        &self,
        error: Error,
        failures: u32,
        asked: Option<Duration>,
        deadline: Instant,
    ) -> Result<()> {
        let wait = asked.unwrap_or_else(|| jittered(self.options.first_wait, failures));
        let out_of_time = Instant::now() + wait >= deadline;
        if failures >= self.options.tries || !error.is_retryable() || out_of_time {
            return Err(error);
        }
        tracing::debug!(%error, wait = wait.as_secs_f32(), "the call to the chat endpoint is retried");
        tokio::time::sleep(wait).await;
        Ok(())
    }

    fn dialect(&self) -> std::sync::MutexGuard<'_, Dialect> {
        self.dialect.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the server refused an option of the request, so that a request without it may succeed.
    fn learn_dialect(&self, sent: Dialect, answer: &Answer) -> bool {
        if !matches!(answer.status, StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY) {
            return false;
        }
        let Some(simpler) = sent.without_refused_option(&String::from_utf8_lossy(&answer.body)) else {
            return false;
        };
        tracing::info!(
            model = self.model,
            ?simpler,
            "the chat endpoint does not support an option; later requests leave it out"
        );
        self.dialect().simplify(simpler);
        true
    }

    /// The first choice of an answer. Its tokens are added to `spent`.
    fn read(&self, answer: &Answer, request: &ChatRequest, spent: &mut Spent) -> Result<Choice> {
        let completion: Completion = serde_json::from_slice(&answer.body)
            .map_err(|error| wrong("answers with something other than a completion").with_source(error))?;
        let usage = completion.usage;
        let choice = completion.choices.into_iter().flatten().next();
        let choice = choice.ok_or_else(|| wrong("gave a completion without choices"))?;
        self.count(spent, usage, request, &choice.message.text());
        Ok(choice)
    }

    /// The tokens of a call: those that the server reports, else counted here.
    fn count(&self, spent: &mut Spent, usage: Option<Usage>, request: &ChatRequest, text: &str) {
        let count = |text: &str| u64::from(self.options.counter.count(text));
        spent.input_tokens += usage
            .and_then(|usage| usage.prompt_tokens)
            .unwrap_or_else(|| request.messages.iter().map(|message| count(&message.content)).sum());
        spent.output_tokens += usage.and_then(|usage| usage.completion_tokens).unwrap_or_else(|| count(text));
    }

    /// The error for a refusal. Too many requests and server errors are temporary, other refusals are permanent.
    fn refusal(&self, answer: &Answer) -> Error {
        let mut said = String::from_utf8_lossy(&answer.body).into_owned();
        // Some servers quote the key that they do not accept.
        if let Some(key) = self.options.key.as_deref().filter(|key| !key.is_empty()) {
            said = said.replace(key, "(key)");
        }
        let said: String = said.chars().take(MAX_SAID_CHARS).collect();
        let advice = match answer.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "; check its API key",
            _ => "",
        };
        let error =
            Error::unavailable(format!("the chat endpoint answers {}: {said}{advice}", answer.status));
        let is_temporary = answer.status.is_server_error()
            || matches!(answer.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT);
        if is_temporary { error.retryable() } else { error }
    }
}

#[async_trait]
impl ChatModel for OpenAiChat {
    fn model(&self) -> &str {
        &self.model
    }

    async fn complete(&self, request: &ChatRequest) -> Result<ChatAnswer> {
        let timeout = self.options.timeout;
        let persisting = self.complete_with_retries(request, Instant::now() + timeout);
        tokio::time::timeout(timeout, persisting).await.unwrap_or_else(|_| {
            let seconds = timeout.as_secs_f32();
            let message = format!("the chat endpoint gave no answer within {seconds} s, including retries");
            Err(Error::unavailable(message).retryable())
        })
    }

    async fn stream(
        &self,
        request: &ChatRequest,
        on_text: &mut (dyn for<'t> FnMut(&'t str) + Send),
    ) -> Result<ChatAnswer> {
        self.stream_with_retries(request, on_text).await
    }
}

/// How many times the room of a cut answer the second one gets. The thoughts of a reasoning model take most of it.
const MORE_ROOM: u32 = 4;

/// The request with more room for its answer; `None` if its room has no limit.
fn with_more_room(request: &ChatRequest) -> Option<ChatRequest> {
    let most = request.max_tokens?;
    Some(ChatRequest { max_tokens: Some(most.saturating_mul(MORE_ROOM)), ..request.clone() })
}

fn whole_answer(choice: Choice, spent: Spent) -> Result<ChatAnswer> {
    if choice.is_cut() {
        return Err(wrong("cut off the answer at its token limit; use a model that gives shorter answers"));
    }
    Ok(ChatAnswer { text: choice.message.text(), spent })
}

fn wrong(what: &str) -> Error {
    Error::unavailable(format!("the chat endpoint {what}"))
}

/// The wait after this many failures. It doubles with each failure, and is a random value between half of that and all of it,
/// so that clients that failed together do not retry together.
fn jittered(first: Duration, failures: u32) -> Duration {
    let whole = first.saturating_mul(1 << (failures - 1).min(6));
    // The hash keys of the standard library differ each time, which is random enough here.
    let random = RandomState::new().hash_one(failures) as f64 / u64::MAX as f64;
    whole.mul_f64(0.5 + random / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_and_differ() {
        let first = Duration::from_millis(100);
        for (failures, whole) in [(1, 100), (2, 200), (3, 400), (7, 6_400), (40, 6_400)] {
            let waits: Vec<Duration> = (0..20).map(|_| jittered(first, failures)).collect();
            let whole = Duration::from_millis(whole);
            assert!(waits.iter().all(|wait| (whole / 2..=whole).contains(wait)), "{failures}: {waits:?}");
            assert!(waits.iter().any(|wait| *wait != waits[0]), "{waits:?}");
        }
    }
}
