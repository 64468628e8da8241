use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Filter, Subject};
use strata_core::id::{MemoryId, SessionId, TurnId, UserId};
use strata_core::memory::{Memory, MemoryKind, MemoryNotes};
use strata_core::turn::{Metadata, Role, Turn, TurnNotes};

fn memory(metadata: Value) -> Memory {
    let moment = "2026-03-01T12:00:00Z".parse().unwrap();
    Memory {
        id: MemoryId(uuid::Uuid::from_u128(7)),
        session: Some(SessionId::new("trip").unwrap()),
        agent: Some("planner".to_owned()),
        kind: MemoryKind::Preference,
        content: "Ada prefers Trains".to_owned(),
        confidence: 0.5,
        valid_from: moment,
        valid_to: None,
        recorded_at: moment,
        replaced_by: None,
        source_turns: Vec::new(),
        source_summary: None,
        metadata: metadata.as_object().unwrap().clone().into(),
        notes: MemoryNotes::default(),
        hidden: None,
    }
}

fn read(filter: &Value) -> Filter {
    Filter::from_json(filter.as_object().unwrap()).unwrap_or_else(|error| panic!("{filter}: {error}"))
}

fn holds(filter: &Value, memory: &Memory) -> bool {
    read(filter).matches(Subject::Memory(&UserId::new("ada").unwrap(), memory))
}

#[track_caller]
fn check(filter: Value, expected: bool) {
    let memory = memory(json!({
        "category": "travel", "score": 7, "ratio": 0.5, "done": true, "tags": ["rail", "Europe"],
        "place": {"city": "Lisbon", "code": 12}, "nothing": null, "a.b": "dotted", "stars": "*"
    }));
    assert_eq!(holds(&filter, &memory), expected, "{filter}");
    let not = json!({"NOT": [filter]});
    assert_eq!(holds(&not, &memory), !expected, "{not}");
}

#[test]
fn every_operator_has_its_meaning() {
    for (filter, expected) in [
        (json!({}), true),
        (json!({"category": "travel"}), true),
        (json!({"category": "Travel"}), false),
        (json!({"category": {"eq": "travel"}}), true),
        (json!({"category": {"ne": "travel"}}), false),
        (json!({"missing": {"ne": "travel"}}), true),
        (json!({"missing": "x"}), false),
        (json!({"missing": null}), true),
        (json!({"nothing": null}), true),
        (json!({"category": null}), false),
        (json!({"category": {"in": ["food", "travel"]}}), true),
        (json!({"category": ["food", "travel"]}), true),
        (json!({"category": {"in": []}}), false),
        (json!({"category": {"nin": ["food", "travel"]}}), false),
        (json!({"missing": {"nin": ["food"]}}), true),
        (json!({"score": {"gt": 6}}), true),
        (json!({"score": {"gt": 7}}), false),
        (json!({"score": {"gte": 7.0}}), true),
        (json!({"score": 7.0}), true),
        (json!({"score": {"gt": 5, "lt": 8}}), true),
        (json!({"score": {"gt": 5, "lt": 7}}), false),
        (json!({"score": {"gt": "5"}}), false),
        (json!({"ratio": {"lte": 0.5}}), true),
        (json!({"category": {"gte": "tr", "lt": "ts"}}), true),
        (json!({"done": true}), true),
        (json!({"done": {"ne": true}}), false),
        (json!({"done": "true"}), false),
        (json!({"category": {"contains": "rav"}}), true),
        (json!({"category": {"contains": "RAV"}}), false),
        (json!({"category": {"icontains": "RAV"}}), true),
        (json!({"score": {"contains": "7"}}), false),
        (json!({"category": "*"}), true),
        (json!({"missing": "*"}), false),
        (json!({"nothing": "*"}), false),
        (json!({"category": {"eq": "*"}}), true),
    ] {
        check(filter, expected);
    }
}

