//! Who records an exchange: a task of its own, so that neither a client that goes away nor a slow disk decides whether it is
//! recorded.

use std::time::{Duration, Instant};

use strata_core::engine::{Ending, NewMessage};
use strata_core::metric::{ErrorStage, RequestMetric};
use strata_core::{Role, SessionId, UserId};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::app::App;

/// An exchange that is being recorded. Dropped without an ending, the exchange was interrupted.
pub(crate) struct Keeper {
    opened: Option<oneshot::Receiver<()>>,
    ending: oneshot::Sender<Ending>,
    closed: oneshot::Receiver<()>,
}

/// What there is to record.
pub(crate) struct Kept {
    pub(crate) user: UserId,
    pub(crate) session: SessionId,
    pub(crate) messages: Vec<NewMessage>,
    pub(crate) row: RequestMetric,
}

impl Keeper {
    /// Begins to record: what the client said at once, the reply when it has ended.
    pub(crate) fn start(app: &App, kept: Kept) -> Self {
        let (opened_sender, opened) = oneshot::channel();
        let (ending, ended) = oneshot::channel();
        let (closed_sender, closed) = oneshot::channel();
        tokio::spawn(keep(app.clone(), kept, opened_sender, ended, closed_sender));
        Self { opened: Some(opened), ending, closed }
    }

    /// Waits until what the client said is durable, at most so long.
    pub(crate) async fn opened(&mut self, most: Duration) {
        let Some(opened) = self.opened.take() else { return };
        if timeout(most, opened).await.is_err() {
            tracing::warn!("the store is slow; a chat goes on before it is recorded");
        }
    }

    /// Says how the reply ended. The receiver knows when that is durable; it fails where that cannot be.
    pub(crate) fn end(self, ending: Ending) -> oneshot::Receiver<()> {
        // The task waits for nothing else, so it takes it.
        let _ = self.ending.send(ending);
        self.closed
    }
}

async fn keep(
    app: App,
    kept: Kept,
    opened: oneshot::Sender<()>,
    mut ended: oneshot::Receiver<Ending>,
    closed: oneshot::Sender<()>,
) {
    // Never closed; more than there are permits do not fit into memory.
    let _recording = app.proxy().recordings.clone().try_acquire_owned();
    let Kept { user, session, messages, mut row } = kept;
    let engine = app.engine();
    let began = Instant::now();
    let mut exchange = engine.open_exchange(&user, &session, &messages).await;
    match &exchange {
        Ok(_) => drop(opened.send(())),
        Err(error) => {
            tracing::warn!(%error, "what a chat's client said could not be recorded yet");
            drop(opened);
        }
    }
    let ending = loop {
        let rest = tokio::time::sleep(engine.exchange_hold());
        tokio::select! {
            ending = &mut ended => break ending,
            () = rest => if let Ok(exchange) = &mut exchange
                && let Err(error) = engine.hold_exchange(&user, exchange).await
            {
                tracing::warn!(%error, "a reply that takes long could not be held");
            },
        }
    };
    let ending =
        ending.unwrap_or_else(|_| Ending::Interrupted(NewMessage::new(Role::Assistant, String::new())));
    row.latency_llm_us = Some(began.elapsed().as_micros() as u64);
    let (reply, failed) = match &ending {
        Ending::Complete(_) => ("complete", false),
        Ending::Interrupted(_) => ("interrupted", false),
        Ending::Failed(_) => ("failed", true),
    };
    let memory = match (row.error_stage, row.context_items) {
        (Some(ErrorStage::Retrieval), _) => "failed",
        (_, 0) => "nothing",
        _ => "recalled",
    };
    if failed {
        row.error_stage = row.error_stage.or(Some(ErrorStage::LlmReply));
    }
    app.meters().chatted(memory, reply);
    // The disk may have had a bad moment: it is asked again.
    if exchange.is_err() {
        exchange = engine.open_exchange(&user, &session, &messages).await;
    }
    let recorded = match exchange {
        Ok(exchange) => engine.close_exchange(&user, exchange, ending).await,
        Err(error) => Err(error),
    };
    match recorded {
        Ok(()) => drop(closed.send(())),
        Err(error) => tracing::error!(%error, "a chat could not be recorded"),
    }
    engine.note_chat(&user, row);
}
