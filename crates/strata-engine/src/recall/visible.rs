//! What a request may see of a user's items.

use std::collections::HashSet;

use jiff::Timestamp;

use super::request::RecallRequest;
use crate::index::{Doc, Marks, UserIndex};
use strata_core::id::ItemId;
use strata_core::scope::Scope;

/// The items of an index that a request may see.
pub(crate) struct Visible<'a> {
    index: &'a UserIndex,
    request: &'a RecallRequest,
    /// The items that its filter lets through, if it has one.
    passing: Option<&'a HashSet<ItemId>>,
    /// The session asked for. One without any item has no number: then only memories bound to no session remain.
    session: Option<Option<u32>>,
    /// What the marks of an item must be one of, where nothing else decides.
    marks: Option<Marks>,
}

impl<'a> Visible<'a> {
    pub(crate) fn new(
        index: &'a UserIndex,
        request: &'a RecallRequest,
        scope: Scope,
        passing: Option<&'a HashSet<ItemId>>,
    ) -> Self {
        let session = request.session.as_ref().filter(|_| scope == Scope::Session);
        let session = session.map(|session| index.session(session));
        let is_plain = session.is_none() && passing.is_none() && request.as_of.is_none();
        let marks = is_plain.then(|| Marks::of_kinds(request.kinds));
        Self { index, request, passing, session, marks }
    }

    /// Whether it may see an item.
    #[inline]
    pub(crate) fn sees(&self, doc: Doc) -> bool {
        match self.marks {
            Some(marks) => self.index.mark(doc).is_one_of(marks),
            None => self.sees_closer(doc),
        }
    }

    fn sees_closer(&self, doc: Doc) -> bool {
        let document = &self.index.documents[doc as usize];
        // Memories bound to no session belong to all.
        let is_in = |number| document.session == u32::MAX || Some(document.session) == number;
        document.visible(self.request.as_of.map(Timestamp::as_microsecond))
            && document.is_one_of(self.request.kinds)
            && self.session.is_none_or(is_in)
            && self.passing.is_none_or(|passing| passing.contains(&document.id))
    }
}
