//! A session's tree of summaries in the store (document 4, 4.4), and summaries of any text.
//!
//! A session grows at its end, and so does its tree: whenever the turns after the last leaf have the tokens of level DETAILED,
//! they become leaves (L1), each of whole turns; a turn that is longer than a leaf becomes several. Every five leaves become a
//! group (L2) once there are more than five. The root (L3) is made anew each time: from all leaves while they are few, later
//! from the root before, the new leaves and the facts that were learned since, so that its cost does not grow with the session.
//! Leaves and groups are written as they are made, under ids that follow from what they are made of: work that a crash cut
//! short is not done again.

use serde_json::{Value, json};
use uuid::Uuid;

use super::{Summaries, chars_for, most_chars};
use crate::ask::ask;
use crate::jobs::{JobKind, Work};
use crate::learn::extractive::{self, Part, label};
use crate::learn::summarising::{self, TextQuestion};
use crate::learn::tree::{CHUNK_TOKENS, ContentType, GROUP, Level, OVERLAP_TOKENS, chunks, digest};
use crate::prompt::{FilterSettings, RawLogs, strip};
use strata_core::error::Result;
use strata_core::id::{SessionId, SummaryId, UserId};
use strata_core::ports::{ChatModel, Spent};
use strata_core::session::Session;
use strata_core::store::{Change, ChangeSet, MemoryQuery, MemorySelect, Page, SummaryQuery};
use strata_core::summary::{Strategy, Summary, SummaryStatus};
use strata_core::turn::{Role, Turn};
use strata_language::sentences::beginning;

/// The most turns that are read at once.
const MAX_TURNS: u64 = 2_000;

/// The most leaves of a step: a group. A session that was imported grows by several jobs, between which others get their turn.
const MAX_LEAVES: usize = GROUP;

/// The most rows of a tree that a step reads: enough for two groups of leaves, with their groups and roots.
const MAX_ROWS: u32 = 64;

/// The most facts that go into a root at once.
const MAX_FACTS: u32 = 24;

/// What a summary is made by: a model, or nothing but rules.
type Writer<'a> = Option<&'a dyn ChatModel>;

/// A leaf that is to be summarised.
struct Leaf {
    start_seq: u64,
    end_seq: u64,
    /// Which part of its turn it is, where the turn is longer than a leaf.
    part: usize,
    /// The overlap included.
    text: String,
    tokens: u32,
}

/// The summary of a text, with the nodes that it was made of.
#[derive(Debug, Clone, PartialEq)]
pub struct TextSummary {
    /// How deep it was summarised.
    pub level: Level,
    /// What kind of text it is.
    pub content: ContentType,
    /// The summary; empty for [`Level::None`].
    pub text: String,
    /// L1 and L2, where there are any, in their order.
    pub nodes: Vec<TextNode>,
    /// Tokens of the text.
    pub input_tokens: u32,
    /// Tokens of the summary.
    pub output_tokens: u32,
    /// What the model cost.
    pub spent: Spent,
}

/// A node below the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextNode {
    /// 1 for a chunk, 2 for a group.
    pub level: u8,
    /// Its summary.
    pub text: String,
    /// Tokens that went in.
    pub input_tokens: u32,
    /// Tokens that came out.
    pub output_tokens: u32,
}

impl Summaries {
    /// Summarises a text as deep as its length asks for (document 4, 4.4). Nothing is stored.
    pub async fn summarise_text(&self, text: &str, content: Option<ContentType>) -> Result<TextSummary> {
        self.sessions.limits.check_text("the text", text)?;
        let writer = self.model.as_deref();
        let content = content.unwrap_or_else(|| ContentType::detect(text));
        let input_tokens = self.tokens.count(text);
        let level = Level::of(u64::from(input_tokens));
        let mut spent = Spent::default();
        let mut nodes = Vec::new();
        let target = level.target_tokens(u64::from(input_tokens));
        let summary = match level {
            Level::None => String::new(),
            Level::Brief => {
                self.write(writer, &TextQuestion::Brief(text), content, target, &mut spent).await?
            }
            Level::Standard => {
                let question = TextQuestion::Standard { text, prior: None };
                self.write(writer, &question, content, target, &mut spent).await?
            }
            Level::Detailed | Level::Hierarchical => {
                for chunk in chunks(text, CHUNK_TOKENS, OVERLAP_TOKENS, self.tokens.as_ref()) {
                    let question = TextQuestion::Chunk(&text[chunk.all]);
                    nodes.push(self.node(writer, 1, &question, content, &mut spent).await?);
                }
                let leaves: Vec<String> = nodes.iter().map(|node| node.text.clone()).collect();
                let mut parts: Vec<&str> = leaves.iter().map(String::as_str).collect();
                let groups: Vec<String>;
                if level == Level::Hierarchical {
                    for group in leaves.chunks(GROUP) {
                        let group: Vec<&str> = group.iter().map(String::as_str).collect();
                        nodes.push(
                            self.node(writer, 2, &TextQuestion::Meta(&group), content, &mut spent).await?,
                        );
                    }
                    groups = nodes[leaves.len()..].iter().map(|node| node.text.clone()).collect();
                    parts = groups.iter().map(String::as_str).collect();
                }
                self.write(writer, &TextQuestion::Meta(&parts), content, target, &mut spent).await?
            }
        };
        let output_tokens = self.tokens.count(&summary);
        Ok(TextSummary { level, content, text: summary, nodes, input_tokens, output_tokens, spent })
    }

