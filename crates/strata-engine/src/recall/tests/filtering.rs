//! Recall with a filter, for both sources of candidates.

use serde_json::json;

use super::fixture::*;
use crate::NewMemory;
use crate::filter::Filter;
use crate::recall::RecallRequest;
use strata_core::id::UserId;
use strata_core::scope::Scope;
use strata_core::store::{ItemKinds, MemoryQuery, MemorySelect, Page};

fn filtered(query: &str, filter: serde_json::Value) -> RecallRequest {
    let filter = Filter::from_json(filter.as_object().unwrap()).unwrap();
    RecallRequest { filter: Some(filter), limit: Some(3), ..RecallRequest::new(query) }
}

/// A user with many memories of one trip, some of them with metadata, and one turn.
async fn world(world: World) -> World {
    let trips = (0..80).map(|number| {
        let metadata = json!({ "marked": number % 20 == 19, "number": number });
        let metadata = metadata.as_object().unwrap().clone().into();
        NewMemory { metadata, ..NewMemory::new(format!("a trip by train, number {number}")) }
    });
    world.engine.memories.add(&world.user, trips.collect()).await.unwrap();
    world.say("s", "a trip by train, said").await;
    let everybody = vec![NewMemory::new("a trip by train, for everybody")];
    world.engine.memories.add(&UserId::global(), everybody).await.unwrap();
    world
}

#[tokio::test]
async fn a_filter_finds_the_wanted_number_of_rare_items() {
    let plain = world(World::new()).await;
    // Without an index in memory, the store's own index answers.
    let bare = world(World::with(|settings| settings.recall.index_max_items = 0)).await;
    for world in [plain, bare] {
        let found = contents(&world.recall(&filtered("trip train", json!({"marked": true}))).await);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(
            found.iter().all(|text| ["19", "39", "59", "79"].iter().any(|end| text.ends_with(end))),
            "{found:?}"
        );
        let found = contents(&world.recall(&filtered("trip train", json!({"number": 42}))).await);
        assert_eq!(found, ["a trip by train, number 42"]);
        let found = contents(&world.recall(&filtered("trip train", json!({"kind": "turn"}))).await);
        assert_eq!(found, ["a trip by train, said"]);
        let memories = ItemKinds::MEMORIES;
        let request =
            RecallRequest { kinds: memories, ..filtered("trip train", json!({"number": {"gt": 78}})) };
        assert_eq!(contents(&world.recall(&request).await), ["a trip by train, number 79"]);
        assert!(world.recall(&filtered("trip train", json!({"number": 99}))).await.items.is_empty());
        assert!(
            world.recall(&filtered("xyzzy", json!({"number": 99}))).await.items.is_empty(),
            "no fallback"
        );
    }
}

#[tokio::test]
async fn a_filter_never_reaches_another_user() {
    let world = world(World::new()).await;
    let other = user("mallory");
    let secret = vec![NewMemory::new("a trip by train, of mallory")];
    world.engine.memories.add(&other, secret).await.unwrap();
    for filter in [
        json!({"user_id": "mallory"}),
        json!({"OR": [{"user_id": "mallory"}, {"number": 1}]}),
        json!({"NOT": [{"user_id": "ann"}]}),
        json!({"user_id": {"in": ["ann", "mallory"]}, "memory": {"contains": "mallory"}}),
        json!({"AND": [{"user_id": "*"}, {"memory": {"icontains": "MALLORY"}}]}),
    ] {
        for scope in [Scope::User, Scope::Global] {
            let request =
                RecallRequest { scope: Some(scope), ..filtered("trip train mallory", filter.clone()) };
            let found = contents(&world.recall(&request).await);
            assert!(found.iter().all(|text| !text.contains("mallory")), "{filter} {found:?}");
        }
    }
    let own =
        RecallRequest { scope: Some(Scope::Global), ..filtered("everybody", json!({"user_id": "ann"})) };
    assert!(contents(&world.recall(&own).await).iter().all(|text| !text.contains("everybody")));
}

#[tokio::test]
async fn a_filtered_search_keeps_its_trace() {
    let world = world(World::new()).await;
    let recalled = world.recall(&filtered("trip train", json!({"number": 42}))).await;
    assert_eq!(recalled.trace, None, "the request asks for no trace");
    let trace = world.engine.requests.trace(&world.user, recalled.request_id).await.unwrap();
    assert_eq!(trace.candidates.len(), 1);
}

#[tokio::test]
async fn a_filtered_list_is_paged() {
    let world = world(World::new()).await;
    let filter = Filter::from_json(json!({"number": {"gte": 70}}).as_object().unwrap()).unwrap();
    let query = |offset| MemoryQuery {
        page: Page { offset, limit: 6 },
        ..MemoryQuery::new(MemorySelect::Current { as_of: None })
    };
    let mut seen = Vec::new();
    for (offset, expected) in [(0, 6), (6, 4), (12, 0)] {
        let page = world.engine.memories.filtered(&world.user, &query(offset), &filter).await.unwrap();
        assert_eq!(page.len(), expected);
        seen.extend(page.into_iter().map(|memory| memory.metadata["number"].as_u64().unwrap()));
    }
    seen.sort_unstable();
    assert_eq!(seen, (70..80).collect::<Vec<u64>>());
}
