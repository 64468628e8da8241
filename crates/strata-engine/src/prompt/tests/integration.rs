//! The integration of the layered-prompt design: all messages of a conversation and the summary that the last call
//! returned are passed in.

use proptest::prelude::*;

use super::*;

/// The text between the tags of a layer; empty without the layer.
fn layer<'a>(prompt: &'a str, tag: &str) -> &'a str {
    let (open, close) = (format!("<{tag}>\n"), format!("\n</{tag}>"));
    let inside = prompt.split_once(&open).and_then(|(_, rest)| rest.split_once(&close));
    inside.map_or("", |(inside, _)| inside)
}

/// How often a sentence is shown in the summary and among the recent messages.
fn shown(prompt: &str, sentence: &str) -> (usize, usize) {
    let count = |tag| layer(prompt, tag).matches(sentence).count();
    (count("conversation_summary"), count("recent_conversation"))
}

/// Exchanges whose sentences occur nowhere else, from a choir, a harbour and a bakery.
fn exchange(number: usize) -> [Message; 2] {
    let (question, reply) = match number % 4 {
        0 => (
            format!("Which hall did we book for concert {number}?"),
            format!("Concert {number} is in the Marienkirche.\n\nThe key for it lies in box {number}."),
        ),
        1 => (
            format!("第{number}号泊位的缆绳换了吗？"),
            format!("第{number}号泊位昨天换了新缆绳。\n\n检查记录写在第{number}页。"),
        ),
        2 => (
            format!("How long does batch {number} of the rye dough rest?"),
            format!("Batch {number} rests for fourteen hours."),
        ),
        // The same words each time: only their place tells them apart.
        _ => ("And then?".to_owned(), "Nothing else.".to_owned()),
    };
    [Message::new(Role::User, question), Message::new(Role::Assistant, reply)]
}

fn sentences(message: &Message) -> impl Iterator<Item = &str> {
    message.content.split("\n\n")
}

/// Checks that each message is shown once: word for word if it is recent, else in the summary.
fn check_once(prompt: &str, messages: &[Message], recent: usize) {
    let unique = |sentence: &&str| sentence.chars().any(|c| c.is_ascii_digit());
    for (place, message) in messages.iter().enumerate() {
        let expected = if place < recent { (1, 0) } else { (0, 1) };
        for sentence in sentences(message).filter(unique) {
            assert_eq!(shown(prompt, sentence), expected, "{sentence} of message {place}\n{prompt}");
        }
    }
    let count = |sentence: &str, messages: &[Message]| -> usize {
        messages.iter().map(|message| message.content.matches(sentence).count()).sum()
    };
    for repeated in ["And then?", "Nothing else."] {
        let expected = (count(repeated, &messages[..recent]), count(repeated, &messages[recent..]));
        assert_eq!(shown(prompt, repeated), expected, "{prompt}");
    }
}

#[test]
fn a_growing_conversation_shows_each_sentence_once() {
    // A program may have appended the current question to its messages, or not.
    for appended in [false, true] {
        let (mut messages, mut summary): (Vec<Message>, _) = (Vec::new(), String::new());
        for number in 0..24 {
            let [question, reply] = exchange(number);
            let said = messages.clone();
            messages.push(question.clone());
            let passed = if appended { &messages } else { &said };
            let built = build_prompt(&question.content, passed, &State::default(), &summary, false);
            let prompt = built.prompt.text().unwrap();
            assert_eq!(built.evicted, said.len().saturating_sub(6));
            check_once(prompt.strip_prefix(&question.content).unwrap(), &said, built.evicted);
            summary = built.summary;
            messages.push(reply);
        }
    }
}

#[test]
fn named_speakers_and_days_are_told_apart_from_the_text() {
    let at = |hour: i8| Timestamp::from_second(1_741_046_400 + 3_600 * i64::from(hour)).unwrap();
    for with_time in [false, true] {
        let (mut messages, mut summary): (Vec<Message>, _) = (Vec::new(), String::new());
        for number in 0..9_i8 {
            let said_at = with_time.then(|| at(number));
            let question = Message {
                name: Some("Oda".to_owned()),
                said_at,
                ..exchange(usize::from(number as u8))[0].clone()
            };
            let built = build_prompt(&question.content, &messages, &State::default(), &summary, false);
            check_once(
                built.prompt.text().unwrap().split_once('\n').unwrap_or_default().1,
                &messages,
                built.evicted,
            );
            summary = built.summary;
            let [_, reply] = exchange(usize::from(number as u8));
            let first = sentences(&reply).next().unwrap();
            let content = format!("{first}\n\nOda: as you wrote {number}.");
            messages.extend([question, Message { said_at, content, ..reply }]);
        }
    }
}

