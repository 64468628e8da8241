//! The upstream of a stored response or conversation that this process does not know: it is from before a restart, or another
//! process has passed it on. The store has noted it for the user; otherwise the upstreams themselves tell which of them keeps it.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{Method, Uri};
use strata_core::UserId;

use super::stored::note_home;
use crate::app::App;
use crate::settings::UpstreamApi;
use crate::upstream::{AnswerUse, Asked, Upstream};

/// How long one upstream is waited for.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Looks for the upstream that keeps what a request of a user goes on with, and notes it. Without several upstreams, or if the
/// upstream is known, nothing is read or asked.
pub(super) async fn locate(app: &App, user: &UserId, parts: &Parts, asked: &Asked<'_>) {
    let upstreams = &app.proxy().upstreams;
    let is_known = asked.stored.iter().any(|id| upstreams.homes.upstream(id).is_some());
    if is_known || !upstreams.are_several() || is_noted(app, user, asked).await {
        return;
    }
    for id in &asked.stored {
        let Some(uri) = address(&parts.uri, id) else { continue };
        if let Some(keeper) = keeper(app, parts, asked, &uri).await {
            upstreams.homes.used(id, keeper, None);
            note_home(app, user, id, keeper);
            return;
        }
    }
}

/// Whether the store has noted the upstream of one of the ids for the user. A store that is slow or fails has noted nothing.
async fn is_noted(app: &App, user: &UserId, asked: &Asked<'_>) -> bool {
    let upstreams = &app.proxy().upstreams;
    let (prints, patience) = (upstreams.prints(), app.settings().proxy.memory_deadline);
    for id in &asked.stored {
        let home = app.engine().requests.home(user, id, &prints);
        if let Ok(Ok(Some(home))) = tokio::time::timeout(patience, home).await {
            upstreams.homes.used(id, home, None);
            return true;
        }
    }
    false
}

/// The number of the upstream that has something at this address. The one that would serve the request is asked first.
async fn keeper(app: &App, parts: &Parts, asked: &Asked<'_>, uri: &Uri) -> Option<usize> {
    let upstreams = &app.proxy().upstreams;
    let unstored = Asked { model: asked.model.clone(), stored: Vec::new(), api: asked.api };
    let first = upstreams.choose(&unstored).ok().map(|upstream| upstream.number);
    let mut all: Vec<&Upstream> = upstreams.iter().filter(|one| may_keep(one.api, uri.path())).collect();
    all.sort_by_key(|upstream| Some(upstream.number) != first);
    for upstream in all {
        let is_theirs = Some(upstream.number) == first;
        let keeps = tokio::time::timeout(LONGEST_WAIT, keeps(upstream, parts, uri, is_theirs)).await;
        if keeps.unwrap_or(false) {
            return Some(upstream.number);
        }
    }
    None
}

/// Whether an upstream has something at this address. `is_theirs` tells that the client's own credentials are meant for it.
async fn keeps(upstream: &Upstream, parts: &Parts, uri: &Uri, is_theirs: bool) -> bool {
    let mut headers = match is_theirs {
        true => upstream.headers(parts, AnswerUse::Read),
        false => upstream.bare_headers(parts),
    };
    headers.remove(CONTENT_TYPE);
    let answer = upstream.send(Method::GET, uri, headers, Body::empty()).await;
    answer.is_ok_and(|answer| answer.status().is_success())
}

/// Whether an API can have something at this address.
fn may_keep(api: UpstreamApi, path: &str) -> bool {
    (api == UpstreamApi::Anthropic) == path.starts_with("/v1/messages")
}

/// The address at which an upstream shows what it keeps under an id. `None` if it is no id of a provider's.
fn address(uri: &Uri, id: &str) -> Option<Uri> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if id.is_empty() || !id.bytes().all(is_plain) {
        return None;
    }
    let path = uri.path();
    let address = match path.rfind(&format!("/{id}")) {
        Some(at) => path[..at + 1 + id.len()].to_owned(),
        None => {
            let root = path.find("/responses").map_or("/v1", |at| &path[..at]);
            // So all ids of conversations begin.
            let kind = if id.starts_with("conv_") { "conversations" } else { "responses" };
            format!("{root}/{kind}/{id}")
        }
    };
    let mut pairs = uri.query().unwrap_or_default().split('&');
    let version = pairs.find(|pair| pair.starts_with("api-version="));
    version.map_or(address.clone(), |version| format!("{address}?{version}")).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_an_address() {
        let check = |uri: &str, id: &str, expected: Option<&str>| {
            let found = address(&uri.parse().unwrap(), id).map(|uri| uri.to_string());
            assert_eq!(found.as_deref(), expected, "{uri} {id}");
        };
        check("/v1/responses", "resp_1", Some("/v1/responses/resp_1"));
        check("/v1/responses", "conv_1", Some("/v1/conversations/conv_1"));
        check("/v1/responses/compact", "resp_1", Some("/v1/responses/resp_1"));
        check("/v1/responses/resp_1/input_items?limit=2", "resp_1", Some("/v1/responses/resp_1"));
        check("/v1/conversations/conv_1/items", "conv_1", Some("/v1/conversations/conv_1"));
        check("/openai/v1/responses", "resp_1", Some("/openai/v1/responses/resp_1"));
        check(
            "/openai/responses?a=b&api-version=7",
            "resp_1",
            Some("/openai/responses/resp_1?api-version=7"),
        );
        for id in ["", "..", "a/b", "a?b", "é"] {
            check("/v1/responses", id, None);
        }
    }
}
