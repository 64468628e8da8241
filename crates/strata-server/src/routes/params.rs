//! The parameters that several routes share: how the document describes them, and the queries that are alike.
//!
//! Values are read as text and checked where they are used, so that the message about a wrong one is the same everywhere;
//! the types here only say what will be found right.

use serde::Deserialize;
use strata_core::store::Page;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{IntoParams, PartialSchema, ToSchema};

use crate::error::ApiError;
use crate::extract::number;

/// The most entries of one list.
pub(crate) const MAX_LIMIT: u32 = 1_000;

/// The entries of a list where nobody says how many.
const DEFAULT_LIMIT: u32 = 100;

/// How many entries a query asks for.
pub(crate) fn limit(limit: &Option<String>) -> Result<u32, ApiError> {
    number("limit", limit, 1..=MAX_LIMIT, DEFAULT_LIMIT)
}

/// The part of a list that a query asks for.
pub(crate) fn page(limit: &Option<String>, offset: &Option<String>) -> Result<Page, ApiError> {
    // Stores count in signed 64 bits.
    Ok(Page { limit: self::limit(limit)?, offset: number("offset", offset, 0..=i64::MAX as u64, 0)? })
}

/// A query that only says whose something is.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct UserParams {
    /// Whose it is; `default` where nobody says.
    #[param(value_type = Option<UserName>, inline, nullable = false)]
    pub(crate) user_id: Option<String>,
}

/// The session in a path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "only its description is used")]
pub(crate) struct SessionPath {
    /// the session's name, percent-encoded
    #[param(value_type = Name, inline)]
    id: String,
}

/// The name of a user: `*` is nobody's.
pub(crate) struct UserName;

/// The name of a session or an agent.
pub(crate) struct Name;

/// How many entries at the most.
pub(crate) struct Limit;

/// How many entries to leave out at the start.
pub(crate) struct Offset;

fn name(pattern: &str) -> RefOr<Schema> {
    let name = ObjectBuilder::new().schema_type(Type::String);
    name.min_length(Some(1)).max_length(Some(256)).pattern(Some(pattern)).into()
}

fn integer(format: KnownFormat, minimum: i64, maximum: i64) -> ObjectBuilder {
    let integer = ObjectBuilder::new().schema_type(Type::Integer);
    let integer = integer.format(Some(SchemaFormat::KnownFormat(format)));
    integer.minimum(Some(minimum)).maximum(Some(maximum))
}

impl PartialSchema for UserName {
    fn schema() -> RefOr<Schema> {
        name(r"^(?!\*$)[^\x00-\x1f\x7f-\x9f]+$")
    }
}

impl PartialSchema for Name {
    fn schema() -> RefOr<Schema> {
        name(r"^[^\x00-\x1f\x7f-\x9f]+$")
    }
}

impl PartialSchema for Limit {
    fn schema() -> RefOr<Schema> {
        integer(KnownFormat::Int32, 1, i64::from(MAX_LIMIT)).default(Some(DEFAULT_LIMIT.into())).into()
    }
}

impl PartialSchema for Offset {
    fn schema() -> RefOr<Schema> {
        integer(KnownFormat::Int64, 0, i64::MAX).default(Some(0.into())).into()
    }
}

impl ToSchema for UserName {}
impl ToSchema for Name {}
impl ToSchema for Limit {}
impl ToSchema for Offset {}
