//! Stores a session's tree of summaries (memory-proxy design, 4.4).
//!
//! A session grows at its end, and so does its tree. When the turns after the last leaf have the tokens of level
//! DETAILED, they become leaves (L1). A leaf holds whole turns; a turn that is longer than a leaf becomes several
//! leaves. Once there are more than five leaves, every five become a group (L2). Each step makes a new root (L3): from
//! all leaves while they are few, later from the previous root, the new leaves and the facts that were learned since.
//! So the cost of a root does not grow with the session. Leaves and groups are written as soon as they are made, under
//! ids that follow from their input, so that a crash does not repeat finished work.
//!
//! [`leaves`] cuts the turns, [`root`] makes the root, and this module does the steps and the rows.

mod leaves;
mod root;

use serde_json::{Value, json};
use uuid::Uuid;

use self::leaves::Leaf;
use super::text::{TextNode, Writer};
use super::{Summaries, WITHOUT_MODEL, note_without_model};
use crate::jobs::{JobKind, Work};
use crate::learn::summarising::TextQuestion;
use crate::learn::tree::{CHUNK_TOKENS, ContentType, GROUP, Level, digest};
use crate::withdrawn::Withdrawn;
use strata_core::error::Result;
use strata_core::id::{SessionId, SummaryId, UserId};
use strata_core::job::Job;
use strata_core::ports::Spent;
use strata_core::session::Session;
use strata_core::store::{Change, ChangeSet, SummaryQuery};
use strata_core::summary::{Strategy, Summary, SummaryStatus};
use strata_core::turn::Turn;

/// The most leaves of one step: one group. The tree of an imported session grows in several jobs, and the jobs of other
/// sessions run between them.
const MAX_LEAVES: usize = GROUP;

/// The most rows of a tree that one step reads: enough for two groups of leaves, with their groups and roots.
const MAX_ROWS: u32 = 64;

impl Summaries {
    /// Whether a session's tree has to grow.
    pub(super) async fn tree_is_due(&self, user: &UserId, session: &Session) -> Result<bool> {
        let rows = self.tree_rows(user, &session.id).await?;
        let covered = rows.iter().filter(|row| row.level == 1).map(|row| row.end_seq).max();
        if covered > rows.iter().filter(|row| row.level == 3).map(|row| row.end_seq).max() {
            return Ok(true);
        }
        let first = covered.map_or(0, |end| end + 1);
        let (turns, _) = self.tail(user, session, first, CHUNK_TOKENS).await?;
        Ok(Level::of(tokens_of(&turns)) >= Level::Detailed)
    }

    async fn tree_rows(&self, user: &UserId, session: &SessionId) -> Result<Vec<Summary>> {
        let query = SummaryQuery {
            session: session.clone(),
            strategy: Some(Strategy::Tree),
            status: Some(SummaryStatus::Completed),
            limit: MAX_ROWS,
        };
        self.store.summaries(user, &query).await
    }

    /// Grows a session's tree by one step if it is due. After the last attempt the rules do a model's work.
    pub(super) async fn grow_tree_or_fall_back(&self, job: &Job, session: &Session) -> Result<Work> {
        let withdrawn = self.withdrawn(&job.user, session).await?;
        let writer = Writer::new(self.model.as_deref(), &withdrawn);
        let error = match self.grow_tree(&job.user, session, writer).await {
            Err(error) if self.model.is_some() && job.attempts >= self.settings.max_attempts.max(1) => error,
            grown => return grown,
        };
        tracing::warn!(%error, session = %session.id, "the model made no summary; it is made without one");
        // The leaves and groups that the model has made stay.
        let writer = Writer { model: None, failure: Some(error.message()), ..writer };
        let mut work = self.grow_tree(&job.user, session, writer).await?;
        work.details.insert(WITHOUT_MODEL.to_owned(), error.message().into());
        let roots = work.changes.iter().filter_map(|change| match change {
            Change::PutSummary(root) => Some(root),
            _ => None,
        });
        roots.for_each(|root| self.count_without_model(root));
        Ok(work)
    }

    /// The statements of a session's turns that were taken back.
    pub(super) async fn withdrawn(&self, user: &UserId, session: &Session) -> Result<Withdrawn> {
        Withdrawn::read(self.store.as_ref(), user, &session.id, 0..session.turn_count).await
    }

    /// Grows a session's tree by one step if it is due. The step's last row is the new root.
    pub(super) async fn grow_tree(
        &self,
        user: &UserId,
        session: &Session,
        writer: Writer<'_>,
    ) -> Result<Work> {
        let mut work = Work::default();
        if !self.settings.summaries.enable_summarization || !self.tree_is_due(user, session).await? {
            return Ok(work);
        }
        let mut rows = self.tree_rows(user, &session.id).await?;
        rows.sort_by_key(|row| (row.level, index_of(row)));
        for row in &mut rows {
            row.text = writer.withdrawn.removed_from_summary(&row.text);
        }
        let mut leaves: Vec<Summary> = rows.iter().filter(|row| row.level == 1).cloned().collect();
        let (mut new, content) = self.new_leaves(user, session, leaves.last()).await?;
        for leaf in &mut new {
            leaf.text = writer.withdrawn.removed_from_summary(&leaf.text);
        }
        let is_more = new.len() > MAX_LEAVES;
        for leaf in new.into_iter().take(MAX_LEAVES) {
            let index = leaves.last().map_or(0, |last| index_of(last) + 1);
            leaves.push(self.add_leaf(user, session, leaf, index, (content, writer), &mut work.spent).await?);
        }
        let Some(last) = leaves.last().cloned() else { return Ok(work) };
        // The due turns may hold only logs and markers, which fill no leaf.
        if rows.iter().any(|row| row.level == 3 && index_of(row) > index_of(&last)) {
            return Ok(work);
        }
        let count = index_of(&last) + 1;
        if count > GROUP as u64 {
            self.group_leaves(user, session, &rows, &leaves, (content, writer), &mut work.spent).await?;
        }
        let root = rows.iter().rev().find(|row| row.level == 3);
        let root = self.root(user, session, root, &leaves, (content, writer), &mut work.spent).await?;
        work.details.insert("leaves".to_owned(), count.into());
        work.changes.push(Change::PutSummary(Box::new(root)));
        if is_more {
            let now = self.clock.now();
            work.changes.push(self.jobs.enqueue_once(user, &session.id, JobKind::Summarise, now, now));
        }
        Ok(work)
    }

