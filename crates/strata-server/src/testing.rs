//! A server in process for tests: the reference store, a fixed clock, counted ids.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use axum::response::Response;
use http_body_util::BodyExt;
use jiff::Timestamp;
use serde_json::{Value, json};
use strata_core::job::{Job, JobOutcome, JobStatus};
use strata_core::lexicon::{DIMENSION, Lexicon, Word};
use strata_core::ports::{
    ChatAnswer, ChatModel, ChatRequest, Clock, IdSource, Reranker, Spent, TokenCounter, TurnInContext,
};
use strata_core::store::{Change, ChangeSet, Head, InMemoryStore, LeaseRequest};
use strata_core::summary::{MODEL_FIELD, Strategy, Summary, SummaryStatus};
use strata_core::{JobId, LeaseId, Store, SummaryId, UserId};
use strata_engine::Engine;
use strata_engine::Settings as EngineSettings;
use tower::ServiceExt;
use uuid::Uuid;

use crate::router::router;
use crate::{App, Settings};

/// A clock that starts at a fixed moment and advances one second with each read.
#[derive(Default)]
struct SteppingClock(AtomicU64);

impl Clock for SteppingClock {
    fn now(&self) -> Timestamp {
        let step = self.0.fetch_add(1, Ordering::Relaxed);
        "2026-03-01T12:00:00Z".parse::<Timestamp>().unwrap() + jiff::SignedDuration::from_secs(step as i64)
    }
}

/// The words of a text, all without a meaning: with a lexicon, a server ranks by indexes in memory.
struct Meaningless;

impl Lexicon for Meaningless {
    fn for_each_word(&self, text: &str, emit: &mut dyn FnMut(&str)) {
        let lower = text.to_lowercase();
        lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).for_each(emit);
    }

    fn word(&self, _word: &str) -> Word {
        Word::new(&[0.0; DIMENSION], 1e-5)
    }
}

struct Reversing;

#[async_trait]
impl Reranker for Reversing {
    fn model(&self) -> &str {
        "reversing"
    }

    async fn score(&self, _: &str, items: &[TurnInContext]) -> strata_core::Result<Vec<f32>> {
        Ok((0..items.len()).map(|place| 10.0 * place as f32).collect())
    }
}

/// Ids that count up.
#[derive(Default)]
struct CountedIds(AtomicU64);

impl IdSource for CountedIds {
    fn next(&self) -> Uuid {
        Uuid::from_u128(u128::from(self.0.fetch_add(1, Ordering::Relaxed)) + 1)
    }
}

/// A test sets it to make the counting of `wait!` block until the test ends it.
pub(crate) static WAIT: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// Counts words. `panic!` makes it panic, to test how the server handles a panic, and `wait!` makes it wait.
struct Words;

impl TokenCounter for Words {
    fn count(&self, text: &str) -> u32 {
        assert!(text != "panic!", "asked to panic");
        while text == "wait!" && WAIT.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        text.split_whitespace().count() as u32
    }
}

/// A model with scripted answers. It fails when it has no more.
pub(crate) struct ScriptedModel(Mutex<VecDeque<String>>);

impl ScriptedModel {
    pub(crate) fn new(answers: impl IntoIterator<Item = String>) -> Self {
        Self(Mutex::new(answers.into_iter().collect()))
    }

    /// The number of answers that were not requested.
    pub(crate) fn left(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

#[async_trait]
impl ChatModel for ScriptedModel {
    fn model(&self) -> &str {
        "scripted"
    }

    async fn complete(&self, _request: &ChatRequest) -> strata_core::Result<ChatAnswer> {
        let text = self.0.lock().unwrap().pop_front();
        let text = text.ok_or_else(|| strata_core::Error::unavailable("the script is at its end"))?;
        Ok(ChatAnswer { text, spent: Spent { calls: 1, input_tokens: 10, output_tokens: 5 } })
    }
}

/// A server in process.
pub(crate) struct TestServer {
    pub(crate) app: App,
    router: Router,
}

/// The parts of an answer that tests check.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: axum::http::HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.body))
    }

