//! Moves of home: the rules know what such a sentence is about, and the reader whether its value is a place.

use crate::learn::{Standing, Statement};
use strata_core::error::Result;
use strata_core::ports::{PairReading, Reader, Relation, SentencePair};
use strata_language::rules::{HomeMove, home_move};

/// The probability that a move to a known city replaces the home.
const KNOWN: f32 = 0.9;

/// Corrects the relations of a statement in which the speaker moves to the memories that say where the speaker lives.
/// `said` has these memories as they were said.
pub(super) async fn settle_moves(
    reader: &dyn Reader,
    statement: &Statement,
    said: &[String],
    relations: &mut [PairReading],
) -> Result<()> {
    if statement.standing() == Standing::AsSureChange {
        return Ok(());
    }
    for (remembered, relation) in said.iter().zip(relations) {
        if let Some(found) = home_move(remembered, statement.said()) {
            *relation = settled(reader, *relation, found).await?;
        }
    }
    Ok(())
}

async fn settled(reader: &dyn Reader, relation: PairReading, found: HomeMove) -> Result<PairReading> {
    let plain = match found {
        HomeMove::IsElsewhere => return Ok(PairReading::default()),
        HomeMove::Replaces => replaces(),
        HomeMove::Perhaps { remembered, new } => {
            let pair = SentencePair { remembered, before: String::new(), new };
            reader.relations(&[pair]).await?.into_iter().next().unwrap_or(relation)
        }
    };
    Ok(if plain.change() > relation.change() { plain } else { relation })
}

fn replaces() -> PairReading {
    let mut reading = PairReading::default();
    reading.0[Relation::Replaces as usize] = KNOWN;
    reading
}
