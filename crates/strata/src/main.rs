//! The `strata` binary: reads the command line and the configuration, runs one command, and returns an exit code.
//!
//! The exit code is 0 for success, 1 for a failure and 2 for wrong usage. Start reading at [`cli::Cli`] and [`commands`]. All
//! output goes through [`output`].

mod cli;
mod commands;
mod failure;
mod logging;
mod output;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use strata::config::{Config, Sources};

use cli::Cli;
use commands::{Command, Context};
use failure::{Failure, Outcome};
use output::Output;

fn main() -> ExitCode {
    limit_arenas();
    let cli = Cli::parse();
    let mut output = Output::new();
    let outcome = run(cli, &mut output).and_then(|()| Ok(output.flush()?));
    let code = match outcome {
        Ok(()) | Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Err(Failure::Failed(error)) => {
            // The output before the failure is still useful.
            let _ = output.flush();
            output::print_error(&error);
            ExitCode::from(1)
        }
        Err(Failure::Usage(error)) => {
            output::print_error(&error);
            ExitCode::from(2)
        }
    };
    output::print_warnings();
    code
}

/// Lets the allocator keep one arena for each processor. By default glibc keeps eight, and what is freed in one is no use to the
/// others: a server that learns held 14 of 116 MB more.
fn limit_arenas() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        // SAFETY: it sets a number of the allocator, before any other thread runs.
        #[allow(unsafe_code, reason = "the C library has no safe call")]
        unsafe {
            libc::mallopt(libc::M_ARENA_MAX, i32::try_from(processors).unwrap_or(i32::MAX));
        }
    }
}

fn run(cli: Cli, output: &mut Output) -> Outcome {
    let (settings, command) = cli.into_parts()?;
    let config =
        Sources::of_process(settings.flags(), settings.config).and_then(|sources| Config::load(&sources));
    let config = match (config, &command) {
        (Ok(config), _) => config,
        // The doctor also diagnoses a wrong configuration.
        (Err(error), Command::Doctor(args)) => {
            return commands::doctor::report_configuration(&error, args, output);
        }
        (Err(error), _) => return Err(Failure::Usage(error.into())),
    };
    logging::start(&config, command.default_log())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let context = Context::new(config, Cli::command);
    let outcome = runtime.block_on(async {
        let outcome = Box::pin(commands::run(command, &context, output)).await;
        let closed = context.close().await;
        outcome.and(closed)
    });
    // A stopped process does not wait for a thread that still reads stdin.
    runtime.shutdown_background();
    outcome
}
