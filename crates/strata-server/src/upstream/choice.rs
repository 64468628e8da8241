//! The upstreams, and which of them serves a request.
//!
//! The model of a request chooses its upstream. Data that an upstream has stored are asked of it again: a response or a
//! conversation that it keeps stays with it, whatever model the next request names.

use std::borrow::Cow;
use std::collections::HashMap;

use axum::http::StatusCode;
use strata_core::hash::fnv32;

use super::stored::{Homes, StoredPath};
use super::{Upstream, paths};
use crate::error::ApiError;
use crate::settings::{ModelPattern, ProxySettings, UpstreamApi};

/// All upstreams.
pub(crate) struct Upstreams {
    /// Those for some models, in the order of the settings, then the one for all others.
    all: Vec<(Vec<ModelPattern>, Upstream)>,
    /// The data that they have stored.
    pub(crate) homes: Homes,
}

impl Upstreams {
    pub(super) fn new(settings: &ProxySettings) -> Self {
        let some = settings.upstreams.iter().enumerate();
        let mut all: Vec<_> = some
            .map(|(number, one)| (one.models.clone(), Upstream::new(number, one, settings.upstream_timeout)))
            .collect();
        if let Some(main) = settings.main_upstream() {
            all.push((vec![ModelPattern::any()], Upstream::new(all.len(), &main, settings.upstream_timeout)));
        }
        Self { all, homes: Homes::default() }
    }

    /// Whether a request has to be read before its upstream is known.
    pub(crate) fn are_several(&self) -> bool {
        self.all.len() > 1
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Upstream> {
        self.all.iter().map(|(_, upstream)| upstream)
    }

    /// A print of each upstream, by its number. It stays the same when others are added or removed. Of several with one address, the
    /// order counts.
    pub(crate) fn prints(&self) -> Vec<u32> {
        let mut seen: HashMap<String, u32> = HashMap::new();
        let print = |upstream: &Upstream| {
            let count = seen.entry(upstream.url.to_string()).or_default();
            *count += 1;
            fnv32(format!("{count} {}", upstream.url).as_bytes())
        };
        self.iter().map(print).collect()
    }

    /// The upstream that serves a request.
    pub(crate) fn choose(&self, asked: &Asked<'_>) -> Result<&Upstream, ApiError> {
        if self.all.is_empty() {
            return Err(ApiError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "no_upstream",
                "no upstream is configured; start Strata with `--upstream URL` or set `upstream`, as in \
                 `https://api.openai.com/v1`",
            ));
        }
        let home = asked.stored.iter().find_map(|id| self.homes.upstream(id));
        let by_model = || {
            let model = asked.model.as_deref()?;
            self.all.iter().position(|(models, _)| models.iter().any(|one| one.matches(model)))
        };
        // Without a model, the path says what the upstream speaks.
        let speaks = |upstream: &Upstream| Some(upstream.api) == asked.api;
        let by_api = || self.iter().position(speaks).filter(|_| asked.model.is_none());
        let any = || self.all.iter().position(|(models, _)| models.iter().any(ModelPattern::is_any));
        match home.or_else(by_model).or_else(by_api).or_else(any) {
            Some(place) => Ok(&self.all[place].1),
            None if asked.model.is_none() => Ok(&self.all[0].1),
            None => Err(ApiError::new(
                StatusCode::NOT_FOUND,
                "no_upstream",
                format!(
                    "no upstream serves the model `{}`; add it to the `match` of one, or an `[[upstream]]` without `match`",
                    asked.model.as_deref().unwrap_or_default()
                ),
            )),
        }
    }
}

/// The parts of a request that choose its upstream.
#[derive(Default)]
pub(crate) struct Asked<'a> {
    pub(crate) model: Option<Cow<'a, str>>,
    /// Ids of stored responses and conversations that the request goes on with.
    pub(crate) stored: Vec<&'a str>,
    pub(crate) api: Option<UpstreamApi>,
}

impl<'a> Asked<'a> {
    /// The parts that a path tells.
    pub(crate) fn of_path(path: &'a str) -> Self {
        let after = |prefix: &str| path.strip_prefix(prefix).and_then(|rest| rest.split('/').next());
        let api = match path {
            _ if path.starts_with("/v1/messages") => Some(UpstreamApi::Anthropic),
            _ if path.starts_with("/api/") => Some(UpstreamApi::Ollama),
            _ if path.starts_with("/openai/") => Some(UpstreamApi::Azure),
            _ => None,
        };
        // A name of a model may have slashes, encoded or not.
        let listed = path.strip_prefix("/v1/models/").map(|rest| rest.trim_end_matches('/'));
        let model = listed.or_else(|| after("/openai/deployments/")).filter(|model| !model.is_empty());
        let model = model.map(|model| match model.contains('%') {
            true => String::from_utf8_lossy(&paths::decoded(model.as_bytes())).into_owned().into(),
            false => Cow::Borrowed(model),
        });
        let stored = StoredPath::of(path).and_then(|stored| stored.id);
        Self { model, stored: stored.into_iter().collect(), api }
    }
}
