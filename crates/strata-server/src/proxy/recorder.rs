//! Records an exchange in a task of its own, so that it is recorded even if the client disconnects or the disk is
//! slow.
//!
//! Recording is tried until it succeeds or the process ends. The end of a reply waits for it, so a reply whose end a
//! client has seen is durable. There are two exceptions. If the store *fails*, the end waits no longer than
//! [`memory_deadline`](crate::ProxySettings::memory_deadline), because memory that fails must not make a chat fail. If
//! [`reply_wait`](crate::ProxySettings::reply_wait) is set, the end waits no longer than that. The row of the request
//! says so then.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use strata_core::metric::{ErrorStage, RequestMetric};
use strata_core::turn::{NewMessage, Usage};
use strata_core::{Error, ErrorKind, Role, SessionId, UserId};
use strata_engine::Engine;
use strata_engine::{Ending, Exchange, ExchangeIds, KeptBy};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use crate::app::App;
use crate::upstream::{Debt, Spill, Spilled, SpilledExchange};

/// The pause after the first try; it doubles with each try, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How often a chat is tried that the store refuses as a defect or a damage: for about five minutes.
pub(super) const MOST_TRIES: u32 = 300;

/// Resolves when the end of a reply may be passed on.
pub(crate) type MayPass = Pin<Box<dyn Future<Output = ()> + Send>>;

/// How far recording has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// The store works on it.
    Working,
    /// The store has failed; recording is tried again.
    Failing,
    /// It is durable, or can never be.
    Ended,
}

/// An exchange that is being recorded. If it is dropped without an ending, the exchange was interrupted.
pub(crate) struct ExchangeRecorder {
    opened: Option<oneshot::Receiver<()>>,
    /// Receives the row of the request after recall.
    row: Option<oneshot::Sender<(RequestMetric, Instant)>>,
    ending: oneshot::Sender<Ending>,
    progress: watch::Receiver<Progress>,
    /// The beginning of the reply, which the client has written.
    begun: String,
    /// Set if the end is passed on before the reply is durable.
    is_early: Arc<AtomicBool>,
    /// How long the end waits for a store that fails, and for one that is slow.
    patience: (Duration, Option<Duration>),
}

/// The data known when an exchange starts.
pub(crate) struct ExchangeStart {
    pub(crate) user: UserId,
    pub(crate) session: SessionId,
    pub(crate) messages: Vec<NewMessage>,
    /// Who keeps the conversation.
    pub(crate) keeper: KeptBy,
    /// Its number among all chats, in the order in which they began, see [`Owed`](crate::upstream::Owed).
    pub(crate) number: u64,
}

impl ExchangeStart {
    /// Notes that the session owes this chat.
    fn owe<'a>(&self, spill: &'a Spill) -> Debt<'a> {
        spill.owed.owe(&self.user, &self.session, self.number)
    }

    /// The exchange as it is kept until the store works.
    fn spilled(&self, ids: ExchangeIds, ending: &Ending) -> SpilledExchange {
        let Self { user, session, messages, keeper, .. } = self;
        SpilledExchange {
            user: user.clone(),
            session: session.clone(),
            messages: messages.clone(),
            keeper: *keeper,
            ids,
            ending: ending.clone(),
        }
    }

    pub(super) async fn open(&self, engine: &Engine, ids: ExchangeIds) -> strata_core::Result<Exchange> {
        let Self { user, session, messages, keeper, .. } = self;
        engine.recording.open_exchange_as(ids, user, session, messages, *keeper).await
    }
}

/// The events that the recording task waits for.
struct RecorderInputs {
    row: oneshot::Receiver<(RequestMetric, Instant)>,
    ended: oneshot::Receiver<Ending>,
    is_early: Arc<AtomicBool>,
}

impl ExchangeRecorder {
    /// Starts recording: the client's messages at once, the reply when it has ended. The reply continues `begun`.
    pub(crate) fn start(app: &App, start: ExchangeStart, begun: String) -> Self {
        let (opened_sender, opened) = oneshot::channel();
        let (row_sender, row) = oneshot::channel();
        let (ending, ended) = oneshot::channel();
        let (reports, progress) = watch::channel(Progress::Working);
        let is_early = Arc::<AtomicBool>::default();
        let inputs = RecorderInputs { row, ended, is_early: Arc::clone(&is_early) };
        tokio::spawn(run(app.clone(), start, opened_sender, inputs, reports));
        let settings = &app.settings().proxy;
        let patience = (settings.memory_deadline, settings.reply_wait);
        Self { opened: Some(opened), row: Some(row_sender), ending, progress, begun, is_early, patience }
    }

