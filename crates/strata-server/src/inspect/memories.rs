//! The list of memories, with search, kinds and states.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use strata_core::UserId;
use strata_core::memory::{Memory, MemoryKind};
use strata_core::store::{Item, ItemKinds, MemoryQuery, MemorySelect, Page, TextMatch, TextQuery};
use strata_core::turn::HiddenReason;
use strum::VariantArray;

use super::clip::{Clipped, Room};
use super::frame::{Asked, Frame, Section, Visitor, day, encode};
use crate::app::App;
use crate::error::ApiError;
use crate::route::Route;

/// The memories on one page.
const PER_PAGE: u32 = 40;

/// The most memories that are looked through for those of a state.
const MAX_LOOK: u32 = 1_000;

/// How far a list goes: a store has to skip what comes before a page. Search and kinds find the rest.
const MAX_OFFSET: u64 = 5_000;

/// The memories that are read at once while they are looked through.
const CHUNK: u32 = 250;

pub(super) fn routes() -> Vec<Route> {
    vec![Route::undocumented("/inspect/memories", get(show)).inspects()]
}

/// Which memories a list shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listing {
    Current,
    Past,
    Deleted,
    Disputed,
    All,
}

impl Listing {
    const ALL: [(Self, &'static str, &'static str); 5] = [
        (Self::Current, "current", "Believed now"),
        (Self::Past, "past", "No longer true"),
        (Self::Disputed, "disputed", "Disputed"),
        (Self::Deleted, "deleted", "Deleted"),
        (Self::All, "all", "All"),
    ];

    fn parse(name: &str) -> Self {
        Self::ALL.iter().find(|(_, known, _)| *known == name).map_or(Self::Current, |(state, ..)| *state)
    }

    fn fits(self, memory: &Memory) -> bool {
        match self {
            Self::Current => memory.is_current(),
            Self::Past => memory.valid_to.is_some(),
            Self::Deleted => memory.hidden.is_some(),
            Self::Disputed => memory.is_current() && memory.notes.disputed.is_some(),
            Self::All => true,
        }
    }
}

/// A memory in a list.
pub(super) struct MemoryRow {
    pub(super) href: String,
    pub(super) text: Clipped,
    pub(super) kind: &'static str,
    pub(super) since: String,
    /// When it was true, in words.
    pub(super) period: String,
    pub(super) badge: Option<(&'static str, &'static str)>,
}

impl MemoryRow {
    pub(super) fn new(frame: &Frame, memory: &Memory, room: &mut Room) -> Self {
        Self {
            href: frame.href(&format!("/inspect/memories/{}", memory.id)),
            text: room.line(&memory.content, 320),
            kind: memory.kind.as_str(),
            since: day(memory.valid_from),
            period: period(memory),
            badge: badge(memory),
        }
    }
}

/// When a statement was true: `since` a day, from one day to another, or `on` a single day.
pub(super) fn period(memory: &Memory) -> String {
    let since = day(memory.valid_from);
    match memory.valid_to.map(day) {
        None => format!("since {since}"),
        Some(until) if until == since => format!("on {since}"),
        Some(until) => format!("{since} – {until}"),
    }
}

/// The state of a memory that is not simply believed: a class of the style sheet, and words.
pub(super) fn badge(memory: &Memory) -> Option<(&'static str, &'static str)> {
    match (memory.hidden.map(|hidden| hidden.reason), memory.valid_to, memory.replaced_by) {
        (Some(HiddenReason::Evicted), ..) => Some(("unknown", "evicted")),
        (Some(HiddenReason::Abandoned), ..) => Some(("unknown", "taken back")),
        (Some(_), ..) => Some(("act", "deleted")),
        (None, Some(_), Some(_)) => Some(("unknown", "replaced")),
        (None, Some(_), None) => Some(("unknown", "ended")),
        (None, None, _) if memory.notes.disputed.is_some() => Some(("act", "disputed")),
        _ => None,
    }
}

