//! The background work of a server for the items that a command has recorded: segments, and vectors with the progress on stderr.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use strata::config::EmbedderChoice;
use strata_engine::Engine;
use tokio::time::Instant;

use super::Context;
use crate::failure::{Failure, Outcome};
use crate::output::{Output, note};

/// How long a command embeds what it has recorded. A few items are ready then; a large import is left to a server.
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
    let left = match embed(engine, Some(Instant::now() + AT_ONCE)).await {
        Ok(left) => left,
        // The items are recorded, so the command has succeeded.
        Err(error) => {
            note(format_args!("nothing can be embedded yet ({error}); searches rank by words"));
            return Ok(());
        }
    };
    if left > 0 {
        note(format_args!(
            "{left} changes wait to be embedded, and searches rank them by their words; `strata serve` embeds them in the background, `strata reindex` at once"
        ));
    }
    Ok(())
}

/// Does all the background work of a server.
pub(super) async fn settle_all(engine: &Engine) -> Outcome {
    let failed = |error: strata_core::Error| Failure::Failed(error.into());
    write_segments(engine).await.map_err(failed)?;
    embed(engine, None).await.map(|_| ()).map_err(failed)
}

async fn write_segments(engine: &Engine) -> strata_core::Result<()> {
    while engine.maintenance.write_segments().await? {}
    Ok(())
}

/// Embeds until nothing waits or the time is over. Returns the number of changes that still wait.
async fn embed(engine: &Engine, until: Option<Instant>) -> strata_core::Result<u64> {
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("embedding {bar:40} {pos}/{len} changes {eta}") {
        bar.set_style(style);
    }
    let waiting = || engine.maintenance.embedding().map_or(0, |progress| progress.waiting);
    let mut first = None;
    while engine.maintenance.embed_items().await? {
        let waiting = waiting();
        let all = *first.get_or_insert(waiting);
        bar.set_length(all);
        bar.set_position(all.saturating_sub(waiting));
        if until.is_some_and(|until| Instant::now() >= until) {
            break;
        }
    }
    bar.finish_and_clear();
    Ok(waiting())
}
