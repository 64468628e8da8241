//! Chats that an earlier process could not record, and left in files.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use strata_engine::Engine;

use super::recorder::{Again, ExchangeStart, MOST_TRIES};
use crate::app::App;
use crate::upstream::{Debt, SpilledExchange, set_aside};

/// The pause between two attempts.
const RETRY: Duration = Duration::from_secs(1);

/// A file, and the place of its chat in the order of its session.
struct Left<'a> {
    file: PathBuf,
    debt: Option<Debt<'a>>,
    /// How often the store has refused it, without being away.
    refused: u32,
}

/// Records the files that earlier processes have left, until there are none. Ends with the server.
pub(crate) async fn record_left(app: App) {
    let spill = &app.proxy().spill;
    spill.remove_partial();
    // Files of this process belong to tasks that record them. New chats of the same sessions wait for these.
    let files = spill.files().into_iter().zip(0..);
    let mut left: Vec<Left<'_>> = files
        .map(|(file, number)| {
            let kept = read(&file).ok().flatten();
            let debt = kept.map(|kept| spill.owed.owe(&kept.user, &kept.session, number));
            Left { file, debt, refused: 0 }
        })
        .collect();
    loop {
        let mut failed = Vec::new();
        for mut left in left {
            if left.debt.as_ref().is_some_and(|debt| !debt.is_next()) {
                failed.push(left);
                continue;
            }
            let Err(error) = record_file(app.engine(), &left.file).await else { continue };
            left.refused += u32::from(Again::after(&error) != Again::Always);
            match Again::after(&error) {
                Again::Always => {}
                Again::Sometimes if left.refused < MOST_TRIES => {}
                Again::Unwanted => {
                    let _ = fs::remove_file(&left.file);
                    continue;
                }
                Again::Sometimes | Again::Never => {
                    tracing::error!(%error, "a chat of an earlier process cannot be recorded");
                    set_aside(&left.file);
                    continue;
                }
            }
            tracing::warn!(%error, "a chat of an earlier process could not be recorded yet");
            failed.push(left);
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

/// The chat in a file; `None` if there is none any more, or if it is damaged.
fn read(file: &Path) -> strata_core::Result<Option<SpilledExchange>> {
    let text = match fs::read(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(strata_core::Error::unavailable("a kept chat cannot be read").with_source(error));
        }
    };
    let kept = serde_json::from_slice(&text);
    if kept.is_err() {
        tracing::error!(file = %file.display(), "a kept chat is damaged; it stays where it is");
    }
    Ok(kept.ok())
}

/// Records a chat, unless the process that left it had recorded it already: the ids in the file tell.
async fn record_file(engine: &Engine, file: &Path) -> strata_core::Result<()> {
    let Some(kept) = read(file)? else { return Ok(()) };
    let SpilledExchange { user, session, messages, keeper, ids, ending } = kept;
    let start = ExchangeStart { user, session, messages, keeper, number: 0 };
    let exchange = start.open(engine, ids.tried()).await?;
    engine.recording.close_exchange(&start.user, exchange, ending).await?;
    let _ = fs::remove_file(file);
    Ok(())
}
