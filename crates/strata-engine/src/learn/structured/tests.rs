//! Parsing answers, sliding the window, merging points.

use serde_json::json;

use super::*;
use strata_core::store::conformance::fixture::{session, turn};

fn texts(points: &[Point]) -> Vec<&str> {
    points.iter().map(|point| point.text.as_str()).collect()
}

fn answered(value: Value) -> Answered {
    Answered::of(&value).unwrap()
}

#[test]
fn an_answer_is_parsed_leniently() {
    let answer = answered(json!({
        "summary": " They plan a trip. ",
        "facts": ["- Ann lives in Lisbon", {"fact": "Bob is allergic to nuts"}, 7, null, ""],
        "todos": [],
        "entities": "Ann",
        "mood": "good",
    }));
    assert_eq!(answer.summary, "They plan a trip.");
    assert_eq!(
        answer.points(SummaryPart::Facts).unwrap(),
        ["Ann lives in Lisbon", "Bob is allergic to nuts", "7"]
    );
    assert_eq!(answer.points(SummaryPart::Todos), Some(&[][..]));
    assert_eq!(answer.points(SummaryPart::Entities), None, "no list");
    assert_eq!(answer.points(SummaryPart::Decisions), None);
    let nested = answered(json!({"text": "x", "structured": {"todos": ["买牛奶"]}}));
    assert_eq!(nested.points(SummaryPart::Todos).unwrap(), ["买牛奶"]);
    for wrong in
        [json!({"facts": []}), json!({"summary": "  "}), json!({"summary": 5}), json!([]), json!(null)]
    {
        assert!(Answered::of(&wrong).is_err(), "{wrong}");
    }
}

#[test]
fn the_schema_asks_for_all_parts() {
    let AnswerSchema { name, schema } = Answered::schema();
    assert_eq!(name, "summary");
    let mut required: Vec<&str> =
        schema["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    required.sort_unstable();
    assert_eq!(required, ["decisions", "entities", "facts", "preferences", "summary", "todos"]);
}

#[test]
fn points_leave_with_the_window_and_todos_stay() {
    let mut structured = Structured::default();
    let first =
        json!({"summary": "x", "facts": ["Ann lives in Lisbon"], "todos": ["Book a flight", "Buy milk"]});
    structured.absorb(&answered(first), 5);
    let second = json!({"summary": "x", "facts": ["Bob lives in Rome", "ann lives in Lisbon."], "todos": ["buy milk"]});
    structured.absorb(&answered(second), 9);
    assert_eq!(texts(&structured.facts), ["Bob lives in Rome", "ann lives in Lisbon."], "said again");
    assert_eq!(structured.todos, [Point { text: "Buy milk".to_owned(), seq: Some(5) }]);
    structured.slide(6);
    assert_eq!(structured.facts.len(), 2);
    structured.slide(10);
    assert_eq!(structured.facts, []);
    assert_eq!(texts(&structured.todos), ["Buy milk"]);
    structured.absorb(&answered(json!({"summary": "nothing is said of todos"})), 11);
    assert_eq!(texts(&structured.todos), ["Buy milk"]);
    structured.absorb(&answered(json!({"summary": "done", "todos": []})), 13);
    assert!(structured.is_empty());
}

#[test]
fn a_row_of_any_author_is_parsed() {
    let mut structured = Structured::default();
    structured.absorb(&answered(json!({"summary": "x", "decisions": ["用风扇 B"]})), 3);
    let row = structured.to_row();
    assert_eq!(row["decisions"], json!([{"text": "用风扇 B", "seq": 3}]));
    assert_eq!(Structured::of_row(&row), structured);
    assert_eq!(serde_json::from_value::<Structured>(row).unwrap(), structured);
    let foreign = Structured::of_row(&json!({"facts": ["x", {"n": 1}], "todos": "none", "n": 1.5}));
    assert_eq!(texts(&foreign.facts), ["x"]);
    assert!(Structured::of_row(&json!("text")).is_empty());
}

#[test]
fn it_is_bounded() {
    let mut structured = Structured::default();
    let many: Vec<String> = (0..60).map(|n| format!("fact {n} {}", "long ".repeat(100))).collect();
    structured.absorb(&answered(json!({"summary": "x", "facts": many})), 1);
    assert_eq!(structured.facts.len(), MAX_POINTS);
    assert!(structured.facts[0].text.starts_with("fact 36 "), "the oldest go");
    assert!(structured.facts.iter().all(|point| point.text.chars().count() <= MAX_POINT_CHARS));
}

#[test]
fn the_rules_name_who_it_is_about() {
    let said = turn("We met Grace Hopper in Boston.").at(session("s"), 4);
    let mut structured = Structured::default();
    structured.observe(&[&said]);
    assert_eq!(texts(&structured.entities), ["Grace Hopper", "Boston"]);
    assert_eq!(structured.entities[0].seq, Some(4));
}

#[test]
fn a_field_has_a_name() {
    for field in SummaryPart::ALL {
        assert_eq!(field.as_str().parse::<SummaryPart>().unwrap(), field);
    }
    assert!("moods".parse::<SummaryPart>().unwrap_err().message().contains("`moods`"));
}

#[test]
fn the_rules_say_what_is_so_and_what_is_open() {
    let mut structured = Structured::default();
    let say = |structured: &mut Structured, seq: u64, text: &str| {
        let said = turn(text).at(session("s"), seq);
        structured.observe(&[&said]);
    };
    say(&mut structured, 0, "I live in Lisbon.");
    say(&mut structured, 2, "I need to renew my passport.");
    say(&mut structured, 4, "我喜欢喝绿茶。");
    assert!(structured.facts.iter().any(|fact| fact.text.contains("Lisbon")), "{structured:?}");
    assert!(structured.todos.iter().any(|todo| todo.text.contains("passport")), "{structured:?}");
    assert!(structured.preferences.iter().any(|liked| liked.text.contains("绿茶")), "{structured:?}");
    // A statement that changed is replaced, as among memories.
    say(&mut structured, 6, "I moved to Porto.");
    assert!(!structured.facts.iter().any(|fact| fact.text.contains("lives in Lisbon")), "{structured:?}");
    say(&mut structured, 8, "I have renewed my passport.");
    assert!(!structured.todos.iter().any(|todo| todo.text.contains("passport")), "{structured:?}");
}
