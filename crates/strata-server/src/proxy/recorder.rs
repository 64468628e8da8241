//! Records an exchange in a task of its own, so that it is recorded even if the client disconnects or the disk is
//! slow.

use std::time::{Duration, Instant};

use strata_core::metric::{ErrorStage, RequestMetric};
use strata_core::turn::{NewMessage, Usage};
use strata_core::{Role, SessionId, UserId};
use strata_engine::Engine;
use strata_engine::{Ending, Exchange};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::app::App;
use crate::upstream::SpilledExchange;

/// The pause after the first try; it doubles with each try, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// An exchange that is being recorded. If it is dropped without an ending, the exchange was interrupted.
pub(crate) struct ExchangeRecorder {
    opened: Option<oneshot::Receiver<()>>,
    /// Receives the row of the request after recall.
    row: Option<oneshot::Sender<(RequestMetric, Instant)>>,
    ending: oneshot::Sender<Ending>,
    closed: oneshot::Receiver<()>,
}

/// The data known when an exchange starts.
pub(crate) struct ExchangeStart {
    pub(crate) user: UserId,
    pub(crate) session: SessionId,
    pub(crate) messages: Vec<NewMessage>,
    /// Whether the provider keeps the conversation, so that all messages are new.
    pub(crate) is_kept: bool,
}

impl ExchangeStart {
    /// The exchange as it is kept until the store works.
    fn spilled(&self, ending: &Ending) -> SpilledExchange {
        let Self { user, session, messages, is_kept } = self;
        SpilledExchange {
            user: user.clone(),
            session: session.clone(),
            messages: messages.clone(),
            is_kept: *is_kept,
            ending: ending.clone(),
        }
    }

    pub(super) async fn open(&self, engine: &Engine) -> strata_core::Result<Exchange> {
        let Self { user, session, messages, is_kept } = self;
        match is_kept {
            true => engine.recording.continue_exchange(user, session, messages).await,
            false => engine.recording.open_exchange(user, session, messages).await,
        }
    }
}

/// The events that the recording task waits for.
struct RecorderInputs {
    row: oneshot::Receiver<(RequestMetric, Instant)>,
    ended: oneshot::Receiver<Ending>,
}

impl ExchangeRecorder {
    /// Starts recording: the client's messages at once, the reply when it has ended.
    pub(crate) fn start(app: &App, start: ExchangeStart) -> Self {
        let (opened_sender, opened) = oneshot::channel();
        let (row_sender, row) = oneshot::channel();
        let (ending, ended) = oneshot::channel();
        let (closed_sender, closed) = oneshot::channel();
        tokio::spawn(run(app.clone(), start, opened_sender, RecorderInputs { row, ended }, closed_sender));
        Self { opened: Some(opened), row: Some(row_sender), ending, closed }
    }

    /// Hands over the row of recall. From now on the time counts as the model's.
    pub(crate) fn recalled(&mut self, row: RequestMetric) {
        if let Some(sender) = self.row.take() {
            // The task waits for it until the end.
            let _ = sender.send((row, Instant::now()));
        }
    }

    /// Waits until the client's messages are durable, at most for `most`.
    pub(crate) async fn opened(&mut self, most: Duration) {
        let Some(opened) = self.opened.take() else { return };
        if timeout(most, opened).await.is_err() {
            tracing::warn!("the store is slow; a chat goes on before it is recorded");
        }
    }

    /// Reports how the reply ended. The receiver resolves when the reply is durable, and fails if it cannot be
    /// recorded.
    pub(crate) fn end(self, ending: Ending) -> oneshot::Receiver<()> {
        // The task waits for this message only, so it receives it.
        let _ = self.ending.send(ending);
        self.closed
    }
}

