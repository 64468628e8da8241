//! Writing turns, states, summaries and request rows.

use jiff::Timestamp;
use strata_core::metric::{Feedback, RequestMetric};
use strata_core::state::State;
use strata_core::store::AppendedTurn;
use strata_core::summary::Summary;
use strata_core::turn::{Hidden, NewTurn};
use strata_core::{Error, RequestId, SessionId, TurnId};
use tokio_postgres::Client;
use uuid::Uuid;

use super::{Writing, parts, unknown};
use crate::error::Outcome;
use crate::row::{self, count, follows, json, list, metadata, micros};
use crate::sql::{args, execute, first, one, rows};
use crate::terms::Terms;

/// Inserts turns, one for each place of the lists.
const INSERT_TURNS: &str = "INSERT INTO turns (user_id, session, revision, seq, id, created_at, hidden_at, hidden_reason, role, \
         token_count, name, metadata, content, follows, interrupted, truncated, tool_calls, tool_call_id, failed, \
         input_tokens, output_tokens, high_value, agent, memories_in_session, memory_metadata, terms, length) \
     SELECT user_id, session, revision, seq, id, created_at, hidden_at, hidden_reason, role, token_count, name, metadata, \
         content, follows, interrupted, truncated, tool_calls, tool_call_id, failed, input_tokens, output_tokens, \
         high_value, agent, memories_in_session, memory_metadata, terms::tsvector, length \
     FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::uuid[], $6::bigint[], $7::bigint[], $8::text[], \
         $9::text[], $10::bigint[], $11::text[], $12::text[], $13::text[], $14::bigint[], $15::boolean[], \
         $16::boolean[], $17::text[], $18::text[], $19::boolean[], $20::bigint[], $21::bigint[], $22::boolean[], \
         $23::text[], $24::smallint[], $25::text[], $26::text[], $27::integer[]) \
     AS new (user_id, session, revision, seq, id, created_at, hidden_at, hidden_reason, role, token_count, name, metadata, \
         content, follows, interrupted, truncated, tool_calls, tool_call_id, failed, input_tokens, output_tokens, \
         high_value, agent, memories_in_session, memory_metadata, terms, length)";

/// A turn with all that its row needs.
pub(super) struct PlacedTurn<'a> {
    pub(super) user: &'a str,
    pub(super) session: &'a str,
    pub(super) revision: i64,
    pub(super) seq: i64,
    pub(super) turn: &'a NewTurn,
    pub(super) terms: &'a Terms,
}

/// Inserts turns of any users and sessions.
pub(super) async fn insert_turns(client: &Client, turns: &[PlacedTurn<'_>]) -> Outcome<()> {
    fn each<'a, T>(turns: &'a [PlacedTurn<'a>], value: impl Fn(&'a NewTurn) -> T) -> Vec<T> {
        turns.iter().map(|placed| value(placed.turn)).collect()
    }
    let bound = |turn: &NewTurn| {
        let owner = &turn.notes.owner;
        i16::from(owner.in_session) + i16::from(owner.in_session && owner.apart)
    };
    let follows = each(turns, |turn| follows(turn.notes.follows)).into_iter().collect::<Outcome<Vec<_>>>()?;
    let tool_calls =
        each(turns, |turn| list(&turn.notes.tool_calls)).into_iter().collect::<Outcome<Vec<_>>>()?;
    let args = args![
        turns.iter().map(|placed| placed.user).collect::<Vec<_>>(),
        turns.iter().map(|placed| placed.session).collect::<Vec<_>>(),
        turns.iter().map(|placed| placed.revision).collect::<Vec<_>>(),
        turns.iter().map(|placed| placed.seq).collect::<Vec<_>>(),
        each(turns, |turn| turn.id.0),
        each(turns, |turn| micros(turn.created_at)),
        each(turns, |turn| turn.hidden.map(|hidden| micros(hidden.at))),
        each(turns, |turn| turn.hidden.map(|hidden| hidden.reason.as_str())),
        each(turns, |turn| turn.role.as_str()),
        each(turns, |turn| i64::from(turn.token_count)),
        each(turns, |turn| turn.name.as_deref()),
        each(turns, |turn| metadata(&turn.metadata)),
        each(turns, |turn| turn.content.as_str()),
        follows,
        each(turns, |turn| turn.notes.interrupted),
        each(turns, |turn| turn.notes.truncated),
        tool_calls,
        each(turns, |turn| turn.notes.tool_call_id.as_deref()),
        each(turns, |turn| turn.notes.failed),
        each(turns, |turn| turn.notes.usage.input.map(i64::from)),
        each(turns, |turn| turn.notes.usage.output.map(i64::from)),
        each(turns, |turn| turn.notes.high_value),
        each(turns, |turn| turn.notes.owner.agent.as_deref()),
        each(turns, bound),
        each(turns, |turn| metadata(&turn.notes.owner.metadata)),
        turns.iter().map(|placed| placed.terms.vector.as_str()).collect::<Vec<_>>(),
        turns.iter().map(|placed| placed.terms.length).collect::<Vec<_>>(),
    ];
    execute(client, INSERT_TURNS, args).await.map_err(|fault| {
        let ids: Vec<String> = turns.iter().take(3).map(|placed| format!("`{}`", placed.turn.id)).collect();
        fault
            .or_conflict(|| format!("one of the turns {} exists already; give it another id", ids.join(", ")))
    })?;
    Ok(())
}

