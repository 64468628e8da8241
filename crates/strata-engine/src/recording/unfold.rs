//! Recent turns that the rolling summary covers already: a prompt quotes them, and the summary no longer says them.
//!
//! This happens after the number of recent turns was raised, because the summary was moved on for a smaller number.

use super::Recording;
use super::fold::Unfolded;
use crate::case::SALIENT_ROOM;
use crate::prompt::{Message, PromptSettings, SummarySettings, entry_of, recent_start, without_last};
use strata_core::error::Result;
use strata_core::id::{SessionId, UserId};
use strata_core::state::Observed;
use strata_core::store::TurnQuery;
use strata_core::summary::Summary;
use strata_core::turn::{Role, Turn};

impl Recording {
    /// Adds the turns that belong to the recent ones and takes their entries out of the summary.
    pub(super) async fn with_recent(
        &self,
        user: &UserId,
        session: &SessionId,
        unfolded: Unfolded,
    ) -> Result<Unfolded> {
        let missing = self.missing_recent(&unfolded.turns);
        let Unfolded { summary: Some(mut version), skipped: skipped @ 0, turns, uncovered } = unfolded else {
            return Ok(unfolded);
        };
        if missing == 0 {
            return Ok(Unfolded { summary: Some(version), skipped, turns, uncovered });
        }
        let covered = self.covered_recent(user, session, &version, &turns, missing).await?;
        let observed = self.store.session(user, session).await?.map(|session| session.state.observed);
        let observed = observed.unwrap_or_default();
        let entries: Vec<Vec<String>> = covered.iter().map(|turn| self.entries_of(turn, &observed)).collect();
        let (text, count) = without_last(&version.text, &entries);
        version.text = text;
        let shown = covered.into_iter().rev().take(count).collect::<Vec<_>>().into_iter().rev();
        let turns = shown.chain(turns).collect();
        Ok(Unfolded { summary: Some(version), skipped, turns, uncovered })
    }

    /// The most turns that are missing from the recent ones.
    fn missing_recent(&self, turns: &[Turn]) -> usize {
        let exchanges = self.prompts.settings.recent_exchanges;
        let spoken = turns.iter().filter(|turn| matches!(turn.role, Role::User | Role::Assistant)).count();
        if spoken >= 2 * exchanges { 0 } else { (4 * exchanges).saturating_sub(turns.len()) }
    }

    /// The turns that the summary covers and that belong to the recent ones, by `seq`.
    async fn covered_recent(
        &self,
        user: &UserId,
        session: &SessionId,
        version: &Summary,
        turns: &[Turn],
        missing: usize,
    ) -> Result<Vec<Turn>> {
        let end = version.end_seq + 1;
        let after = end.saturating_sub(missing as u64).checked_sub(1);
        let limit = u32::try_from(missing).unwrap_or(u32::MAX);
        let query = TurnQuery::Range { session: session.clone(), after, limit };
        let mut covered = self.store.turns(user, &query).await?;
        covered.retain(|turn| turn.is_in_conversation() && turn.seq < end);
        let messages: Vec<Message> = covered.iter().chain(turns).cloned().map(Message::from).collect();
        let first = recent_start(&messages, self.prompts.settings.recent_exchanges);
        covered.drain(..first.min(covered.len()));
        Ok(covered)
    }

    /// The entries that a turn may have in the summary: with the sentences that matter, or with the rule's.
    fn entries_of(&self, turn: &Turn, observed: &Observed) -> Vec<String> {
        let PromptSettings { filter, summary: by_rule, .. } = &self.prompts.settings;
        let message = Message::from(turn.clone());
        let mut chosen = message.clone();
        self.keep_salient(&mut chosen, observed.roles_of(turn.seq));
        let entry_chars = by_rule.entry_chars * SALIENT_ROOM;
        let by_reader = &SummarySettings { entry_chars, ..by_rule.clone() };
        let entries = [(&chosen, by_reader), (&message, by_reader), (&message, by_rule)];
        entries.into_iter().filter_map(|(message, lengths)| entry_of(message, filter, lengths)).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::PromptRequest;
    use crate::prompt::{History, PromptSettings};
    use crate::recall::tests::fixture::{World, session};
    use strata_core::turn::{NewMessage, Role};

    /// The two layers of a session's flat prompt that show its turns.
    async fn layers(world: &World, exchanges: usize) -> (String, String) {
        let history = History::Rolling;
        let settings = PromptSettings { recent_exchanges: exchanges, history, ..PromptSettings::default() };
        let engine = world.engine.clone().with_prompts(settings).unwrap();
        let request = PromptRequest::new(session("s"), "What comes next?");
        let prompted = engine.prompting.prompt(&world.user, &request).await.unwrap();
        let text = prompted.prompt.text().unwrap().to_owned();
        let layer = |tag: &str| {
            let inside = text.split_once(&format!("<{tag}>")).and_then(|(_, rest)| rest.split_once("</"));
            inside.map_or(String::new(), |(inside, _)| inside.to_owned())
        };
        (layer("conversation_summary"), layer("recent_conversation"))
    }

    async fn talk(world: &World, exchanges: usize) {
        for number in 0..exchanges {
            let said = vec![
                NewMessage::new(
                    Role::User,
                    format!("Where does scene {number} play? It is not in the script."),
                ),
                NewMessage::new(Role::Assistant, format!("Scene {number} plays in the harbour.")),
                NewMessage::new(Role::User, format!("第{number}幕有几个演员？")),
                NewMessage::new(Role::Assistant, format!("第{number}幕有三个演员。")),
            ];
            world.engine.recording.record(&world.user, &session("s"), said, None).await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_raised_number_of_recent_turns_shows_turns_that_were_folded() {
        let world = World::new();
        talk(&world, 10).await;
        for exchanges in [3, 5, 9, 12, 30] {
            let (summary, recent) = layers(&world, exchanges).await;
            let first = 40_usize.saturating_sub(2 * exchanges);
            for seq in 0..40 {
                let text = match (seq % 4, seq / 4) {
                    (0, number) => format!("Where does scene {number} play?"),
                    (1, number) => format!("Scene {number} plays in the harbour."),
                    (2, number) => format!("第{number}幕有几个演员？"),
                    (_, number) => format!("第{number}幕有三个演员。"),
                };
                let shown = (summary.matches(&text).count(), recent.matches(&text).count());
                let expected = if seq < first { (1, 0) } else { (0, 1) };
                assert_eq!(shown, expected, "{text} with {exchanges} recent exchanges\n{summary}\n{recent}");
            }
        }
    }

    #[tokio::test]
    async fn pruning_and_eviction_leave_the_recent_turns_in_the_prompt() {
        let world = World::with(|settings| {
            settings.learn.prune_after_days = 30;
            settings.learn.max_entries = 2;
            settings.learn.delay_secs = Some(0);
        });
        talk(&world, 2).await;
        let before = layers(&world, 3).await;
        assert!(before.1.contains("Scene 1 plays"), "{}", before.1);
        world.engine.learning.learn_all().await.unwrap();
        assert_eq!(layers(&world, 3).await.1, before.1, "evicted");
        world.clock.forward(40 * 86_400);
        assert!(world.engine.learning.prune_sessions(&world.user).await.unwrap() > 0);
        assert_eq!(layers(&world, 3).await.1, before.1, "pruned");
        let context = world.engine.contexts.get(&world.user, &session("s")).await.unwrap();
        assert_eq!(context.recent_history.len(), 8);
    }
}
