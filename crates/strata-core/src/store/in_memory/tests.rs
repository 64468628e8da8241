use std::sync::Arc;

use super::*;

async fn store() -> (Arc<dyn Store>, ()) {
    (Arc::new(InMemoryStore::new()), ())
}

crate::conformance_suite!(store);

/// Random change sets over so few ids that many of them fail.
mod properties {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use crate::id::{ItemId, JobId, MemoryId, SummaryId, TurnId};
    use crate::state::State;
    use crate::store::conformance::fixture::{
        ann, appending, at, bob, deleted, found_sorted, job, memory, session, similar, summary, turn,
        vectors_of, words,
    };
    use crate::store::{Change, Forget, MemorySelect};
    use crate::summary::SummaryStatus;
    use crate::vector::{ItemVector, Vector};

    const SESSIONS: [&str; 3] = ["a", "b", "c"];
    const WORDS: [&str; 4] = ["tea", "green tea", "coffee", "西湖"];

    fn id(pool: u64, number: usize) -> Uuid {
        Uuid::from_u64_pair(pool, number as u64)
    }

    fn change() -> impl Strategy<Value = Change> {
        let name = prop::sample::select(&SESSIONS[..]);
        let content = prop::sample::select(&WORDS[..]);
        let turn_id = (0..12_usize).prop_map(|number| TurnId(id(1, number)));
        let memory_id = (0..6_usize).prop_map(|number| MemoryId(id(2, number)));
        let new_turn = (turn_id.clone(), content.clone())
            .prop_map(|(id, content)| crate::turn::NewTurn { id, ..turn(content) });
        let hidden = prop::option::of(Just(())).prop_map(|hidden| hidden.and_then(|()| deleted(3)));
        let status = prop::sample::select(vec![SummaryStatus::Processing, SummaryStatus::Completed]);
        prop_oneof![
            6 => (name.clone(), proptest::collection::vec(new_turn, 1..3))
                .prop_map(|(name, turns)| appending(name, turns)),
            2 => (proptest::collection::vec(turn_id.clone(), 1..3), hidden.clone())
                .prop_map(|(ids, hidden)| Change::HideTurns { ids, hidden }),
            4 => (memory_id.clone(), content.clone(), prop::option::of(name.clone())).prop_map(|(id, content, name)| {
                Change::AddMemory(Box::new(Memory { id, session: name.map(session), ..memory(content) }))
            }),
            2 => (memory_id.clone(), memory_id.clone(), content).prop_map(|(id, archive_as, content)| {
                Change::ReviseMemory { id, archive_as, content: content.to_owned(), metadata: None }
            }),
            1 => (memory_id.clone(), prop::option::of(memory_id.clone())).prop_map(|(id, replaced_by)| {
                Change::CloseMemory { id, valid_to: at(5), replaced_by }
            }),
            1 => (memory_id.clone(), hidden).prop_map(|(id, hidden)| Change::HideMemory { id, hidden }),
            1 => (name.clone(), 0..3_usize, status).prop_map(|(name, number, status)| {
                let id = SummaryId(id(3, number));
                Change::PutSummary(Box::new(Summary { id, status, ..summary(name, 1) }))
            }),
            1 => turn_id.prop_map(|id| {
                let (item, model, vector) = (ItemId::Turn(id), "model".to_owned(), Vector::quantise(&[1.0]));
                Change::PutVectors(vec![ItemVector { item, model, vector }])
            }),
            1 => (name.clone(), 0..3_usize).prop_map(|(name, number)| {
                Change::EnqueueJob(Box::new(Job { id: JobId(id(4, number)), ..job(Some(name), 0) }))
            }),
            1 => name.clone().prop_map(|name| {
                Change::PutState { session: session(name), state: Box::new(State::default()) }
            }),
            1 => name.prop_map(|name| Change::Forget(Forget::Session(session(name)))),
            1 => memory_id.prop_map(|id| Change::Forget(Forget::Memory(id))),
        ]
    }