impl Writing<'_> {
    pub(super) async fn append(
        &mut self,
        session: &SessionId,
        turns: &[NewTurn],
        terms: &[Terms],
    ) -> Outcome<()> {
        let first = self.touch_session(session, turns.len()).await?;
        if turns.is_empty() {
            return Ok(());
        }
        let (user, session, revision) = (self.name(), session.as_str(), self.revision);
        let placed: Vec<PlacedTurn<'_>> = (first..)
            .zip(turns.iter().zip(terms))
            .map(|(seq, (turn, terms))| PlacedTurn { user, session, revision, seq, turn, terms })
            .collect();
        insert_turns(self.client, &placed).await?;
        let appended = placed.iter().map(|placed| (placed.turn.id, placed.seq.cast_unsigned()));
        self.applied.turns.extend(appended.map(|(id, seq)| AppendedTurn { id, seq }));
        Ok(())
    }

    /// Notes a write to a session, which is created if it does not exist, and takes the next `places` of its sequence.
    /// Returns the first of the places.
    async fn touch_session(&self, session: &SessionId, places: usize) -> Outcome<i64> {
        // Writers that overtake each other do not set the session's time back.
        let sql = "INSERT INTO sessions AS s (user_id, session, created_at, updated_at, next_seq, version)
                   VALUES ($1, $2, $4, $4, $3, $5)
                   ON CONFLICT (user_id, session) DO UPDATE SET next_seq = s.next_seq + $3,
                       updated_at = greatest(s.updated_at, $4), version = $5
                   RETURNING next_seq - $3";
        let args = args![self.name(), session.as_str(), count(places as u64)?, micros(self.at), self.version];
        Ok(one(self.client, sql, args).await?.try_get(0)?)
    }

    pub(super) async fn hide_turns(&self, ids: &[TurnId], hidden: Option<Hidden>) -> Outcome<()> {
        let sql = "UPDATE turns SET hidden_at = $3, hidden_reason = $4, revision = $5
                   WHERE user_id = $1 AND id = ANY($2) RETURNING id";
        let args = args![
            self.name(),
            ids.iter().map(|id| id.0).collect::<Vec<_>>(),
            hidden.map(|hidden| micros(hidden.at)),
            hidden.map(|hidden| hidden.reason.as_str()),
            self.revision
        ];
        let rows = rows(self.client, sql, args).await?;
        let found: Vec<Uuid> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
        match ids.iter().find(|id| !found.contains(&id.0)) {
            Some(missing) => Err(unknown("turn", missing)),
            None => Ok(()),
        }
    }

    pub(super) async fn put_state(&self, session: &SessionId, state: &State) -> Outcome<()> {
        self.touch_session(session, 0).await?;
        let sql = "UPDATE sessions SET state = $3 WHERE user_id = $1 AND session = $2";
        execute(self.client, sql, args![self.name(), session.as_str(), json(state)?]).await?;
        Ok(())
    }

    pub(super) async fn put_summary(&self, summary: &Summary) -> Outcome<()> {
        let session = &summary.session;
        let sql = "SELECT 1 FROM sessions WHERE user_id = $1 AND session = $2";
        if first(self.client, sql, args![self.name(), session.as_str()]).await?.is_none() {
            return Err(unknown("session", session));
        }
        let sql = "INSERT INTO summaries AS s (user_id, session, id, revision, noted, strategy, level, start_seq, end_seq,
                       base_id, status, input_tokens, output_tokens, generation_ms, created_at, updated_at, structured,
                       text)
                   VALUES ($1, $2, $3, $4, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
                   ON CONFLICT (user_id, id) DO UPDATE SET
                       revision = $4, noted = $4, strategy = $5, level = $6, start_seq = $7, end_seq = $8, base_id = $9,
                       status = $10, input_tokens = $11, output_tokens = $12, generation_ms = $13, created_at = $14,
                       updated_at = $15, structured = $16, text = $17
                   WHERE s.session = $2";
        let args = args![
            self.name(),
            session.as_str(),
            summary.id.0,
            self.revision,
            summary.strategy.as_str(),
            i64::from(summary.level),
            count(summary.start_seq)?,
            count(summary.end_seq)?,
            summary.base_id.map(|id| id.0),
            summary.status.as_str(),
            i64::from(summary.input_tokens),
            i64::from(summary.output_tokens),
            summary.generation_ms.map(|ms| count(u64::from(ms))).transpose()?,
            micros(summary.created_at),
            micros(summary.updated_at),
            summary.structured.as_ref().map(json).transpose()?,
            summary.text.as_str(),
        ];
        let changed = execute(self.client, sql, args).await.map_err(|fault| {
            // The only other unique index is the one that allows one `processing` row a session.
            fault.or_conflict(|| {
                format!(
                    "session `{session}` is being summarised already; wait until that is completed or failed"
                )
            })
        })?;
        if changed == 0 {
            let message =
                format!("summary `{}` exists already in another session; give it another id", summary.id);
            return Err(Error::conflict(message).into());
        }
        parts::note(self.client, self.name(), &[session.as_str()]).await
    }

    pub(super) async fn add_request(&self, request: &RequestMetric) -> Outcome<()> {
        let sql =
            "INSERT INTO requests (user_id, id, session, created_at, metric) VALUES ($1, $2, $3, $4, $5)";
        let args = args![
            self.name(),
            request.id.0,
            request.session.as_ref().map(SessionId::as_str),
            micros(request.created_at),
            json(request)?
        ];
        execute(self.client, sql, args)
            .await
            .map_err(|fault| fault.or_conflict(|| format!("request `{}` exists already", request.id)))?;
        Ok(())
    }

    pub(super) async fn add_feedback(&self, id: RequestId, feedback: &Feedback) -> Outcome<()> {
        let sql = "SELECT id, metric FROM requests WHERE user_id = $1 AND id = $2 FOR UPDATE";
        let found = first(self.client, sql, args![self.name(), id.0]).await?;
        let row = found.ok_or_else(|| unknown("request", id))?;
        let mut request: RequestMetric = row::document("requests", &row)?;
        request.feedback.push(feedback.clone());
        let sql = "UPDATE requests SET metric = $3 WHERE user_id = $1 AND id = $2";
        execute(self.client, sql, args![self.name(), id.0, json(&request)?]).await?;
        Ok(())
    }

    /// Removes the user's rows of a table that were created before a moment.
    pub(super) async fn prune(&self, table: &str, before: Timestamp) -> Outcome<()> {
        let sql = format!("DELETE FROM {table} WHERE user_id = $1 AND created_at < $2");
        execute(self.client, &sql, args![self.name(), micros(before)]).await?;
        Ok(())
    }
}