    /// Hands over the row of recall. From now on the time counts as the model's.
    pub(crate) fn recalled(&mut self, row: RequestMetric) {
        if let Some(sender) = self.row.take() {
            // The task waits for it until the end.
            let _ = sender.send((row, Instant::now()));
        }
    }

    /// Waits until the client's messages are durable, at most for `most`. Returns whether they are.
    pub(crate) async fn opened(&mut self, most: Duration) -> bool {
        let Some(opened) = self.opened.take() else { return true };
        match timeout(most, opened).await {
            Ok(opened) => opened.is_ok(),
            Err(_) => {
                tracing::warn!("the store is slow; a chat goes on before it is recorded");
                false
            }
        }
    }

    /// Reports how the reply ended. The result resolves when the end may be passed on.
    pub(crate) fn end(self, mut ending: Ending) -> MayPass {
        if let Ending::Complete(reply) | Ending::Interrupted(reply) = &mut ending {
            reply.content.insert_str(0, &self.begun);
        }
        // The task waits for this message only, so it receives it.
        let _ = self.ending.send(ending);
        let Self { mut progress, is_early, patience: (with_failing, with_slow), .. } = self;
        Box::pin(async move {
            let recorded = until_recorded(&mut progress, with_failing);
            let is_recorded = match with_slow {
                None => recorded.await,
                Some(most) => timeout(most, recorded).await.unwrap_or(false),
            };
            if !is_recorded {
                is_early.store(true, Ordering::Relaxed);
                tracing::warn!("the end of a reply is passed on before the reply is recorded");
            }
        })
    }
}

/// Waits until a reply is durable, as long as the store works on it. Returns whether it is; `false` if the store has
/// failed for `patience`.
async fn until_recorded(progress: &mut watch::Receiver<Progress>, patience: Duration) -> bool {
    // The sender lives as long as the task.
    let is_settled = |progress: &Progress| *progress != Progress::Working;
    if progress.wait_for(is_settled).await.is_ok_and(|now| *now == Progress::Ended) {
        return true;
    }
    let ended = progress.wait_for(|progress| *progress == Progress::Ended);
    timeout(patience, ended).await.is_ok_and(|ended| ended.is_ok())
}

async fn run(
    app: App,
    start: ExchangeStart,
    opened: oneshot::Sender<()>,
    RecorderInputs { row, mut ended, is_early }: RecorderInputs,
    reports: watch::Sender<Progress>,
) {
    // The semaphore is never closed, and more requests than permits would not fit into memory.
    let _recording = app.proxy().recordings.clone().try_acquire_owned();
    let user = &start.user;
    let engine = app.engine();
    let ids = engine.recording.exchange_ids();
    let mut exchange = open(&app, &start, ids, opened).await;
    let was_opened = exchange.is_some();
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
    count(&app, row.as_ref(), &ending);
    if let Some(row) = &mut row {
        note_ending(row, &ending);
    }
    // From here on the client may have the reply, and go on with it in another chat.
    let debt = exchange.is_none().then(|| start.owe(&app.proxy().spill));
    let recording = Recording { app: &app, start: &start, ids, ending, reports: &reports, debt, kept: None };
    if let Err(error) = recording.record(exchange).await {
        tracing::error!(%error, "a chat could not be recorded");
    }
    reports.send_replace(Progress::Ended);
    // Another process may have forgotten it.
    let is_forgotten =
        was_opened && matches!(engine.store().session(&start.user, &start.session).await, Ok(None));
    if let Some(mut row) = row.filter(|_| !is_forgotten) {
        if is_early.load(Ordering::Relaxed) {
            row.error_stage = row.error_stage.or(Some(ErrorStage::Recording));
        }
        engine.prompting.note_chat(user, row).await;
    }
}

/// Stores the client's messages. `None` if that failed, or if earlier chats of the session are not recorded yet.
async fn open(
    app: &App,
    start: &ExchangeStart,
    ids: ExchangeIds,
    opened: oneshot::Sender<()>,
) -> Option<Exchange> {
    if !app.proxy().spill.owed.is_next(&start.user, &start.session, start.number) {
        return None;
    }
    match start.open(app.engine(), ids).await {
        Ok(exchange) => {
            let _ = opened.send(());
            Some(exchange)
        }
        Err(error) => {
            tracing::warn!(%error, "what a chat's client said could not be recorded yet");
            None
        }
    }
}