    /// Summarises a leaf and stores its row, the `index`th of its level.
    async fn add_leaf(
        &self,
        user: &UserId,
        session: &Session,
        leaf: Leaf,
        index: u64,
        (content, writer): (ContentType, Writer<'_>),
        spent: &mut Spent,
    ) -> Result<Summary> {
        let writer = self.writer_for(writer, &leaf, session.turn_count);
        let question = TextQuestion::Chunk(&leaf.text);
        let began = self.clock.now();
        let node = self.node(writer, 1, &question, content, spent).await?;
        let digest = digest(&leaf.text);
        let about = json!({"index": index, "digest": digest, "content": content.as_str()});
        let mut row = Summary {
            input_tokens: leaf.tokens,
            generation_ms: self.millis_since(began),
            ..self.tree_row(session, node, about, (leaf.start_seq, leaf.end_seq), leaf.part)
        };
        note_failure(&mut row, writer);
        self.put_node(user, &row).await?;
        Ok(row)
    }

    /// The rules summarise an imported history and a pasted book, so that they cause no unexpected cost.
    fn writer_for<'a>(&self, writer: Writer<'a>, leaf: &Leaf, turn_count: u64) -> Writer<'a> {
        let is_recent = leaf.end_seq + self.settings.model_backlog >= turn_count;
        Writer { model: writer.model.filter(|_| is_recent && leaf.part < GROUP), ..writer }
    }

    fn tree_row(
        &self,
        session: &Session,
        node: TextNode,
        about: Value,
        (start_seq, end_seq): (u64, u64),
        part: usize,
    ) -> Summary {
        let now = self.clock.now();
        let name = |seed: &str| {
            let what = format!("{seed}/{}/{}/{start_seq}/{end_seq}/{part}/{about}", session.id, node.level);
            u64::from_str_radix(&digest(&what), 16).unwrap_or(0)
        };
        Summary {
            id: SummaryId(Uuid::from_u64_pair(name("tree"), name("node"))),
            session: session.id.clone(),
            strategy: Strategy::Tree,
            level: node.level,
            start_seq,
            end_seq,
            base_id: None,
            status: SummaryStatus::Completed,
            text: node.text,
            structured: Some(about),
            input_tokens: node.input_tokens,
            output_tokens: node.output_tokens,
            generation_ms: None,
            created_at: now,
            updated_at: now,
        }
    }

    async fn put_node(&self, user: &UserId, row: &Summary) -> Result<()> {
        let change = Change::PutSummary(Box::new(row.clone()));
        self.store.apply(user, ChangeSet::one(row.updated_at, change)).await?;
        Ok(())
    }

    /// Makes the groups that are complete and do not exist yet.
    async fn group_leaves(
        &self,
        user: &UserId,
        session: &Session,
        rows: &[Summary],
        leaves: &[Summary],
        (content, writer): (ContentType, Writer<'_>),
        spent: &mut Spent,
    ) -> Result<()> {
        let size = GROUP as u64;
        for group in leaves.chunk_by(|a, b| index_of(a) / size == index_of(b) / size) {
            let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
            let index = index_of(first) / size;
            let exists = rows.iter().any(|row| row.level == 2 && index_of(row) == index);
            if group.len() < GROUP || exists {
                continue;
            }
            let texts: Vec<&str> = group.iter().map(|leaf| leaf.text.as_str()).collect();
            let digest = digest(&texts.join("\n"));
            let began = self.clock.now();
            let node = self.node(writer, 2, &TextQuestion::Meta(&texts), content, spent).await?;
            let about = json!({"index": index, "digest": digest, "content": content.as_str()});
            let row = self.tree_row(session, node, about, (first.start_seq, last.end_seq), 0);
            let mut row = Summary { generation_ms: self.millis_since(began), ..row };
            note_failure(&mut row, writer);
            self.put_node(user, &row).await?;
        }
        Ok(())
    }
}

/// Notes in a row that the rules wrote it in the place of a model.
fn note_failure(row: &mut Summary, writer: Writer<'_>) {
    if let Some(failure) = writer.failure {
        note_without_model(row, failure);
    }
}

fn tokens_of(turns: &[Turn]) -> u64 {
    turns.iter().map(|turn| u64::from(turn.token_count)).sum()
}

/// The index of a node within its level.
fn index_of(row: &Summary) -> u64 {
    row.structured.as_ref().and_then(|about| about["index"].as_u64()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
