//! The root of a session's tree. Each step makes a new one.

use serde_json::json;

use super::{index_of, note_failure};
use crate::learn::summarising::TextQuestion;
use crate::learn::tree::{ContentType, GROUP, Level};
use crate::summaries::text::Writer;
use crate::summaries::{Summaries, TextNode};
use strata_core::error::Result;
use strata_core::id::UserId;
use strata_core::ports::Spent;
use strata_core::session::Session;
use strata_core::store::{MemoryQuery, MemorySelect, Page, TurnQuery};
use strata_core::summary::{MODEL_FIELD, Summary};

/// The most facts in one root.
const MAX_FACTS: u32 = 24;

impl Summaries {
    /// Makes the root over all leaves.
    pub(super) async fn root(
        &self,
        user: &UserId,
        session: &Session,
        base: Option<&Summary>,
        leaves: &[Summary],
        (content, writer): (ContentType, Writer<'_>),
        spent: &mut Spent,
    ) -> Result<Summary> {
        let is_new = |leaf: &&Summary| {
            base.is_none_or(|base| leaf.end_seq > base.end_seq || index_of(leaf) >= index_of(base))
        };
        let new: Vec<&str> = leaves.iter().filter(is_new).map(|leaf| leaf.text.as_str()).collect();
        let all: Vec<&str> = leaves.iter().map(|leaf| leaf.text.as_str()).collect();
        let count = leaves.last().map_or(0, |last| index_of(last) + 1);
        let facts = match base {
            Some(base) => self.facts_since(user, session, base).await?,
            None => Vec::new(),
        };
        let facts: Vec<&str> = facts.iter().map(String::as_str).collect();
        let question = match base {
            Some(base) if count > GROUP as u64 => {
                TextQuestion::Rolling { previous: &base.text, new: &new, facts: &facts }
            }
            _ => TextQuestion::Meta(&all),
        };
        let covered: u64 = leaves.iter().filter(is_new).map(|leaf| u64::from(leaf.input_tokens)).sum();
        let before = base.map_or(0, |base| {
            base.structured.as_ref().and_then(|about| about["covered_tokens"].as_u64()).unwrap_or(0)
        });
        let covered = before + covered;
        let level = Level::of(covered).max(Level::Detailed);
        let target = level.target_tokens(covered);
        let input_tokens = self.question_tokens(&question);
        let began = self.clock.now();
        let text = match (&question, all.as_slice()) {
            // A single leaf is the root.
            (TextQuestion::Meta(_), [only]) => (*only).to_owned(),
            _ => self.write(writer, &question, content, target, spent).await?,
        };
        let node = TextNode { level: 3, output_tokens: self.tokens.count(&text), text, input_tokens };
        // The index of a root is the number of its leaves.
        let mut about = json!({"index": count, "covered_tokens": covered, "level": level.as_str(), "content": content.as_str()});
        if let Some(model) = writer.model {
            about[MODEL_FIELD] = model.model().into();
        }
        let end = leaves.last().map_or(0, |last| last.end_seq);
        let row = self.tree_row(session, node, about, (0, end), 0);
        let base_id = base.map(|base| base.id).filter(|id| *id != row.id);
        let mut row = Summary { base_id, generation_ms: self.millis_since(began), ..row };
        note_failure(&mut row, writer);
        Ok(row)
    }

    /// The facts that were learned in a session since its root was made («newly extracted facts» in the memory-proxy
    /// design).
    async fn facts_since(&self, user: &UserId, session: &Session, root: &Summary) -> Result<Vec<String>> {
        let query = MemoryQuery {
            page: Page::first(MAX_FACTS * 4),
            ..MemoryQuery::new(MemorySelect::Current { as_of: None })
        };
        let memories = self.store.memories(user, &query).await?;
        let mut facts = Vec::new();
        for memory in memories.into_iter().filter(|memory| memory.recorded_at > root.created_at) {
            // A memory that is bound to no session belongs to the session of its turns.
            let query = TurnQuery::Ids(memory.source_turns.iter().take(1).copied().collect());
            let is_here = memory.session.as_ref() == Some(&session.id)
                || self.store.turns(user, &query).await?.iter().any(|turn| turn.session == session.id);
            if is_here {
                facts.push(memory.content);
            }
            if facts.len() >= MAX_FACTS as usize {
                break;
            }
        }
        facts.reverse();
        Ok(facts)
    }
}
