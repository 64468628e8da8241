//! The leaves of a session's tree: runs of whole turns of about a chunk each, with an overlap between neighbours.

use super::{MAX_LEAVES, tokens_of};
use crate::learn::tree::{CHUNK_TOKENS, ContentType, OVERLAP_TOKENS, chunks};
use crate::line::said_line;
use crate::prompt::{FilterSettings, RawLogs, strip};
use crate::summaries::Summaries;
use strata_core::error::Result;
use strata_core::id::UserId;
use strata_core::session::Session;
use strata_core::summary::Summary;
use strata_core::turn::{Role, Turn};

/// The most turns in one read.
const MAX_TURNS: u64 = 2_000;

/// A leaf that is not summarised yet.
pub(super) struct Leaf {
    pub(super) start_seq: u64,
    pub(super) end_seq: u64,
    /// The number of this part within its turn, if the turn is longer than a leaf; else 0.
    pub(super) part: usize,
    /// The text, with the overlap in front.
    pub(super) text: String,
    pub(super) tokens: u32,
}

impl Summaries {
    /// The visible turns from `first` on until they have `enough` tokens, and whether there are more. Hidden turns are
    /// skipped, because there may be many of them.
    pub(super) async fn tail(
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

    /// The leaves that the turns after the `last` leaf fill, and the content type of their text.
    pub(super) async fn new_leaves(
        &self,
        user: &UserId,
        session: &Session,
        last: Option<&Summary>,
    ) -> Result<(Vec<Leaf>, ContentType)> {
        let first = last.map_or(0, |last| last.end_seq + 1);
        let enough = CHUNK_TOKENS * (MAX_LEAVES as u32 + 2);
        let (turns, is_cut) = self.tail(user, session, first, enough).await?;
        // The last turn of the previous leaf is read again for the overlap.
        let before = self.visible(user, &session.id, first.saturating_sub(1), first).await?.pop();
        let is_spoken = turns.iter().any(|turn| turn.role == Role::Assistant || turn.name != turns[0].name);
        let content = if is_spoken {
            ContentType::Conversation
        } else {
            ContentType::detect(
                &turns.iter().map(|turn| turn.content.as_str()).collect::<Vec<_>>().join("\n"),
            )
        };
        let overlap = before.as_ref().map(said).unwrap_or_default();
        Ok((self.leaves(&turns, overlap, is_cut), content))
    }

    /// Joins turns until they fill a leaf. The last leaf is returned only if it is full, or if it is the only one and
    /// more turns follow (`is_cut`).
    fn leaves(&self, turns: &[Turn], mut overlap: String, is_cut: bool) -> Vec<Leaf> {
        let room = CHUNK_TOKENS - OVERLAP_TOKENS;
        let mut leaves: Vec<Leaf> = Vec::new();
        let mut open: Option<Leaf> = None;
        for turn in turns {
            let text = said(turn);
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

    /// Puts the end of the `before` text in front of a leaf. `before` then becomes the leaf's own text.
    fn overlapped(&self, mut leaf: Leaf, before: &mut String) -> Leaf {
        let all = chunks(before, OVERLAP_TOKENS.saturating_mul(2), OVERLAP_TOKENS - 1, self.tokens.as_ref());
        let tail = all.last().map_or("", |chunk| &before[chunk.all.clone()]);
        let tail = if self.tokens.count(tail) > OVERLAP_TOKENS {
            // The last chunk may be up to twice as long as the overlap. Its end is taken.
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
}

/// A turn as text, with its day and speaker.
fn said(turn: &Turn) -> String {
    said_line(turn, strip(&turn.content, &FilterSettings::default(), RawLogs::Removed).trim())
}
