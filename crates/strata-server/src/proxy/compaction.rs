//! Compaction of long chats: a summary replaces older messages of the client, if the setting asks for it.

use strata_core::{Role, SessionId, UserId};
use strata_engine::prompt::{Compaction, Message as SaidMessage, MessageSize, compacted, summary_share};

use crate::app::App;
use crate::compat::chat::ChatBody;
use crate::upstream::hash;

/// The tokens that a message needs besides its content, as OpenAI counts them.
const MESSAGE_TOKENS: u32 = 4;

/// The tokens of a part that is not text: about as many as providers count for an image.
const PART_TOKENS: u32 = 800;

/// The messages that are removed, and the summary that replaces them.
#[derive(Debug, Default)]
pub(crate) struct Compacted {
    first_kept: usize,
    /// The summary, and the index of the message that it is put in front of.
    pub(crate) block: Option<(usize, String)>,
}

impl Compacted {
    /// Whether the message at `place` is removed.
    pub(crate) fn is_gone(&self, body: &ChatBody<'_>, place: usize) -> bool {
        place < self.first_kept && body.messages()[place].role != Some(Role::System)
    }
}

/// Compacts a body as the setting `proxy.compact_tokens` asks for.
pub(crate) fn compact(app: &App, user: &UserId, session: &SessionId, body: &ChatBody<'_>) -> Compacted {
    let budget = app.settings().proxy.compact_tokens;
    // The question never counts: a long one would replace the whole conversation by a summary.
    let question = body.question();
    let counted = body.messages().iter().enumerate().filter(|(place, _)| Some(*place) != question);
    let bytes: usize = counted.map(|(_, message)| message.bytes()).sum();
    // No tokenizer makes more tokens than there are bytes.
    if budget == 0 || bytes <= budget as usize {
        return Compacted::default();
    }
    app.proxy().histories.with(user, session, |known| {
        let sizes: Vec<MessageSize> = body
            .messages()
            .iter()
            .enumerate()
            .map(|(place, message)| {
                let role = message.role.unwrap_or(Role::Assistant);
                if Some(place) == question {
                    return MessageSize { role, tokens: 0 };
                }
                let content = known.tokens(hash(message.said().as_bytes()), || {
                    app.engine().prompting.count_tokens(message.said())
                });
                let tokens = content.saturating_add(MESSAGE_TOKENS + PART_TOKENS * message.other_parts);
                MessageSize { role, tokens }
            })
            .collect();
        let Compaction { first_kept, .. } = compacted(&sizes, budget);
        if first_kept == 0 {
            return Compacted::default();
        }
        // The summary is never longer than the messages that it replaces.
        let freed = sizes[..first_kept].iter().filter(|size| size.role != Role::System);
        let freed = freed.fold(0, |sum: u32, size| sum.saturating_add(size.tokens));
        let most = summary_share(budget).min(freed);
        let gone = body.messages()[..first_kept].iter().filter(|message| message.role != Some(Role::System));
        let gone: Vec<SaidMessage> =
            gone.filter_map(|message| Some(SaidMessage::new(message.role?, message.said()))).collect();
        let mut all = String::new();
        for message in &gone {
            all.push_str(message.role.as_str());
            all.push('\0');
            all.push_str(&message.content);
            all.push('\0');
        }
        let key = hash(all.as_bytes());
        if known.summary.as_ref().is_none_or(|(of, _)| *of != key) {
            known.summary = Some((key, app.engine().prompting.summary_block(&gone, most)));
        }
        let block = known.summary.as_ref().and_then(|(_, block)| block.clone());
        // There is not even room for saying that messages were left out, so they stay.
        if block.is_none() && freed < summary_share(budget) {
            return Compacted::default();
        }
        Compacted { first_kept, block: block.map(|block| (first_kept, block)) }
    })
}