#[test]
fn lists_objects_and_paths() {
    for (filter, expected) in [
        (json!({"tags": "rail"}), true),
        (json!({"tags": {"in": ["rail", "bus"]}}), true),
        (json!({"tags": {"eq": ["rail", "Europe"]}}), true),
        (json!({"tags": {"ne": "rail"}}), false),
        (json!({"tags": {"icontains": "europe"}}), true),
        (json!({"tags": "*"}), true),
        (json!({"place": {"eq": {"city": "Lisbon", "code": 12}}}), true),
        (json!({"place.city": "Lisbon"}), true),
        (json!({"place.code": {"gte": 12}}), true),
        (json!({"place.city.name": "Lisbon"}), false),
        (json!({"a.b": "dotted"}), true),
        (json!({"metadata": {"category": "travel", "score": {"gt": 6}}}), true),
        (json!({"metadata.category": "travel"}), true),
        (json!({"metadata": {"user_id": "ada"}}), false),
    ] {
        check(filter, expected);
    }
}

#[test]
fn the_fields_of_an_item_can_be_filtered() {
    for (filter, expected) in [
        (json!({"user_id": "ada"}), true),
        (json!({"user_id": "eve"}), false),
        (json!({"user_id": "*"}), true),
        (json!({"agent_id": "planner", "run_id": "trip"}), true),
        (json!({"session_id": {"in": ["trip", "desk"]}}), true),
        (json!({"kind": "preference"}), true),
        (json!({"memory": {"icontains": "trains"}}), true),
        (json!({"id": "00000000-0000-0000-0000-000000000007"}), true),
        (json!({"confidence": {"gte": 0.5}}), true),
        (json!({"role": "user"}), false),
        (json!({"created_at": {"gte": "2026-03-01"}}), true),
        (json!({"created_at": {"gte": "2026-03-02"}}), false),
        (json!({"created_at": {"lt": "2026-03-01T13:00:00+01:00"}}), false),
        (json!({"created_at": {"lte": "2026-03-01T13:00:00+01:00"}}), true),
        (json!({"created_at": "2026-03-01T13:00:00+01:00"}), true),
        (json!({"updated_at": {"gt": 0}}), true),
        (json!({"valid_to": {"gt": 0}}), false),
        (json!({"valid_to": null}), true),
    ] {
        check(filter, expected);
    }
    let turn = Turn {
        id: TurnId(uuid::Uuid::from_u128(1)),
        session: SessionId::new("trip").unwrap(),
        seq: 0,
        role: Role::User,
        name: None,
        content: "by train".to_owned(),
        created_at: "2026-03-01T12:00:00Z".parse().unwrap(),
        token_count: 2,
        metadata: Metadata::new(),
        notes: TurnNotes::default(),
        hidden: None,
    };
    let ada = UserId::new("ada").unwrap();
    for (filter, expected) in [
        (json!({"role": "user", "run_id": "trip", "kind": "turn"}), true),
        (json!({"agent_id": "planner"}), false),
        (json!({"created_at": {"gte": "2026-03-01"}}), true),
    ] {
        assert_eq!(read(&filter).matches(Subject::Turn(&ada, &turn)), expected, "{filter}");
    }
}

#[test]
fn conditions_combine() {
    for (filter, expected) in [
        (json!({"AND": [{"user_id": "ada"}, {"category": {"in": ["travel"]}}]}), true),
        (json!({"AND": [{"user_id": "ada"}, {"category": "food"}]}), false),
        (json!({"AND": []}), true),
        (json!({"OR": [{"category": "food"}, {"score": 7}]}), true),
        (json!({"OR": [{"category": "food"}, {"score": 8}]}), false),
        (json!({"NOT": [{"category": "food"}, {"score": 7}]}), false),
        (json!({"NOT": {"category": "food"}}), true),
        (json!({"category": "travel", "OR": [{"score": 1}, {"NOT": [{"done": false}]}]}), true),
    ] {
        check(filter, expected);
    }
}

