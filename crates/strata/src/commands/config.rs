//! `strata config`: shows the effective configuration and the origin of each value.
//!
//! The hidden `--markdown` prints the tables of `docs/configuration.md`.

use serde_json::json;

use super::{Context, JsonArgs};
use crate::failure::Outcome;
use crate::output::Output;

/// Show every setting with its value and origin
///
/// Flags override STRATA_* variables, variables override strata.toml, and the file overrides the defaults.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  STRATA_DEFAULT_TOP_K=10 strata config")]
pub(crate) struct Args {
    #[command(flatten)]
    json: JsonArgs,
    /// Print the tables of docs/configuration.md instead
    #[arg(long, hide = true, conflicts_with = "json")]
    markdown: bool,
}

pub(crate) fn run(args: &Args, context: &Context, output: &mut Output) -> Outcome {
    if args.markdown {
        output.line(strata::config::reference().trim_end())?;
        return Ok(());
    }
    let settings = context.config.settings();
    if args.json.json {
        output.json(&json!({ "settings": settings }))?;
        return Ok(());
    }
    let rows: Vec<_> = settings
        .iter()
        .map(|setting| {
            let value = if setting.value.is_empty() { "-" } else { &setting.value };
            [setting.key, value, &setting.origin, setting.about].map(str::to_owned)
        })
        .collect();
    output.table(["SETTING", "VALUE", "FROM", "WHAT IT IS"], &rows)?;
    Ok(())
}
