//! The parameters that several routes share: their descriptions in the OpenAPI document, and queries that are alike.
//!
//! Values are read as text and checked by the handlers, so every route gives the same message for a wrong value. The types here
//! only describe valid values.

use std::str::FromStr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use strata_core::{Error, UserId};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{IntoParams, PartialSchema, ToSchema};
use uuid::Uuid;

use crate::app::App;
use crate::error::ApiError;
use crate::extract::numbers::{DEFAULT_LIMIT, MAX_LIMIT};
use crate::extract::{Params, PathName};
use crate::identity::Caller;

/// Declares a query. Each parameter has a name, the type that describes it, and its description. A parameter is
/// optional and may be given only once.
macro_rules! query {
    ($name:ident {
        $($field:ident: $schema:ident = $description:literal $(, $option:ident = $value:literal)?;)+
        $((undocumented) $hidden:ident;)?
    }) => {
        #[derive(Debug, Default, serde::Deserialize, utoipa::IntoParams)]
        #[serde(deny_unknown_fields)]
        #[into_params(parameter_in = Query)]
        pub(crate) struct $name {
            $(
                #[doc = $description]
                #[param(value_type = Option<$schema>, inline, nullable = false $(, $option = $value)?)]
                pub(crate) $field: Option<String>,
            )+
            $(
                #[param(ignore)]
                pub(crate) $hidden: Option<String>,
            )?
        }
    };
}
pub(crate) use query;

query!(UserParams { user_id: UserName = "The user. Defaults to the user `default`."; });

/// The entity that a path names, and its user: the caller's user, or the user that the query names.
pub(crate) struct Named<I> {
    pub(crate) user: UserId,
    pub(crate) id: I,
}

impl<I: FromStr<Err = Error>> FromRequestParts<App> for Named<I> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, app).await?;
        let PathName(id) = PathName::<String>::from_request_parts(parts, app).await?;
        let Params(query) = Params::<UserParams>::from_request_parts(parts, app).await?;
        Ok(Self { user: caller.user([&query.user_id])?, id: id.parse()? })
    }
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

/// The id in a path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "only its description is used")]
pub(crate) struct IdPath {
    /// its id
    id: Uuid,
}

/// The name of a user. `*` is not allowed.
pub(crate) struct UserName;

/// The name of a session or an agent.
pub(crate) struct Name;

/// The most entries of a list.
pub(crate) struct Limit;

/// How many entries a list leaves out at its start.
pub(crate) struct Offset;

/// The place of a turn in its session.
pub(crate) struct Seq;

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

impl PartialSchema for Seq {
    fn schema() -> RefOr<Schema> {
        integer(KnownFormat::Int64, 0, i64::MAX).into()
    }
}

impl ToSchema for UserName {}
impl ToSchema for Name {}
impl ToSchema for Limit {}
impl ToSchema for Offset {}
impl ToSchema for Seq {}
