//! Log events on stderr, as text or JSON. They never contain messages or memories.

use strata::config::{Config, LogFormat};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::failure::{Failure, Outcome};

/// Libraries that say less than the filter asks for: the MCP library logs whole messages, and these contain private text; that
/// of the watcher logs each folder that it watches.
const QUIET: [(&str, LevelFilter); 2] =
    [("rmcp=error", LevelFilter::ERROR), ("notify=warn", LevelFilter::WARN)];

/// Starts logging with the configured filter; `default` is the filter if none is configured.
pub(crate) fn start(config: &Config, default: &str) -> Outcome {
    let filter = config.log.as_deref().unwrap_or(default);
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        Failure::usage(format!(
            "setting `log` has a wrong value `{filter}`, from {}: {error}; use `info` or `strata_store=debug`",
            config.origin("log")
        ))
    })?;
    let filter = quieted(filter);
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match config.log_format {
        LogFormat::Text => subscriber.with_ansi(false).init(),
        LogFormat::Json => subscriber.json().flatten_event(true).init(),
    }
    Ok(())
}

fn quieted(filter: EnvFilter) -> EnvFilter {
    QUIET.into_iter().fold(filter, |filter, (directive, level)| match directive.parse() {
        Ok(directive) if filter.max_level_hint() > Some(level) => filter.add_directive(directive),
        _ => filter,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_say_no_more_than_they_may() {
        let filter = |text: &str| quieted(text.parse().unwrap()).to_string();
        let usual = filter("info");
        assert!(usual.contains("rmcp=error") && usual.contains("notify=warn"), "{usual}");
        assert_eq!(filter("error"), "error");
    }
}
