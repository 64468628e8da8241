//! `strata record`: records turns from stdin, one JSON object or one plain text per line.
//!
//! Lines that have arrived together are recorded together, so that a long file is fast and a slow stream is recorded at once.
//! Reading stops at the first bad line; the lines before it are recorded.

use std::io::{self, BufRead, BufReader, IsTerminal, Read};

use indicatif::{ProgressBar, ProgressStyle};
use jiff::Timestamp;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use strata_core::moment::parse_moment;
use strata_core::turn::{Metadata, NewMessage, TurnNotes};
use strata_core::{Role, SessionId, UserId};
use strata_engine::Engine;
use strata_server::wire::RecordedTurn;
use strata_server::wire::Usage;
use tokio::sync::mpsc;

use super::learn::{Report, drain, eager_engine};
use super::{Context, JsonArgs, UserArgs};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Output};

/// Record turns from stdin
///
/// Each line is a JSON object with role, content, and optionally name, created_at and metadata; or plain text, which the user
/// says. A line that begins with `{` is always JSON.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  strata record --session trip < turns.jsonl\n  \
    echo \"My train leaves at nine.\" | strata record --session trip\n  \
    echo '{\"role\": \"user\", \"content\": \"I moved to Lisbon\", \"created_at\": \"2026-03-01\"}' | strata record")]
pub(crate) struct Args {
    #[command(flatten)]
    user: UserArgs,
    /// The session to append to
    #[arg(long, value_name = "SESSION", default_value = "default")]
    session: SessionId,
    /// Who says plain lines: user, assistant, system or tool
    #[arg(long, value_name = "ROLE", default_value = "user")]
    role: Role,
    /// Afterwards, learn from everything in the queue [default: a server or `strata learn` does this]
    #[arg(long)]
    learn: bool,
    /// Print one line {id, seq} for each turn as soon as it is durable
    #[arg(long)]
    json: bool,
}

/// The maximum number of turns and bytes of a batch: large enough that the cost of a commit does not matter, small enough
/// that a bad line is reported soon.
const BATCH_TURNS: usize = 500;
const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// One line of the input.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LineRequest {
    role: Role,
    content: String,
    name: Option<String>,
    #[serde(default, deserialize_with = "moment")]
    created_at: Option<Timestamp>,
    #[serde(default)]
    metadata: Option<Metadata>,
    #[serde(default)]
    interrupted: bool,
    #[serde(default)]
    tool_calls: Vec<Map<String, Value>>,
    tool_call_id: Option<String>,
    failed: Option<bool>,
    #[serde(default)]
    usage: Usage,
    #[serde(default)]
    high_value: bool,
}

impl LineRequest {
    fn into_message(self) -> NewMessage {
        let notes = TurnNotes {
            interrupted: self.interrupted,
            tool_calls: self.tool_calls.into_iter().map(Value::Object).collect(),
            tool_call_id: self.tool_call_id,
            failed: self.failed,
            usage: self.usage.into(),
            high_value: self.high_value,
            ..TurnNotes::default()
        };
        NewMessage {
            name: self.name,
            created_at: self.created_at,
            metadata: self.metadata.unwrap_or_default(),
            notes,
            ..NewMessage::new(self.role, self.content)
        }
    }
}

fn moment<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let text: Option<String> = Option::deserialize(deserializer)?;
    text.map(|text| parse_moment(&text).map_err(serde::de::Error::custom)).transpose()
}

/// A line of the input: its number, its length, and its message or the reason why it is bad.
struct Line {
    number: u64,
    bytes: usize,
    message: Result<NewMessage, String>,
}

