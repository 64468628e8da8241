//! The fields of a body that are meant for Strata.

use serde_json::Value;
use strata_core::scope::RecallScope;
use strata_engine::recall::MAX_LIMIT;

use super::splice::Object;
use crate::error::ApiError;

/// Fields for Strata, which the upstream would not understand.
pub(crate) const EXTRAS: [&str; 6] = [
    "memory_id",
    "memory_top_k",
    "memory_recency_weight",
    "memory_score_threshold",
    "memory_scope",
    "memory_rerank",
];

/// The user and the session that the body names in Strata's own fields.
#[derive(Debug, Default)]
pub(crate) struct OwnNames {
    pub(crate) user_id: Option<String>,
    pub(crate) memory_id: Option<String>,
    pub(crate) session_id: Option<String>,
    pub(crate) run_id: Option<String>,
}

impl OwnNames {
    pub(super) fn read(body: &Object<'_>) -> Result<Self, ApiError> {
        Ok(Self {
            user_id: name(body, "user_id", "user")?,
            memory_id: name(body, "memory_id", "session")?,
            session_id: name(body, "session_id", "session")?,
            run_id: name(body, "run_id", "session")?,
        })
    }
}

/// A field that names a user or a session. It has to be a string: if a number were ignored, one user's words would be
/// recorded for another user. An object is named by its `id`. Fields inside fields are separated by points.
pub(crate) fn name(body: &Object<'_>, path: &str, what: &str) -> Result<Option<String>, ApiError> {
    let wrong =
        || ApiError::invalid(format!("`{path}` is not a string; name a {what} in quotes, or leave it out"));
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let Some(written) = body.written(first) else { return Ok(None) };
    match (rest, written.as_bytes().first()) {
        (_, Some(b'n')) => Ok(None),
        // A text with half of a character is none either: it would name somebody else.
        (None, Some(b'"')) => serde_json::from_str(written).map(Some).map_err(|_| wrong()),
        (Some(rest), _) => body.object(first).map_or(Ok(None), |inner| name(&inner, rest, what)),
        (None, Some(b'{')) if first == "conversation" => {
            let inner = body.object(first).ok_or_else(wrong)?;
            name(&inner, "id", what)
        }
        (None, _) => Err(wrong()),
    }
}

/// Recall parameters, instead of the settings.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Options {
    pub(crate) top_k: Option<u32>,
    pub(crate) recency_weight: Option<f32>,
    pub(crate) score_threshold: Option<f32>,
    /// Whether a cross-encoder reorders the best candidates.
    pub(crate) rerank: Option<bool>,
    /// How far recall may look from the session.
    pub(crate) scope: Option<RecallScope>,
}

impl Options {
    pub(super) fn read(body: &Object<'_>) -> Result<Self, ApiError> {
        let number = |name| number(name, body.written(name));
        let top_k = match number("memory_top_k")? {
            None => None,
            Some(value) if value.fract() == 0.0 && (1.0..=f64::from(MAX_LIMIT)).contains(&value) => {
                Some(value as u32)
            }
            Some(value) => {
                return Err(ApiError::invalid(format!(
                    "`memory_top_k` is `{value}`; it is a whole number from 1 to {MAX_LIMIT}"
                )));
            }
        };
        let share = |name| match number(name)? {
            Some(value) if !(0.0..=1.0).contains(&value) => {
                Err(ApiError::invalid(format!("`{name}` is `{value}`; it goes from 0 to 1")))
            }
            value => Ok(value.map(|value| value as f32)),
        };
        Ok(Self {
            top_k,
            recency_weight: share("memory_recency_weight")?,
            score_threshold: share("memory_score_threshold")?,
            rerank: rerank(body.written("memory_rerank"))?,
            scope: scope(body)?,
        })
    }
}

fn number(name: &str, text: Option<&str>) -> Result<Option<f64>, ApiError> {
    match text {
        None | Some("null") => Ok(None),
        Some(text) => text.parse::<f64>().map(Some).map_err(|_| {
            let shown: String = text.chars().take(64).collect();
            ApiError::invalid(format!("`{name}` is `{shown}`; it is a number"))
        }),
    }
}

/// The value of `memory_rerank`, as it is written.
fn rerank(written: Option<&str>) -> Result<Option<bool>, ApiError> {
    match written {
        None | Some("null") => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(text) => {
            let shown: String = text.chars().take(64).collect();
            Err(ApiError::invalid(format!("`memory_rerank` is `{shown}`; it is `true` or `false`")))
        }
    }
}

/// The value of `memory_scope`.
fn scope(body: &Object<'_>) -> Result<Option<RecallScope>, ApiError> {
    let written = match body.written("memory_scope") {
        None | Some("null") => return Ok(None),
        Some(written) => written,
    };
    let known = body.string("memory_scope").and_then(|name| name.parse().ok());
    known.map(Some).ok_or_else(|| {
        let shown: String = written.chars().take(64).collect();
        ApiError::invalid(format!("`memory_scope` is `{shown}`; use `session` or `user`, or leave it out"))
    })
}

/// The properties of these fields in the OpenAPI document, which are the same in all APIs.
pub(crate) fn properties() -> Value {
    let name = serde_json::json!({ "type": ["string", "null"], "minLength": 1, "maxLength": 256, "pattern": r"^[^\x00-\x1f\x7f-\x9f]+$" });
    let user = serde_json::json!({ "type": ["string", "null"], "minLength": 1, "maxLength": 256, "pattern": r"^(?!\*$)[^\x00-\x1f\x7f-\x9f]+$" });
    let share = serde_json::json!({ "type": ["number", "null"], "minimum": 0, "maximum": 1 });
    serde_json::json!({
        "user_id": user,
        "memory_id": name,
        "session_id": name,
        "run_id": name,
        "memory_top_k": {
            "type": ["integer", "null"], "minimum": 1, "maximum": 1000,
            "description": "The most items. It never raises the tokens of the setting `max_context_tokens`.",
        },
        "memory_recency_weight": share,
        "memory_score_threshold": share,
        "memory_rerank": {
            "type": ["boolean", "null"],
            "description": "Whether a cross-encoder reads the best candidates with the question and reorders them, instead of the setting `recall.rerank`.",
        },
        "memory_scope": {
            "type": ["string", "null"], "enum": ["session", "user", null],
            "description": "How far recall looks, instead of the setting `recall.scope`: `session` keeps to the session, `user` looks at all of the user's sessions. Without a user, or with a key whose recall scope is `session`, recall always keeps to the session.",
        },
    })
}
