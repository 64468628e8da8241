//! Log events on stderr, as text or JSON. They never contain messages or memories.

use strata::config::{Config, LogFormat};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::failure::{Failure, Outcome};

/// Starts logging with the configured filter; `default` is the filter if none is configured.
pub(crate) fn start(config: &Config, default: &str) -> Outcome {
    let filter = config.log.as_deref().unwrap_or(default);
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        Failure::usage(format!(
            "setting `log` has a wrong value `{filter}`, from {}: {error}; use `info` or `strata_store=debug`",
            config.origin("log")
        ))
    })?;
    // The MCP library logs whole messages, and these contain private text.
    let filter = match "rmcp=error".parse() {
        Ok(directive) if filter.max_level_hint() > Some(LevelFilter::ERROR) => {
            filter.add_directive(directive)
        }
        _ => filter,
    };
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match config.log_format {
        LogFormat::Text => subscriber.with_ansi(false).init(),
        LogFormat::Json => subscriber.json().flatten_event(true).init(),
    }
    Ok(())
}
