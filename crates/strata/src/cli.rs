//! The command line as `clap` reads it: the settings that every command takes, and the commands.

use std::path::PathBuf;

use clap::{Args, Parser};
use strata::config::Flag;

use crate::commands::{Command, serve};
use crate::failure::{Failure, Outcome};

/// Memory for any LLM application: one binary, one file, offline.
///
/// Without a command, `strata serve` runs.
#[derive(Debug, Parser)]
#[command(name = "strata", version, max_term_width = 110, after_help = EXAMPLE)]
pub(crate) struct Cli {
    #[command(flatten)]
    settings: SettingArgs,
    // Not flattened from `serve::Args`: a top-level positional argument or group would conflict with the commands.
    /// The address to listen on when no command is given
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// The OpenAI-compatible server that chats are forwarded to when no command is given
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
    /// The upstream's API key, instead of the key that clients send
    #[arg(long, value_name = "KEY")]
    upstream_key: Option<String>,
    #[command(subcommand)]
    command: Option<Command>,
}

const EXAMPLE: &str = "\
Examples:
  strata
  echo '{\"role\": \"user\", \"content\": \"I moved to Lisbon\"}' | strata record --session trip
  strata search \"where do I live\"";

/// Settings that every command takes. Each is also a key of `strata.toml` and a `STRATA_*` variable.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Settings")]
pub(crate) struct SettingArgs {
    /// The store: `sqlite:PATH`, `vault:DIR`, `postgres://USER@HOST/DATABASE` or `memory:`
    #[arg(long, global = true, value_name = "URL")]
    store: Option<String>,
    /// The directory of `strata.db` (unless `--store` is set) and of installed models
    #[arg(long, global = true, value_name = "DIR")]
    data_dir: Option<String>,
    /// The configuration file [default: `strata.toml` in the working directory, if it exists]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The log events to write, as in `info` or `strata_store=debug`
    #[arg(long, global = true, value_name = "FILTER")]
    log: Option<String>,
    /// The embedder: `builtin`, `words`, `onnx:DIR` or `URL#MODEL`
    #[arg(long, global = true, value_name = "EMBEDDER")]
    embedder: Option<String>,
    /// The reader of sentences: `builtin`, `off` or `onnx:DIR`
    #[arg(long, global = true, value_name = "READER")]
    reader: Option<String>,
    /// Set any setting by its name; `strata config` lists all settings
    #[arg(long = "setting", global = true, value_name = "KEY=VALUE", value_parser = parse_assignment)]
    assigned: Vec<(String, String)>,
    #[arg(skip)]
    listen: Option<String>,
    #[arg(skip)]
    upstream: Option<String>,
    #[arg(skip)]
    upstream_key: Option<String>,
    #[arg(skip)]
    upstream_model: Option<String>,
}

impl SettingArgs {
    /// The settings given as flags; a later one overrides an earlier one.
    pub(crate) fn flags(&self) -> Vec<Flag> {
        let assigned = self.assigned.iter().map(|(key, value)| Flag {
            name: "--setting".to_owned(),
            key: key.clone(),
            value: value.clone(),
        });
        let named = [
            ("store", &self.store),
            ("data_dir", &self.data_dir),
            ("log", &self.log),
            ("embedder", &self.embedder),
            ("learn.reader", &self.reader),
            ("listen", &self.listen),
            ("upstream", &self.upstream),
            ("upstream_key", &self.upstream_key),
            ("upstream_model", &self.upstream_model),
        ];
        let named = named.into_iter().filter_map(|(key, value)| Some(Flag::new(key, value.as_ref()?)));
        assigned.chain(named).collect()
    }
}

/// Reads `KEY=VALUE`.
fn parse_assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("the value is missing; write KEY=VALUE, as in `default_top_k=10`".to_owned()),
    }
}

impl Cli {
    /// The settings and the command, which is `serve` if none is given.
    pub(crate) fn into_parts(self) -> Outcome<(SettingArgs, Command)> {
        let Self { mut settings, listen, upstream, upstream_key, command } = self;
        let serving = serve::Args { listen, upstream, upstream_key };
        let command = match (command, serving.given()) {
            (None, _) => Command::Serve(serving),
            (Some(Command::Serve(args)), _) => Command::Serve(args.or(serving)),
            (Some(command), None) => command,
            (Some(_), Some(flag)) => {
                return Err(Failure::usage(format!("`{flag}` belongs to `strata serve`; leave it out")));
            }
        };
        if let Command::Serve(args) = &command {
            settings.listen.clone_from(&args.listen);
            settings.upstream.clone_from(&args.upstream);
            settings.upstream_key.clone_from(&args.upstream_key);
        }
        if let Command::Chat(args) = &command {
            settings.upstream.clone_from(&args.upstream);
            settings.upstream_key.clone_from(&args.upstream_key);
            settings.upstream_model.clone_from(&args.model);
        }
        Ok((settings, command))
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[track_caller]
    fn parts(line: &[&str]) -> Outcome<(SettingArgs, Command)> {
        Cli::try_parse_from(line).unwrap().into_parts()
    }

    #[test]
    fn without_a_command_it_serves() {
        for line in
            [&["strata", "--listen", "127.0.0.1:0"][..], &["strata", "serve", "--listen", "127.0.0.1:0"]]
        {
            let (settings, command) = parts(line).unwrap();
            assert!(matches!(command, Command::Serve(_)), "{command:?}");
            assert_eq!(settings.flags(), [Flag::new("listen", "127.0.0.1:0")]);
        }
        assert!(matches!(parts(&["strata", "--listen", "x", "doctor"]), Err(Failure::Usage(_))));
    }

    #[test]
    fn a_named_flag_overrides_an_assignment() {
        let (settings, _) =
            parts(&["strata", "doctor", "--store", "memory:", "--setting", "store=sqlite:x"]).unwrap();
        let flags = settings.flags();
        assert_eq!(flags.last(), Some(&Flag::new("store", "memory:")));
        assert_eq!(flags[0].name, "--setting");
    }

    #[test]
    fn set_belongs_to_eval_and_setting_to_every_command() {
        let line =
            ["strata", "eval", "DIR", "--set", "locomo", "--setting", "default_top_k=9", "--set", "own"];
        let (settings, command) = parts(&line).unwrap();
        assert!(matches!(&command, Command::Eval(args) if args.sets == ["locomo", "own"]), "{command:?}");
        let keys: Vec<String> = settings.flags().into_iter().map(|flag| flag.key).collect();
        assert_eq!(keys, ["default_top_k"]);
        for wrong in
            [&["strata", "doctor", "--set", "locomo"][..], &["strata", "doctor", "--setting", "locomo"]]
        {
            assert!(Cli::try_parse_from(wrong).is_err(), "{wrong:?}");
        }
    }
}
