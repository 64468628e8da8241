//! Putting damaged rows aside, and showing them.

use serde_json::json;
use strata::SystemClock;
use strata_core::ports::Clock as _;

use super::{Finding, Status};
use crate::commands::Context;
use crate::failure::{Failure, Outcome};
use crate::output::Output;

/// Puts every row that cannot be read aside.
pub(super) async fn run(context: &Context) -> Outcome<Finding> {
    let path = context.existing_file()?;
    let store = strata::open_sqlite(path).await.map_err(|error| context.not_opened(error))?;
    let repaired = store.repair(SystemClock.now()).await.map_err(|error| Failure::Failed(error.into()))?;
    strata_core::Store::close(&store).await.map_err(|error| Failure::Failed(error.into()))?;
    Ok(match repaired {
        0 => Finding::new("repair", Status::Ok, "every row can be read; nothing was changed"),
        _ => Finding::new(
            "repair",
            Status::Warning,
            format!("{repaired} damaged rows were put aside; `strata doctor --quarantine` shows them"),
        ),
    })
}

/// Prints the rows that were put aside, one JSON object a line.
pub(super) async fn show(context: &Context, output: &mut Output) -> Outcome {
    let path = context.existing_file()?;
    let store = strata::open_sqlite(path).await.map_err(|error| context.not_opened(error))?;
    let rows = store.quarantined().await.map_err(|error| Failure::Failed(error.into()))?;
    strata_core::Store::close(&store).await.map_err(|error| Failure::Failed(error.into()))?;
    for row in rows {
        let shown =
            json!({ "table": row.table, "row": row.row, "problem": row.problem, "content": row.content });
        output.line(format_args!("{shown}"))?;
    }
    Ok(())
}