    async fn node(
        &self,
        writer: Writer<'_>,
        level: u8,
        question: &TextQuestion<'_>,
        content: ContentType,
        spent: &mut Spent,
    ) -> Result<TextNode> {
        let input_tokens = self.question_tokens(question);
        let target = Level::Detailed.target_tokens(u64::from(input_tokens));
        let text = self.write(writer, question, content, target, spent).await?;
        Ok(TextNode { level, output_tokens: self.tokens.count(&text), text, input_tokens })
    }

    fn question_tokens(&self, question: &TextQuestion<'_>) -> u32 {
        sources(question).iter().fold(0, |sum: u32, text| sum.saturating_add(self.tokens.count(text)))
    }

    /// The answer to a question about a text, by a model or by rules.
    async fn write(
        &self,
        writer: Writer<'_>,
        question: &TextQuestion<'_>,
        content: ContentType,
        target: u32,
        spent: &mut Spent,
    ) -> Result<String> {
        let Some(model) = writer else { return Ok(self.rewritten(question, target)) };
        let request = summarising::text(question, content, target, &self.settings.summaries.prompts);
        let text = ask(model, &request, summarising::read_text, spent).await?;
        Ok(beginning(&text, most_chars(target)))
    }

    /// The same without a model.
    fn rewritten(&self, question: &TextQuestion<'_>, target: u32) -> String {
        let sources = sources(question);
        let chars: u64 = sources.iter().map(|text| text.chars().count() as u64).sum();
        let budget = chars_for(target, chars, u64::from(self.question_tokens(question)));
        let paragraphs = sources.iter().flat_map(|text| text.split("\n\n"));
        let parts: Vec<Part<'_>> = paragraphs.map(|text| Part { speaker: None, text }).collect();
        let summary = extractive::summarise(&parts, budget);
        if summary.is_empty() {
            beginning(sources.first().copied().unwrap_or_default(), budget)
        } else {
            summary
        }
    }

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

    /// The visible turns from `first` on, until they have `enough` tokens, and whether there are more. Turns that are hidden
    /// may be many: they are passed over.
    async fn tail(
        &self,
        user: &UserId,
        session: &Session,
        mut first: u64,
        enough: u32,
    ) -> Result<(Vec<Turn>, bool)> {
        let mut turns: Vec<Turn> = Vec::new();
        while first < session.turn_count && tokens_of(&turns) < u64::from(enough) {
            let end = session.turn_count.min(first + MAX_TURNS);
            turns.extend(self.visible(user, &session.id, first, end).await?);
            first = end;
        }
        Ok((turns, first < session.turn_count))
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

    /// Grows a session's tree by a step, where it is due: what the step writes at its end is the root.
    pub(super) async fn grow_tree(&self, user: &UserId, session: &Session) -> Result<Work> {
        let mut work = Work::default();
        if !self.settings.summaries.enable_summarization || !self.tree_is_due(user, session).await? {
            return Ok(work);
        }
        let mut rows = self.tree_rows(user, &session.id).await?;
        rows.sort_by_key(|row| (row.level, index_of(row)));
        let mut leaves: Vec<Summary> = rows.iter().filter(|row| row.level == 1).cloned().collect();
        let (new, content) = self.new_leaves(user, session, leaves.last()).await?;
        let is_more = new.len() > MAX_LEAVES;
        for leaf in new.into_iter().take(MAX_LEAVES) {
            let index = leaves.last().map_or(0, |last| index_of(last) + 1);
            let writer = self.writer_for(&leaf, session.turn_count);
            let question = TextQuestion::Chunk(&leaf.text);
            let began = self.clock.now();
            let node = self.node(writer, 1, &question, content, &mut work.spent).await?;
            let digest = digest(&leaf.text);
            let about = json!({"index": index, "digest": digest, "content": content.as_str()});
            let row = Summary {
                input_tokens: leaf.tokens,
                generation_ms: self.millis_since(began),
                ..self.tree_row(session, node, about, (leaf.start_seq, leaf.end_seq), leaf.part)
            };
            self.put_node(user, &row).await?;
            leaves.push(row);
        }
        let Some(last) = leaves.last().cloned() else { return Ok(work) };
        // What is due may be logs and markers alone, which fill no leaf.
        if rows.iter().any(|row| row.level == 3 && index_of(row) > index_of(&last)) {
            return Ok(work);
        }
        let count = index_of(&last) + 1;
        if count > GROUP as u64 {
            self.group_leaves(user, session, &rows, &leaves, content, &mut work.spent).await?;
        }
        let root = rows.iter().rev().find(|row| row.level == 3);
        let root = self.root(user, session, root, &leaves, content, &mut work.spent).await?;
        work.details.insert("leaves".to_owned(), count.into());
        work.changes.push(Change::PutSummary(Box::new(root)));
        if is_more {
            let now = self.clock.now();
            work.changes.push(self.jobs.enqueue_once(user, &session.id, JobKind::Summarise, now, now));
        }
        Ok(work)
    }

    /// A long history that was imported, and a book that was pasted, are left to the rules: nobody asked a model to read them.
    fn writer_for(&self, leaf: &Leaf, turn_count: u64) -> Writer<'_> {
        let is_recent = leaf.end_seq + self.settings.model_backlog >= turn_count;
        self.model.as_deref().filter(|_| is_recent && leaf.part < GROUP)
    }

