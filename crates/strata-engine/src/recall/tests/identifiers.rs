//! Identifiers among many that are alike: the item with the one that is asked for comes first.

use std::sync::Arc;

use async_trait::async_trait;

use super::fixture::*;
use crate::NewMemory;
use crate::recall::RecallRequest;
use strata_core::error::Result;
use strata_core::ports::{Embedder, EmbedderCost, Passage};

/// An encoder that takes all texts for the same, except the one that is asked for, which it takes for another.
struct Blurring(&'static str);

#[async_trait]
impl Embedder for Blurring {
    fn model(&self) -> &str {
        "blurring"
    }

    fn cost(&self) -> EmbedderCost {
        EmbedderCost::Local
    }

    async fn embed_passages(&self, passages: &[Passage]) -> Result<Vec<Vec<f32>>> {
        let embed = |text: &str| if text.contains(self.0) { vec![0.5, 0.87] } else { vec![1.0, 0.0] };
        Ok(passages.iter().map(|passage| embed(&passage.text)).collect())
    }

    async fn embed_question(&self, _question: &str) -> Result<Vec<f32>> {
        Ok(vec![1.0, 0.0])
    }
}

/// The best item for a question, with the encoder, among many memories of this form.
async fn best(wanted: &'static str, question: &str, text: impl Fn(u32) -> String) -> String {
    let world = World::new();
    let engine = world.engine.clone().with_embedder(Arc::new(Blurring(wanted)));
    let memories = (0..400).map(|number| NewMemory::new(text(number))).collect();
    engine.memories.add(&world.user, memories).await.unwrap();
    engine.maintenance.maintain_all().await.unwrap();
    let request = RecallRequest { score_threshold: Some(0.0), ..RecallRequest::new(question) };
    let recalled = engine.recall.ask(&world.user, &request).await.unwrap();
    assert!(recalled.vector_hits > 0 || !question.is_ascii(), "the encoder takes part where it can read");
    contents(&recalled).into_iter().next().unwrap_or_default()
}

#[tokio::test]
async fn an_identifier_is_found_first_among_many_alike() {
    let found = best("hinge40217", "which wood does hinge40217 fit", |number| {
        format!("hinge{} fits doors of oak number {}", 40_000 + number, number % 7)
    });
    assert!(found.await.starts_with("hinge40217 "));
    let found = best("QX-7133", "what is the price of QX-7133?", |number| {
        format!("the article QX-{} has a price of {} crowns", 7_000 + number, 10 + number % 9)
    });
    assert!(found.await.contains("QX-7133 "));
    let found = best("5580219", "has order 5580219 been shipped", |number| {
        format!("order {} was shipped on a Tuesday", 5_580_000 + number)
    });
    assert!(found.await.contains("5580219"));
    let found = best("3fa9c0e1", "who wrote commit 3fa9c0e1", |number| {
        format!("commit 3fa9c{:03x} repairs the pump", 0xe1 + number)
    });
    assert!(found.await.contains("3fa9c0e1"));
    let found = best("单号880214", "单号880214的包裹到哪里了", |number| {
        format!("单号{}的包裹已经到了仓库", 880_000 + number)
    });
    assert!(found.await.contains("880214"));
}

#[tokio::test]
async fn years_and_amounts_do_not_count_as_identifiers() {
    let found = best("in 2019", "what did I plant in 2019 near the pond", |number| match number {
        0 => "in 2019 the roof was mended".to_owned(),
        1 => "the willow was planted near the pond".to_owned(),
        number => format!("note {} says nothing", number % 50),
    });
    assert_eq!(found.await, "the willow was planted near the pond");
}

/// An encoder to which each text is the more like another one the less their numbers are alike: the right item is the last.
struct Misleading;

fn angle(text: &str) -> f32 {
    let digits: String = text.chars().filter(char::is_ascii_digit).take(7).collect();
    digits.parse::<f32>().unwrap_or(0.0) % 997.0 / 997.0 * std::f32::consts::TAU
}

#[async_trait]
impl Embedder for Misleading {
    fn model(&self) -> &str {
        "misleading"
    }

    fn cost(&self) -> EmbedderCost {
        EmbedderCost::Local
    }

    async fn embed_passages(&self, passages: &[Passage]) -> Result<Vec<Vec<f32>>> {
        Ok(passages
            .iter()
            .map(|passage| angle(&passage.text))
            .map(|at| vec![1.7, at.cos(), at.sin()])
            .collect())
    }

    async fn embed_question(&self, question: &str) -> Result<Vec<f32>> {
        let at = angle(question);
        Ok(vec![1.7, -at.cos(), -at.sin()])
    }
}

#[tokio::test]
async fn among_a_thousand_alike_each_identifier_is_found_first_by_both_sources() {
    let texts: [fn(u32) -> (String, String); 4] = [
        |number| (format!("recipe{number}"), format!("recipe{number} needs {} eggs and flour", number % 5)),
        |number| {
            (format!("order {number}"), format!("order {number} was shipped by the depot {}", number % 4))
        },
        |number| (format!("{number}ab"), format!("the article {number}ab has a drawer of oak")),
        |number| (format!("QX-{number}"), format!("the ticket QX-{number} waits for an answer")),
    ];
    for index_max_items in [0, 100_000] {
        let world = World::with(|settings| settings.recall.index_max_items = index_max_items);
        let engine = world.engine.clone().with_embedder(Arc::new(Misleading));
        let all = |number: u32| texts[number as usize % texts.len()](12_000 + 7 * number);
        let memories: Vec<NewMemory> = (0..1_000).map(|number| NewMemory::new(all(number).1)).collect();
        for part in memories.chunks(250) {
            engine.memories.add(&world.user, part.to_vec()).await.unwrap();
        }
        engine.maintenance.maintain_all().await.unwrap();
        let mut missed = Vec::new();
        for number in (0..20).map(|question| question * 47 + 11) {
            let (name, text) = all(number);
            let request = RecallRequest {
                score_threshold: Some(0.0),
                ..RecallRequest::new(format!("what do we know about {name}?"))
            };
            let recalled = engine.recall.ask(&world.user, &request).await.unwrap();
            if contents(&recalled).first() != Some(&text) {
                missed.push((name, contents(&recalled).into_iter().next()));
            }
        }
        assert!(missed.is_empty(), "with {index_max_items}: {missed:?}");
    }
}

/// An encoder to which no text resembles a question.
struct Blind;

#[async_trait]
impl Embedder for Blind {
    fn model(&self) -> &str {
        "blind"
    }

    fn cost(&self) -> EmbedderCost {
        EmbedderCost::Local
    }

    async fn embed_passages(&self, passages: &[Passage]) -> Result<Vec<Vec<f32>>> {
        Ok(vec![vec![0.0, 1.0]; passages.len()])
    }

    async fn embed_question(&self, _question: &str) -> Result<Vec<f32>> {
        Ok(vec![1.0, 0.0])
    }
}

#[tokio::test]
async fn a_rare_word_at_the_end_of_a_long_turn_is_found() {
    for length in [40, 4_000] {
        let world = World::new();
        let engine = world.engine.clone().with_embedder(Arc::new(Blind));
        let long =
            |end: &str| format!("{} {end}", "the keel needs grey paint before spring comes".repeat(length));
        let named = long("and the ferry is called Zwaluw");
        for text in [&named, &long("the buoy is green"), &long("the buoy is red"), "the anchor is heavy"] {
            world.say("s", text).await;
        }
        engine.maintenance.maintain_all().await.unwrap();
        let ask = async |question: &str| {
            contents(&engine.recall.ask(&world.user, &RecallRequest::new(question)).await.unwrap())
        };
        assert_eq!(ask("Zwaluw").await, [named.as_str()]);
        assert_eq!(ask("when does the Zwaluw sail?").await, [named]);
        assert!(ask("buoy").await.is_empty(), "two turns have the word");
    }
}