    /// All readable data of ann, except the head and the versions, which count change sets.
    async fn everything(store: &InMemoryStore) -> Vec<String> {
        let user = &ann();
        let mut all = Vec::new();
        for name in SESSIONS {
            let turns = TurnQuery::Range { session: session(name), after: None, limit: u32::MAX };
            let summaries = SummaryQuery { session: session(name), strategy: None, status: None, limit: 99 };
            let stored = store.session(user, &session(name)).await.unwrap();
            all.push(format!("{:?}", stored.map(|session| Session { version: 0, ..session })));
            all.push(format!("{:?}", store.turns(user, &turns).await.unwrap()));
            all.push(format!("{:?}", store.summaries(user, &summaries).await.unwrap()));
        }
        let memories = MemoryQuery::new(MemorySelect::All);
        all.push(format!("{:?}", store.memories(user, &memories).await.unwrap()));
        all.push(format!(
            "{:?}",
            store.jobs(user, &JobQuery { limit: 99, ..JobQuery::default() }).await.unwrap()
        ));
        let items: Vec<ItemId> = (0..12).map(|number| ItemId::Turn(TurnId(id(1, number)))).collect();
        all.push(format!("{:?}", vectors_of(store, user, "model", &items).await));
        for text in WORDS {
            let hits = store.search(user, &words(text)).await.unwrap();
            all.push(format!("{:?}", hits.iter().map(|hit| (hit.item.id(), hit.score)).collect::<Vec<_>>()));
            all.push(format!("{:?}", found_sorted(store, user, &similar(text, 0.4)).await));
        }
        let mut fed = store.feed(user, 0, u32::MAX).await.unwrap();
        fed.sort_by_key(|(_, item)| item.id());
        all.push(format!("{:?}", fed.iter().map(|(_, item)| item.id()).collect::<Vec<_>>()));
        all
    }

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(150))]

        /// A change set that fails leaves everything as it was. One that succeeds does the same as its changes one by
        /// one.
        #[test]
        fn change_sets_apply_whole_or_not_at_all(
            sets in proptest::collection::vec(proptest::collection::vec(change(), 1..5), 1..25)
        ) {
            run(async {
                let (whole, single) = (InMemoryStore::new(), InMemoryStore::new());
                for changes in sets {
                    let before = everything(&whole).await;
                    let head = whole.head(&ann()).await.unwrap();
                    let sessions = whole.sessions(&ann(), Page::first(9)).await.unwrap();
                    match whole.apply(&ann(), ChangeSet::new(at(9), changes.clone())).await {
                        Err(_) => {
                            prop_assert_eq!(everything(&whole).await, before);
                            prop_assert_eq!(whole.head(&ann()).await.unwrap(), head);
                            prop_assert_eq!(whole.sessions(&ann(), Page::first(9)).await.unwrap(), sessions);
                        }
                        Ok(applied) => {
                            let mut turns = Vec::new();
                            for change in changes {
                                let one = single.apply(&ann(), ChangeSet::one(at(9), change)).await;
                                turns.extend(one.unwrap().turns);
                            }
                            prop_assert_eq!(applied.turns, turns);
                            prop_assert_eq!(everything(&whole).await, everything(&single).await);
                        }
                    }
                }
                let health = whole.check(CheckDepth::Thorough).await.unwrap();
                prop_assert_eq!(health.problems, Vec::<String>::new());
                prop_assert_eq!(health.unindexed, 0);
                Ok(())
            })?;
        }

        /// Each session counts 0, 1, 2 …, in any order of writers of several sessions and users, and if some of them
        /// fail.
        #[test]
        fn sequences_have_no_gap(
            writes in proptest::collection::vec((any::<bool>(), 0..3_usize, 0..4_usize, any::<bool>()), 0..60)
        ) {
            run(async {
                let store = InMemoryStore::new();
                let mut expected = BTreeMap::<(UserId, &str), u64>::new();
                for (anns, name, count, fails) in writes {
                    let user = if anns { ann() } else { bob() };
                    let name = SESSIONS[name];
                    let mut changes = vec![appending(name, (0..count).map(|_| turn("said")).collect())];
                    if fails {
                        changes.push(Change::HideMemory { id: MemoryId(id(9, 0)), hidden: None });
                    }
                    let applied = store.apply(&user, ChangeSet::new(at(0), changes)).await;
                    prop_assert_eq!(applied.is_err(), fails);
                    if let Ok(applied) = applied {
                        let next = expected.entry((user, name)).or_default();
                        for turn in applied.turns {
                            prop_assert_eq!(turn.seq, *next);
                            *next += 1;
                        }
                    }
                }
                for ((user, name), count) in expected {
                    let query = TurnQuery::Range { session: session(name), after: None, limit: u32::MAX };
                    let turns = store.turns(&user, &query).await.unwrap();
                    let read: Vec<u64> = turns.iter().map(|turn| turn.seq).collect();
                    prop_assert_eq!(read, (0..count).collect::<Vec<_>>());
                    prop_assert_eq!(store.session(&user, &session(name)).await.unwrap().unwrap().turn_count, count);
                }
                Ok(())
            })?;
        }
    }
}