    /// The leaves that the turns after the last one fill, and what kind of text they are.
    async fn new_leaves(
        &self,
        user: &UserId,
        session: &Session,
        last: Option<&Summary>,
    ) -> Result<(Vec<Leaf>, ContentType)> {
        let first = last.map_or(0, |last| last.end_seq + 1);
        let enough = CHUNK_TOKENS * (MAX_LEAVES as u32 + 2);
        let (turns, is_cut) = self.tail(user, session, first, enough).await?;
        // The last turn of the leaf before is read again for the overlap.
        let before = self.visible(user, &session.id, first.saturating_sub(1), first).await?.pop();
        let is_spoken = turns.iter().any(|turn| turn.role == Role::Assistant);
        let chinese = extractive::is_chinese(turns.iter().map(|turn| turn.content.as_str()));
        let content = if is_spoken {
            ContentType::Conversation
        } else {
            ContentType::detect(
                &turns.iter().map(|turn| turn.content.as_str()).collect::<Vec<_>>().join("\n"),
            )
        };
        let overlap = before.map(|turn| said(&turn, chinese)).unwrap_or_default();
        Ok((self.leaves(&turns, overlap, chinese, is_cut), content))
    }

    /// Puts turns together until they fill a leaf. The last leaf stays out until it is full, unless there are so many short
    /// turns that they are one by themselves (`is_cut`).
    fn leaves(&self, turns: &[Turn], mut overlap: String, chinese: bool, is_cut: bool) -> Vec<Leaf> {
        let room = CHUNK_TOKENS - OVERLAP_TOKENS;
        let mut leaves: Vec<Leaf> = Vec::new();
        let mut open: Option<Leaf> = None;
        for turn in turns {
            let text = said(turn, chinese);
            let tokens = self.tokens.count(&text);
            if open.as_ref().is_some_and(|leaf| leaf.tokens + tokens > room) {
                leaves.extend(open.take().map(|leaf| self.overlapped(leaf, &mut overlap)));
            }
            if tokens > room {
                for (part, chunk) in
                    chunks(&text, CHUNK_TOKENS, OVERLAP_TOKENS, self.tokens.as_ref()).iter().enumerate()
                {
                    let text = text[chunk.all.clone()].to_owned();
                    let tokens = self.tokens.count(&text);
                    leaves.push(Leaf { start_seq: turn.seq, end_seq: turn.seq, part, text, tokens });
                }
                overlap = text;
                continue;
            }
            match &mut open {
                Some(leaf) => {
                    leaf.end_seq = turn.seq;
                    leaf.text.push_str("\n\n");
                    leaf.text.push_str(&text);
                    leaf.tokens += tokens;
                }
                None => {
                    open = Some(Leaf { start_seq: turn.seq, end_seq: turn.seq, part: 0, text, tokens });
                }
            }
        }
        if is_cut && leaves.is_empty() {
            leaves.extend(open.map(|leaf| self.overlapped(leaf, &mut overlap)));
        }
        leaves
    }

