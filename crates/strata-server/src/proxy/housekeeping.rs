//! Recognises the prompts that chat programs send for themselves: for a title, tags, follow-up questions, search
//! queries, the choice of a tool, a question that stands alone, an autocompletion or a summary of a chat. They are passed on
//! bare, and neither recorded nor learned.
//!
//! No program's wording is known here. A prompt is recognised by its form: an order to make one of these things, about
//! a conversation, that prescribes the form of the answer or encloses the conversation. A person who asks for a title
//! or a summary of something else, or in plain words, is not meant, nor an application that talks with its user.

mod words;

use std::borrow::Cow;

use strata_core::Role;

use crate::compat::chat::ChatBody;
use crate::compat::openai::completions;
use words::*;

/// An order that is not at the beginning of a long text is part of a description, not the task.
const HEAD_CHARS: usize = 600;

/// The part of a long text, at its beginning and at its end, in which an order is looked for.
const END_BYTES: usize = 4_096;

/// The mark around a text that is quoted as it is.
const FENCE: &str = "```";

/// Whether a program asks for itself.
pub(crate) fn is_housekeeping(body: &ChatBody<'_>) -> bool {
    // Some programs say so.
    let task = body.fields().object("metadata").and_then(|metadata| metadata.string("task"));
    if task.is_some_and(|task| is_task_name(&task)) {
        return true;
    }
    let mut messages = body.messages();
    // A reply that the client has begun is none.
    if let Some((last, before)) = messages.split_last()
        && last.role == Some(Role::Assistant)
    {
        messages = before;
    }
    let asked = messages.iter().rfind(|message| message.role == Some(Role::User));
    let has_replies = messages.iter().any(|message| message.role == Some(Role::Assistant));
    let Some(asked) = asked.map(|message| Traits::of(message.said())) else { return false };
    if asked.are_asked_by_program(has_replies) {
        return true;
    }
    let in_messages = messages.iter().filter(|message| message.role == Some(Role::System));
    let mut instructions: Vec<String> = in_messages.map(|message| message.said().to_owned()).collect();
    instructions.extend(["instructions", "system"].into_iter().filter_map(|name| text_of(body, name)));
    let may_instruct = |text: &&String| {
        let head = text[..text.floor_char_boundary(END_BYTES)].to_lowercase();
        match wanted(&head) {
            // In a conversation these two alone count.
            _ if has_replies => has(&head, SUMMARIES) || has(&head, STANDALONE),
            wanted => wanted.is_some(),
        }
    };
    let may_instruct = instructions.iter().filter(may_instruct);
    may_instruct.into_iter().any(|text| Traits::of(text).instruct_for_program(&asked, has_replies))
}

/// `title_generation`, `follow_up_generation`.
fn is_task_name(task: &str) -> bool {
    task == "function_calling" || task.strip_suffix("_generation").is_some_and(|stem| TASKS.contains(&stem))
}

/// The text of a field: a string, or the texts of a list of blocks.
fn text_of(body: &ChatBody<'_>, name: &str) -> Option<String> {
    let place = body.fields().place(name)?;
    Some(completions::said(body.fields().text(), &place).0).filter(|text| !text.is_empty())
}

/// The traits of a prompt that matter.
#[derive(Debug, Default)]
struct Traits {
    /// The task that it asks for.
    wanted: Option<Wanted>,
    /// It says at once that it wants a summary, or a label.
    opens_with_summary: bool,
    opens_with_label: bool,
    /// It orders something.
    is_order: bool,
    /// It is about a conversation.
    is_about_chat: bool,
    /// It is about one message.
    is_about_message: bool,
    /// It prescribes the form of the answer.
    has_form: bool,
    /// It wants the label and nothing else.
    wants_label_alone: bool,
    /// It encloses a conversation or a text.
    encloses: bool,
    /// It says that another program uses the answer.
    is_for_program: bool,
    /// It says that another model goes on.
    is_for_model: bool,
    /// It is written as a template.
    is_template: bool,
    /// It is to talk with the user.
    talks: bool,
    /// Somebody speaks of himself.
    is_personal: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// A title, tags, follow-up questions, search queries.
    Label,
    /// The rest of a text that somebody writes.
    Completion,
    Summary,
    /// The user's question as one that stands alone.
    Question,
    /// The tool to call.
    Tool,
}

