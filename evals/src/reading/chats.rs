//! Whole chats, one exchange at a time.

use jiff::SignedDuration;

use super::parse::{Chat, ChatSession, Mark};
use super::{ChatFindings, current, says_ended};
use strata_core::store::Item;
use strata_core::turn::{NewMessage, Owner};
use strata_core::{Result, Role, SessionId, UserId};
use strata_engine::Engine;
use strata_engine::recall::RecallRequest;

/// The number of results in which an answer is looked for.
const RESULTS: u32 = 5;

pub(super) async fn run(
    engine: &Engine,
    chat: &Chat,
    number: usize,
    notes: &mut Vec<String>,
) -> Result<ChatFindings> {
    let user = UserId::new(format!("chat-{number}-{}", chat.id))?;
    for (place, session) in chat.sessions.iter().enumerate() {
        say(engine, &user, session, place).await?;
    }
    // The encoder's vectors are made in the background. Questions are asked when they are there.
    engine.maintenance.maintain_all().await?;
    let memories = current(engine, &user).await?;
    let mut found = ChatFindings::default();
    found.memories.part = memories.len();
    found.memories.all = 1;
    let holding = |value: &str| -> Vec<&str> {
        let texts = memories.iter().map(|memory| memory.content.as_str());
        texts.filter(|text| text.to_lowercase().contains(&value.to_lowercase())).collect()
    };
    for mark in &chat.marks {
        match mark {
            Mark::Believed(value) => {
                let kept = !holding(value).is_empty();
                found.kept.count(kept);
                if !kept {
                    notes.push(format!("{} | lost | {value}", chat.id));
                }
            }
            Mark::NotBelieved(value) => {
                let wrong = holding(value).into_iter().find(|text| !says_ended(text));
                found.wrong.count(wrong.is_some());
                if let Some(text) = wrong {
                    notes.push(format!("{} | wrong | {value} | {text}", chat.id));
                }
            }
            Mark::Question(question, value) => {
                let answered = is_answered(engine, &user, question, value).await?;
                found.answered.count(answered);
                if !answered {
                    notes.push(format!("{} | unanswered | {question} | {value}", chat.id));
                }
            }
        }
    }
    Ok(found)
}

/// Records the exchanges of a session, and learns from each in a session of its own.
async fn say(engine: &Engine, user: &UserId, session: &ChatSession, place: usize) -> Result<()> {
    let (said_in, learned_in) =
        (SessionId::new(format!("session-{place}"))?, SessionId::new(format!("session-{place}-learn"))?);
    let owner = Owner { in_session: true, ..Owner::default() };
    for exchange in session.turns.chunk_by(|_, next| next.0 != Role::User) {
        let message = |(role, text): &(Role, String)| NewMessage::new(*role, text.clone());
        let mut at = session.at;
        let dated = exchange.iter().map(|turn| {
            at = at.saturating_add(SignedDuration::from_mins(1)).unwrap_or(at);
            NewMessage { created_at: Some(at), ..message(turn) }
        });
        engine.recording.record(user, &said_in, dated.collect(), None).await?;
        let owned = exchange.iter().map(|turn| {
            let mut message = message(turn);
            message.notes.owner = owner.clone();
            message
        });
        engine.learning.infer(user, &learned_in, owned.collect(), None).await?;
    }
    Ok(())
}

async fn is_answered(engine: &Engine, user: &UserId, question: &str, value: &str) -> Result<bool> {
    let request = RecallRequest { limit: Some(RESULTS), ..RecallRequest::new(question) };
    let recalled = engine.recall.ask(user, &request).await?;
    let value = value.to_lowercase();
    let holds = |item: &Item| item.content().to_lowercase().contains(&value);
    Ok(recalled.items.iter().take(RESULTS as usize).any(|found| holds(&found.item)))
}
