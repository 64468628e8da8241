//! Streams: one short message at a time.

use std::collections::{BTreeSet, HashMap};

use super::parse::{Operation, Stream};
use super::{StreamFindings, current, says_ended};
use strata_core::memory::Memory;
use strata_core::turn::NewMessage;
use strata_core::{Result, Role, SessionId, TurnId, UserId};
use strata_engine::Engine;

pub(super) async fn run(
    engine: &Engine,
    stream: &Stream,
    number: usize,
    notes: &mut Vec<String>,
) -> Result<StreamFindings> {
    let user = UserId::new(format!("stream-{number}-{}", stream.id))?;
    let session = SessionId::default();
    let mut said: HashMap<TurnId, usize> = HashMap::new();
    let mut found = StreamFindings::default();
    let mut alive: BTreeSet<usize> = BTreeSet::new();
    let mut believed: BTreeSet<usize> = BTreeSet::new();
    let mut memories = Vec::new();
    for (place, line) in stream.lines.iter().enumerate() {
        let message = vec![NewMessage::new(Role::User, line.text.clone())];
        let recorded = engine.recording.record(&user, &session, message, None).await?;
        said.extend(recorded.turns.iter().map(|turn| (turn.id, place)));
        engine.learning.learn_from(&user, &session, &recorded).await?;
        if let Operation::Replaces(old) | Operation::Ends(old) = line.operation {
            alive.remove(&old);
        }
        if matches!(line.operation, Operation::Adds | Operation::Replaces(_)) {
            alive.insert(place);
        }
        memories = current(engine, &user).await?;
        let now: BTreeSet<usize> =
            alive.iter().copied().filter(|line| !holding(stream, *line, &memories).is_empty()).collect();
        let lost = believed.iter().any(|line| alive.contains(line) && !now.contains(line));
        found.false_changes.count(lost);
        if lost {
            notes.push(format!("{} | false change | {}", stream.id, line.text));
        }
        believed = now;
    }
    score(stream, &alive, &memories, &said, &mut found, notes);
    Ok(found)
}

/// The memories that hold all values of a line.
fn holding<'a>(stream: &Stream, line: usize, memories: &'a [Memory]) -> Vec<&'a Memory> {
    let holds = |memory: &&Memory| {
        let text = memory.content.to_lowercase();
        stream.lines[line].values.iter().all(|value| text.contains(value))
    };
    memories.iter().filter(holds).collect()
}

fn score(
    stream: &Stream,
    alive: &BTreeSet<usize>,
    memories: &[Memory],
    said: &HashMap<TurnId, usize>,
    found: &mut StreamFindings,
    notes: &mut Vec<String>,
) {
    let believable =
        |line: &usize| matches!(stream.lines[*line].operation, Operation::Adds | Operation::Replaces(_));
    for line in (0..stream.lines.len()).filter(believable) {
        let text = &stream.lines[line].text;
        let holding = holding(stream, line, memories);
        if alive.contains(&line) {
            found.kept.count(!holding.is_empty());
            if holding.is_empty() {
                notes.push(format!("{} | lost | {text}", stream.id));
            }
            continue;
        }
        let values = &stream.lines[line].values;
        let again =
            alive.iter().any(|other| stream.lines[*other].values.iter().any(|value| values.contains(value)));
        let stale = holding.iter().find(|memory| !again && !says_ended(&memory.content));
        found.stale.count(stale.is_some());
        if let Some(stale) = stale {
            notes.push(format!("{} | stale | {text} | {}", stream.id, stale.content));
        }
    }
    for memory in memories {
        let lines: Vec<usize> =
            memory.source_turns.iter().filter_map(|turn| said.get(turn).copied()).collect();
        let is_junk =
            !lines.is_empty() && lines.iter().all(|line| stream.lines[*line].operation == Operation::Nothing);
        found.junk.count(is_junk);
        if is_junk {
            notes.push(format!("{} | junk | {}", stream.id, memory.content));
        }
    }
}
