//! `strata config`: the effective configuration and where each value came from.

use serde_json::json;
use strata::config::KEYS;

use super::{Context, JsonArgs};
use crate::failure::Outcome;
use crate::output::Output;

/// Show every setting, its value and where that came from
///
/// Flags win over STRATA_* variables, those over strata.toml, that over defaults.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  STRATA_DEFAULT_TOP_K=10 strata config")]
pub(crate) struct Args {
    #[command(flatten)]
    json: JsonArgs,
}

pub(crate) fn run(args: &Args, context: &Context, output: &mut Output) -> Outcome {
    let settings = context.config.settings();
    if args.json.json {
        output.json(&json!({ "settings": settings }))?;
        return Ok(());
    }
    let rows: Vec<_> = settings
        .iter()
        .zip(KEYS)
        .map(|(setting, key)| {
            let value = if setting.value.is_empty() { "-" } else { &setting.value };
            [setting.key.to_owned(), value.to_owned(), setting.origin.clone(), key.about.to_owned()]
        })
        .collect();
    output.table(["SETTING", "VALUE", "FROM", "WHAT IT IS"], &rows)?;
    Ok(())
}