    /// A leaf that begins with the end of what came before it, which becomes its own text.
    fn overlapped(&self, mut leaf: Leaf, before: &mut String) -> Leaf {
        let all = chunks(before, OVERLAP_TOKENS.saturating_mul(2), OVERLAP_TOKENS - 1, self.tokens.as_ref());
        let tail = all.last().map_or("", |chunk| &before[chunk.all.clone()]);
        let tail = if self.tokens.count(tail) > OVERLAP_TOKENS {
            // The last chunk may be up to twice as long: its own end is taken.
            let halves = chunks(tail, OVERLAP_TOKENS, 0, self.tokens.as_ref());
            halves.last().map_or(String::new(), |chunk| tail[chunk.all.clone()].to_owned())
        } else {
            tail.to_owned()
        };
        let text = std::mem::take(&mut leaf.text);
        leaf.text = if tail.trim().is_empty() { text.clone() } else { format!("{}\n\n{text}", tail.trim()) };
        *before = text;
        leaf
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

    /// Makes the groups that are complete and not there yet.
    async fn group_leaves(
        &self,
        user: &UserId,
        session: &Session,
        rows: &[Summary],
        leaves: &[Summary],
        content: ContentType,
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
            let writer = self.model.as_deref();
            let began = self.clock.now();
            let node = self.node(writer, 2, &TextQuestion::Meta(&texts), content, spent).await?;
            let about = json!({"index": index, "digest": digest, "content": content.as_str()});
            let row = self.tree_row(session, node, about, (first.start_seq, last.end_seq), 0);
            let row = Summary { generation_ms: self.millis_since(began), ..row };
            self.put_node(user, &row).await?;
        }
        Ok(())
    }

    /// The root over all leaves.
    async fn root(
        &self,
        user: &UserId,
        session: &Session,
        base: Option<&Summary>,
        leaves: &[Summary],
        content: ContentType,
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
        let writer = self.model.as_deref();
        let input_tokens = self.question_tokens(&question);
        let began = self.clock.now();
        let text = match (&question, all.as_slice()) {
            // Of one leaf there is nothing to put together.
            (TextQuestion::Meta(_), [only]) => (*only).to_owned(),
            _ => self.write(writer, &question, content, target, spent).await?,
        };
        let node = TextNode { level: 3, output_tokens: self.tokens.count(&text), text, input_tokens };
        // The place of a root is the number of leaves that it is made of.
        let about = json!({"index": count, "covered_tokens": covered, "level": level.as_str(), "content": content.as_str()});
        let end = leaves.last().map_or(0, |last| last.end_seq);
        let row = self.tree_row(session, node, about, (0, end), 0);
        let base_id = base.map(|base| base.id).filter(|id| *id != row.id);
        Ok(Summary { base_id, generation_ms: self.millis_since(began), ..row })
    }

    /// What was learned in a session since its root was made (document 4: «newly extracted facts»).
    async fn facts_since(&self, user: &UserId, session: &Session, root: &Summary) -> Result<Vec<String>> {
        let query = MemoryQuery {
            page: Page::first(MAX_FACTS * 4),
            ..MemoryQuery::new(MemorySelect::Current { as_of: None })
        };
        let memories = self.store.memories(user, &query).await?;
        let mut facts = Vec::new();
        for memory in memories.into_iter().filter(|memory| memory.recorded_at > root.created_at) {
            // A memory of all sessions is one of this session where its turns are.
            let query =
                strata_core::store::TurnQuery::Ids(memory.source_turns.iter().take(1).copied().collect());
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

fn tokens_of(turns: &[Turn]) -> u64 {
    turns.iter().map(|turn| u64::from(turn.token_count)).sum()
}

/// A turn as a part of a text.
fn said(turn: &Turn, chinese: bool) -> String {
    let text = strip(&turn.content, &FilterSettings::default(), RawLogs::Removed);
    format!("{}{}", label(Some(turn.role), chinese), text.trim())
}

/// The place of a node among those of its level.
fn index_of(row: &Summary) -> u64 {
    row.structured.as_ref().and_then(|about| about["index"].as_u64()).unwrap_or(0)
}

/// What a question is about.
fn sources<'a>(question: &TextQuestion<'a>) -> Vec<&'a str> {
    match question {
        TextQuestion::Brief(text) | TextQuestion::Chunk(text) => vec![text],
        TextQuestion::Standard { text, prior } => prior.iter().chain([text]).copied().collect(),
        TextQuestion::Meta(texts) => texts.to_vec(),
        TextQuestion::Rolling { previous, new, facts } => {
            [*previous].into_iter().chain(new.iter().copied()).chain(facts.iter().copied()).collect()
        }
    }
}

#[cfg(test)]
mod tests;