#[derive(Template)]
#[template(path = "memories.html")]
struct MemoriesPage {
    frame: Frame,
    q: String,
    kinds: Vec<(&'static str, bool)>,
    states: Vec<(&'static str, &'static str, bool)>,
    memories: Vec<MemoryRow>,
    newest: Option<String>,
    older: Option<String>,
    /// Why the list ends although there are more.
    ended: Option<&'static str>,
    is_filtered: bool,
}

async fn show(State(app): State<App>, visitor: Visitor) -> Result<Response, ApiError> {
    let Visitor { user, frame, asked, .. } = visitor;
    let frame = frame.titled(Section::Memories, "Memories");
    let listing = Listing::parse(&asked.state);
    let kind: Option<MemoryKind> = asked.kind.parse().ok();
    let offset = asked.after.parse().unwrap_or(0_u64).min(MAX_OFFSET);
    let words = asked.q.trim().to_lowercase();
    let fits = |memory: &Memory| listing.fits(memory) && memory.content.to_lowercase().contains(&words);
    let by_words = match (words.is_empty(), listing, offset) {
        (false, Listing::Current, 0) => searched(&app, &user, &words, kind).await?,
        _ => (Vec::new(), Rest::None),
    };
    let (found, rest) = match (words.is_empty(), listing) {
        (true, Listing::Current | Listing::All) => listed(&app, &user, listing, kind, offset).await?,
        _ if !by_words.0.is_empty() => by_words,
        // Parts of words are not in the index. Looking through all memories would take too long.
        _ => looked_for(&app, &user, kind, offset, fits).await?,
    };
    let link = |more: &str| {
        let filter =
            format!("q={}&kind={}&state={}", encode(&asked.q), encode(&asked.kind), encode(&asked.state));
        frame.href_with("/inspect/memories", &(filter + more))
    };
    let mut room = Room::new();
    let page = MemoriesPage {
        q: asked.q.chars().take(200).collect(),
        kinds: MemoryKind::VARIANTS.iter().map(|known| (known.as_str(), Some(*known) == kind)).collect(),
        states: Listing::ALL.iter().map(|(known, name, label)| (*name, *label, *known == listing)).collect(),
        memories: found.iter().map(|memory| MemoryRow::new(&frame, memory, &mut room)).collect(),
        newest: (offset > 0).then(|| link("")),
        older: rest.next().map(|next| link(&format!("&after={next}"))),
        ended: rest.why_ended(),
        is_filtered: is_filtered(&asked),
        frame,
    };
    page.frame.answer(&page)
}

fn is_filtered(asked: &Asked) -> bool {
    !(asked.q.trim().is_empty() && asked.kind.is_empty() && matches!(asked.state.as_str(), "" | "current"))
}

/// The links to the other pages of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// Nothing.
    None,
    /// More, from this place on.
    From(u64),
    /// More, behind the last place that a list goes to.
    TooFar,
    /// Memories that fit the words less well.
    Weaker,
}

impl Rest {
    /// The list goes on at a place, if lists go that far.
    fn at(place: u64) -> Self {
        if place < MAX_OFFSET { Self::From(place) } else { Self::TooFar }
    }

    fn next(self) -> Option<u64> {
        match self {
            Self::From(place) => Some(place),
            Self::None | Self::TooFar | Self::Weaker => None,
        }
    }

    fn why_ended(self) -> Option<&'static str> {
        match self {
            Self::TooFar => Some("Older ones exist. Search for words or choose a kind to find them."),
            Self::Weaker => {
                Some("These fit best, and there are more. Add words or choose a kind to find the others.")
            }
            Self::None | Self::From(_) => None,
        }
    }
}

/// Memories, and the rest of the list.
type Part = (Vec<Memory>, Rest);

/// One page of a list that the store can select.
async fn listed(
    app: &App,
    user: &UserId,
    listing: Listing,
    kind: Option<MemoryKind>,
    offset: u64,
) -> Result<Part, ApiError> {
    let select = match listing {
        Listing::Current => MemorySelect::Current { as_of: None },
        _ => MemorySelect::All,
    };
    // One more than shown tells whether more follow.
    let query = MemoryQuery { kind, page: Page { offset, limit: PER_PAGE + 1 }, ..MemoryQuery::new(select) };
    let mut found = app.engine().memories.list(user, &query).await?;
    let has_more = found.len() > PER_PAGE as usize;
    found.truncate(PER_PAGE as usize);
    Ok((found, if has_more { Rest::at(offset + u64::from(PER_PAGE)) } else { Rest::None }))
}

/// One page of a list that the store cannot select: the memories are looked through, the newest first, until the page is
/// full or many have been looked at.
async fn looked_for(
    app: &App,
    user: &UserId,
    kind: Option<MemoryKind>,
    offset: u64,
    fits: impl Fn(&Memory) -> bool,
) -> Result<Part, ApiError> {
    let mut found = Vec::new();
    let mut place = offset;
    while place < offset + u64::from(MAX_LOOK) {
        let query = MemoryQuery {
            kind,
            page: Page { offset: place, limit: CHUNK },
            ..MemoryQuery::new(MemorySelect::All)
        };
        let chunk = app.engine().memories.list(user, &query).await?;
        let is_last = chunk.len() < CHUNK as usize;
        for memory in chunk {
            if fits(&memory) {
                if found.len() == PER_PAGE as usize {
                    return Ok((found, Rest::at(place)));
                }
                found.push(memory);
            }
            place += 1;
        }
        if is_last {
            return Ok((found, Rest::None));
        }
    }
    Ok((found, Rest::at(place)))
}

/// The current memories that hold the words, best first.
async fn searched(app: &App, user: &UserId, words: &str, kind: Option<MemoryKind>) -> Result<Part, ApiError> {
    let query = TextQuery {
        text: words.chars().take(200).collect(),
        matching: TextMatch::Words,
        session: None,
        kinds: ItemKinds::MEMORIES,
        as_of: None,
        keep: None,
        limit: PER_PAGE * 3,
    };
    let hits = app.engine().store().search(user, &query).await?;
    let is_full = hits.len() >= query.limit as usize;
    let memories = hits.into_iter().filter_map(|hit| match hit.item {
        Item::Memory(memory) => Some(memory),
        Item::Turn(_) | Item::Summary(_) => None,
    });
    let fitting = memories.filter(|memory| kind.is_none_or(|kind| memory.kind == kind));
    let mut fitting: Vec<Memory> = fitting.collect();
    let has_more = is_full || fitting.len() > PER_PAGE as usize;
    fitting.truncate(PER_PAGE as usize);
    Ok((fitting, if has_more { Rest::Weaker } else { Rest::None }))
}
