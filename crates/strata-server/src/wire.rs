//! The JSON that Strata answers with, one type for each thing, over HTTP, over MCP and on the command line.
//!
//! Each type is made from a domain type and holds nothing but fields, so a change of the core does not reach a client unnoticed.
//! HTTP and `strata … --json` write these types as they are; MCP writes shorter forms that are made from them. Requests are
//! declared beside their routes.

/// Declares a response: each field with its type and the value that it is made from. `from` makes it from one domain type,
/// `of` makes it from several values, as `new`.
macro_rules! response {
    ($(#[$meta:meta])* $vis:vis $name:ident from ($arg:ident: $domain:ty) { $($fields:tt)+ }) => {
        response!($(#[$meta])* $vis $name of fn($arg: &$domain) { $($fields)+ });

        impl From<&$domain> for $name {
            fn from($arg: &$domain) -> Self {
                Self::new($arg)
            }
        }
    };
    ($(#[$meta:meta])* $vis:vis $name:ident of $new_vis:vis fn($($arg:ident: $type:ty),+) {
        $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $field_type:ty = $value:expr,)+
    }) => {
        $(#[$meta])*
        #[derive(Debug, serde::Serialize, utoipa::ToSchema)]
        $vis struct $name {
            $($(#[$field_meta])* $field_vis $field: $field_type,)+
        }

        impl $name {
            /// Makes the response.
            $new_vis fn new($($arg: $type),+) -> Self {
                Self { $($field: $value,)+ }
            }
        }
    };
}

pub(crate) mod history;
pub(crate) mod job;
pub(crate) mod memory;
pub(crate) mod names;
pub(crate) mod prompt;
pub(crate) mod report;
pub(crate) mod search;
pub(crate) mod session;
pub(crate) mod summary;
pub(crate) mod trace;

pub use history::StatementsResponse;
pub use job::{JobResponse, JobsResponse};
pub use memory::{AddResponse, MemoriesResponse, MemoryResponse};
pub use prompt::PromptResponse;
pub use report::ReportResponse;
pub use search::{SearchResponse, kind_of};
pub use session::{
    NotesResponse, RecordedTurn, RemovedResponse, SessionResponse, SessionsResponse, TurnResponse, Usage,
};
pub use summary::{PointsResponse, SummariesResponse};
pub use trace::{ExplanationResponse, RequestResponse, TracedRequestResponse};

#[cfg(test)]
mod tests;

/// Writes the shortest number that reads back as the same `f32`, also through a [`serde_json::Value`], which holds only `f64`.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn shortest_f32<S: serde::Serializer>(number: &f32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(number.to_string().parse().unwrap_or_else(|_| f64::from(*number)))
}
