use super::*;
use strata_core::store::conformance::fixture::{at, fresh, memory};

fn said(texts: &[&'static str]) -> Vec<Said<'static>> {
    texts.iter().map(|text| Said { turn: TurnId(fresh()), name: None, text, at: at(0) }).collect()
}

fn contents(answer: &str) -> Option<Vec<String>> {
    let found = statements(answer, &said(&["one", "two"])).ok()?;
    Some(found.into_iter().map(|statement| statement.content).collect())
}

#[test]
fn statements_are_read_however_they_are_wrapped() {
    let check = |answer: &str, expected: &[&str]| {
        assert_eq!(contents(answer).as_deref(), Some(expected.map_to_owned().as_slice()), "{answer}");
    };
    check(r#"{"statements": [{"content": "a"}]}"#, &["a"]);
    check(r#"["a", "b"]"#, &["a", "b"]);
    check(r#"[{"fact": "a"}, {"text": " b "}]"#, &["a", "b"]);
    check("```json\n{\"statements\": [\"a\"]}\n```", &["a"]);
    check("Sure! Here it is: {\"facts\": [\"用户住在杭州\"]} I hope this helps {x}", &["用户住在杭州"]);
    check("<think>[\"not this\"]</think>[\"a\"]", &["a"]);
    check("I looked at {the messages} and found: [\"a\"]", &["a"]);
    check(r#"{"note": {"statements": 1}} {"statements": ["a"]}"#, &["a"]);
    check(r#"{"statements": []}"#, &[]);
    check(r#"["", "  "]"#, &[]);
}

trait MapToOwned {
    fn map_to_owned(&self) -> Vec<String>;
}

impl MapToOwned for [&str] {
    fn map_to_owned(&self) -> Vec<String> {
        self.iter().map(|text| (*text).to_owned()).collect()
    }
}

#[test]
fn an_answer_without_statements_is_an_error_that_does_not_quote_it() {
    for answer in [
        "",
        "I'm sorry, I cannot help with that.",
        r#"{"statements": "secret"}"#,
        r#"[{"kind": "secret"}]"#,
        "[1, 2]",
        "{\"statements\": [\"secret",
    ] {
        let error = statements(answer, &said(&["one"])).unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    // Very many beginnings of JSON end in an error without a long search.
    assert!(contents(&"[{".repeat(100_000)).is_none());
}

#[test]
fn a_statement_keeps_kind_confidence_time_and_the_turn_that_said_it() {
    let said = said(&["one", "two"]);
    let answer = r#"[
        {"content": "a", "kind": "TODO", "confidence": 7, "message": "2", "since": "2024-05-08"},
        {"content": "b", "kind": "poem", "message": 9, "since": "soon"},
        {"content": "c", "since": "2024-05-08T10:00:00Z"}
    ]"#;
    let found = statements(answer, &said).unwrap();
    assert_eq!((found[0].kind, found[0].confidence), (MemoryKind::Todo, 1.0));
    assert_eq!(found[0].turns, [said[1].turn]);
    assert_eq!(found[0].valid_from, Some("2024-05-08T00:00:00Z".parse().unwrap()));
    assert_eq!((found[1].kind, found[1].valid_from), (MemoryKind::Fact, None));
    assert_eq!(found[1].turns, [said[0].turn, said[1].turn], "a wrong number is no number");
    assert_eq!(found[2].valid_from, Some("2024-05-08T10:00:00Z".parse().unwrap()));
}

#[test]
fn there_are_at_most_three_statements_a_message() {
    let entry = |message: u32| format!(r#"{{"content": "c", "message": {message}}}"#);
    let entries: Vec<String> = (0..5).map(|_| entry(1)).chain((0..2).map(|_| entry(2))).collect();
    let found = statements(&format!("[{}]", entries.join(",")), &said(&["one", "two"])).unwrap();
    assert_eq!(found.len(), 3 + 2);
}

fn todo(content: &str) -> Memory {
    Memory { kind: MemoryKind::Todo, ..memory(content) }
}

#[test]
fn a_plan_names_every_number() {
    let known = [memory("k1"), memory("k2"), todo("k3")];
    let known = [&known[0], &known[1], &known[2]];
    let check = |answer: &str, expected: Result<Plan, &str>| {
        let read = plan(answer, &known, 2);
        assert_eq!(read.as_ref().map_err(|error| error.message()), expected.as_ref().map_err(|error| *error));
    };
    let all = |a: &str, b: &str, c: &str, d: &str, e: &str| {
        let entry = |(id, event): (usize, &&str)| {
            let (event, by) = event.split_once(' ').unwrap_or((event, "null"));
            format!(r#"{{"id": {}, "event": "{event}", "by": {by}}}"#, id + 1)
        };
        let list: Vec<String> = [a, b, c, d, e].iter().enumerate().map(entry).collect();
        format!(r#"{{"memories": [{}]}}"#, list.join(","))
    };
    let keep = |known: [Fate; 3], new: [Novelty; 2]| Ok(Plan { known: known.to_vec(), new: new.to_vec() });
    use Fate::{Delete, End, Keep, Update};
    use Novelty::{Add, Duplicate, Repeated};
    check(&all("NONE", "NONE", "NONE", "ADD", "ADD"), keep([Keep; 3], [Add; 2]));
    check(
        &all("UPDATE 4", "DELETE 5", "DONE 5", "ADD", "ADD"),
        keep([Update { by: 0 }, Delete { by: 1 }, End { by: 1, how: TodoEnd::Done }], [Add; 2]),
    );
    check(
        &all("DROPPED 4", "NONE", "NONE", "ADD", "NONE 2"),
        keep([Delete { by: 0 }, Keep, Keep], [Add, Duplicate { of: 1 }]),
    );
    check(&all("NONE", "NONE", "NONE", "ADD", "NONE 4"), keep([Keep; 3], [Add, Repeated { of: 0 }]));
    // A statement that the plan would lose is added.
    check(&all("DELETE 4", "NONE", "NONE", "NONE 1", "ADD"), keep([Delete { by: 0 }, Keep, Keep], [Add; 2]));
    check(&all("DELETE 5", "NONE", "NONE", "NONE 1", "ADD"), keep([Delete { by: 1 }, Keep, Keep], [Add; 2]));
    check(&all("NONE", "NONE", "NONE", "NONE 5", "NONE 4"), keep([Keep; 3], [Add, Repeated { of: 0 }]));
    check(&all("DELETE", "NONE", "NONE", "ADD", "ADD"), Err("number 1 has no `by` that is a new statement"));
    check(
        &all("DELETE 2", "NONE", "NONE", "ADD", "ADD"),
        Err("number 1 has no `by` that is a new statement"),
    );
    check(
        &all("NONE", "NONE", "NONE", "ADD", "NONE"),
        Err("number 5 has event NONE and no `by` that says the same"),
    );
    check(&all("NONE", "NONE", "NONE", "ADD", "DELETE"), Err("number 5 is new: its event is ADD or NONE"));
    check(&all("EAT", "NONE", "NONE", "ADD", "ADD"), Err("number 1 has an event that is not listed"));
    check(r#"[{"id": 1, "event": "NONE"}]"#, Err("the answer leaves out the numbers 2, 3, 4, 5"));
    check(r#"[{"id": 9, "event": "NONE"}]"#, Err("there is no number 9; they go from 1 to 5"));
    check(r#"[{"id": 0, "event": "NONE"}]"#, Err("there is no number 0; they go from 1 to 5"));
    check(
        r#"[{"id": 1, "event": "NONE"}, {"id": 1, "event": "DELETE"}]"#,
        Err("number 1 has two different events"),
    );
    check("no", Err("the answer holds no JSON"));
}
