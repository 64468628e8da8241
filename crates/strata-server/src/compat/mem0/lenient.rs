//! Bodies of routes that mem0's clients also call.

use std::fmt;
use std::marker::PhantomData;

use axum::extract::{FromRequest, Request};
use serde::de::value::MapAccessDeserializer;
use serde::de::{
    Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, IntoDeserializer, MapAccess,
    Visitor,
};

use crate::app::App;
use crate::error::ApiError;
use crate::extract::JsonBody;

/// A JSON body, without the fields that mem0's clients send for the hosted service.
pub(crate) struct LenientBody<T>(pub(crate) T);

/// Fields of mem0's hosted service that do not change the meaning of a request.
const IGNORED: [&str; 13] = [
    "org_id",
    "project_id",
    "version",
    "api_version",
    "output_format",
    "async_mode",
    "enable_graph",
    "keyword_search",
    "latest_only",
    "show_expired",
    "memory_type",
    "prompt",
    "source",
];

impl<T: DeserializeOwned> FromRequest<App> for LenientBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let JsonBody(Lenient(value)) = JsonBody::from_request(request, app).await?;
        Ok(Self(value))
    }
}

/// A map without the ignored fields.
struct Lenient<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LenientVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for LenientVisitor<T> {
            type Value = Lenient<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Lenient<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(Filtered(map))).map(Lenient)
            }
        }

        deserializer.deserialize_map(LenientVisitor(PhantomData))
    }
}

struct Filtered<A>(A);

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Filtered<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        loop {
            match self.0.next_key::<String>()? {
                Some(name) if IGNORED.contains(&name.as_str()) => {
                    self.0.next_value::<IgnoredAny>()?;
                }
                Some(name) => return seed.deserialize(name.into_deserializer()).map(Some),
                None => return Ok(None),
            }
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.0.next_value_seed(seed)
    }
}
