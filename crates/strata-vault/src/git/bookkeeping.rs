//! What a commit changes in files of Strata's own bookkeeping, which is not taken back with it.
//!
//! A session's file says when the session was last written to and how far it was learned from, so nearly every commit changes
//! it, and the next one changes the same lines. If these counters went back, Strata would also learn again what was just
//! taken back. Of a session's file only the state is content, without its counters: it goes back if nothing has changed it since.

use std::collections::HashMap;

use strata_core::state::State;
use strata_core::{Result, UserId};

use super::Git;
use super::objects::{Blobs, Changed};
use super::plan::{Present, Replaced};
use crate::form::SessionFile;
use crate::front::Document;
use crate::row::{Content, Row};

/// The version of each file that was changed since.
type Since = HashMap<String, Option<String>>;

impl Git {
    /// What taking commits back changes in the files of sessions that they have changed.
    pub(super) async fn plan_sessions(
        &self,
        changed: Vec<Changed>,
        since: &Since,
        present: &Present,
    ) -> Result<Vec<Replaced>> {
        let versions = changed.iter().flat_map(|file| [file.before.as_ref(), file.after.as_ref()]);
        let now = changed.iter().filter_map(|file| since.get(&file.path).and_then(Option::as_ref));
        let blobs = self.blobs(versions.flatten().chain(now).cloned().collect()).await?;
        let (moved, others) = moves(changed, &blobs);
        let mut files: Vec<Replaced> =
            moved.iter().flat_map(|(from, to)| moved_back(from, to, since, &blobs)).collect();
        for file in others {
            files.extend(former_state(&file, since, present, &blobs)?);
        }
        Ok(files)
    }
}

/// The current content of a file.
fn content_now<'a>(file: &Changed, since: &Since, blobs: &'a Blobs) -> Option<&'a Vec<u8>> {
    blobs.of(since.get(&file.path).unwrap_or(&file.after).as_ref())
}

/// The files of sessions whose folders were renamed, at their former and at their new places, and the other files.
fn moves(changed: Vec<Changed>, blobs: &Blobs) -> (Vec<(Changed, Changed)>, Vec<Changed>) {
    let (mut made, mut others): (Vec<_>, Vec<_>) =
        changed.into_iter().partition(|file| file.before.is_none() && file.after.is_some());
    let mut moved = Vec::new();
    others.retain(|file| {
        let session = |blob: Option<&String>| Some(session_in(blobs.of(blob))?.session);
        let Some(former) = session(file.before.as_ref()).filter(|_| file.after.is_none()) else {
            return true;
        };
        let is_same = |made: &Changed| session(made.after.as_ref()).as_ref() == Some(&former);
        let Some(at) = made.iter().position(is_same) else { return true };
        moved.push((file.clone(), made.swap_remove(at)));
        false
    });
    others.extend(made);
    (moved, others)
}

/// A session's file back at its former place, as it is now.
fn moved_back(from: &Changed, to: &Changed, since: &Since, blobs: &Blobs) -> Vec<Replaced> {
    let (there, here) = (content_now(to, since, blobs), content_now(from, since, blobs));
    let Some(content) = there.filter(|_| here.is_none()) else { return Vec::new() };
    let replaced = |path: &str, now, then| Replaced { path: path.to_owned(), now, then };
    vec![replaced(&from.path, None, Some(content.clone())), replaced(&to.path, Some(content.clone()), None)]
}

/// A session's file with the state that it had before commits, if they have changed it and nothing has since. The state of a
/// session of which nothing is left does not come back.
fn former_state(file: &Changed, since: &Since, present: &Present, blobs: &Blobs) -> Result<Option<Replaced>> {
    let now = content_now(file, since, blobs);
    if now.is_none() && !present.is_beside(&file.path) {
        return Ok(None);
    }
    let read = |blob: &Option<String>| session_in(blobs.of(blob.as_ref()));
    let former = with_former_state(session_in(now), read(&file.after), read(&file.before));
    let Some(session) = former else { return Ok(None) };
    // The text of a session's file names no user.
    let row = Row::new(&UserId::default(), Content::Session(Box::new(session)));
    let then = row.render(&Document::default())?.into_bytes();
    Ok(Some(Replaced { path: file.path.clone(), now: now.cloned(), then: Some(then) }))
}

/// The session in a file; `None` if there is none, or if it cannot be read.
fn session_in(file: Option<&Vec<u8>>) -> Option<SessionFile> {
    serde_json::from_slice(file?).ok()
}

/// A state without what is counted and not told.
fn content_of(state: &State) -> State {
    let State { tool_stats, token_usage, observed, .. } = State::default();
    State { tool_stats, token_usage, observed, ..state.clone() }
}

/// The file as it is `now` with the state `before` a commit, if the commit has `made` another one of it that is still there.
fn with_former_state(
    now: Option<SessionFile>,
    made: Option<SessionFile>,
    before: Option<SessionFile>,
) -> Option<SessionFile> {
    let content = |file: &Option<SessionFile>| {
        file.as_ref().map_or_else(State::default, |file| content_of(&file.state))
    };
    if content(&made) == content(&before) || content(&now) != content(&made) {
        return None;
    }
    let former = content(&before);
    let Some(now) = now else { return before };
    let State { tool_stats, token_usage, observed, .. } = now.state;
    Some(SessionFile { state: State { tool_stats, token_usage, observed, ..former }, ..now })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use strata_core::SessionId;

    use super::*;

    #[test]
    fn a_state_goes_back_unless_it_was_changed_since() {
        let file = |goal: Option<&str>, second: i64| {
            let mut state = State::default();
            state.system_state.extend(goal.map(|goal| ("goal".to_owned(), goal.into())));
            state.observed.turns = second.cast_unsigned();
            let at = Timestamp::from_second(second).unwrap();
            let session = SessionId::new("harbour").unwrap();
            SessionFile { session, created_at: at, updated_at: at, progress: Default::default(), state }
        };
        let (none, sail, row) = (file(None, 1), file(Some("sail"), 2), file(Some("row"), 3));
        let check = |now: &SessionFile,
                     made: &SessionFile,
                     before: Option<&SessionFile>,
                     expected: Option<&SessionFile>| {
            let undone = with_former_state(Some(now.clone()), Some(made.clone()), before.cloned());
            let Some(undone) = undone else { return assert_eq!(expected, None) };
            assert_eq!(undone.state.system_state, expected.unwrap().state.system_state);
            assert_eq!(undone.updated_at, now.updated_at, "its times are no content");
            assert_eq!(undone.state.observed, now.state.observed, "nor is what is counted");
        };
        let later = file(Some("sail"), 9);
        check(&later, &sail, Some(&none), Some(&none));
        check(&later, &sail, None, Some(&none));
        check(&row, &sail, Some(&none), None);
        check(&later, &sail, Some(&later), None);
        assert_eq!(with_former_state(None, None, Some(sail.clone())), Some(sail));
    }
}