#[test]
fn a_long_conversation_counts_what_it_leaves_out_and_repeats_nothing() {
    let (mut messages, mut summary): (Vec<Message>, _) = (Vec::new(), String::new());
    for number in 0..400 {
        let built = build_prompt("Next?", &messages, &State::default(), &summary, false);
        summary = built.summary;
        let entries =
            summary.lines().filter(|line| line.starts_with("User: ") || line.starts_with("Assistant: "));
        let first = summary.lines().next().unwrap_or_default();
        let left_out: usize =
            first.strip_prefix("[… ").and_then(|line| line.split(' ').next()?.parse().ok()).unwrap_or(0);
        assert_eq!(left_out + entries.count(), built.evicted, "{summary}");
        let topic = "The tide table for the outer quay is printed on paper that survives rain. ".repeat(2);
        let reply = Message::new(Role::Assistant, format!("Slot {number} is free. {topic}"));
        messages.extend([Message::new(Role::User, format!("May slot {number} be used?")), reply]);
    }
    assert!(summary.starts_with("[… "), "the summary is full:\n{summary}");
}

#[test]
fn a_summary_of_another_author_stays_in_front() {
    let written = "Earlier the crew agreed to repaint the hull.\nThe budget is 4,000 euros.";
    let (mut messages, mut summary): (Vec<Message>, _) = (Vec::new(), written.to_owned());
    for number in 0..12 {
        let built = build_prompt("Next?", &messages, &State::default(), &summary, false);
        let prompt = built.prompt.text().unwrap();
        assert!(layer(prompt, "conversation_summary").starts_with(written), "{prompt}");
        check_once(prompt, &messages, built.evicted);
        summary = built.summary;
        messages.extend(exchange(number));
    }
}

#[test]
fn a_program_that_keeps_only_its_last_messages_loses_and_repeats_nothing() {
    let (mut messages, mut summary): (Vec<Message>, _) = (Vec::new(), String::new());
    for number in 0..16 {
        let kept = messages.len().saturating_sub(12);
        let built = build_prompt("Next?", &messages[kept..], &State::default(), &summary, false);
        check_once(built.prompt.text().unwrap(), &messages, kept + built.evicted);
        summary = built.summary;
        messages.extend(exchange(number));
    }
}

#[test]
fn a_conversation_that_is_continued_differently_loses_the_other_branch() {
    let mut messages: Vec<Message> = (0..8).flat_map(exchange).collect();
    let summary = build_prompt("Next?", &messages, &State::default(), "", false).summary;
    assert!(summary.contains("Batch 2 rests"), "{summary}");
    // The user goes back to the third exchange and asks something else.
    messages.truncate(4);
    messages.extend((20..26).flat_map(exchange));
    let built = build_prompt("Next?", &messages, &State::default(), &summary, false);
    check_once(built.prompt.text().unwrap(), &messages, built.evicted);
    assert!(!built.summary.contains("Batch 2 rests"), "{}", built.summary);
    // Gone back so far that every message is recent.
    let built = build_prompt("Next?", &messages[..4], &State::default(), &summary, false);
    check_once(built.prompt.text().unwrap(), &messages[..4], 0);
    assert_eq!(built.summary, "");
}

#[test]
fn messages_that_the_summary_does_not_cover_are_all_shown() {
    let messages: Vec<Message> = (0..3).flat_map(exchange).collect();
    let summary = build_summary("", &(32..35).flat_map(exchange).collect::<Vec<_>>());
    let built = build_prompt("Next?", &messages, &State::default(), &summary, false);
    assert_eq!((built.evicted, &built.summary), (0, &summary));
    check_once(built.prompt.text().unwrap(), &messages, 0);
}

proptest! {
    #[test]
    fn any_conversation_gives_the_summary_of_its_older_messages(
        texts in proptest::collection::vec("[a-d]{1,2}[.。] ?[a-c ]{0,30}", 0..40),
    ) {
        let messages: Vec<Message> = texts
            .iter()
            .zip([Role::User, Role::Assistant, Role::Assistant, Role::Tool].into_iter().cycle())
            .map(|(text, role)| Message::new(role, text.as_str()))
            .collect();
        let mut summary = String::new();
        for end in 0..=messages.len() {
            let built = build_prompt("?", &messages[..end], &State::default(), &summary, false);
            prop_assert_eq!(&built.summary, &build_summary("", &messages[..built.evicted]));
            summary = built.summary;
        }
    }
}
