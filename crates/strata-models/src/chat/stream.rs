//! Streamed answers: server-sent events, each with a piece of the text.

use http_body_util::BodyExt as _;
use hyper::Response;
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use strata_core::ports::{ChatAnswer, ChatRequest, Spent};
use strata_core::sse::EventReader;
use strata_core::{Error, Result};
use tokio::time::{Instant, timeout};

use super::wire::{Body, Chunk, Usage};
use super::{MAX_ANSWER_BYTES, MAX_SAID_CHARS, OpenAiChat, whole_answer};

type OnText<'a> = &'a mut (dyn for<'t> FnMut(&'t str) + Send);

impl OpenAiChat {
    /// Retries until an answer begins, then reads its pieces. The time limit applies until the answer begins, and again to each
    /// piece, because a long answer that keeps coming is not a slow one.
    pub(super) async fn stream_with_retries(
        &self,
        request: &ChatRequest,
        on_text: OnText<'_>,
    ) -> Result<ChatAnswer> {
        let deadline = Instant::now() + self.options.timeout;
        let mut spent = Spent::default();
        let mut failures = 0;
        loop {
            let dialect = *self.dialect();
            let body = Body::new(&self.model, request, dialect).streamed(dialect);
            let body = serde_json::to_value(body).map_err(|error| {
                Error::internal("a chat request cannot be written as JSON").with_source(error)
            })?;
            spent.calls += 1;
            let begun = self.client.post_json_streamed(&self.url, self.options.key.as_deref(), &body).await;
            let (error, asked) = match begun {
                Ok(response) if response.status().is_success() => {
                    return self.read_stream(response, request, spent, on_text).await;
                }
                Ok(response) => match self.client.read_answer(&self.url, response, MAX_ANSWER_BYTES).await {
                    Ok(answer) if self.learn_dialect(dialect, &answer) => continue,
                    Ok(answer) => (self.refusal(&answer), answer.retry_after),
                    Err(error) => (error, None),
                },
                Err(error) => (error, None),
            };
            failures += 1;
            self.wait_after(error, failures, asked, deadline).await?;
        }
    }

    async fn read_stream(
        &self,
        response: Response<Incoming>,
        request: &ChatRequest,
        mut spent: Spent,
        on_text: OnText<'_>,
    ) -> Result<ChatAnswer> {
        let kind =
            response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream") {
            // A server without streaming answers with one document.
            let answer = self.client.read_answer(&self.url, response, MAX_ANSWER_BYTES).await?;
            let choice = self.read(&answer, request, &mut spent)?;
            let answer = whole_answer(choice, spent)?;
            on_text(&answer.text);
            return Ok(answer);
        }
        let (mut events, mut answer, mut body) =
            (EventReader::default(), StreamedAnswer::default(), response.into_body());
        while !answer.is_done && answer.problem.is_none() {
            let Ok(frame) = timeout(self.options.timeout, body.frame()).await else {
                let seconds = self.options.timeout.as_secs_f32();
                return Err(Error::unavailable(format!("the chat endpoint was silent for {seconds} s")));
            };
            match frame {
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        events.feed(&bytes, &mut |data| answer.take(data, on_text));
                    }
                }
                Some(Err(error)) => return Err(broke_off().with_source(error)),
                None => {
                    events.finish(&mut |data| answer.take(data, on_text));
                    break;
                }
            }
        }
        let StreamedAnswer { text, usage, problem, is_done, is_finished } = answer;
        if let Some(problem) = problem {
            return Err(Error::unavailable(self.without_key(problem)));
        }
        if !is_done && !is_finished {
            return Err(broke_off());
        }
        self.count(&mut spent, usage, request, &text);
        Ok(ChatAnswer { text, spent })
    }

    fn without_key(&self, said: String) -> String {
        match self.options.key.as_deref().filter(|key| !key.is_empty()) {
            Some(key) => said.replace(key, "(key)"),
            None => said,
        }
    }
}

fn broke_off() -> Error {
    Error::unavailable("the chat endpoint interrupted its answer")
}

/// The answer of a stream so far.
#[derive(Default)]
struct StreamedAnswer {
    text: String,
    usage: Option<Usage>,
    problem: Option<String>,
    /// Whether the stream has announced its end.
    is_done: bool,
    /// Whether the model has given its reason to finish. The usage comes after it.
    is_finished: bool,
}

impl StreamedAnswer {
    /// Reads the data of one event. Unknown events are ignored, because servers send events of their own.
    fn take(&mut self, data: &[u8], on_text: OnText<'_>) {
        if data.trim_ascii() == b"[DONE]" {
            self.is_done = true;
            return;
        }
        let Ok(Chunk { choices, usage, error }) = serde_json::from_slice(data) else { return };
        if let Some(error) = error.filter(|error| !error.is_null()) {
            let said = error.get("message").and_then(|said| said.as_str()).map(str::to_owned);
            let said: String =
                said.unwrap_or_else(|| error.to_string()).chars().take(MAX_SAID_CHARS).collect();
            self.problem = Some(format!("the chat endpoint failed in the middle of its answer: {said}"));
        }
        self.usage = usage.or(self.usage);
        for choice in choices.into_iter().flatten().filter(|choice| choice.index == 0) {
            self.is_finished |= choice.finish_reason.is_some();
            let piece = choice.delta.map(|delta| delta.text()).unwrap_or_default();
            if self.text.len() + piece.len() > MAX_ANSWER_BYTES {
                self.problem =
                    Some(format!("the chat endpoint's answer is longer than {MAX_ANSWER_BYTES} bytes"));
            } else if !piece.is_empty() {
                self.text.push_str(&piece);
                on_text(&piece);
            }
        }
    }
}
