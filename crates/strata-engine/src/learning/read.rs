//! Extraction by the reader: the user's own sentences become statements.

use jiff::Timestamp;
use uuid::Uuid;

use super::Learning;
use crate::learn::reading::{ReadSentence, UnreadMessage, Verdict, compounds, cut, with_introduction};
use crate::learn::standalone::{Previous, standing_alone};
use crate::learn::{AsSaid, Said, Standing, Statement, rules};
use strata_core::error::Result;
use strata_core::id::TurnId;
use strata_core::ports::{Reader, Voice};
use strata_language::statements::{introduced, is_instruction, third_person};

/// The most statements of a message. Their order of confidence decides.
const MAX_STATEMENTS: usize = 12;

/// The confidence of the rules in a plain statement.
const PLAIN: f32 = 0.9;

impl Learning {
    /// The statements of messages, each with the turn before it.
    pub(super) async fn read(
        &self,
        reader: &dyn Reader,
        said: &[(Said<'_>, &Previous)],
    ) -> Result<Vec<Statement>> {
        let mut statements = Vec::new();
        for (message, previous) in said {
            let read = read_message(reader, message.text, previous).await?;
            let mut found: Vec<Statement> =
                read.iter().filter_map(|sentence| statement(sentence, message)).collect();
            if found.len() > MAX_STATEMENTS {
                let mut confidences: Vec<f32> = found.iter().map(|one| one.confidence).collect();
                confidences.sort_by(|a, b| b.total_cmp(a));
                let least = confidences[MAX_STATEMENTS - 1];
                found.retain(|one| one.confidence >= least);
                found.truncate(MAX_STATEMENTS);
            }
            statements.extend(found);
        }
        Ok(statements)
    }
}

/// The sentences of a message with their verdicts.
pub(super) async fn read_message(
    reader: &dyn Reader,
    text: &str,
    previous: &Previous,
) -> Result<Vec<ReadSentence>> {
    let message = UnreadMessage::new(text, previous);
    let readings = reader.sentences(&message.sentences()).await?;
    let judged = message.judge(&readings).into_iter().map(with_rules).collect::<Vec<_>>();
    let looks = message.second_looks(&judged);
    let mut read = judged;
    if !looks.is_empty() {
        let clauses: Vec<_> = looks.iter().flat_map(|look| look.clauses.clone()).collect();
        let readings = reader.sentences(&clauses).await?;
        read = message.look_again(read, &looks, &readings);
    }
    let compounds = compounds(&read);
    if !compounds.is_empty() {
        let readings = reader.sentences(&compounds).await?;
        read = cut(read, &readings);
    }
    Ok(standing_alone(read, previous).into_iter().map(with_introduction).collect())
}

/// A sentence that the reader would not keep, but that the rules read as a plain statement. They seldom do, and are then
/// right; the reader passes over names in greetings.
fn with_rules(mut sentence: ReadSentence) -> ReadSentence {
    // A standing instruction is easily taken for a request, or for a remark.
    let is_doubtful = matches!(
        sentence.verdict,
        Verdict::NotOwn(Voice::Request) | Verdict::Statement(Standing::AsChange | Standing::AsSureChange)
    );
    if is_doubtful && is_instruction(&sentence.text) {
        sentence.verdict = Verdict::Statement(Standing::Kept);
    }
    if let Verdict::Statement(Standing::AsChange | Standing::AsSureChange) = sentence.verdict {
        let turn = TurnId(Uuid::nil());
        let said = Said { turn, name: None, text: &sentence.text, at: Timestamp::UNIX_EPOCH };
        if rules::extract(&said).iter().any(|statement| statement.confidence >= PLAIN) {
            sentence.verdict = Verdict::Statement(Standing::Kept);
        }
    }
    sentence
}

pub(super) fn statement(sentence: &ReadSentence, message: &Said<'_>) -> Option<Statement> {
    let Verdict::Statement(standing) = sentence.verdict else { return None };
    if names_speaker(&sentence.text, message.name) {
        return None;
    }
    Some(Statement {
        content: third_person(sentence.told.as_ref().unwrap_or(&sentence.text), message.name, message.at),
        kind: sentence.kind(),
        confidence: sentence.confidence(),
        turns: vec![message.turn],
        valid_from: None,
        as_said: Some(AsSaid {
            text: sentence.text.clone(),
            before: sentence.before.clone(),
            standing,
            beside: sentence.beside.iter().map(|fact| third_person(fact, message.name, message.at)).collect(),
        }),
    })
}

/// Whether a sentence only gives the name under which its message was recorded.
fn names_speaker(sentence: &str, name: Option<&str>) -> bool {
    let is_known = |told: String| name.is_some_and(|name| told.ends_with(name));
    introduced(sentence).is_some_and(is_known)
}
