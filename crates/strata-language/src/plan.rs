//! What becomes of new statements and of the memories that stand near them.

/// How a todo ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TodoEnd {
    /// It was done.
    Done,
    /// It is not to be done any more.
    Dropped,
}

/// What becomes of a memory that is known. The index is that of the new statement because of which it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It stays as it is (NONE).
    Keep,
    /// The statement says the same thing anew and takes its place (UPDATE).
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
        /// How.
        how: TodoEnd,
    },
}

impl Fate {
    /// The statement that ends the memory's validity, if one does.
    pub fn because_of(self) -> Option<usize> {
        match self {
            Self::Keep => None,
            Self::Update { by } | Self::Delete { by } | Self::End { by, .. } => Some(by),
        }
    }
}

/// What becomes of a new statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Novelty {
    /// It becomes a memory (ADD, or the new text of an UPDATE).
    Add,
    /// The known memory at this place says it already (NONE).
    Duplicate {
        /// The memory's place among the known ones.
        of: usize,
    },
    /// A statement before it in the same plan says it already (NONE).
    Repeated {
        /// That statement.
        of: usize,
    },
}

/// A complete enumeration: one entry for every known memory and every new statement, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// What becomes of each known memory.
    pub known: Vec<Fate>,
    /// What becomes of each new statement.
    pub new: Vec<Novelty>,
}

impl Plan {
    /// All statements are added and nothing else changes: what is done when nobody can judge.
    pub fn add_all(known: usize, new: usize) -> Self {
        Self { known: vec![Fate::Keep; known], new: vec![Novelty::Add; new] }
    }

    /// Whether this is a complete plan for so many known memories and new statements that loses nothing: whatever ends a
    /// memory is itself added, and a duplicate is one of something that stays.
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
