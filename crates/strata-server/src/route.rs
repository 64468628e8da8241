//! A route as one value: its path, its methods, the scopes that a key needs, the dialect of its failures, and its
//! part of the OpenAPI document.
//!
//! Each file under `routes` and `compat`, the proxy and MCP declare their routes, and the router module collects
//! them. The router, the check of keys, the bodies of failures and the OpenAPI document are all made from this one
//! list.

use std::collections::HashMap;

use axum::extract::{MatchedPath, Request};
use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodFilter, MethodRouter};
use strata_core::key::KeyScope;
use utoipa::__dev::{SchemaReferences, Tags};
use utoipa::Path;
use utoipa::openapi::{HttpMethod, OpenApi};

use crate::app::App;
use crate::keys::Needed;

/// A path, its handlers and its rules.
pub(crate) struct Route {
    pub(crate) path: String,
    pub(crate) rules: Rules,
    pub(crate) handlers: MethodRouter<App>,
    /// Whether the limits of the server (concurrent requests, time of a request) apply.
    pub(crate) is_limited: bool,
    /// Each function adds one documented operation.
    pub(crate) operations: Vec<fn(&mut OpenApi)>,
}

/// The rules for all methods of a path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Rules {
    pub(crate) access: Access,
    pub(crate) dialect: Dialect,
}

/// Which keys may call a route.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Access {
    /// `GET`, `HEAD` and `OPTIONS` need the scope `read`, other methods `write`. This also holds for unknown paths.
    #[default]
    ByMethod,
    /// Every method needs all of these scopes.
    Scopes(&'static [KeyScope]),
    /// Every method needs the scopes `read` and `write`, or the scope `chat`.
    Chat,
    /// As by method, or the scope `chat`.
    Passed,
    /// As by method. A browser may send the key as the inspector's cookie, and is led to the form for signing in.
    Inspector,
    /// No key is needed.
    Open,
}

/// The shape of a route's failures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Strata's own.
    #[default]
    Strata,
    /// The shape that mem0's clients read.
    Mem0,
    /// The shape that OpenAI's clients read.
    OpenAi,
    /// The shape that Anthropic's clients read.
    Anthropic,
    /// The shape that Ollama's clients read.
    Ollama,
    /// A page for a person.
    Page,
}

impl Dialect {
    /// Whether the route belongs to the API of a model provider.
    pub(crate) fn is_proxied(self) -> bool {
        matches!(self, Self::OpenAi | Self::Anthropic | Self::Ollama)
    }
}

impl Route {
    /// A route with one documented operation. `described` is the type that `#[utoipa::path]` generates beside the
    /// handler; it has the path and the method.
    pub(crate) fn new<P, H, T>(described: P, handler: H) -> Self
    where
        P: Described,
        H: Handler<T, App>,
        T: 'static,
    {
        Self::undocumented(P::path(), MethodRouter::new()).on(described, handler)
    }

    /// A route that is not in the OpenAPI document.
    pub(crate) fn undocumented(path: impl Into<String>, handlers: MethodRouter<App>) -> Self {
        let (rules, operations) = (Rules::default(), Vec::new());
        Self { path: path.into(), rules, handlers, is_limited: true, operations }
    }

    /// Adds another documented operation at the same path.
    pub(crate) fn on<P, H, T>(mut self, _described: P, handler: H) -> Self
    where
        P: Described,
        H: Handler<T, App>,
        T: 'static,
    {
        let methods = P::methods().iter().map(filter).reduce(MethodFilter::or);
        if let Some(methods) = methods {
            self.handlers = self.handlers.on(methods, handler);
        }
        self.operations.push(describe::<P>);
        self
    }

    /// Replaces the rule by method: every method needs these scopes.
    pub(crate) fn needs(mut self, scopes: &'static [KeyScope]) -> Self {
        self.rules.access = Access::Scopes(scopes);
        self
    }

    /// The route is a chat: a key may be confined to chats.
    pub(crate) fn chats(mut self) -> Self {
        self.rules.access = Access::Chat;
        self
    }

    /// The route is passed on to the upstream.
    pub(crate) fn passes(mut self) -> Self {
        self.rules.access = Access::Passed;
        self
    }

    /// The route answers without a key.
    pub(crate) fn open(mut self) -> Self {
        self.rules.access = Access::Open;
        self
    }

    /// The route is a page of the inspector.
    pub(crate) fn inspects(mut self) -> Self {
        (self.rules.access, self.rules.dialect) = (Access::Inspector, Dialect::Page);
        self
    }

    pub(crate) fn speaks(mut self, dialect: Dialect) -> Self {
        self.rules.dialect = dialect;
        self
    }

    /// The route answers even if the server is full, and has no time limit.
    pub(crate) fn unlimited(mut self) -> Self {
        self.is_limited = false;
        self
    }
}

/// The rules of all routes, by their paths.
pub(crate) type RulesByPath = &'static HashMap<String, Rules>;

impl Rules {
    /// The rules of the route that a request was matched to; an unknown path has the defaults.
    pub(crate) fn of(request: &Request, all: RulesByPath) -> Self {
        let path = request.extensions().get::<MatchedPath>();
        path.and_then(|path| all.get(path.as_str())).copied().unwrap_or_default()
    }
}

impl Access {
    /// The scopes that a key needs; `None` if no key is needed.
    pub(crate) fn needed(self, method: &Method) -> Option<Needed> {
        let is_reading = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
        let scopes: &[KeyScope] = match self {
            Self::Open => return None,
            Self::Scopes(scopes) => scopes,
            Self::Chat => &[KeyScope::Read, KeyScope::Write],
            Self::ByMethod | Self::Passed | Self::Inspector if is_reading => &[KeyScope::Read],
            Self::ByMethod | Self::Passed | Self::Inspector => &[KeyScope::Write],
        };
        let is_proxied = matches!(self, Self::Chat | Self::Passed);
        Some(Needed { scopes, instead: is_proxied.then_some(KeyScope::Chat) })
    }
}

/// The type that `#[utoipa::path]` generates beside a handler.
pub(crate) trait Described: Path + SchemaReferences + Tags<'static> {}

impl<P: Path + SchemaReferences + Tags<'static>> Described for P {}

fn describe<P: Described>(document: &mut OpenApi) {
    let mut operation = P::operation();
    operation.tags = Some(P::tags().into_iter().map(str::to_owned).collect());
    document.paths.add_path_operation(P::path(), P::methods(), operation);
    let mut schemas = Vec::new();
    P::schemas(&mut schemas);
    document.components.get_or_insert_default().schemas.extend(schemas);
}

fn filter(method: &HttpMethod) -> MethodFilter {
    match method {
        HttpMethod::Get => MethodFilter::GET,
        HttpMethod::Post => MethodFilter::POST,
        HttpMethod::Put => MethodFilter::PUT,
        HttpMethod::Delete => MethodFilter::DELETE,
        HttpMethod::Options => MethodFilter::OPTIONS,
        HttpMethod::Head => MethodFilter::HEAD,
        HttpMethod::Patch => MethodFilter::PATCH,
        HttpMethod::Trace => MethodFilter::TRACE,
    }
}
