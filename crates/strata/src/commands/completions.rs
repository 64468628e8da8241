//! `strata completions` and `strata man`: completions for shells and manual pages, from the description of the command line.

use std::path::PathBuf;

use anyhow::Context as _;
use clap_complete::Shell;

use super::Context;
use crate::failure::Outcome;
use crate::output::{Output, note};

/// Print the completions of a shell: bash, zsh or fish
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  strata completions bash > ~/.local/share/bash-completion/completions/strata\n  \
                  strata completions zsh > ~/.zfunc/_strata\n  strata completions fish > ~/.config/fish/completions/strata.fish"
)]
pub(crate) struct Args {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

pub(crate) fn run(args: &Args, context: &Context, output: &mut Output) -> Outcome {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut (context.command_line)(), "strata", &mut text);
    output.raw(&String::from_utf8_lossy(&text))?;
    Ok(())
}

/// Print the manual page, or write the pages of all commands to a folder
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  strata man | man -l -\n  strata man --dir ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Write `strata.1` and a page for each command to this folder
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn man(args: &ManArgs, context: &Context, output: &mut Output) -> Outcome {
    let Some(dir) = &args.dir else {
        let mut text = Vec::new();
        clap_mangen::Man::new((context.command_line)()).render(&mut text)?;
        output.raw(&String::from_utf8_lossy(&text))?;
        return Ok(());
    };
    let cannot = || format!("the pages cannot be written to `{}`", dir.display());
    std::fs::create_dir_all(dir).with_context(cannot)?;
    clap_mangen::generate_to((context.command_line)(), dir).with_context(cannot)?;
    note(format_args!("the manual pages are in `{}`", dir.display()));
    Ok(())
}