/// Notes in the row of a request how the reply ended.
fn note_ending(row: &mut RequestMetric, ending: &Ending) {
    match ending {
        Ending::Complete(reply) | Ending::Interrupted(reply) => {
            let Usage { input, output } = reply.notes.usage;
            row.prompt.input_tokens = input.map(u64::from);
            row.prompt.output_tokens = output.map(u64::from);
        }
        Ending::Failed(_) => row.error_stage = row.error_stage.or(Some(ErrorStage::LlmReply)),
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

/// Whether recording is tried again after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    /// The store is away, for any reason: it may come back at any time.
    Always,
    /// A defect or a damage, perhaps a failing medium: up to [`MOST_TRIES`].
    Sometimes,
    /// The store refuses the chat for good.
    Never,
    /// The user or the session was forgotten meanwhile.
    Unwanted,
}

impl Again {
    pub(super) fn after(error: &Error) -> Self {
        match error.kind() {
            _ if error.is_retryable() => Self::Always,
            ErrorKind::Unavailable => Self::Always,
            ErrorKind::Internal => Self::Sometimes,
            ErrorKind::NotFound => Self::Unwanted,
            _ => Self::Never,
        }
    }
}

/// A chat whose reply has ended, until it is recorded.
struct Recording<'a> {
    app: &'a App,
    start: &'a ExchangeStart,
    ids: ExchangeIds,
    ending: Ending,
    reports: &'a watch::Sender<Progress>,
    /// Its place among the chats of its session that could not be recorded at once.
    debt: Option<Debt<'a>>,
    /// Its place in the spill.
    kept: Option<Spilled<'a>>,
}

impl Recording<'_> {
    /// Records a reply, and before it the client's messages if they are not recorded yet. If the store fails, the exchange
    /// is kept in the spill, and recording is tried again until it succeeds, after the earlier chats of the session. What
    /// the store refuses for good is put aside.
    async fn record(mut self, mut exchange: Option<Exchange>) -> strata_core::Result<()> {
        let (mut pause, mut refused) = (FIRST_PAUSE, 0);
        loop {
            if self.debt.as_ref().is_some_and(|debt| !debt.is_next()) {
                self.keep()?;
                if let Some(debt) = &self.debt {
                    debt.until_next().await;
                }
            }
            if self.kept.as_ref().is_some_and(Spilled::is_gone) {
                return Ok(());
            }
            let Err(error) = self.attempt(&mut exchange).await else { break };
            refused += u32::from(Again::after(&error) != Again::Always);
            match Again::after(&error) {
                Again::Always => {}
                Again::Sometimes if refused < MOST_TRIES => {}
                Again::Sometimes | Again::Never => {
                    if let Some(kept) = self.kept.take() {
                        kept.refused();
                    }
                    return Err(error);
                }
                Again::Unwanted => {
                    tracing::info!("a chat was forgotten while it was under way; it is not recorded");
                    if let Some(kept) = self.kept.take() {
                        kept.done();
                    }
                    return Ok(());
                }
            }
            if self.kept.is_none() {
                tracing::warn!(%error, "a chat could not be recorded yet");
            }
            self.keep()?;
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        if let Some(kept) = self.kept.take() {
            kept.done();
        }
        self.app.proxy().spill.works();
        Ok(())
    }

    async fn attempt(&self, exchange: &mut Option<Exchange>) -> strata_core::Result<()> {
        let Self { app, start, ids, ending, .. } = self;
        let open = match exchange.take() {
            Some(open) => open,
            // The first attempt has failed, or could not say that it succeeded.
            None => start.open(app.engine(), ids.tried()).await?,
        };
        *exchange = Some(open.clone());
        app.engine().recording.close_exchange(&start.user, open, ending.clone()).await
    }

    /// Keeps the chat until it is recorded. *Unavailable* if there is no room for it.
    fn keep(&mut self) -> strata_core::Result<()> {
        let Self { app, start, ids, .. } = *self;
        let spill = &app.proxy().spill;
        if self.debt.is_none() {
            self.debt = Some(start.owe(spill));
        }
        if self.kept.is_none() {
            let name = app.engine().next_id().to_string();
            self.kept = spill.keep(&name, &start.spilled(ids, &self.ending));
        }
        self.reports.send_replace(Progress::Failing);
        match self.kept {
            Some(_) => Ok(()),
            None => Err(Error::unavailable("there is no room left for chats that cannot be recorded")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_is_away_is_tried_for_ever_and_a_refusal_is_not() {
        let check = |error: Error, again: Again| assert_eq!(Again::after(&error), again, "{error}");
        check(Error::unavailable("the disk is full").retryable(), Again::Always);
        check(Error::unavailable("the file cannot be written"), Again::Always);
        check(Error::conflict("the session has changed").retryable(), Again::Always);
        check(Error::internal("the medium failed"), Again::Sometimes);
        check(Error::invalid("a name is too long"), Again::Never);
        check(Error::too_large("a value is too large"), Again::Never);
        check(Error::conflict("the id exists"), Again::Never);
        check(Error::not_found("it was forgotten"), Again::Unwanted);
    }
}
