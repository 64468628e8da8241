//! The flat prompt of the layered-prompt design, with two blocks of memory behind it: the standing instructions, and what
//! recall finds for the question once older turns are no longer shown.

use super::fill::RECALL_SHARE;
use super::{Gathering, Prepared, PromptRequest, Prompted, Prompting, Remembered};
use crate::line::{Days, item_line};
use crate::neutral::neutral;
use crate::prompt::{
    FlatLayers, History, Layer, Message, Prompt, PromptBody, PromptFormat, PromptRules, PromptSettings,
    build_prompt_with, flat_filled, speaks_of_device, without_said,
};
use crate::recall::RecalledItem;
use crate::recording::Unfolded;
use std::sync::Arc;
use strata_core::error::Result;
use strata_core::id::{ItemId, RequestId, UserId};
use strata_core::memory::MemoryKind;
use strata_core::state::State;
use strata_core::store::Item;

/// The tag of the standing instructions.
const STANDING: &str = "standing_instructions";

/// The tag of what recall finds.
const RELEVANT: &str = "relevant_memories";

/// The share of the budget that the standing instructions may take: a third.
const STANDING_SHARE: u32 = 3;

impl Prompting {
    pub(super) async fn flat_prompt(
        &self,
        user: &UserId,
        request: &PromptRequest,
        prepared: Prepared,
    ) -> Result<Prompted> {
        let Prepared { state, unfolded, history: summary, standing, .. } = prepared;
        let PromptRules { settings, .. } = &*self.prompts;
        let most = request.max_tokens.unwrap_or(settings.max_tokens);
        let (found, request_id) = self.found_for(user, request, &unfolded).await;
        let lines = found.iter().map(|found| {
            let content = found.shortened.as_deref().unwrap_or_else(|| found.item.content());
            item_line(&found.item, content.trim(), Days::Absolute)
        });
        let relevant = self.block(RELEVANT, lines, most / RECALL_SHARE);
        // A turn that recall shows needs no entry in the summary.
        let summary = without_said(&summary, found.iter().map(|found| found.item.content()), false);
        let beside = self.tokens.count(&standing).saturating_add(self.tokens.count(&relevant));
        let max_tokens = most.saturating_sub(beside);
        let recent: Vec<Message> = unfolded.turns.into_iter().map(Message::from).collect();
        let mut prompt = self.rendered_flat(&request.question, state, summary, recent, max_tokens).await?;
        self.append(&mut prompt, [(STANDING, &standing), (RELEVANT, &relevant)]).await?;
        Ok(Prompted { prompt, request_id })
    }

    /// Renders the layers. A long prompt is counted through the compute port.
    async fn rendered_flat(
        &self,
        question: &str,
        state: State,
        summary: String,
        recent: Vec<Message>,
        max_tokens: u32,
    ) -> Result<Prompt> {
        let bytes = summary.len() + recent.iter().map(|message| message.content.len()).sum::<usize>();
        let (question, prompts, tokens) =
            (question.to_owned(), Arc::clone(&self.prompts), Arc::clone(&self.tokens));
        self.computed(bytes, move || {
            let PromptRules { settings, rules } = &*prompts;
            let settings = &PromptSettings { max_tokens, ..settings.clone() };
            let layers = FlatLayers {
                question: &question,
                state: &state,
                summary: &summary,
                recent: &recent,
                is_device: speaks_of_device(&question, &state),
            };
            match settings.history {
                History::Auto => flat_filled(layers, rules, settings, tokens.as_ref()),
                _ => build_prompt_with(layers, rules, settings, tokens.as_ref()).prompt,
            }
        })
        .await
    }

    /// The block of the standing instructions; empty for a chat, which shows them among its memories.
    pub(super) async fn standing_block(&self, user: &UserId, request: &PromptRequest) -> String {
        if request.format != PromptFormat::Flat {
            return String::new();
        }
        let most = request.max_tokens.unwrap_or(self.prompts.settings.max_tokens);
        let standing = self.standing(user, &request.session, request.scope).await;
        let lines = standing.iter().map(|memory| {
            let note = if memory.in_dispute_with().is_some() { " (disputed)" } else { "" };
            format!("- {}{note}", neutral(&one_line(&memory.content)))
        });
        self.block(STANDING, lines, most / STANDING_SHARE)
    }

    /// The results of recall for the question beside the shown turns; nothing while the prompt shows the whole session, as
    /// in the layered-prompt design. A failing recall costs the block alone.
    async fn found_for(
        &self,
        user: &UserId,
        request: &PromptRequest,
        unfolded: &Unfolded,
    ) -> (Vec<RecalledItem>, Option<RequestId>) {
        if unfolded.shows_all() {
            return (Vec::new(), None);
        }
        let shown = unfolded.turns.iter().map(|turn| ItemId::Turn(turn.id)).collect();
        let gathering = Gathering::of_prompt(request, shown, None);
        let Remembered { items, row, problem } =
            self.gather(user, RequestId(self.ids.next()), &gathering).await;
        if let Some(error) = problem {
            tracing::warn!(%error, "a flat prompt is made without what recall finds");
        }
        let id = row.id;
        self.recall.log.note(user, row);
        let is_standing =
            |item: &Item| matches!(item, Item::Memory(memory) if memory.kind == MemoryKind::Instruction);
        (items.into_iter().filter(|found| !is_standing(&found.item)).collect(), Some(id))
    }

    /// A block of the lines that fit, the first ones before the others. It is empty if no line fits.
    fn block(&self, tag: &str, lines: impl Iterator<Item = String>, most: u32) -> String {
        let (begin, end) = (format!("\n\n<{tag}>"), format!("\n</{tag}>"));
        // Each line is counted alone, because the block would be counted again with each of them.
        let mut left = most.saturating_sub(self.tokens.count(&begin) + self.tokens.count(&end));
        let mut chosen = String::new();
        for line in lines {
            let line = format!("\n{line}");
            if let Some(rest) = left.checked_sub(self.tokens.count(&line)) {
                left = rest;
                chosen.push_str(&line);
            }
        }
        if chosen.is_empty() { chosen } else { format!("{begin}{chosen}{end}") }
    }

    /// Adds blocks behind a flat prompt.
    async fn append(&self, prompt: &mut Prompt, blocks: [(&str, &str); 2]) -> Result<()> {
        let PromptBody::Text(text) = &mut prompt.body else { return Ok(()) };
        let before = text.len();
        for (name, block) in blocks.into_iter().filter(|(_, block)| !block.is_empty()) {
            text.push_str(block);
            prompt.layers.push(Layer { name: name.to_owned(), tokens: self.tokens.count(block) });
        }
        if text.len() > before {
            prompt.tokens = self.counted(vec![text.clone()]).await?;
        }
        Ok(())
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