    /// The status and the body, for a snapshot.
    pub(crate) fn shown(&self) -> String {
        format!("{}\n{}", self.status.as_u16(), serde_json::to_string_pretty(&self.json()).unwrap())
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

impl TestServer {
    pub(crate) fn new() -> Self {
        Self::with(Settings::default(), EngineSettings::default())
    }

    pub(crate) fn with(settings: Settings, engine: EngineSettings) -> Self {
        Self::over(Arc::new(InMemoryStore::default()), settings, engine)
    }

    /// A server that learns with a model.
    pub(crate) fn with_model(model: Arc<dyn ChatModel>) -> Self {
        let engine = Self::engine(Arc::new(InMemoryStore::default()), EngineSettings::default());
        Self::serving(engine.with_chat_model(model), Settings::default())
    }

    /// A server with a cross-encoder that likes each candidate better than the one before it.
    pub(crate) fn with_reversing_reranker() -> Self {
        let engine = Self::engine(Arc::new(InMemoryStore::default()), EngineSettings::default());
        Self::serving(engine.with_reranker(Arc::new(Reversing)), Settings::default())
    }

    /// A server that ranks by indexes in memory.
    pub(crate) fn with_lexicon() -> Self {
        let engine = Self::engine(Arc::new(InMemoryStore::default()), EngineSettings::default());
        Self::serving(engine.with_lexicon(Arc::new(Meaningless)), Settings::default())
    }

    pub(crate) fn over(store: Arc<dyn Store>, settings: Settings, engine: EngineSettings) -> Self {
        Self::serving(Self::engine(store, engine), settings)
    }

    fn engine(store: Arc<dyn Store>, settings: EngineSettings) -> Engine {
        Engine::new(
            store,
            Arc::new(SteppingClock::default()),
            Arc::new(CountedIds::default()),
            Arc::new(Words),
            settings,
        )
    }

    fn serving(engine: Engine, settings: Settings) -> Self {
        let app = App::new(engine, settings);
        Self { router: router(app.clone()), app }
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        Answer { status, headers, body: body_text(response).await }
    }

    pub(crate) async fn get(&self, uri: &str) -> Answer {
        self.send(request(Method::GET, uri).body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn delete(&self, uri: &str) -> Answer {
        self.send(request(Method::DELETE, uri).body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn post(&self, uri: &str, body: Value) -> Answer {
        self.write(Method::POST, uri, body).await
    }

    pub(crate) async fn write(&self, method: Method, uri: &str, body: Value) -> Answer {
        let request = request(method, uri).header("content-type", "application/json");
        self.send(request.body(Body::from(body.to_string())).unwrap()).await
    }

    /// The revision of the store, over all users.
    pub(crate) async fn heads(&self) -> Vec<(UserId, Head)> {
        let store = self.app.engine().store();
        let mut heads = Vec::new();
        for user in store.users(strata_core::store::Page::first(100)).await.unwrap() {
            let head = store.head(&user).await.unwrap();
            heads.push((user, head));
        }
        heads
    }
}

pub(crate) fn request(method: Method, uri: &str) -> axum::http::request::Builder {
    Request::builder().method(method).uri(uri).header("host", "localhost:8100")
}

pub(crate) async fn body_text(response: Response) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The dead job of [`with_jobs`].
pub(crate) const DEAD_JOB: Uuid = Uuid::from_u128(0xdead);

fn moment(second: i64) -> Timestamp {
    Timestamp::from_second(1_770_000_000 + second).unwrap()
}

/// A server in which `ada` has eight messages in the session `kiln`, and a model's window over the first four.
pub(crate) async fn with_window() -> TestServer {
    with_window_on(TestServer::new()).await
}

/// The same on a server of the caller's.
pub(crate) async fn with_window_on(server: TestServer) -> TestServer {
    let ada = UserId::new("ada").unwrap();
    let said = |number: usize| {
        let role = ["user", "assistant"][number % 2];
        json!({"role": role, "content": format!("message {number} about the relay of the kiln")})
    };
    let messages: Vec<Value> = (0..8).map(said).collect();
    let said = json!({"user_id": "ada", "session_id": "kiln", "messages": messages});
    let recorded = server.post("/turns", said).await;
    assert!(recorded.status.is_success(), "{}", recorded.body);
    let window = Summary {
        id: SummaryId(Uuid::from_u128(0x51)),
        session: "kiln".parse().unwrap(),
        strategy: Strategy::Window,
        level: 0,
        start_seq: 0,
        end_seq: 3,
        base_id: None,
        status: SummaryStatus::Completed,
        text: "The relay of the kiln was replaced in Gdansk.".to_owned(),
        structured: Some(json!({MODEL_FIELD: "tiny"})),
        input_tokens: 8,
        output_tokens: 9,
        generation_ms: None,
        created_at: moment(900),
        updated_at: moment(900),
    };
    let put = ChangeSet::one(moment(900), Change::PutSummary(Box::new(window)));
    server.app.engine().store().apply(&ada, put).await.unwrap();
    server
}

/// A server with a dead job and a waiting one of `ada`.
pub(crate) async fn with_jobs() -> TestServer {
    let server = TestServer::new();
    let store = server.app.engine().store();
    let ada = UserId::new("ada").unwrap();
    for (id, second) in [(DEAD_JOB.as_u128(), 0), (0xf00d, 500)] {
        let job = Job {
            id: JobId(Uuid::from_u128(id)),
            user: ada.clone(),
            session: Some("trip".parse().unwrap()),
            kind: "learn".to_owned(),
            payload: json!({}),
            status: JobStatus::Queued,
            attempts: 0,
            run_at: moment(second),
            lease: None,
            last_error: None,
            result: None,
            created_at: moment(second),
            updated_at: moment(second),
        };
        let changes = ChangeSet::one(moment(second), Change::EnqueueJob(Box::new(job)));
        store.apply(&ada, changes).await.unwrap();
    }
    let lease = LeaseId(Uuid::from_u128(1));
    let request = LeaseRequest {
        lease,
        worker: "w".to_owned(),
        now: moment(1),
        until: moment(60),
        user: None,
        after: None,
    };
    let job = store.lease_job(&request).await.unwrap().unwrap();
    let outcome = JobOutcome::Dead { error: "the model refuses".to_owned() };
    let finish = Change::FinishJob { id: job.id, lease, outcome };
    store.apply(&ada, ChangeSet::one(moment(2), finish)).await.unwrap();
    server
}
