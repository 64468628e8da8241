//! The replacement of the turns that a prompt no longer shows: the rolling summary, the window's summary with
//! the turns after it, or the root of the tree.
//!
//! The rolling summary covers every turn in its own words. A model's summaries say the same in fewer words, so they join
//! it where they exist: what was paid for is shown. The root of a tree without a model joins it once the rolling summary
//! has left messages out.

use super::Prompting;
use crate::line::day;
use crate::prompt::{History, PromptSettings, condense, has_left_out, without_said};
use crate::recording::Unfolded;
use strata_core::error::Result;
use strata_core::id::{SessionId, UserId};
use strata_core::store::{SummaryQuery, TurnQuery};
use strata_core::summary::{Strategy, Summary, SummaryStatus};

/// The most turns that a prompt shows behind a window's summary or a root.
const MAX_GAP: u32 = 512;

/// The number of a tree's newest rows among which its root is.
const NEWEST_NODES: u32 = 16;

/// The most of a window's newest versions among which the one before the shown turns is. A version is made with each round,
/// and 64 rounds fill the budget of most prompts.
const NEWEST_WINDOWS: u64 = 64;

/// The least share of the summary that the rolling part keeps: a half.
const ROLLING_SHARE: usize = 2;

impl Prompting {
    /// The text for the turns before those that the prompt shows. With [`History::Window`] and [`History::Tree`] the
    /// prompt shows the turns that their summary does not cover, so `unfolded` gets those. `first_shown` is the first turn
    /// that the client shows, if it shows messages of its own instead.
    pub(super) async fn history(
        &self,
        user: &UserId,
        session: &SessionId,
        unfolded: &mut Unfolded,
        first_shown: Option<u64>,
    ) -> Result<String> {
        let settings = &self.prompts.settings;
        let rolling = unfolded.text(settings);
        if unfolded.shows_all() || settings.history == History::Rolling {
            return Ok(rolling);
        }
        let chosen = match settings.history {
            History::Window => self.newest(user, session, Strategy::Window, 1).await?.pop(),
            History::Tree => self.root_before(user, session, None).await?,
            History::Auto | History::Rolling => {
                let first = first_shown.or_else(|| unfolded.turns.first().map(|turn| turn.seq));
                let beside = self.digests(user, session, first).await?;
                return Ok(joined(&rolling, beside, settings));
            }
        };
        // While there is no such summary, the rolling one stands for the old turns.
        let Some(summary) = chosen else { return Ok(rolling) };
        self.show_after(user, &summary, unfolded).await?;
        Ok(entry(&summary))
    }

    /// The summaries that a model wrote about the turns of a session before `first_shown`, in their order. Prompts show them
    /// behind the rolling summary.
    pub async fn model_summaries(
        &self,
        user: &UserId,
        session: &SessionId,
        first_shown: Option<u64>,
    ) -> Result<Vec<String>> {
        let digests = self.digests(user, session, first_shown).await?;
        Ok(digests.iter().filter(|digest| digest.model().is_some()).map(entry).collect())
    }

    /// The newest root and the newest window of a session that end before the turns that are shown, because turns that are
    /// shown need no summary beside them. A window that the root covers is left out.
    async fn digests(
        &self,
        user: &UserId,
        session: &SessionId,
        first_shown: Option<u64>,
    ) -> Result<Vec<Summary>> {
        let root = self.root_before(user, session, first_shown).await?;
        let window = self.window_before(user, session, first_shown).await?;
        let covered = root.as_ref().filter(|root| root.model().is_some()).map(|root| root.end_seq);
        let window = window.filter(|window| covered.is_none_or(|covered| covered < window.end_seq));
        Ok(root.into_iter().chain(window).filter(|digest| !digest.text.is_empty()).collect())
    }

    async fn root_before(
        &self,
        user: &UserId,
        session: &SessionId,
        first_shown: Option<u64>,
    ) -> Result<Option<Summary>> {
        let tree = self.newest(user, session, Strategy::Tree, NEWEST_NODES).await?;
        Ok(tree.into_iter().find(|node| node.is_root() && ends_before(node, first_shown)))
    }

    /// The newest window that a model wrote and that ends before the turns that are shown.
    async fn window_before(
        &self,
        user: &UserId,
        session: &SessionId,
        first_shown: Option<u64>,
    ) -> Result<Option<Summary>> {
        let Some(newest) = self.newest(user, session, Strategy::Window, 1).await?.pop() else {
            return Ok(None);
        };
        let is_wanted = |window: &Summary| window.model().is_some() && ends_before(window, first_shown);
        if is_wanted(&newest) || newest.model().is_none() {
            return Ok(Some(newest).filter(is_wanted));
        }
        let shown = newest.end_seq.saturating_sub(first_shown.unwrap_or_default());
        let limit = (shown + 2).min(NEWEST_WINDOWS) as u32;
        let windows = self.newest(user, session, Strategy::Window, limit).await?;
        Ok(windows.into_iter().find(is_wanted))
    }

    async fn newest(
        &self,
        user: &UserId,
        session: &SessionId,
        strategy: Strategy,
        limit: u32,
    ) -> Result<Vec<Summary>> {
        let query = SummaryQuery {
            session: session.clone(),
            strategy: Some(strategy),
            status: Some(SummaryStatus::Completed),
            limit,
        };
        self.recording.store.summaries(user, &query).await
    }

    /// Lets a prompt show the turns after a summary: the gap messages of the sliding-window design.
    async fn show_after(&self, user: &UserId, summary: &Summary, unfolded: &mut Unfolded) -> Result<()> {
        let last = unfolded.turns.last().map(|turn| turn.seq);
        let after = Some(summary.end_seq);
        let query = TurnQuery::Range { session: summary.session.clone(), after, limit: MAX_GAP };
        let mut turns = self.recording.store.turns(user, &query).await?;
        turns.retain(|turn| turn.is_in_conversation() && last.is_some_and(|last| turn.seq <= last));
        unfolded.turns = turns;
        Ok(())
    }
}

/// Whether a summary covers only turns before the first one that is shown.
fn ends_before(summary: &Summary, first_shown: Option<u64>) -> bool {
    first_shown.is_none_or(|first| summary.end_seq < first)
}

/// The rolling summary with the other ones behind it, without the entries that those repeat. They come last, because a
/// prompt that is too long loses the first parts of its summary. What no model wrote joins only if the rolling summary has
/// left messages out.
fn joined(rolling: &str, mut digests: Vec<Summary>, settings: &PromptSettings) -> String {
    let has_gaps = has_left_out(rolling);
    digests.retain(|digest| digest.model().is_some() || has_gaps);
    if digests.is_empty() {
        return rolling.to_owned();
    }
    let rolling = without_said(rolling, digests.iter().map(|digest| digest.text.as_str()), false);
    let others = digests.iter().map(entry).collect::<Vec<_>>().join("\n");
    let most = settings.summary.max_chars;
    let room = most.saturating_sub(others.chars().count()).max(most / ROLLING_SHARE);
    let rolling = condense(&rolling, room);
    if rolling.is_empty() { others } else { format!("{rolling}\n{others}") }
}

/// A summary as an entry among those of the rolling one.
fn entry(summary: &Summary) -> String {
    let Summary { start_seq, end_seq, updated_at, text, .. } = summary;
    let on_one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("[{} summary of messages {} to {}] {on_one_line}", day(*updated_at), start_seq + 1, end_seq + 1)
}