impl Traits {
    fn of(text: &str) -> Self {
        // Most messages ask for nothing of this, and long ones are not read as a whole to see it.
        let ends = ends(text).to_lowercase();
        if wanted(&ends).is_none() {
            return Self { encloses: encloses(&ends), ..Self::default() };
        }
        let lower = text.to_lowercase();
        let frame = frame(&lower);
        let head: String = frame.chars().take(HEAD_CHARS).collect();
        let opening = opening(&head);
        let wanted = wanted(&head);
        Self {
            wanted,
            opens_with_summary: has(&opening, SUMMARIES),
            opens_with_label: has_label(&opening),
            is_order: head.lines().any(is_order) || has(&head, ORDERS) || has(&head, CHINESE_ORDERS),
            is_about_chat: has(&frame, CHATS) || names_this_chat(&frame),
            is_about_message: has(&frame, MESSAGES),
            has_form: has(&frame, FORMS) || limits_length(&frame),
            wants_label_alone: wants_label_alone(&frame),
            encloses: encloses(&lower),
            is_for_program: has(&frame, PROGRAMS),
            is_for_model: has(&frame, OTHER_MODELS),
            is_template: has(&head, &["### task", "task is to"]),
            talks: talks(&head) || has_part(&head),
            is_personal: is_personal(&frame),
        }
    }

    /// Whether the last message of a chat is a program's. `has_chat` tells that the conversation stands in front of it.
    fn are_asked_by_program(&self, has_chat: bool) -> bool {
        if self.talks || self.is_personal && self.wanted != Some(Wanted::Completion) {
            return false;
        }
        match self.wanted {
            // A summary may have tags.
            Some(Wanted::Label) => {
                self.is_label_order() && (self.encloses || has_chat && self.has_form)
                    || self.opens_with_summary && self.is_summary_order(has_chat)
            }
            Some(Wanted::Completion) => self.is_order && self.encloses,
            Some(Wanted::Question) => self.is_about_chat && (self.encloses || has_chat),
            Some(Wanted::Tool) => self.is_order && self.has_form && self.encloses,
            Some(Wanted::Summary) => self.is_summary_order(has_chat),
            None => false,
        }
    }

    /// Whether instructions make a program's request of all that follows.
    fn instruct_for_program(&self, asked: &Self, has_replies: bool) -> bool {
        if self.talks {
            return false;
        }
        let is_summary = self.is_about_chat && self.opens_with_summary && self.is_order;
        let wants_summary = asked.wanted == Some(Wanted::Summary) && asked.is_order && asked.is_about_chat;
        match self.wanted {
            Some(Wanted::Question) => self.is_about_chat,
            Some(Wanted::Label | Wanted::Summary) if is_summary && (self.is_for_program || wants_summary) => {
                true
            }
            // A chat whose instructions are housekeeping has nothing but the conversation that they are about.
            _ if has_replies => false,
            Some(Wanted::Label) => {
                let opens = self.opens_with_label || self.opens_with_summary;
                opens && self.is_label_order() && (self.has_form || self.encloses || asked.encloses)
            }
            Some(Wanted::Summary) => is_summary && self.has_form,
            Some(Wanted::Completion) => self.is_order && (self.encloses || asked.encloses),
            Some(Wanted::Tool) => self.is_order && self.has_form && (self.encloses || asked.encloses),
            None => false,
        }
    }

    /// Whether it orders a summary for a program. People ask for summaries of their chats too.
    fn is_summary_order(&self, has_chat: bool) -> bool {
        let is_of_chat = self.encloses && self.has_form || has_chat && self.is_for_program;
        self.is_order && (self.is_about_chat && is_of_chat || has_chat && self.is_for_model)
    }

    /// Whether it orders a label of a conversation, or of a message and nothing else.
    fn is_label_order(&self) -> bool {
        let is_of_message = self.is_about_message && (self.wants_label_alone || self.is_template);
        self.is_order && (self.is_about_chat || is_of_message)
    }
}

