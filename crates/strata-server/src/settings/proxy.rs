//! The settings of the proxy.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use axum::http::Uri;
use axum::http::uri::{Authority, Scheme};
use strata_core::{Error, Result};
use strata_http::Transport;

/// The upstream of chats, and how they are passed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxySettings {
    /// The upstream. Without one there is no proxy.
    pub upstream: Option<UpstreamUrl>,
    /// The key for the upstream, instead of the client's own `Authorization`.
    pub upstream_key: Option<Secret>,
    /// How the upstream is reached.
    pub upstream_transport: Transport,
    /// Other upstreams, for some models each. The first one whose models match serves a request.
    pub upstreams: Vec<UpstreamSettings>,
    /// How long the upstream may take to begin its answer, and to send the next piece of it. Ten minutes, as in
    /// OpenAI's own clients.
    pub upstream_timeout: Duration,
    /// How long a chat waits for memory: for recall before it is passed on, and before its end is sent for a store that
    /// fails.
    pub memory_deadline: Duration,
    /// How long the end of a reply waits for a slow store. Without it, until the reply is recorded.
    pub reply_wait: Option<Duration>,
    /// The most tokens of a client's own messages before a summary replaces older ones. 0 turns this off.
    pub compact_tokens: u32,
    /// The most bytes of a chat completion's body, which may contain images. Other requests are passed on piece by
    /// piece, without a limit.
    pub max_body_bytes: usize,
    /// Where other programs name the user and the conversation.
    pub names: NameSources,
    /// The folder for chats that the store cannot take now; `None` keeps them in memory alone.
    pub spill: Option<PathBuf>,
}

impl ProxySettings {
    /// The upstream that serves a model; `None` if none does.
    pub fn upstream_of(&self, model: &str) -> Option<UpstreamSettings> {
        let serves = |one: &&UpstreamSettings| one.models.iter().any(|pattern| pattern.matches(model));
        self.upstreams.iter().find(serves).cloned().or_else(|| self.main_upstream())
    }

    /// The upstream for all models that no other one serves.
    pub(crate) fn main_upstream(&self) -> Option<UpstreamSettings> {
        let (url, key) = (self.upstream.clone()?, self.upstream_key.clone());
        let (api, transport) = (UpstreamApi::default(), self.upstream_transport.clone());
        Some(UpstreamSettings { models: Vec::new(), url, api, key, timeout: None, transport, retries: 0 })
    }
}

/// An upstream for some models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamSettings {
    /// The models that it serves.
    pub models: Vec<ModelPattern>,
    /// Its address.
    pub url: UpstreamUrl,
    /// The API that it speaks.
    pub api: UpstreamApi,
    /// Its key, instead of the client's own.
    pub key: Option<Secret>,
    /// How long it may be silent, instead of [`ProxySettings::upstream_timeout`].
    pub timeout: Option<Duration>,
    /// How it is reached: through a proxy, and with which certificate authorities.
    pub transport: Transport,
    /// How often a chat is sent again if it cannot be reached, or is overloaded, before anything was answered.
    pub retries: u32,
}

/// The API that an upstream speaks. It decides how a key is sent, and which upstream serves a path without a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UpstreamApi {
    /// OpenAI's, or one that imitates it.
    #[default]
    OpenAi,
    /// Anthropic's.
    Anthropic,
    /// Azure's.
    Azure,
    /// Ollama's.
    Ollama,
}

/// The names of models, with `*` for any characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelPattern(String);

impl ModelPattern {
    /// A pattern, as in `claude-*`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The pattern of all models.
    pub(crate) fn any() -> Self {
        Self::new("*")
    }

    pub(crate) fn is_any(&self) -> bool {
        self.0 == "*"
    }

    /// Whether a model has such a name.
    pub(crate) fn matches(&self, model: &str) -> bool {
        let mut parts = self.0.split('*');
        let Some(mut rest) = model.strip_prefix(parts.next().unwrap_or_default()) else { return false };
        let parts: Vec<&str> = parts.collect();
        let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
        for part in middle {
            match rest.find(part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        rest.ends_with(last)
    }
}

/// The headers and the fields of a body in which other programs name the user and the conversation of a chat. The
/// first one that is given counts; headers go before fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameSources {
    /// Headers that name the user.
    pub user_headers: Vec<String>,
    /// Headers that name the conversation.
    pub session_headers: Vec<String>,
    /// Fields that name the user; a point separates a field inside another.
    pub user_fields: Vec<String>,
    /// Fields that name the conversation.
    pub session_fields: Vec<String>,
}

impl Default for NameSources {
    /// The names that Open WebUI, LibreChat, LiteLLM and the APIs of the providers have.
    fn default() -> Self {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Self {
            user_headers: list(&[
                "X-OpenWebUI-User-Id",
                "X-LibreChat-User-Id",
                "X-LiteLLM-End-User-Id",
                "X-LiteLLM-Customer-Id",
                "X-User-Id",
            ]),
            session_headers: list(&[
                "X-OpenWebUI-Chat-Id",
                "X-LibreChat-Conversation-Id",
                "X-LiteLLM-Session-Id",
                "X-Conversation-Id",
            ]),
            user_fields: list(&["user", "safety_identifier", "metadata.user_id"]),
            // A cache key names a conversation only where nothing better does: many programs send one for all of theirs.
            session_fields: list(&["conversation", "prompt_cache_key"]),
        }
    }
}

impl Default for ProxySettings {
    fn default() -> Self {
        Self {
            upstream: None,
            upstream_key: None,
            upstream_transport: Transport::default(),
            upstreams: Vec::new(),
            upstream_timeout: Duration::from_secs(600),
            memory_deadline: Duration::from_millis(250),
            reply_wait: None,
            compact_tokens: 0,
            max_body_bytes: 64 * 1024 * 1024,
            names: NameSources::default(),
            spill: None,
        }
    }
}

/// A secret: it is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

/// The address of an OpenAI-compatible server, as clients write it: `https://api.openai.com/v1`, or without the `/v1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamUrl {
    scheme: Scheme,
    authority: Authority,
    /// The address that replaces Strata's own `/v1`.
    base: String,
}

