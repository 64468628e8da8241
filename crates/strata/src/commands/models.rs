//! `strata models`: lists, downloads and chooses embedding models.

mod choose;
mod list;
mod pull;

use clap::Subcommand;
use std::path::PathBuf;

use strata_core::error::shown;

use super::{Context, JsonArgs};
use crate::failure::{Failure, Outcome};
use crate::output::Output;

/// List, download and choose embedding models
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  strata models list\n  strata models pull all-MiniLM-L6-v2")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the installed models and mark the one in use
    #[command(after_help = "Example:\n  strata models list --json")]
    List {
        #[command(flatten)]
        json: JsonArgs,
    },
    Pull(pull::Args),
    Use(choose::Args),
}

pub(crate) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    match args.action {
        Action::List { json } => list::run(json, context, output),
        Action::Pull(args) => pull::run(args, context, output).await,
        Action::Use(args) => choose::run(args, context, output),
    }
}

/// The directory of installed models.
fn directory(context: &Context) -> Outcome<PathBuf> {
    let directory = context.config.models.directory();
    directory.ok_or_else(|| {
        Failure::usage("no home directory was found for the models; name a directory with `--data-dir`")
    })
}

/// Checks a model's name. It is the name of a folder, and must not lead out of the folder of all models.
fn check_name(name: &str) -> Outcome {
    let plain = !name.is_empty()
        && name.len() <= 100
        && !name.starts_with('.')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    if plain && !matches!(name, "auto" | "builtin" | "words") {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "`{}` cannot be a model's name; use letters, digits, `.`, `_` and `-`, and none of `auto`, `builtin` and `words`",
        shown(name)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_inside_the_folder_of_models() {
        for name in ["all-MiniLM-L6-v2", "strata-encoder", "a.b_c"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in [
            "",
            ".",
            "..",
            "../x",
            "a/b",
            "a\\b",
            ".hidden",
            "builtin",
            "words",
            "auto",
            "a b",
            &"x".repeat(101),
        ] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