/// The task that a text asks for.
fn wanted(text: &str) -> Option<Wanted> {
    if has(text, COMPLETIONS) {
        Some(Wanted::Completion)
    } else if has(text, STANDALONE) && has(text, REWRITES) {
        Some(Wanted::Question)
    } else if has_label(text) {
        Some(Wanted::Label)
    } else if has(text, SUMMARIES) {
        Some(Wanted::Summary)
    } else if has(text, TOOL_CHOICES) {
        Some(Wanted::Tool)
    } else {
        None
    }
}

/// The beginning and the end of a text, where an order stands.
fn ends(text: &str) -> Cow<'_, str> {
    if text.len() <= 2 * END_BYTES {
        return Cow::Borrowed(text);
    }
    let (head, tail) = (text.floor_char_boundary(END_BYTES), text.ceil_char_boundary(text.len() - END_BYTES));
    Cow::Owned(format!("{}\n{}", &text[..head], &text[tail..]))
}

fn encloses(text: &str) -> bool {
    has(text, ENCLOSURES) || is_transcript(text)
}

fn has(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

fn has_label(text: &str) -> bool {
    has_word(text, LABELS) || has(text, LONG_LABELS) || has(text, CHINESE_LABELS)
}

/// The part of a prompt that says what it is: who the reader is, and the first sentence after that.
fn opening(text: &str) -> String {
    let mut opening = String::new();
    for sentence in text.split(['.', '\n', '。', ';']).map(str::trim) {
        opening.push_str(sentence);
        opening.push('\n');
        let is_heading = sentence.starts_with('#') || sentence.ends_with(':') || sentence.chars().count() < 8;
        let is_part = sentence.starts_with("you are ") || sentence.starts_with("act as");
        if !is_heading && !is_part {
            break;
        }
    }
    opening
}

/// A text without the conversation that it encloses: what is said there is no part of the order.
fn frame(text: &str) -> String {
    let mut frame = text.to_owned();
    for opening in ENCLOSURES.iter().filter(|tag| tag.starts_with('<')) {
        let closing = opening.replacen('<', "</", 1);
        let Some((from, to)) = frame.find(opening).zip(frame.rfind(&closing)) else { continue };
        if from < to {
            frame.replace_range(from + opening.len()..to, "");
        }
    }
    let frame = without_fenced(&frame);
    if is_transcript(&frame) { without_messages(&frame) } else { frame }
}

/// A text without its quoted parts: every second one, except the last one of a mark that is not closed.
fn without_fenced(text: &str) -> String {
    let parts: Vec<&str> = text.split(FENCE).collect();
    let is_open = parts.len().is_multiple_of(2);
    let is_kept = |place: usize| place.is_multiple_of(2) || is_open && place + 1 == parts.len();
    let kept = parts.iter().enumerate().filter(|(place, _)| is_kept(*place));
    kept.map(|(_, part)| *part).collect::<Vec<_>>().concat()
}

/// A transcript without its messages, each of which goes on to the next empty line.
fn without_messages(transcript: &str) -> String {
    let mut is_said = false;
    let mut is_kept = |line: &&str| {
        is_said = is_speaker(line) || is_said && !line.trim().is_empty();
        !is_said
    };
    transcript.lines().filter(|line| is_kept(line)).collect::<Vec<_>>().join("\n")
}

/// Whether somebody speaks of himself, before anything that is enclosed.
fn is_personal(frame: &str) -> bool {
    let before = frame.lines().take_while(|line| !is_speaker(line)).collect::<Vec<_>>().join("\n");
    has_word(&before.replace("i.e.", ""), &["my", "i", "mine"]) || before.contains("我的")
}

fn is_speaker(line: &str) -> bool {
    speaker(line).is_some_and(|name| USERS.contains(&name) || MODELS.contains(&name))
}

/// Whether a text asks for a label and nothing else: «return only the title».
fn wants_label_alone(text: &str) -> bool {
    let words: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric() && c != '-').filter(|word| !word.is_empty()).collect();
    words.iter().enumerate().any(|(place, word)| {
        *word == "only" && words[place + 1..].iter().take(3).any(|word| LABELS.contains(word))
    })
}