impl UpstreamUrl {
    /// The upstream's address for one of Strata's paths. `/v1` is the address that clients write; the paths of Ollama
    /// and Azure begin at the root of the server.
    pub(crate) fn target(&self, path: &str, query: Option<&str>) -> Option<Uri> {
        let under =
            |prefix: &str| path.strip_prefix(prefix).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let root = self.base.strip_suffix("/v1").unwrap_or(&self.base);
        let (base, rest) = match (under("/v1"), under("/openai")) {
            (Some(rest), _) => (self.base.as_str(), rest),
            (None, Some(_)) => (root.strip_suffix("/openai").unwrap_or(root), path),
            (None, None) => (root, path),
        };
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(format!("{base}{rest}{query}"))
            .build()
            .ok()
    }
}

impl FromStr for UpstreamUrl {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        const ADVICE: &str =
            "use the address of an OpenAI-compatible server, as in `https://api.openai.com/v1`";
        let uri: Uri = text.trim().parse().map_err(|_| Error::invalid(ADVICE))?;
        let parts = uri.into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else {
            return Err(Error::invalid(ADVICE));
        };
        if (scheme != Scheme::HTTP && scheme != Scheme::HTTPS) || authority.as_str().contains('@') {
            return Err(Error::invalid(ADVICE));
        }
        let path = parts.path_and_query.as_ref().map_or("", |path| path.path()).trim_end_matches('/');
        let path = path.strip_suffix("/chat/completions").unwrap_or(path);
        let base = if path.is_empty() { "/v1" } else { path };
        Ok(Self { scheme, authority, base: base.to_owned() })
    }
}

impl fmt::Display for UpstreamUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme, self.authority, self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upstream_is_written_as_clients_write_it() {
        let check = |url: &str, target: &str| {
            let url: UpstreamUrl = url.parse().unwrap();
            assert_eq!(url.target("/v1/chat/completions", Some("a=%20b")).unwrap().to_string(), target);
        };
        check("https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions?a=%20b");
        check("https://api.openai.com", "https://api.openai.com/v1/chat/completions?a=%20b");
        check("http://127.0.0.1:11434/", "http://127.0.0.1:11434/v1/chat/completions?a=%20b");
        check("https://host/openai/v2/", "https://host/openai/v2/chat/completions?a=%20b");
        check("https://host/v1/chat/completions", "https://host/v1/chat/completions?a=%20b");
        let check = |url: &str, path: &str, target: &str| {
            let url: UpstreamUrl = url.parse().unwrap();
            assert_eq!(url.target(path, None).unwrap().to_string(), target);
        };
        check("http://127.0.0.1:11434/v1", "/api/chat", "http://127.0.0.1:11434/api/chat");
        check("http://127.0.0.1:11434", "/api/tags", "http://127.0.0.1:11434/api/tags");
        check("https://host/ollama/v1", "/api/chat", "https://host/ollama/api/chat");
        let deployed = "/openai/deployments/d/chat/completions";
        for url in ["https://r.example", "https://r.example/openai", "https://r.example/openai/v1/"] {
            check(url, deployed, &format!("https://r.example{deployed}"));
        }
        check("https://r.example/openai/v1", "/v1/responses", "https://r.example/openai/v1/responses");
        check("https://r.example", "/v1beta/x", "https://r.example/v1beta/x");
        for wrong in ["", "api.openai.com/v1", "ftp://host", "https://", "https://key@host/v1", "/v1"] {
            assert!(wrong.parse::<UpstreamUrl>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_pattern_names_models() {
        let check = |pattern: &str, model: &str, expected| {
            assert_eq!(ModelPattern::new(pattern).matches(model), expected, "{pattern} {model}");
        };
        check("claude-*", "claude-opus-4", true);
        check("claude-*", "my-claude-x", false);
        check("*", "anything", true);
        check("*:free", "vendor/model:free", true);
        check("gpt-*-mini", "gpt-4.1-mini", true);
        check("gpt-*-mini", "gpt-4.1", false);
        check("a*b*c", "abc", true);
        check("a*bc*c", "abc", false);
        check("exact", "exact", true);
        check("exact", "exactly", false);
    }

    #[test]
    fn a_secret_is_not_shown() {
        let settings = ProxySettings { upstream_key: Some(Secret::new("sk-1")), ..Default::default() };
        assert!(!format!("{settings:?}").contains("sk-1"));
    }
}
