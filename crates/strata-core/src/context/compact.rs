//! Compaction: turns a long history into a short history and a summary of bounded size.

use super::document::ContextData;
use super::fold;

/// The limits of compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactionLimits {
    /// A history with more entries than this is shortened. The context-store design says 50.
    pub max_recent_history: usize,
    /// The number of newest entries that then stay. The context-store design says 30 in its description of the process.
    pub keep_recent_history: usize,
    /// A history with more tokens than this loses its older half. The context-store design says 100,000.
    pub max_tokens: usize,
    /// A completed task is removed this many seconds after its last change. The context-store design says 24 hours.
    pub completed_task_seconds: i64,
    /// The maximum number of characters of one entry in the summary. The layered-prompt design gives a message about
    /// 300.
    pub max_entry_chars: usize,
    /// The maximum number of characters of an older entry when the summary runs out of room: about one short sentence.
    pub max_short_entry_chars: usize,
    /// The maximum number of characters of the summary that compaction writes: about 3,000 tokens of English, less than
    /// half of the whole prompt in the layered-prompt design.
    pub max_summary_chars: usize,
}

impl Default for CompactionLimits {
    fn default() -> Self {
        Self {
            max_recent_history: 50,
            keep_recent_history: 30,
            max_tokens: 100_000,
            completed_task_seconds: 24 * 60 * 60,
            max_entry_chars: 300,
            max_short_entry_chars: 80,
            max_summary_chars: 12_000,
        }
    }
}

/// Keeps a context small.
#[derive(Debug, Clone, Copy, Default)]
pub struct ContextCompactor;

impl ContextCompactor {
    /// Compacts with the default limits, and returns whether anything changed.
    ///
    /// The core has no clock, so the newest moment in the document counts as the present. It is never later than the
    /// real time, so a task may be kept too long but is never removed too early.
    pub fn compact(context: &mut ContextData) -> bool {
        let now = newest_moment(context);
        Self::compact_with(context, &CompactionLimits::default(), now)
    }

    /// Compacts with the given limits at `now`, in seconds since the epoch, and returns whether anything changed.
    ///
    /// It shortens the history by its length, then by its tokens. Then it sorts the facts and removes duplicates, and
    /// it removes old completed tasks. Entries leave the history only into the summary.
    pub fn compact_with(context: &mut ContextData, limits: &CompactionLimits, now: i64) -> bool {
        let by_length = context.recent_history.len() > limits.max_recent_history
            && summarise_oldest(
                context,
                context.recent_history.len().saturating_sub(limits.keep_recent_history),
                limits,
            );
        let by_tokens = context.history_tokens() > limits.max_tokens
            && summarise_oldest(context, context.recent_history.len() / 2, limits);
        let facts = unify_facts(&mut context.facts);
        let tasks = prune_tasks(context, limits, now);
        by_length || by_tokens || facts || tasks
    }
}

fn summarise_oldest(context: &mut ContextData, count: usize, limits: &CompactionLimits) -> bool {
    if count == 0 {
        return false;
    }
    let oldest: Vec<_> = context.recent_history.drain(..count).collect();
    context.long_term_summary = fold::fold(&context.long_term_summary, &oldest, limits);
    true
}

fn unify_facts(facts: &mut Vec<String>) -> bool {
    if facts.windows(2).all(|pair| pair[0] < pair[1]) {
        return false;
    }
    facts.sort_unstable();
    facts.dedup();
    true
}

fn prune_tasks(context: &mut ContextData, limits: &CompactionLimits, now: i64) -> bool {
    let cutoff = now.saturating_sub(limits.completed_task_seconds);
    let before = context.active_tasks.len();
    context.active_tasks.retain(|task| !task.is_completed_before(cutoff));
    context.active_tasks.len() < before
}

fn newest_moment(context: &ContextData) -> i64 {
    let history = context.recent_history.iter().map(|entry| entry.timestamp);
    let tasks = context.active_tasks.iter().map(|task| task.updated_at);
    history.chain(tasks).chain([context.last_known_environment.last_update]).max().unwrap_or_default()
}

#[cfg(test)]
mod tests;
