//! The replacement of the turns that a prompt no longer shows: the rolling summary, the window's summary with
//! the turns after it, or the root of the tree.
//!
//! The rolling summary covers every turn in its own words. A model's summaries say the same in fewer words, so they join
//! it where they exist: what was paid for is shown. The root of a tree without a model joins it once the rolling summary
//! has left messages out.

use super::Prompting;
use crate::line::day;
use crate::prompt::{History, PromptSettings, condense, has_left_out};
use crate::recording::Unfolded;
use strata_core::error::Result;
use strata_core::id::{SessionId, UserId};
use strata_core::store::{SummaryQuery, TurnQuery};
use strata_core::summary::{Strategy, Summary, SummaryStatus};

/// The most turns that a prompt shows behind a window's summary or a root.
const MAX_GAP: u32 = 512;

/// The number of a tree's newest rows among which its root is.
const NEWEST_NODES: u32 = 16;

/// The least share of the summary that the rolling part keeps: a half.
const ROLLING_SHARE: usize = 2;

impl Prompting {
    /// The text for the turns before those that the prompt shows. With [`History::Window`] and [`History::Tree`] the
    /// prompt shows the turns that their summary does not cover, so `unfolded` gets those. `shows_turns` is false if the
    /// client shows messages of its own instead.
    pub(super) async fn history(
        &self,
        user: &UserId,
        session: &SessionId,
        unfolded: &mut Unfolded,
        shows_turns: bool,
    ) -> Result<String> {
        let settings = &self.prompts.settings;
        let rolling = unfolded.text(settings);
        if unfolded.shows_all() || settings.history == History::Rolling {
            return Ok(rolling);
        }
        let window = self.newest(user, session, Strategy::Window, 1).await?.pop();
        let tree = self.newest(user, session, Strategy::Tree, NEWEST_NODES).await?;
        let root = tree.into_iter().find(Summary::is_root);
        let chosen = match settings.history {
            History::Window => window,
            History::Tree => root,
            History::Auto | History::Rolling => {
                // Turns that are shown need no summary beside them.
                let first = unfolded.turns.first().filter(|_| shows_turns).map(|turn| turn.seq);
                let window = window.filter(|window| first.is_none_or(|first| window.start_seq < first));
                return Ok(joined(&rolling, root, window, settings));
            }
        };
        // While there is no such summary, the rolling one stands for the old turns.
        let Some(summary) = chosen else { return Ok(rolling) };
        self.show_after(user, &summary, unfolded).await?;
        Ok(entry(&summary))
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
        turns.retain(|turn| turn.hidden.is_none() && last.is_some_and(|last| turn.seq <= last));
        unfolded.turns = turns;
        Ok(())
    }
}

/// The rolling summary with the other ones behind it. They come last, because a prompt that is too long loses the first
/// parts of its summary.
fn joined(
    rolling: &str,
    root: Option<Summary>,
    window: Option<Summary>,
    settings: &PromptSettings,
) -> String {
    let root = root.filter(|root| root.model().is_some() || has_left_out(rolling));
    let window = window.filter(|window| window.model().is_some());
    let others: Vec<String> =
        [root, window].iter().flatten().filter(|other| !other.text.is_empty()).map(entry).collect();
    let others = others.join("\n");
    if others.is_empty() {
        return rolling.to_owned();
    }
    let most = settings.summary.max_chars;
    let room = most.saturating_sub(others.chars().count()).max(most / ROLLING_SHARE);
    let rolling = condense(rolling, room);
    if rolling.is_empty() { others } else { format!("{rolling}\n{others}") }
}

/// A summary as an entry among those of the rolling one.
fn entry(summary: &Summary) -> String {
    let Summary { start_seq, end_seq, updated_at, text, .. } = summary;
    let on_one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("[{} summary of messages {} to {}] {on_one_line}", day(*updated_at), start_seq + 1, end_seq + 1)
}
