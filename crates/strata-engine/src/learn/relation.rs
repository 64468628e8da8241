//! What a new statement does to the memories near it, by the relations that a reader finds.

use strata_core::ports::{PairReading, Relation};

/// The probability from which a change is applied.
const CHANGE: f32 = 0.5;
/// The probability from which two statements are in dispute.
const DISPUTE: f32 = 0.35;
/// The probability from which a statement repeats a memory.
const REPEAT: f32 = 0.6;

/// What a new statement does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decision {
    /// It is new.
    New,
    /// It says the same as a memory.
    Repeats {
        /// The place of the memory among the candidates.
        place: usize,
    },
    /// It replaces a memory.
    Replaces {
        /// The place of the memory among the candidates.
        place: usize,
        /// The probability.
        certainty: f32,
    },
    /// It ends a memory.
    Ends {
        /// The place of the memory among the candidates.
        place: usize,
        /// The probability.
        certainty: f32,
    },
    /// It may contradict a memory: both stay.
    Disputes {
        /// The place of the memory among the candidates.
        place: usize,
        /// The probability.
        certainty: f32,
    },
}

/// Decides by the relations of a statement to its candidates. The most probable change wins; only one memory, with those
/// that say the same, is changed by a statement.
pub fn decide(relations: &[PairReading]) -> Decision {
    let most = |of: fn(&PairReading) -> f32| {
        let places = relations.iter().enumerate().map(|(place, reading)| (place, of(reading)));
        places.max_by(|(_, a), (_, b)| a.total_cmp(b))
    };
    let (Some((place, certainty)), Some((same, repeats))) =
        (most(PairReading::change), most(|reading| reading.of(Relation::Repeats)))
    else {
        return Decision::New;
    };
    let replaces = relations[place].of(Relation::Replaces) >= relations[place].of(Relation::Ends);
    match (certainty, repeats) {
        (change, _) if change >= CHANGE && replaces => Decision::Replaces { place, certainty },
        (change, _) if change >= CHANGE => Decision::Ends { place, certainty },
        (_, repeats) if repeats >= REPEAT => Decision::Repeats { place: same },
        (change, _) if change >= DISPUTE && replaces => Decision::Disputes { place, certainty },
        _ => Decision::New,
    }
}

/// The parts of a statement that a change does not speak about, given the probability of a change for each part.
/// `None` if the change speaks about the statement as a whole, or about none of its parts.
pub fn untouched(changes: &[f32]) -> Option<Vec<usize>> {
    let touched = changes.iter().any(|change| *change >= CHANGE);
    touched.then(|| (0..changes.len()).filter(|part| changes[*part] < CHANGE).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(repeats: f32, replaces: f32, ends: f32) -> PairReading {
        PairReading([1.0 - repeats - replaces - ends, repeats, replaces, ends])
    }

    #[test]
    fn the_surest_change_wins() {
        let check = |relations: &[PairReading], expected: Decision| assert_eq!(decide(relations), expected);
        check(&[], Decision::New);
        check(&[pair(0.1, 0.1, 0.1)], Decision::New);
        check(&[pair(0.0, 0.5, 0.0), pair(0.0, 0.75, 0.0)], Decision::Replaces { place: 1, certainty: 0.75 });
        check(&[pair(0.0, 0.25, 0.5)], Decision::Ends { place: 0, certainty: 0.75 });
        check(&[pair(0.75, 0.0, 0.0), pair(0.0, 0.0, 0.25)], Decision::Repeats { place: 0 });
        check(&[pair(0.0, 0.375, 0.0)], Decision::Disputes { place: 0, certainty: 0.375 });
        check(&[pair(0.0, 0.0, 0.375)], Decision::New);
    }

    #[test]
    fn parts_without_a_change_stay() {
        assert_eq!(untouched(&[0.9, 0.1]), Some(vec![1]));
        assert_eq!(untouched(&[0.1, 0.1]), None);
        assert_eq!(untouched(&[0.9]), Some(vec![]));
    }
}
