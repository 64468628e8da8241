//! Vectors for the items that a command has recorded, with the progress on stderr.

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

/// Embeds what a command has recorded, for a short time, and says how much is left. The command's answer is printed first.
pub(super) async fn embed_recorded(engine: &Engine, context: &Context, output: &mut Output) -> Outcome {
    // A remote embedder may be slow and costs money, so only a server uses it.
    if matches!(context.config.models.embedder, EmbedderChoice::Remote { .. }) {
        return Ok(());
    }
    output.flush()?;
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

/// Embeds everything that waits.
pub(super) async fn embed_all(engine: &Engine) -> Outcome {
    embed(engine, None).await.map(|_| ()).map_err(|error| Failure::Failed(error.into()))
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