#[test]
fn unknown_input_is_an_error_that_names_it() {
    let deep = (0..10).fold(json!({"a": 1}), |inner, _| json!({"AND": [inner]}));
    let many: Vec<Value> = (0..300).map(|number| json!({ "a": number })).collect();
    for (filter, expected) in [
        (json!({"a": {"like": "x"}}), "`like`"),
        (json!({"a": {"$eq": "x"}}), "`$eq`"),
        (json!({"a": {}}), "empty condition"),
        (json!({"a": {"in": "x"}}), "takes a list"),
        (json!({"a": {"gt": [1]}}), "a number or a text"),
        (json!({"a": {"gt": null}}), "a number or a text"),
        (json!({"a": {"contains": 1}}), "takes a text"),
        (json!({"created_at": {"gt": "soon"}}), "give a time"),
        (json!({"OR": []}), "takes a list of conditions"),
        (json!({"OR": {"a": 1}}), "takes a list of conditions"),
        (json!({"AND": [1]}), "takes a list of conditions"),
        (json!({"": 1}), "no name"),
        (json!({"a": {"in": vec![1; 2_000]}}), "the most is 1000"),
        (deep, "levels"),
        (json!({ "OR": many }), "200 conditions"),
    ] {
        let error = Filter::from_json(filter.as_object().unwrap()).unwrap_err();
        assert!(error.message().contains(expected), "{filter}: {error}");
    }
    assert!("[]".parse::<Filter>().is_err());
    assert!("{\"a\": 1}".parse::<Filter>().is_ok());
}

#[test]
fn a_filter_with_only_a_user_is_recognised() {
    let ada = UserId::new("ada").unwrap();
    for (filter, named, mentions, only) in [
        (json!({}), None, false, true),
        (json!({"user_id": "ada"}), Some("ada"), true, true),
        (json!({"AND": [{"user_id": "ada"}]}), Some("ada"), true, true),
        (json!({"AND": [{"user_id": "ada"}, {"a": 1}]}), Some("ada"), true, false),
        (json!({"user_id": "eve"}), Some("eve"), true, false),
        (json!({"user_id": "*"}), None, false, true),
        (json!({"OR": [{"user_id": "ada"}, {"user_id": "eve"}]}), None, true, false),
        (json!({"NOT": [{"user_id": "eve"}]}), None, true, false),
        (json!({"user_id": {"in": ["ada", "eve"]}}), None, true, false),
    ] {
        let read = read(&filter);
        assert_eq!(
            (read.named_user(), read.mentions_user(), read.is_only(&ada)),
            (named, mentions, only),
            "{filter}"
        );
    }
}

fn condition() -> impl Strategy<Value = Value> {
    let name = prop_oneof![Just("a"), Just("b"), Just("kind"), Just("created_at")];
    let value = prop_oneof![
        (0..4i64).prop_map(Value::from),
        prop_oneof![Just("x"), Just("y"), Just("preference")].prop_map(Value::from),
        Just(Value::Null),
        Just(json!("*")),
        Just(json!({"in": [1, "x"]})),
        Just(json!({"nin": [2]})),
        Just(json!({"ne": "x"})),
        Just(json!({"contains": "x"})),
    ];
    let range = (0..4i64).prop_map(|bound| json!({"gte": bound}));
    (name, prop_oneof![value, range]).prop_map(|(name, value)| json!({ name: value }))
}

fn any_filter() -> impl Strategy<Value = Value> {
    condition().prop_recursive(2, 12, 3, |inner| {
        let list = prop::collection::vec(inner, 1..3);
        (prop_oneof![Just("AND"), Just("OR"), Just("NOT")], list)
            .prop_map(|(name, list)| json!({ name: list }))
    })
}

fn any_metadata() -> impl Strategy<Value = Value> {
    let value = prop_oneof![
        (0..4i64).prop_map(Value::from),
        Just(json!("x")),
        Just(json!("xy")),
        Just(json!(null)),
        Just(json!(["x", 1]))
    ];
    prop::collection::hash_map(prop_oneof![Just("a".to_owned()), Just("b".to_owned())], value, 0..3)
        .prop_map(|map| Value::Object(map.into_iter().collect()))
}

proptest! {
    #[test]
    fn de_morgan(one in any_filter(), other in any_filter(), metadata in any_metadata()) {
        let memory = memory(metadata);
        let holds = |filter: Value| holds(&filter, &memory);
        prop_assert_eq!(
            holds(json!({"NOT": [{"AND": [one, other]}]})),
            holds(json!({"OR": [{"NOT": [one]}, {"NOT": [other]}]}))
        );
        prop_assert_eq!(
            holds(json!({"NOT": [one, other]})),
            holds(json!({"AND": [{"NOT": [one]}, {"NOT": [other]}]}))
        );
        prop_assert_eq!(holds(json!({"NOT": [{"NOT": [one]}]})), holds(one));
    }

    #[test]
    fn nothing_that_clients_send_panics(text in ".{0,200}") {
        let _ = text.parse::<Filter>();
    }
}
