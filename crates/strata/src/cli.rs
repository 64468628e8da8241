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
    // Not flattened from `serve::Args`: a top-level positional or group would get into the way of the commands.
    /// Where to listen when no command is given
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
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
    /// Where things are kept: `sqlite:PATH` or `memory:`
    #[arg(long, global = true, value_name = "URL")]
    store: Option<String>,
    /// The directory of `strata.db` where no store is named
    #[arg(long, global = true, value_name = "DIR")]
    data_dir: Option<String>,
    /// The configuration file; otherwise `strata.toml` in the working directory, if it is there
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Which log events to write, as in `info` or `strata_store=debug`
    #[arg(long, global = true, value_name = "FILTER")]
    log: Option<String>,
    /// Any setting by its name; `strata config` lists them
    #[arg(long = "set", global = true, value_name = "KEY=VALUE")]
    assigned: Vec<String>,
    #[arg(skip)]
    assignments: Vec<(String, String)>,
    #[arg(skip)]
    listen: Option<String>,
}

impl SettingArgs {
    /// The settings given as flags, the strongest last.
    pub(crate) fn flags(&self) -> Vec<Flag> {
        let assigned = self.assignments.iter().map(|(key, value)| Flag {
            name: "--set".to_owned(),
            key: key.clone(),
            value: value.clone(),
        });
        let named = [
            ("store", &self.store),
            ("data_dir", &self.data_dir),
            ("log", &self.log),
            ("listen", &self.listen),
        ];
        let named = named.into_iter().filter_map(|(key, value)| Some(Flag::new(key, value.as_ref()?)));
        assigned.chain(named).collect()
    }
}

impl Cli {
    /// The settings and the command, which is `serve` where none was given.
    pub(crate) fn into_parts(self) -> Outcome<(SettingArgs, Command)> {
        let Self { mut settings, listen, command } = self;
        let mut command = match (command, listen) {
            (None, listen) => Command::Serve(serve::Args { listen }),
            (Some(command), None) => command,
            (Some(Command::Serve(args)), Some(listen)) => {
                Command::Serve(serve::Args { listen: args.listen.or(Some(listen)) })
            }
            (Some(_), Some(_)) => {
                return Err(Failure::usage("`--listen` belongs to `strata serve`; leave it out"));
            }
        };
        if let Command::Serve(args) = &command {
            settings.listen.clone_from(&args.listen);
        }
        for text in std::mem::take(&mut settings.assigned) {
            match (text.split_once('='), &mut command) {
                (Some((key, value)), _) if !key.is_empty() => {
                    settings.assignments.push((key.to_owned(), value.to_owned()));
                }
                // For `strata eval` alone, `--set` also names a set.
                (None, Command::Eval(args)) => args.sets.push(text),
                _ => {
                    return Err(Failure::usage(format!(
                        "`--set {text}` names no value; write it as KEY=VALUE, as in `default_top_k=10`"
                    )));
                }
            }
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
    fn a_named_flag_is_stronger_than_an_assignment() {
        let (settings, _) =
            parts(&["strata", "doctor", "--store", "memory:", "--set", "store=sqlite:x"]).unwrap();
        let flags = settings.flags();
        assert_eq!(flags.last(), Some(&Flag::new("store", "memory:")));
        assert_eq!(flags[0].name, "--set");
    }

    #[test]
    fn for_an_evaluation_a_set_is_named_as_settings_are() {
        let line = ["strata", "eval", "DIR", "--set", "locomo", "--set", "default_top_k=9", "--set", "own"];
        let (settings, command) = parts(&line).unwrap();
        assert!(matches!(&command, Command::Eval(args) if args.sets == ["locomo", "own"]), "{command:?}");
        assert_eq!(
            settings.flags().iter().map(|flag| flag.key.as_str()).collect::<Vec<_>>(),
            ["default_top_k"]
        );
        assert!(matches!(parts(&["strata", "doctor", "--set", "locomo"]), Err(Failure::Usage(_))));
    }
}
