//! Ids as people write them: whole, or a beginning or an end that only one thing has.
//!
//! An id begins with the time at which it was made, so its last characters tell things apart best; tables on a terminal show
//! those.

use std::str::FromStr;

use strata_core::store::{JobQuery, KeyQuery, MemoryQuery, MemorySelect, MetricQuery, Page};
use strata_core::{Error, JobId, KeyId, MemoryId, RequestId, TurnId, UserId};
use strata_engine::Engine;
use uuid::Uuid;

use crate::failure::Outcome;

/// The fewest characters of an id. With fewer, a mistyped number would often match something.
pub(crate) const FEWEST: usize = 4;

/// The most candidates that an error lists.
const MOST_LISTED: usize = 8;

/// An id, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IdText {
    /// The hexadecimal digits, in lower case and without hyphens.
    digits: String,
    whole: Option<Uuid>,
}

impl FromStr for IdText {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let digits: String = text.chars().filter(|c| *c != '-').collect::<String>().to_lowercase();
        let is_id =
            digits.bytes().all(|byte| byte.is_ascii_hexdigit()) && (FEWEST..=32).contains(&digits.len());
        if !is_id {
            let shown: String = text.chars().take(64).collect();
            return Err(Error::invalid(format!(
                "`{shown}` is no id; an id is a UUID, or the first or last {FEWEST} or more characters of one"
            )));
        }
        Ok(Self { whole: Uuid::parse_str(text).ok(), digits })
    }
}

impl IdText {
    /// The one id that begins or ends like this. `what` and `described` are for the error.
    fn choose(&self, what: &str, known: impl IntoIterator<Item = (Uuid, String)>) -> Outcome<Uuid> {
        let matches = |id: &Uuid| {
            let digits = id.simple().to_string();
            digits.starts_with(&self.digits) || digits.ends_with(&self.digits)
        };
        let mut found: Vec<(Uuid, String)> = known.into_iter().filter(|(id, _)| matches(id)).collect();
        found.sort();
        found.dedup_by_key(|(id, _)| *id);
        match found.as_slice() {
            [(id, _)] => Ok(*id),
            [] => Err(Error::not_found(format!(
                "no {what} has an id that begins or ends with `{}`",
                self.digits
            ))
            .into()),
            many => {
                let listed = many.iter().take(MOST_LISTED).map(|(id, text)| {
                    let text: String =
                        text.chars().take(60).map(|c| if c.is_control() { ' ' } else { c }).collect();
                    format!("\n  {id}  {text}")
                });
                let listed: String = listed.collect();
                let more = if many.len() > MOST_LISTED { "\n  …" } else { "" };
                Err(Error::invalid(format!(
                    "`{}` is the beginning or end of {} ids; write more of the one that you mean:{listed}{more}",
                    self.digits,
                    many.len()
                ))
                .into())
            }
        }
    }
}

/// The memory of a user that an id names.
pub(crate) async fn memory(engine: &Engine, user: &UserId, id: &IdText) -> Outcome<MemoryId> {
    if let Some(whole) = id.whole {
        return Ok(MemoryId(whole));
    }
    let memories = engine.memories.list(user, &MemoryQuery::new(MemorySelect::All)).await?;
    let known = memories.into_iter().map(|memory| (memory.id.0, memory.content));
    id.choose("memory of this user", known).map(MemoryId)
}

/// The request of a user that an id names.
pub(crate) async fn request(engine: &Engine, user: &UserId, id: &IdText) -> Outcome<RequestId> {
    if let Some(whole) = id.whole {
        return Ok(RequestId(whole));
    }
    let query = MetricQuery { limit: u32::MAX, ..MetricQuery::default() };
    let rows = engine.store().requests(user, &query).await?;
    id.choose("request of this user", rows.into_iter().map(|row| (row.id.0, row.query))).map(RequestId)
}

/// The turn or memory that an id names: a candidate of a request, or any memory of the user.
pub(crate) async fn item(engine: &Engine, user: &UserId, request: RequestId, id: &IdText) -> Outcome<TurnId> {
    if let Some(whole) = id.whole {
        return Ok(TurnId(whole));
    }
    let trace = engine.requests.trace(user, request).await?;
    let candidates = trace.candidates.iter().map(|candidate| (candidate.item.uuid(), String::new()));
    let memories = engine.memories.list(user, &MemoryQuery::new(MemorySelect::All)).await?;
    let memories = memories.into_iter().map(|memory| (memory.id.0, memory.content));
    id.choose("candidate and no memory", memories.chain(candidates)).map(TurnId)
}

/// The job that an id names, of one of `users`.
pub(crate) async fn job(engine: &Engine, users: &[UserId], id: &IdText) -> Outcome<JobId> {
    if let Some(whole) = id.whole {
        return Ok(JobId(whole));
    }
    let query = JobQuery { limit: u32::MAX, ..JobQuery::default() };
    let mut known = Vec::new();
    for user in users {
        let jobs = engine.jobs.list(user, &query).await?;
        known.extend(jobs.into_iter().map(|job| (job.id.0, format!("{} of user `{user}`", job.kind))));
    }
    id.choose("job", known).map(JobId)
}

/// The key that an id names.
pub(crate) async fn key(engine: &Engine, id: &IdText) -> Outcome<KeyId> {
    if let Some(whole) = id.whole {
        return Ok(KeyId(whole));
    }
    let query = KeyQuery { revoked: true, ..KeyQuery::unrevoked(Page::first(u32::MAX)) };
    let keys = engine.keys.list(&query).await?;
    let known = keys.into_iter().map(|key| (key.id.0, format!("{}… of user `{}`", key.prefix, key.user)));
    id.choose("key", known).map(KeyId)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Vec<(Uuid, String)> {
        ["0197f3c2-5b1e-7c3a-9d2e-3f4a5b6c7d8e", "0197f3c2-5b1e-7c3a-9d2e-3f4a5b6c0000"]
            .map(|id| (Uuid::parse_str(id).unwrap(), format!("the one that ends with {}", &id[32..])))
            .to_vec()
    }

    #[test]
    fn a_part_of_an_id_names_one_thing() {
        let choose = |text: &str| text.parse::<IdText>().unwrap().choose("memory", known());
        assert_eq!(choose("7D8E").unwrap(), known()[0].0);
        assert_eq!(choose("6c0000").unwrap(), known()[1].0);
        assert_eq!(choose("5b6c-7d8e").unwrap(), known()[0].0);
        assert_eq!(choose("0197f3c2-5b1e-7c3a-9d2e-3f4a5b6c7").unwrap(), known()[0].0);
        let ambiguous = format!("{:?}", choose("0197f3c2").unwrap_err());
        assert!(ambiguous.contains("2 ids") && ambiguous.contains("ends with 7d8e"), "{ambiguous}");
        let unknown = format!("{:?}", choose("ffff").unwrap_err());
        assert!(unknown.contains("no memory"), "{unknown}");
    }

    #[test]
    fn a_text_that_is_no_part_of_an_id_is_refused() {
        for text in ["", "abc", "1", "xyz0", "0197f3c2-5b1e-7c3a-9d2e-3f4a5b6c7d8e0", "../x"] {
            assert!(text.parse::<IdText>().is_err(), "{text}");
        }
        assert!("0197f3c2-5b1e-7c3a-9d2e-3f4a5b6c7d8e".parse::<IdText>().unwrap().whole.is_some());
    }
}