pub(crate) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    let Args { user, session, role, learn, json } = args;
    let user = user.of(context);
    let engine = if learn { eager_engine(context).await? } else { context.engine_to_write().await? };
    if io::stdin().is_terminal() {
        output::note("reading turns, one text or JSON object per line; end with Ctrl-D");
    }
    let most_bytes = context.config.engine.limits.max_turn_bytes.saturating_mul(16).saturating_add(64 * 1024);
    let batch_turns = BATCH_TURNS.min(context.config.engine.limits.max_turns_per_call);
    let (sender, mut lines) = mpsc::channel(2 * BATCH_TURNS);
    // A thread and not a task, because it may wait for stdin forever, and the runtime waits for its tasks.
    std::thread::spawn(move || read_lines(BufReader::new(io::stdin()), most_bytes, role, &sender));

    let mut recorder = Recorder { engine, user, session, json, recorded: 0, progress: progress() };
    let mut outcome = Ok(());
    while let Some(first) = lines.recv().await {
        let mut batch = vec![first];
        let mut bytes = batch[0].bytes;
        while batch.len() < batch_turns && bytes < BATCH_BYTES {
            let Ok(line) = lines.try_recv() else { break };
            bytes += line.bytes;
            batch.push(line);
        }
        outcome = recorder.record(batch, output).await;
        if outcome.is_err() {
            break;
        }
    }
    recorder.progress.finish_and_clear();
    outcome?;
    if !json {
        let (count, session) = (recorder.recorded, &recorder.session);
        output.line(format_args!("recorded {count} {} in session `{session}`", turns(count)))?;
    }
    if learn {
        let mut report = Report::default();
        drain(&recorder.engine, Some(&recorder.user), context.config.learning.workers(), &mut report).await?;
        report.print(JsonArgs { json }, output)?;
    }
    Ok(())
}

