//! Which of a user's items a request may see.

use std::collections::HashSet;

use jiff::Timestamp;

use super::request::RecallRequest;
use crate::index::{Doc, Marks, UserIndex};
use strata_core::id::ItemId;
use strata_core::scope::Scope;

/// The items of an index that a request may see.
pub(crate) struct VisibleItems<'a> {
    index: &'a UserIndex,
    request: &'a RecallRequest,
    /// The items that the request's filter accepts; `None` without a filter.
    accepted: Option<&'a HashSet<ItemId>>,
    /// The session asked for. A session without items has no number (`Some(None)`): then only memories that belong to
    /// no session are visible.
    session: Option<Option<u32>>,
    /// The marks that an item needs, if kind and current visibility alone decide: the fast path.
    marks: Option<Marks>,
}

impl<'a> VisibleItems<'a> {
    pub(crate) fn new(
        index: &'a UserIndex,
        request: &'a RecallRequest,
        scope: Scope,
        accepted: Option<&'a HashSet<ItemId>>,
    ) -> Self {
        let session = request.session.as_ref().filter(|_| scope == Scope::Session);
        let session = session.map(|session| index.session(session));
        let is_plain = session.is_none() && accepted.is_none() && request.as_of.is_none();
        let marks = is_plain.then(|| Marks::of_kinds(request.kinds));
        Self { index, request, accepted, session, marks }
    }

    /// Whether the request may see an item.
    #[inline]
    pub(crate) fn contains(&self, doc: Doc) -> bool {
        match self.marks {
            Some(marks) => self.index.mark(doc).is_one_of(marks),
            None => self.check(doc),
        }
    }

    fn check(&self, doc: Doc) -> bool {
        let document = &self.index.documents[doc as usize];
        // Memories that belong to no session are visible in all sessions.
        let is_in = |number| document.session == u32::MAX || Some(document.session) == number;
        document.visible(self.request.as_of.map(Timestamp::as_microsecond))
            && document.is_one_of(self.request.kinds)
            && self.session.is_none_or(is_in)
            && self.accepted.is_none_or(|accepted| accepted.contains(&document.id))
    }
}
