//! Vectors: one per model and item.

use super::fixture::*;
use crate::id::{ItemId, MemoryId, SummaryId, TurnId};
use crate::store::{Change, Forget, Hit, ItemKinds, Store, VectorQuery};
use crate::vector::{ItemVector, Vector};

fn vector(item: ItemId, model: &str, components: &[f32]) -> ItemVector {
    ItemVector { item, model: model.to_owned(), vector: Vector::quantise(components) }
}

/// Turns, memories and summaries have vectors; items without a vector, and other models, are left out.
pub async fn keeps_vectors_of_every_kind_of_item(store: &dyn Store) {
    let turns = append(store, &ann(), "s", &["one", "two"]).await;
    let made = summary("s", 0);
    let items = [
        ItemId::Turn(turns[0]),
        ItemId::Memory(add(store, &ann(), memory("one")).await),
        ItemId::Summary(made.id),
    ];
    apply(store, &ann(), Change::PutSummary(Box::new(made))).await;
    let long: Vec<f32> = (0..1_024).map(|number| (number as f32).sin()).collect();
    let mut vectors: Vec<_> = items.iter().map(|item| vector(*item, "model:1", &long)).collect();
    vectors[1].vector = Vector::quantise(&[0.0, 0.0]);
    apply(store, &ann(), Change::PutVectors(vectors.clone())).await;
    let asked = [items[2], ItemId::Turn(turns[1]), items[0], ItemId::Turn(TurnId(fresh())), items[1]];
    let mut read = vectors_of(store, &ann(), "model:1", &asked).await;
    read.sort_by_key(|vector| vector.item);
    vectors.sort_by_key(|vector| vector.item);
    assert_eq!(read, vectors);
    assert!(vectors_of(store, &ann(), "model", &asked).await.is_empty());
}

/// A vector replaces the item's former one of the same model and leaves those of other models alone, of any dimension.
pub async fn replaces_the_vector_of_the_same_model(store: &dyn Store) {
    let item = ItemId::Turn(append(store, &ann(), "s", &["one"]).await[0]);
    let (small, large) = (vector(item, "small", &[1.0, 2.0]), vector(item, "large", &[1.0; 8]));
    apply(store, &ann(), Change::PutVectors(vec![small, large.clone()])).await;
    let replaced = vector(item, "small", &[3.0, 1.0, 1.0]);
    apply(store, &ann(), Change::PutVectors(vec![replaced.clone()])).await;
    assert_eq!(vectors_of(store, &ann(), "small", &[item]).await, [replaced]);
    assert_eq!(vectors_of(store, &ann(), "large", &[item]).await, [large]);
}

/// Items that do not exist are skipped; the others of the same change are stored.
pub async fn passes_over_items_that_do_not_exist(store: &dyn Store) {
    let item = ItemId::Turn(append(store, &ann(), "s", &["one"]).await[0]);
    let unknown = [
        ItemId::Turn(TurnId(fresh())),
        ItemId::Memory(MemoryId(fresh())),
        ItemId::Summary(SummaryId(fresh())),
        ItemId::Memory(MemoryId(item.uuid())),
    ];
    let vectors = unknown.iter().chain([&item]).map(|item| vector(*item, "model", &[1.0])).collect();
    apply(store, &ann(), Change::PutVectors(vectors)).await;
    assert_eq!(vectors_of(store, &ann(), "model", &[item]).await.len(), 1);
    assert!(vectors_of(store, &ann(), "model", &unknown).await.is_empty());
}

/// A store with a vector index of its own finds visible items of the model and the kinds asked for, nearest first.
pub async fn finds_the_nearest_items_if_it_has_an_index(store: &dyn Store) {
    let turns = append(store, &ann(), "s", &["one", "two", "three"]).await;
    let other = append(store, &ann(), "other", &["four"]).await[0];
    let fact = add(store, &ann(), memory("five")).await;
    let vectors = vec![
        vector(ItemId::Turn(turns[0]), "model", &[1.0, 0.1, 0.0]),
        vector(ItemId::Turn(turns[1]), "model", &[1.0, 1.0, 0.0]),
        vector(ItemId::Turn(turns[2]), "model", &[-1.0, 0.0, 0.0]),
        vector(ItemId::Turn(other), "model", &[1.0, 0.5, 0.0]),
        vector(ItemId::Memory(fact), "model", &[1.0, 0.2, 0.0]),
        vector(ItemId::Turn(turns[2]), "another model", &[1.0, 0.0]),
    ];
    apply(store, &ann(), Change::PutVectors(vectors)).await;
    let query = VectorQuery {
        model: "model".to_owned(),
        vector: Vector::quantise(&[1.0, 0.0, 0.0]),
        session: None,
        kinds: ItemKinds::ALL,
        as_of: None,
        limit: 10,
    };
    let Some(hits) = store.nearest(&ann(), &query).await.unwrap() else { return };
    let ids = |hits: &[Hit]| hits.iter().map(|hit| hit.item.id()).collect::<Vec<_>>();
    let (first, second, other) = (ItemId::Turn(turns[0]), ItemId::Turn(turns[1]), ItemId::Turn(other));
    let fact = ItemId::Memory(fact);
    assert_eq!(ids(&hits), [first, fact, other, second]);
    assert!((hits[3].score - 0.5_f32.sqrt()).abs() < 0.02, "{}", hits[3].score);
    let found = async |query: VectorQuery| ids(&store.nearest(&ann(), &query).await.unwrap().unwrap());
    assert_eq!(found(VectorQuery { limit: 2, ..query.clone() }).await, [first, fact]);
    let of_session = VectorQuery { session: Some(session("s")), limit: 2, ..query.clone() };
    assert_eq!(found(of_session).await, [first, fact]);
    let memories = VectorQuery { kinds: ItemKinds::MEMORIES, limit: 1, ..query.clone() };
    assert_eq!(found(memories).await, [fact]);
    assert!(store.nearest(&bob(), &query).await.unwrap().unwrap().is_empty());
    apply(store, &ann(), Change::HideTurns { ids: vec![turns[0]], hidden: deleted(1) }).await;
    apply(store, &ann(), Change::Forget(Forget::Session(session("other")))).await;
    assert_eq!(found(query).await, [fact, second]);
}
