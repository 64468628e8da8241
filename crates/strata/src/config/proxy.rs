//! Where chats are passed on to, and how.

use std::time::Duration;

use strata_core::Result;
use strata_server::{ProxySettings, Secret, UpstreamUrl};

use super::layers::Layers;

pub(super) fn proxy(layers: &Layers) -> Result<ProxySettings> {
    let upstream = match layers.given("upstream")?.filter(|url| !url.is_empty()) {
        Some(_) => Some(layers.parsed("upstream", str::parse::<UpstreamUrl>)?),
        None => None,
    };
    Ok(ProxySettings {
        upstream,
        upstream_key: layers.given("upstream_key")?.filter(|key| !key.is_empty()).map(Secret::new),
        upstream_timeout: Duration::from_secs(layers.number("upstream_timeout_secs", 1, 86_400)?),
        memory_deadline: Duration::from_millis(layers.number("memory_deadline_ms", 1, 60_000)?),
        compact_tokens: layers.number("proxy.compact_tokens", 0, 100_000_000)?,
        max_body_bytes: layers.number("proxy.max_body_bytes", 1024, 4 * 1024 * 1024 * 1024)?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Flag, Sources};
    use super::*;

    fn loaded(flags: &[(&str, &str)]) -> Result<Config> {
        Config::load(&Sources {
            flags: flags.iter().map(|(key, value)| Flag::new(key, *value)).collect(),
            environment: Vec::new(),
            file: None,
            data_dir: Some("/srv/strata".into()),
        })
    }

    #[test]
    fn the_proxy_is_configured() {
        let config = loaded(&[]).unwrap();
        assert_eq!(config.server.proxy, ProxySettings::default());
        let config =
            loaded(&[("upstream", "https://api.openai.com"), ("upstream_key", "sk-secret")]).unwrap();
        assert_eq!(config.server.proxy.upstream, Some("https://api.openai.com/v1".parse().unwrap()));
        assert!(!format!("{:?}", config.settings()).contains("sk-secret"));
        assert!(!format!("{:?}", config.server).contains("sk-secret"));
        let error = loaded(&[("upstream", "api.openai.com")]).unwrap_err();
        assert!(error.message().contains("https://api.openai.com/v1"), "{error}");
        assert!(loaded(&[("memory_deadline_ms", "0")]).is_err());
    }
}
