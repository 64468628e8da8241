//! The plan for new statements and the known memories that are similar to them.

/// How a todo ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TodoEnd {
    /// It was done.
    Done,
    /// It was dropped.
    Dropped,
}

/// The decision about a known memory. `by` is the index of the new statement that causes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It stays unchanged (NONE).
    Keep,
    /// The statement says the same in a new form and replaces it (UPDATE).
    Update {
        /// The statement.
        by: usize,
    },
    /// The statement contradicts it (DELETE).
    Delete {
        /// The statement.
        by: usize,
    },
    /// The statement ends this todo (DELETE in the memory-proxy design).
    End {
        /// The statement.
        by: usize,
        /// The way in which it ends.
        how: TodoEnd,
    },
}

impl Fate {
    /// The statement that ends the memory's validity, if there is one.
    pub fn because_of(self) -> Option<usize> {
        match self {
            Self::Keep => None,
            Self::Update { by } | Self::Delete { by } | Self::End { by, .. } => Some(by),
        }
    }
}

/// The decision about a new statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Novelty {
    /// It becomes a memory (ADD, or the new text of an UPDATE).
    Add,
    /// The known memory at this index says the same (NONE).
    Duplicate {
        /// The index of the known memory.
        of: usize,
    },
    /// An earlier statement of the same plan says the same (NONE).
    Repeated {
        /// The index of that statement.
        of: usize,
    },
}

/// A complete plan: one decision for every known memory and every new statement, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The decision about each known memory.
    pub known: Vec<Fate>,
    /// The decision about each new statement.
    pub new: Vec<Novelty>,
}

impl Plan {
    /// A plan that adds all statements and changes nothing else. It is used if no comparison is possible.
    pub fn add_all(known: usize, new: usize) -> Self {
        Self { known: vec![Fate::Keep; known], new: vec![Novelty::Add; new] }
    }

    /// Checks that this is a complete plan for the given numbers of memories and statements, and that it loses nothing:
    /// a statement that ends a memory is added, and a duplicate repeats something that stays.
    pub fn check(&self, known: usize, new: usize) -> Result<(), String> {
        if self.known.len() != known || self.new.len() != new {
            return Err(format!(
                "the plan names {} memories and {} statements; there are {known} and {new}",
                self.known.len(),
                self.new.len()
            ));
        }
        for by in self.known.iter().filter_map(|fate| fate.because_of()) {
            if self.new.get(by) != Some(&Novelty::Add) {
                return Err(format!("a memory ends because of statement {by}, which is not added"));
            }
        }
        for (place, novelty) in self.new.iter().enumerate() {
            let stays = match novelty {
                Novelty::Add => true,
                Novelty::Duplicate { of } => self.known.get(*of) == Some(&Fate::Keep),
                Novelty::Repeated { of } => *of < place && self.new[*of] == Novelty::Add,
            };
            if !stays {
                return Err(format!("statement {place} repeats something that does not stay"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_that_would_lose_something_is_refused() {
        let check = |known: &[Fate], new: &[Novelty]| {
            Plan { known: known.to_vec(), new: new.to_vec() }.check(1, 1).is_ok()
        };
        assert!(check(&[Fate::Keep], &[Novelty::Add]));
        assert!(check(&[Fate::Update { by: 0 }], &[Novelty::Add]));
        assert!(check(&[Fate::Keep], &[Novelty::Duplicate { of: 0 }]));
        assert!(!check(&[Fate::Delete { by: 0 }], &[Novelty::Duplicate { of: 0 }]), "neither would stay");
        assert!(!check(&[Fate::Update { by: 1 }], &[Novelty::Add]), "no such statement");
        assert!(!check(&[Fate::Keep], &[Novelty::Duplicate { of: 1 }]), "no such memory");
        assert!(!check(&[Fate::Keep], &[Novelty::Repeated { of: 0 }]), "of itself");
        assert!(!check(&[], &[Novelty::Add]), "not enumerated");
    }
}