/// Whether a text orders to talk with the user: «answer politely», and not «answer only with the title».
fn talks(text: &str) -> bool {
    let english = text
        .split(['.', ',', ';', ':', '!', '?', '\n'])
        .flat_map(|clause| clause.split(" and "))
        .any(|clause| {
            let mut words =
                clause.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty());
            let first =
                words.find(|word| !matches!(*word, "then" | "please" | "always" | "you" | "will" | "should"));
            let next = words.next().unwrap_or_default();
            first.is_some_and(|verb| TALKING.contains(&verb))
                && !next.is_empty()
                && !FORM_WORDS.contains(&next)
        });
    let chinese = |word: &&str| {
        text.match_indices(*word).any(|(at, _)| {
            let before: String = text[..at].chars().rev().take(3).collect();
            !before.contains(['不', '勿', '别', '无'])
        })
    };
    let answers = |word: &&str| {
        text.match_indices(*word).any(|(at, _)| {
            let before: String = text[..at].chars().rev().take(12).collect();
            // Reversed: «not», «never», «without».
            !["ton", "t'n", "reven", "tuohtiw"].iter().any(|negation| before.contains(negation))
        })
    };
    english || ANSWERS.iter().any(answers) || CHINESE_TALKING.iter().any(chinese)
}

/// Whether a text gives its reader a part that has nothing to do with labels: «you are a museum guide».
fn has_part(text: &str) -> bool {
    let english = ["you are a ", "you are an ", "you are the ", "act as a "];
    let parts =
        english.iter().chain(&["你是"]).filter_map(|begin| text.split_once(begin).map(|(_, part)| part));
    parts.into_iter().any(|part| {
        let end = part.find(['.', ',', '\n', '，', '。', ';']).unwrap_or(part.len());
        !has(&part[..end], PLAIN_ROLES)
    })
}

/// Whether one of the words is in a text as a whole word.
fn has_word(text: &str, words: &[&str]) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '-';
    text.split(|c: char| !is_part(c)).any(|word| words.contains(&word))
}

/// Whether a line begins with an order.
fn is_order(line: &str) -> bool {
    line.split(['.', ':', ';']).any(|sentence| {
        let words =
            sentence.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty());
        let mut words =
            words.skip_while(|word| matches!(*word, "please" | "now" | "then" | "task") || is_number(word));
        words.next().is_some_and(|word| VERBS.contains(&word))
    })
}

fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a text points at a conversation: «this chat», «the following conversation».
fn names_this_chat(text: &str) -> bool {
    let words: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty()).collect();
    words.windows(2).enumerate().any(|(place, pair)| {
        let after = words.get(place + 2).copied().unwrap_or_default();
        POINTERS.contains(&pair[0]) && TALKS.contains(&pair[1]) && !OTHER_CHATS.contains(&after)
    })
}

/// Whether a text limits the length of the answer: «3-5 words», «under fifty characters».
fn limits_length(text: &str) -> bool {
    const NUMBERS: &[&str] =
        &["two", "three", "four", "five", "six", "seven", "eight", "ten", "twenty", "fifty", "few", "one"];
    const UNITS: &[&str] = &["word", "words", "character", "characters", "letters", "tokens", "sentence"];
    let words: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    words
        .windows(2)
        .any(|pair| (is_number(pair[0]) || NUMBERS.contains(&pair[0])) && UNITS.contains(&pair[1]))
}

/// Whether some lines begin with the name of one speaker and others with that of the other.
fn is_transcript(text: &str) -> bool {
    let speakers = || text.lines().filter_map(speaker);
    speakers().any(|speaker| USERS.contains(&speaker)) && speakers().any(|speaker| MODELS.contains(&speaker))
}

/// The name before the colon of a line.
fn speaker(line: &str) -> Option<&str> {
    let line = line.trim_start_matches(|c: char| !c.is_alphanumeric());
    line.split_once([':', '：']).map(|(speaker, _)| speaker.trim_end_matches(['*', '"', '>']))
}

const USERS: &[&str] = &["user", "human", "用户", "问"];
const MODELS: &[&str] = &["assistant", "ai", "response", "model", "bot", "claude", "助手", "助理", "答"];

#[cfg(test)]
mod tests;
