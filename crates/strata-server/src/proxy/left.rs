//! Chats that an earlier process could not record, and left in files.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use strata_core::Role;
use strata_core::store::TurnQuery;
use strata_engine::Engine;

use super::recorder::ExchangeStart;
use crate::app::App;
use crate::upstream::SpilledExchange;

/// The pause between two attempts.
const RETRY: Duration = Duration::from_secs(1);

/// The number of a session's last turns among which a reply is looked for that was recorded already.
const LOOKED_BACK: u32 = 200;

/// Records the files that earlier processes have left, until there are none. Ends with the server.
pub(crate) async fn record_left(app: App) {
    let spill = &app.proxy().spill;
    // Files of this process belong to tasks that record them.
    let mut left: Vec<PathBuf> = spill.files();
    loop {
        let mut failed: Vec<PathBuf> = Vec::new();
        for file in left {
            if let Err(error) = record_file(app.engine(), &file).await {
                tracing::warn!(%error, "a chat of an earlier process could not be recorded yet");
                failed.push(file);
            }
        }
        if failed.is_empty() {
            return;
        }
        left = failed;
        tokio::select! {
            () = tokio::time::sleep(RETRY) => {}
            () = spill.until_works() => {}
        }
    }
}

async fn record_file(engine: &Engine, file: &Path) -> strata_core::Result<()> {
    let text = match fs::read(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(strata_core::Error::unavailable("a kept chat cannot be read").with_source(error));
        }
    };
    let Ok(kept) = serde_json::from_slice::<SpilledExchange>(&text) else {
        tracing::error!(file = %file.display(), "a kept chat is damaged; it stays where it is");
        return Ok(());
    };
    if !is_recorded(engine, &kept).await? {
        let SpilledExchange { user, session, messages, keeper, ids, ending } = kept;
        let start = ExchangeStart { user, session, messages, keeper };
        let exchange = start.open(engine, ids.tried()).await?;
        engine.recording.close_exchange(&start.user, exchange, ending).await?;
    }
    let _ = fs::remove_file(file);
    Ok(())
}

/// Whether a reply is among the last turns of its session: the process may have died after recording it.
async fn is_recorded(engine: &Engine, kept: &SpilledExchange) -> strata_core::Result<bool> {
    let recent = TurnQuery::recent(Some(kept.session.clone()), LOOKED_BACK);
    let turns = engine.store().turns(&kept.user, &recent).await?;
    let reply = &kept.reply().content;
    Ok(!reply.is_empty() && turns.iter().any(|turn| turn.role == Role::Assistant && turn.content == *reply))
}
