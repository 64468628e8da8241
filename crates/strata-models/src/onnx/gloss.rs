//! The pieces that Strata's own networks read: Chinese by its English glosses, all else by the vocabulary.

use strata_core::Result;

use super::session::Session;
use crate::lexicon::gloss;

/// The number of characters that surely hold one piece.
const PIECE_CHARS: usize = 24;

/// The first `most` pieces of a text. The rest of a long text is not read.
pub(super) fn first_pieces(session: &Session, text: &str, most: usize) -> Result<Vec<u32>> {
    if !gloss::is_chinese(text) {
        return session.first_pieces(text, most);
    }
    let end = text.char_indices().nth(most * PIECE_CHARS).map_or(text.len(), |(end, _)| end);
    let mut pieces = pieces(session, &text[..end])?;
    pieces.truncate(most);
    Ok(pieces)
}

/// The last `most` pieces of a text. The beginning of a long text is not read.
pub(super) fn last_pieces(session: &Session, text: &str, most: usize) -> Result<Vec<u32>> {
    if !gloss::is_chinese(text) {
        return session.last_pieces(text, most);
    }
    let start = text.char_indices().nth_back(most * PIECE_CHARS).map_or(0, |(start, _)| start);
    let mut pieces = pieces(session, &text[start..])?;
    pieces.drain(..pieces.len().saturating_sub(most));
    Ok(pieces)
}

fn pieces(session: &Session, text: &str) -> Result<Vec<u32>> {
    gloss::pieces(text, |latin| session.first_pieces(latin, usize::MAX))
}
