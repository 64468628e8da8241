//! Compaction: a history that grows for ever becomes a short one and a summary that does not grow for ever.

use super::document::ContextData;
use super::fold;

/// When compaction acts and what it leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactionLimits {
    /// A history with more entries than this is shortened. Document 2: 50.
    pub max_recent_history: usize,
    /// So many of the newest entries stay then. Document 2's process: 30.
    pub keep_recent_history: usize,
    /// A history with more tokens than this loses its older half. Document 2: 100,000.
    pub max_tokens: usize,
    /// A completed task goes when it last changed so many seconds ago. Document 2: 24 hours.
    pub completed_task_seconds: i64,
    /// The most characters of one entry in the summary; document 0 gives a message about 300.
    pub max_entry_chars: usize,
    /// The most characters of an older entry, once the summary runs out of room: about one short sentence.
    pub max_short_entry_chars: usize,
    /// The most characters of the summary that compaction writes: about 3,000 tokens of English, less than half of what
    /// document 0 gives a whole prompt.
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
    /// Compacts with the default limits, and says whether anything changed.
    ///
    /// The core has no clock, so the time is the newest moment that the document itself names. Without an old task beside
    /// a newer entry nothing is judged by age, and a task can only be kept too long by this, never lost too early.
    pub fn compact(context: &mut ContextData) -> bool {
        let now = newest_moment(context);
        Self::compact_with(context, &CompactionLimits::default(), now)
    }

    /// Compacts with the given limits at `now`, in seconds since the epoch, and says whether anything changed.
    ///
    /// History first by its length, then by its tokens; then facts are sorted and made unique, and old completed tasks
    /// are removed. Entries leave the history only into the summary.
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
    context
        .active_tasks
        .retain(|task| !task.status.eq_ignore_ascii_case("completed") || task.updated_at > cutoff);
    context.active_tasks.len() < before
}

fn newest_moment(context: &ContextData) -> i64 {
    let history = context.recent_history.iter().map(|entry| entry.timestamp);
    let tasks = context.active_tasks.iter().map(|task| task.updated_at);
    history.chain(tasks).chain([context.last_known_environment.last_update]).max().unwrap_or_default()
}

#[cfg(test)]
mod tests;
