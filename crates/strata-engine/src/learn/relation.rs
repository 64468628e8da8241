//! Decides how a new statement changes the memories near it, by the relations that a reader finds.

use strata_core::ports::{PairReading, Relation};

use super::Standing;

/// The probability from which a change is applied. At 0.5 fewer old values stay, and as many true ones are lost.
const CHANGE: f32 = 0.6;
/// The same for a sentence that is no memory itself.
const SURE: f32 = 0.9;
/// The probability from which two statements are in dispute.
const DISPUTE: f32 = 0.4;
/// The probability from which a statement repeats a memory.
const REPEAT: f32 = 0.6;
/// The probability from which a change speaks about a part of a memory.
const OF_PART: f32 = 0.5;
/// The probability up to which the rest of a memory is not spoken about.
const OF_REST: f32 = 0.3;

/// The effect of a new statement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Decision {
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
pub(crate) fn decide(relations: &[PairReading], standing: Standing) -> Decision {
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
    let least = if standing == Standing::AsSureChange { SURE } else { CHANGE };
    match (certainty, repeats) {
        (change, _) if change >= least && replaces => Decision::Replaces { place, certainty },
        (change, _) if change >= least => Decision::Ends { place, certainty },
        (_, repeats) if repeats >= REPEAT => Decision::Repeats { place: same },
        (change, _) if change >= DISPUTE && standing == Standing::Kept => {
            Decision::Disputes { place, certainty }
        }
        _ => Decision::New,
    }
}

/// The parts of a memory that a change does not speak about. `parts` has the probability of a change for each part, and
/// `without` the probability for the memory without that part; it is asked only if no part alone is touched. `None` if
/// the change speaks about the memory as a whole.
pub(crate) fn untouched(parts: &[f32], without: &[f32]) -> Option<Vec<usize>> {
    let keep = |touched: Vec<bool>| (0..touched.len()).filter(|part| !touched[*part]).collect();
    if is_touched(parts) {
        return Some(keep(parts.iter().map(|change| *change >= OF_PART).collect()));
    }
    let explains = |change: &f32| *change < OF_PART;
    without.iter().any(explains).then(|| keep(without.iter().map(explains).collect()))
}

/// Whether a change speaks about one of the parts of a memory.
pub(crate) fn is_touched(parts: &[f32]) -> bool {
    parts.iter().any(|change| *change >= OF_PART)
}

/// Whether the rest of a memory still holds and is worth a memory of its own, given the probability of a change.
pub(crate) fn rest_holds(change: f32, worth: f32) -> bool {
    change < OF_REST && worth >= OF_PART
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(repeats: f32, replaces: f32, ends: f32) -> PairReading {
        PairReading([1.0 - repeats - replaces - ends, repeats, replaces, ends])
    }

    #[test]
    fn the_surest_change_wins() {
        let check = |relations: &[PairReading], expected: Decision| {
            assert_eq!(decide(relations, Standing::Kept), expected)
        };
        check(&[], Decision::New);
        check(&[pair(0.1, 0.1, 0.1)], Decision::New);
        check(&[pair(0.0, 0.5, 0.0), pair(0.0, 0.75, 0.0)], Decision::Replaces { place: 1, certainty: 0.75 });
        check(&[pair(0.0, 0.25, 0.5)], Decision::Ends { place: 0, certainty: 0.75 });
        check(&[pair(0.75, 0.0, 0.0), pair(0.0, 0.0, 0.25)], Decision::Repeats { place: 0 });
        check(&[pair(0.0, 0.5, 0.0)], Decision::Disputes { place: 0, certainty: 0.5 });
        check(&[pair(0.0, 0.0, 0.5)], Decision::Disputes { place: 0, certainty: 0.5 });
        check(&[pair(0.0, 0.0, 0.3)], Decision::New);
        let likely = [pair(0.0, 0.75, 0.0)];
        assert_eq!(
            decide(&likely, Standing::AsSureChange),
            Decision::New,
            "small talk changes what it surely changes"
        );
    }

    #[test]
    fn parts_without_a_change_stay() {
        assert_eq!(untouched(&[0.9, 0.1], &[]), Some(vec![1]));
        assert_eq!(untouched(&[0.1, 0.1], &[0.9, 0.9]), None);
        assert_eq!(untouched(&[0.1, 0.1], &[0.9, 0.2]), Some(vec![0]));
        assert!(rest_holds(0.1, 0.9) && !rest_holds(0.4, 0.9) && !rest_holds(0.1, 0.2));
    }
}