async fn run(
    app: App,
    start: ExchangeStart,
    opened: oneshot::Sender<()>,
    RecorderInputs { row, mut ended }: RecorderInputs,
    closed: oneshot::Sender<()>,
) {
    // The semaphore is never closed, and more requests than permits would not fit into memory.
    let _recording = app.proxy().recordings.clone().try_acquire_owned();
    let user = &start.user;
    let engine = app.engine();
    let mut exchange = match start.open(engine).await {
        Ok(exchange) => {
            let _ = opened.send(());
            Some(exchange)
        }
        Err(error) => {
            tracing::warn!(%error, "what a chat's client said could not be recorded yet");
            drop(opened);
            None
        }
    };
    let ending = loop {
        let rest = tokio::time::sleep(engine.recording.exchange_hold());
        tokio::select! {
            ending = &mut ended => break ending,
            () = rest => if let Some(exchange) = &mut exchange
                && let Err(error) = engine.recording.hold_exchange(user, exchange).await
            {
                tracing::warn!(%error, "a reply that takes long could not be held");
            },
        }
    };
    let ending =
        ending.unwrap_or_else(|_| Ending::Interrupted(NewMessage::new(Role::Assistant, String::new())));
    // There is no row if the client disconnected during recall.
    let mut row = row.await.ok().map(|(row, asked)| {
        let latency_llm_us = Some(asked.elapsed().as_micros() as u64);
        RequestMetric { latency_llm_us, ..row }
    });
    let failed = matches!(ending, Ending::Failed(_));
    count(&app, row.as_ref(), &ending);
    if let (Some(row), Ending::Complete(reply) | Ending::Interrupted(reply)) = (&mut row, &ending) {
        let Usage { input, output } = reply.notes.usage;
        row.prompt.input_tokens = input.map(u64::from);
        row.prompt.output_tokens = output.map(u64::from);
    }
    if let Some(row) = row.as_mut().filter(|_| failed) {
        row.error_stage = row.error_stage.or(Some(ErrorStage::LlmReply));
    }
    let recorded = record(&app, &start, exchange, ending).await;
    match recorded {
        Ok(()) => drop(closed.send(())),
        Err(error) => tracing::error!(%error, "a chat could not be recorded"),
    }
    if let Some(row) = row {
        engine.prompting.note_chat(user, row).await;
    }
}

/// Counts a chat in the meters, by the results of memory and model.
fn count(app: &App, row: Option<&RequestMetric>, ending: &Ending) {
    let reply = match ending {
        Ending::Complete(_) => "complete",
        Ending::Interrupted(_) => "interrupted",
        Ending::Failed(_) => "failed",
    };
    let memory = match row.map_or((None, 0), |row| (row.error_stage, row.context_items)) {
        (Some(ErrorStage::Retrieval), _) => "failed",
        (_, 0) => "nothing",
        _ => "recalled",
    };
    app.meters().chatted(memory, reply);
}

/// Records a reply, and before it the client's messages if they are not recorded yet. If the store fails, the exchange is
/// kept in the spill, and recording is tried again until it succeeds.
async fn record(
    app: &App,
    start: &ExchangeStart,
    mut exchange: Option<Exchange>,
    ending: Ending,
) -> strata_core::Result<()> {
    let (engine, spill) = (app.engine(), &app.proxy().spill);
    let (mut kept, mut pause) = (None, FIRST_PAUSE);
    let forgotten = spill.times_forgotten(&start.user);
    loop {
        if spill.times_forgotten(&start.user) != forgotten {
            return Ok(());
        }
        let recorded = async {
            let open = match exchange.take() {
                Some(open) => open,
                None => start.open(engine).await?,
            };
            exchange = Some(open.clone());
            engine.recording.close_exchange(&start.user, open, ending.clone()).await
        };
        match recorded.await {
            Err(error) if error.is_retryable() => {
                if kept.is_none() {
                    tracing::warn!(%error, "a chat could not be recorded yet");
                    kept = spill.keep(&engine.next_id().to_string(), &start.spilled(&ending));
                }
                if kept.is_none() {
                    return Err(error);
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            recorded => {
                spill.works();
                if let Some(kept) = kept {
                    kept.done();
                }
                return recorded;
            }
        }
    }
}
