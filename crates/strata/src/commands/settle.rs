//! The background work of a server for the items that a command has recorded: segments, and vectors with the progress on stderr.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use strata::config::EmbedderChoice;
use strata_engine::Engine;

use super::Context;
use crate::failure::{Failure, Outcome};
use crate::output::{Output, note};

/// How long a command embeds what it has recorded. A few items take less; a large import is left to a server.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Writes the segments of what a command has recorded, and embeds some of it. The command's answer is printed first.
pub(super) async fn settle_recorded(engine: &Engine, context: &Context, output: &mut Output) -> Outcome {
    output.flush()?;
    // The next search analyses what has no segment yet, so a failure costs only time.
    if let Err(error) = write_segments(engine).await {
        tracing::warn!(%error, "segments cannot be written");
    }
    // A remote embedder may be slow and costs money, so only a server uses it.
    if matches!(context.config.models.embedder, EmbedderChoice::Remote { .. }) {
        return Ok(());
    }
    let embedded = tokio::time::timeout(AT_ONCE, embed(engine)).await;
    match embedded {
        Ok(Ok(())) => {}
        // The items are recorded, so the command has succeeded.
        Ok(Err(error)) => {
            note(format_args!("nothing can be embedded yet ({error}); searches rank by words"));
        }
        Err(_) => note(
            "not everything is embedded yet, and searches rank the rest by words; `strata serve` embeds it in the background, `strata reindex` at once, and `strata doctor` says how much waits",
        ),
    }
    Ok(())
}

/// Does all the background work of a server.
pub(super) async fn settle_all(engine: &Engine) -> Outcome {
    let failed = |error: strata_core::Error| Failure::Failed(error.into());
    write_segments(engine).await.map_err(failed)?;
    embed(engine).await.map_err(failed)
}

async fn write_segments(engine: &Engine) -> strata_core::Result<()> {
    while engine.maintenance.write_segments().await? {}
    Ok(())
}

/// Embeds until nothing waits. An embedding that is given up leaves the batches before it.
async fn embed(engine: &Engine) -> strata_core::Result<()> {
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("embedding {bar:40} {pos}/{len} changes {eta}") {
        bar.set_style(style);
    }
    let mut first = None;
    while engine.maintenance.embed_items().await? {
        let waiting = engine.maintenance.embedding().map_or(0, |progress| progress.waiting);
        let all = *first.get_or_insert(waiting);
        bar.set_length(all);
        bar.set_position(all.saturating_sub(waiting));
    }
    bar.finish_and_clear();
    Ok(())
}
