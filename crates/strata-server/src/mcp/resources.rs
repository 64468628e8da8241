//! Memories as resources: a person can pick them from a list and add them to a conversation without a tool call.

use jiff::Timestamp;
use rmcp::model::{
    ErrorData, ListResourcesResult, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
};
use serde_json::json;
use strata_core::key::KeyScope;
use strata_core::store::{MemoryQuery, MemorySelect, Page};
use strata_core::{Memory, MemoryId};
use strata_engine::neutral;

use super::answers::MemoryAnswer;
use super::calls::visible;
use crate::app::App;
use crate::error::ApiError;
use crate::identity::Caller;

const PREFIX: &str = "strata://memories/";

const JSON: &str = "application/json";

/// How many memories one page lists.
const PAGE: u32 = 100;

/// The longest title in a list, in characters.
const MAX_TITLE_CHARS: usize = 80;

pub(super) fn templates() -> Vec<ResourceTemplate> {
    let template = ResourceTemplate::new(format!("{PREFIX}{{id}}"), "memory")
        .with_title("A memory")
        .with_description(
            "One memory by its id: the statement, its kind, since when it is so and where it comes from",
        )
        .with_mime_type(JSON);
    vec![template]
}

/// One page of the caller's memories, the newest first. All pages show the memories of the moment when the first page
/// was requested, so a memory added meanwhile does not shift the list.
pub(super) async fn list(
    app: &App,
    caller: &Caller,
    cursor: Option<&str>,
) -> Result<ListResourcesResult, ErrorData> {
    caller.require(KeyScope::Read).map_err(|error| failed(&error))?;
    let user = caller.user([]).map_err(|error| failed(&error))?;
    let cursor = page_of(app, cursor)?;
    let wall = caller.wall(caller.names_user([]), []).map_err(|error| failed(&error))?;
    let query = MemoryQuery {
        session: wall,
        page: Page { offset: cursor.offset, limit: PAGE },
        ..MemoryQuery::new(MemorySelect::Current { as_of: Some(cursor.as_of) })
    };
    let memories = app.engine().memories.list(&user, &query).await.map_err(|error| failed(&error.into()))?;
    let next = Cursor { offset: cursor.offset + u64::from(PAGE), ..cursor };
    let is_full = memories.len() == PAGE as usize;
    let mut page = ListResourcesResult::with_all_items(memories.iter().map(resource).collect());
    page.next_cursor = is_full.then(|| next.to_string());
    Ok(page)
}

fn page_of(app: &App, cursor: Option<&str>) -> Result<Cursor, ErrorData> {
    match cursor {
        None => Ok(Cursor { as_of: app.engine().now(), offset: 0 }),
        Some(text) => Cursor::parse(text).ok_or_else(|| {
            ErrorData::invalid_params("this server did not issue the cursor; begin without one", None)
        }),
    }
}

/// One memory.
pub(super) async fn read(app: &App, caller: &Caller, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    caller.require(KeyScope::Read).map_err(|error| failed(&error))?;
    let id = uri.strip_prefix(PREFIX).and_then(|id| id.parse::<MemoryId>().ok()).ok_or_else(|| {
        let message = format!("there is no such resource; memories are `{PREFIX}ID`, as the list gives them");
        ErrorData::resource_not_found(message, Some(json!({ "uri": uri })))
    })?;
    let user = caller.user([]).map_err(|error| failed(&error))?;
    let memory = visible(app, caller, &user, &None, id).await.map_err(|error| match error.code() {
        "not_found" => ErrorData::resource_not_found(error.message(), Some(json!({ "uri": uri }))),
        _ => failed(&error),
    })?;
    let text = serde_json::to_string_pretty(&MemoryAnswer::new(&user, &memory)).unwrap_or_default();
    Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(JSON)]))
}

fn resource(memory: &Memory) -> Resource {
    let content = neutral(&memory.content);
    let mut title: String = content.chars().take(MAX_TITLE_CHARS).collect();
    if title.len() < content.len() {
        title.push('…');
    }
    Resource::new(format!("{PREFIX}{}", memory.id), memory.id.to_string())
        .with_title(title)
        .with_description(format!("{} of {}", memory.kind.as_str(), memory.recorded_at))
        .with_mime_type(JSON)
}

/// A resource has no result that could hold a failure, so the failure is an error of the protocol.
fn failed(error: &ApiError) -> ErrorData {
    match error.code() {
        "invalid" | "insufficient_scope" | "forbidden_user" => {
            ErrorData::invalid_params(error.message(), None)
        }
        _ => ErrorData::internal_error(error.message(), None),
    }
}

/// The position where a list continues.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Cursor {
    as_of: Timestamp,
    offset: u64,
}

impl Cursor {
    fn parse(text: &str) -> Option<Self> {
        let (as_of, offset) = text.split_once('-')?;
        let as_of = Timestamp::from_microsecond(as_of.parse().ok()?).ok()?;
        // Stores count with signed numbers.
        let offset = offset.parse::<u64>().ok().filter(|offset| i64::try_from(*offset).is_ok())?;
        Some(Self { as_of, offset })
    }
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.as_of.as_microsecond(), self.offset)
    }
}
