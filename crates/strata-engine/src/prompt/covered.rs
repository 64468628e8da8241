//! The messages of a conversation that a summary covers already.
//!
//! In the integration of the layered-prompt design a program passes all messages of a conversation and the summary that
//! the last call returned. The summary holds one entry for each of the oldest messages, or counts it as left out. So
//! entries and messages are two lists with a constant distance, and the distance with the longest run of equal pairs
//! tells which messages are covered.

use super::summary::{Entries, Heads, is_left_of, named_entry_of};
use super::{Message, PromptSettings};

/// A run of entries that are the entries of messages. Indices of messages count only those that have an entry.
struct Run {
    /// The first entry of the run.
    entry: usize,
    /// The message of that entry.
    message: usize,
    /// The number of equal pairs.
    length: usize,
}

/// The summary of all messages before `recent`, made from a `summary` that may cover some of them already.
///
/// Messages that have no entry yet are added. Entries of the recent messages are removed, because the prompt shows these
/// messages word for word. The entries of a conversation that was continued differently are removed too.
pub(super) fn summary_before(
    summary: &str,
    messages: &[Message],
    recent: usize,
    settings: &PromptSettings,
) -> String {
    let (filter, lengths) = (&settings.filter, &settings.summary);
    let heads = Heads::of(messages);
    let mut entries = Entries::of(summary, &heads);
    let entry = |(place, message)| Some((place, named_entry_of(message, &heads, filter, lengths)?));
    let said: Vec<(usize, String)> = messages.iter().enumerate().filter_map(entry).collect();
    let leaving = said.iter().take_while(|(place, _)| *place < recent).count();
    let covered = covered(&mut entries, &said, leaving);
    let new = said[covered..leaving].iter().map(|(_, entry)| entry.clone().into());
    entries.list.extend(new);
    entries.fit(lengths.max_chars);
    entries.text()
}

/// A summary without the entries of the messages that it covers last, and how many messages that are. Each message has
/// the entries that it may have become, none if nothing is left of it. The first entry that is none of them ends it.
pub(crate) fn without_last(summary: &str, messages: &[Vec<String>]) -> (String, usize) {
    let mut entries = Entries::of(summary, &Heads::default());
    let mut count = 0;
    for message in messages.iter().rev() {
        let is_entry = |entry: &String| entries.list.last().is_some_and(|last| is_left_of(last, entry));
        if message.iter().any(is_entry) {
            entries.list.pop();
        } else if !message.is_empty() {
            break;
        }
        count += 1;
    }
    (entries.text(), count)
}

/// How many of the messages the entries cover. Entries of messages from `leaving` on are removed.
fn covered(entries: &mut Entries<'_>, said: &[(usize, String)], leaving: usize) -> usize {
    let left_out = usize::try_from(entries.left_out).unwrap_or(usize::MAX);
    let Some(run) = best_run(entries, said, left_out) else { return 0 };
    let kept = run.length.min(leaving.saturating_sub(run.message));
    entries.list.truncate(run.entry + kept);
    entries.left_out -= run.message.saturating_sub(leaving) as u64;
    (run.message + kept).min(leaving)
}

/// The longest run of equal pairs. Of equally long ones, the one that leaves the fewest entries to other conversations.
fn best_run(entries: &Entries<'_>, said: &[(usize, String)], left_out: usize) -> Option<Run> {
    let short = &entries.list;
    let run = |entry: usize, message: usize| {
        let pairs = short[entry..].iter().zip(said.get(message..).unwrap_or_default());
        let length = pairs.take_while(|(entry, (_, said))| is_left_of(entry, said)).count();
        Run { entry, message, length }
    };
    // The whole conversation: the entries follow the messages that were left out.
    let whole = run(0, left_out);
    let is_whole = whole.length >= LEAST_PAIRS || reaches_end(&whole, short.len(), said.len());
    let whole = Some(whole).filter(|whole| is_whole && whole.length > 0);
    // Entries before the first message come from elsewhere. Then all the others have to be entries of messages, because
    // otherwise nothing tells a repeated phrase from a covered message.
    let before_first = (1..short.len()).map(|entry| run(entry, 0));
    let after_some = (0..left_out.min(said.len())).map(|message| run(0, message));
    let others = before_first.chain(after_some).filter(|run| run.entry + run.length == short.len());
    let longest = others.max_by_key(|run| (run.length, run.message, std::cmp::Reverse(run.entry)));
    match (whole, longest) {
        (Some(whole), Some(other)) if other.length > whole.length => Some(other),
        (Some(whole), _) => Some(whole),
        (None, other) => other.filter(|run| run.length > 0),
    }
}

/// The pairs after which a conversation that goes on differently counts as the same one up to there.
const LEAST_PAIRS: usize = 2;

fn reaches_end(run: &Run, entries: usize, messages: usize) -> bool {
    run.entry + run.length == entries || run.message + run.length == messages
}
