//! Inverted lists by number: the lists of a loaded index in one allocation, and later additions in lists of their own.

/// Lists of values by number. Each list is in the order of insertion.
pub(crate) struct Lists<T> {
    /// All lists of a loaded index, one after the other.
    loaded: Vec<T>,
    /// The position of each list in `loaded`.
    spans: Vec<Span>,
    /// Values that were added after loading.
    added: Vec<Vec<T>>,
    count: usize,
}

#[derive(Clone, Copy)]
struct Span {
    start: usize,
    length: usize,
}

impl<T> Default for Lists<T> {
    fn default() -> Self {
        Self { loaded: Vec::new(), spans: Vec::new(), added: Vec::new(), count: 0 }
    }
}

/// One list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct List<'a, T> {
    loaded: &'a [T],
    added: &'a [T],
}

impl<'a, T> List<'a, T> {
    pub(crate) const EMPTY: Self = Self { loaded: &[], added: &[] };

    pub(crate) fn len(self) -> usize {
        self.loaded.len() + self.added.len()
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = &'a T> {
        self.loaded.iter().chain(self.added)
    }
}

impl<T: Copy + Default> Lists<T> {
    /// Builds the lists of `numbers` numbers in one allocation: one pass counts, a second one fills.
    pub(crate) fn lay_out(numbers: usize, things: impl Iterator<Item = (u32, T)> + Clone) -> Self {
        let mut spans = vec![Span { start: 0, length: 0 }; numbers];
        for (number, _) in things.clone() {
            spans[number as usize].length += 1;
        }
        let mut start = 0;
        for span in &mut spans {
            span.start = start;
            start += std::mem::take(&mut span.length);
        }
        let mut loaded = vec![T::default(); start];
        for (number, thing) in things {
            let span = &mut spans[number as usize];
            loaded[span.start + span.length] = thing;
            span.length += 1;
        }
        Self { count: loaded.len(), loaded, spans, added: Vec::new() }
    }

    pub(crate) fn add(&mut self, number: u32, thing: T) {
        let at = number as usize;
        if self.added.len() <= at {
            self.added.resize_with(at + 1, Vec::new);
        }
        self.added[at].push(thing);
        self.count += 1;
    }

    /// Removes the value for which `compare` returns `Equal`. The list must be sorted in the order of `compare`.
    pub(crate) fn remove(&mut self, number: u32, compare: impl Fn(&T) -> std::cmp::Ordering) {
        let at = number as usize;
        if let Some(span) = self.spans.get_mut(at) {
            let list = &mut self.loaded[span.start..span.start + span.length];
            if let Ok(place) = list.binary_search_by(&compare) {
                list.copy_within(place + 1.., place);
                span.length -= 1;
                self.count -= 1;
                return;
            }
        }
        if let Some(list) = self.added.get_mut(at)
            && let Ok(place) = list.binary_search_by(compare)
        {
            list.remove(place);
            self.count -= 1;
        }
    }

    #[inline]
    pub(crate) fn get(&self, number: u32) -> List<'_, T> {
        let at = number as usize;
        let loaded = self.spans.get(at).map(|span| &self.loaded[span.start..span.start + span.length]);
        let added = self.added.get(at).map(Vec::as_slice);
        List { loaded: loaded.unwrap_or_default(), added: added.unwrap_or_default() }
    }

    /// The approximate size of the lists in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let added = self.count.saturating_sub(self.loaded.len()) * size_of::<T>() * 3 / 2;
        self.loaded.len() * size_of::<T>()
            + self.spans.len() * size_of::<Span>()
            + self.added.len() * size_of::<Vec<T>>()
            + added
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lists_equal_those_of_a_map(
            things in proptest::collection::vec(0_u32..8, 0..60),
            loaded in any::<prop::sample::Index>(),
            removed in proptest::collection::vec((0_u32..8, 0_u32..60), 0..40),
        ) {
            let things: Vec<(u32, u32)> = things.into_iter().zip(0..).collect();
            let (first, later) = things.split_at(loaded.index(things.len() + 1));
            let mut lists = Lists::lay_out(8, first.iter().copied());
            let mut expected: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            for (number, thing) in &things {
                expected.entry(*number).or_default().push(*thing);
            }
            for (number, thing) in later {
                lists.add(*number, *thing);
            }
            for (number, thing) in removed {
                lists.remove(number, |other| other.cmp(&thing));
                if let Some(list) = expected.get_mut(&number) {
                    list.retain(|other| *other != thing);
                }
            }
            for number in 0..9 {
                let list: Vec<u32> = lists.get(number).iter().copied().collect();
                prop_assert_eq!(lists.get(number).len(), list.len());
                prop_assert_eq!(list, expected.get(&number).cloned().unwrap_or_default());
            }
            prop_assert_eq!(lists.count, expected.values().map(Vec::len).sum::<usize>());
        }
    }
}
