//! Under which names the server is called, and which pages may call it.

use strata_core::{Error, Result};

use super::layers::Layers;

/// Names without a scheme or a port, as `Host` has them.
pub(super) fn allowed_hosts(layers: &Layers) -> Result<Vec<String>> {
    checked(layers, "allowed_hosts", |host| {
        let is_name = !host.is_empty()
            && (host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
                || host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).is_some_and(is_ipv6));
        is_name.then_some(()).ok_or("a name without a scheme or a port, as in `memory.example.com`")
    })
}

/// Exact origins: what a page at `*` could read, any page could.
pub(super) fn cors_origins(layers: &Layers) -> Result<Vec<String>> {
    checked(layers, "cors_origins", |origin| {
        let rest = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
        let is_origin = rest.is_some_and(|rest| {
            !rest.is_empty()
                && rest.bytes().all(|byte| {
                    byte.is_ascii_digit()
                        || byte.is_ascii_lowercase()
                        || matches!(byte, b'.' | b'-' | b'_' | b':' | b'[' | b']')
                })
        });
        is_origin.then_some(()).ok_or(
            "a scheme and a name in small letters, without a path or `*`, as in `https://app.example.com`",
        )
    })
}

fn is_ipv6(text: &str) -> bool {
    text.parse::<std::net::Ipv6Addr>().is_ok()
}

fn checked(
    layers: &Layers,
    key: &str,
    check: impl Fn(&str) -> std::result::Result<(), &'static str>,
) -> Result<Vec<String>> {
    let list = layers.list(key)?;
    for entry in &list {
        check(entry).map_err(|expected| {
            let (shown, origin) = (entry.chars().take(64).collect::<String>(), layers.origin(key));
            Error::invalid(format!(
                "setting `{key}`, from {origin}, has `{shown}`; give each entry as {expected}"
            ))
        })?;
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Flag, Sources};
    use super::*;

    #[track_caller]
    fn load(key: &str, value: &str) -> Result<Config> {
        let flags = vec![Flag::new(key, value)];
        Config::load(&Sources { flags, data_dir: Some("data".into()), ..Sources::default() })
    }

    #[test]
    fn names_and_origins_are_exact() {
        let config = load("allowed_hosts", "memory.example.com, [2001:db8::1],10.0.0.7").unwrap();
        assert_eq!(config.server.allowed_hosts, ["memory.example.com", "[2001:db8::1]", "10.0.0.7"]);
        let config = load("cors_origins", "https://app.example.com,http://localhost:3000").unwrap();
        assert_eq!(config.server.cors_origins, ["https://app.example.com", "http://localhost:3000"]);
        assert!(load("cors_origins", "").unwrap().server.cors_origins.is_empty());
        for wrong in ["https://a.example", "a.example:443", "*", "[::1", "a b"] {
            let error = load("allowed_hosts", wrong).unwrap_err();
            assert!(error.message().contains("`allowed_hosts`, from --allowed-hosts, has"), "{error}");
        }
        for wrong in [
            "*",
            "null",
            "app.example",
            "https://app.example/",
            "https://App.example",
            "https://*.example",
            "ftp://a",
        ] {
            assert!(load("cors_origins", wrong).is_err(), "{wrong}");
        }
    }
}