/// Sends each line of `input` with its number, until the input ends, a line is bad, or the receiver is closed.
fn read_lines(mut input: impl BufRead, most_bytes: usize, role: Role, sender: &mpsc::Sender<Line>) {
    for number in 1.. {
        let mut bytes = Vec::new();
        let read = input.by_ref().take(most_bytes as u64 + 1).read_until(b'\n', &mut bytes);
        let message = match read {
            Ok(0) => return,
            Ok(length) if length > most_bytes => Err(format!(
                "the line is longer than {most_bytes} bytes (16 times the setting `max_turn_bytes`)"
            )),
            Ok(_) if is_blank(&bytes) => continue,
            Ok(_) => parse_line(&bytes, role),
            Err(error) => Err(format!("stdin cannot be read: {error}")),
        };
        let last = message.is_err();
        if sender.blocking_send(Line { number, bytes: bytes.len(), message }).is_err() || last {
            return;
        }
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

/// The message of a line; `role` says a plain one.
fn parse_line(line: &[u8], role: Role) -> Result<NewMessage, String> {
    // Editors on Windows put a byte order mark before the first line.
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let line = std::str::from_utf8(line).map_err(|_| "the line is not valid UTF-8".to_owned())?.trim();
    // A list of messages is meant for another command; no message is a list.
    if line.starts_with('[') && serde_json::from_str::<Vec<Value>>(line).is_ok() {
        return Err(
            "the line is a JSON list; write each message as `{\"role\": …, \"content\": …}` on its own line"
                .to_owned(),
        );
    }
    if !line.starts_with('{') {
        return Ok(NewMessage::new(role, line));
    }
    let line: LineRequest = serde_json::from_str(line).map_err(|error| {
        let error = error.to_string();
        // The line number is always 1 here, so it is left out.
        error.replace(" at line 1 column ", " at column ")
    })?;
    Ok(line.into_message())
}

struct Recorder {
    engine: Engine,
    user: UserId,
    session: SessionId,
    json: bool,
    recorded: u64,
    progress: ProgressBar,
}

impl Recorder {
    /// Records the lines up to the first bad one.
    async fn record(&mut self, batch: Vec<Line>, output: &mut Output) -> Outcome {
        let mut messages = Vec::with_capacity(batch.len());
        let mut bytes = 0;
        let mut bad = None;
        for line in batch {
            bytes += line.bytes;
            match line.message {
                Ok(message) => messages.push((line.number, message)),
                Err(wrong) => {
                    bad = Some((line.number, wrong));
                    break;
                }
            }
        }
        if !messages.is_empty() {
            self.record_good(messages, output).await?;
        }
        self.progress.inc(bytes as u64);
        match bad {
            Some((number, wrong)) => Err(self.stopped(number, &wrong)),
            None => Ok(()),
        }
    }

    async fn record_good(&mut self, messages: Vec<(u64, NewMessage)>, output: &mut Output) -> Outcome {
        let all = messages.iter().map(|(_, message)| message.clone()).collect();
        match self.append(all, output).await {
            // The engine refused one message and recorded none. Recording them one by one finds the bad one.
            Err(Failure::Usage(_)) => {
                for (number, message) in messages {
                    match self.append(vec![message], output).await {
                        Err(Failure::Usage(error)) => return Err(self.stopped(number, &error.to_string())),
                        other => other?,
                    }
                }
                Ok(())
            }
            Err(Failure::Failed(error)) => {
                let (count, first) = (self.recorded, messages.first().map_or(0, |(number, _)| *number));
                let context = format!(
                    "line {first} and those after it were not recorded; {count} {} before it were",
                    turns(count)
                );
                Err(Failure::Failed(error.context(context)))
            }
            other => other,
        }
    }

    async fn append(&mut self, messages: Vec<NewMessage>, output: &mut Output) -> Outcome {
        let recorded = self.engine.recording.record(&self.user, &self.session, messages, None).await?;
        self.recorded += recorded.turns.len() as u64;
        self.progress.set_message(format!("{} turns", self.recorded));
        if self.json {
            for turn in &recorded.turns {
                output.json_line(&RecordedTurn::from(turn))?;
            }
            output.flush()?;
        }
        Ok(())
    }

    /// The error for a bad line. The input is wrong and not the call, so it is a failure and not wrong usage.
    fn stopped(&self, number: u64, wrong: &str) -> Failure {
        let count = self.recorded;
        Failure::failed(format!(
            "line {number}: {wrong}; {count} {} recorded before it; correct the line and continue from there",
            if count == 1 { "turn was" } else { "turns were" }
        ))
    }
}

fn turns(count: u64) -> &'static str {
    if count == 1 { "turn" } else { "turns" }
}

/// The progress bar: of a file, how much is read; of a stream, how much has arrived. It is hidden if stderr is not a terminal
/// or if stdin is one.
fn progress() -> ProgressBar {
    if io::stdin().is_terminal() {
        return ProgressBar::hidden();
    }
    let (bar, template) = match stdin_length() {
        Some(length) => (ProgressBar::new(length), "{bar:40} {bytes}/{total_bytes} {msg} {eta}"),
        None => (ProgressBar::new_spinner(), "{spinner} {bytes} {msg}"),
    };
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// The length of the file that stdin reads from, if it is a file.
#[cfg(unix)]
fn stdin_length() -> Option<u64> {
    use std::os::fd::AsFd;
    let file = std::fs::File::from(io::stdin().as_fd().try_clone_to_owned().ok()?);
    let metadata = file.metadata().ok()?;
    metadata.is_file().then_some(metadata.len())
}

#[cfg(not(unix))]
fn stdin_length() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_message() {
        let line =
            r#"{"role":"user","content":"hi","name":"ada","created_at":"2026-03-01","metadata":{"a":1}}"#;
        let message = parse_line(line.as_bytes(), Role::User).unwrap();
        assert_eq!((message.role, message.content.as_str()), (Role::User, "hi"));
        assert_eq!(message.name.as_deref(), Some("ada"));
        assert_eq!(message.created_at.unwrap().to_string(), "2026-03-01T00:00:00Z");
        assert_eq!(message.metadata["a"], 1);
        let message = parse_line(
            b"\xef\xbb\xbf{\"role\":\"tool\",\"content\":\"\",\"created_at\":null}\r\n",
            Role::User,
        )
        .unwrap();
        assert_eq!((message.role, message.created_at), (Role::Tool, None));
        let message = parse_line("我的猫叫团团。 \n".as_bytes(), Role::User).unwrap();
        assert_eq!((message.role, message.content.as_str()), (Role::User, "我的猫叫团团。"));
        let message = parse_line(b"[sic] he said so", Role::Assistant).unwrap();
        assert_eq!((message.role, message.content.as_str()), (Role::Assistant, "[sic] he said so"));
    }

    #[test]
    fn a_bad_line_says_what_is_wrong() {
        let check = |line: &[u8], expected: &str| {
            let wrong = parse_line(line, Role::User).unwrap_err();
            assert!(wrong.contains(expected), "{wrong}");
        };
        check(b"{", "at column");
        check(b"[]", "a JSON list");
        check(br#"["user", "hi"]"#, "a JSON list");
        check(b"\xff\xfe", "not valid UTF-8");
        check(br#"{"role":"robot","content":"x"}"#, "`robot`");
        check(br#"{"role":"user"}"#, "missing field `content`");
        check(br#"{"role":"user","content":"x","contents":"y"}"#, "unknown field `contents`");
        check(br#"{"role":"user","content":"x","created_at":"now"}"#, "is no time");
        check(br#"{"role":"user","content":"x","metadata":[]}"#, "map");
    }
}
