//! The forms of files that other programs write, recognised by their content or named by the caller.
//!
//! A file is read and understood completely before anything is written. Start reading at [`read`]. Folders of other memory
//! programs are not read here; [`recognise`] is where their forms would be told apart.

mod chatgpt;
mod claude;
pub(crate) mod mem0;
mod neutral;
mod notes;
mod openai;

use std::io::Read;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use strata_core::error::{io_reason, shown};
use strata_core::names::{Named, unknown};
use strata_core::{Error, Result};

use crate::foreign::{Chat, Contents, Said};

/// A form of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, strum::EnumString, strum::VariantArray)]
#[strum(serialize_all = "lowercase", parse_err_ty = Error, parse_err_fn = unknown::<Format>)]
pub enum Format {
    /// An export of Strata.
    Strata,
    /// Logs of OpenAI's chat API, as JSON lines.
    OpenAi,
    /// A data export of ChatGPT.
    ChatGpt,
    /// A data export of Claude.
    Claude,
    /// The answer of mem0's `get_all`.
    Mem0,
    /// Conversations of a benchmark, as JSON lines.
    Neutral,
    /// Markdown.
    Markdown,
    /// Plain text.
    Text,
}

impl Format {
    /// The name that people write.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Named for Format {
    const WHAT: &'static str = "format";
}

/// The largest file that is read into memory.
const MAX_BYTES: u64 = 4 << 30;

/// A file that was read, and its form.
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    /// The name of the session that the whole file becomes.
    pub(crate) name: String,
    /// The file's name without the extension, for sessions that have no name of their own.
    stem: String,
    pub(crate) texts: Vec<String>,
    modified: Option<Timestamp>,
}

/// Reads a file, a `.gz` or the conversations inside a `.zip`.
pub(crate) fn read(path: &Path) -> Result<Source> {
    let cannot = |error: std::io::Error| {
        Error::not_found(format!(
            "`{}` cannot be read: {}; check the path",
            path.display(),
            io_reason(&error)
        ))
        .with_source(error)
    };
    let metadata = path.metadata().map_err(cannot)?;
    let inner = path.join("conversations.json");
    if metadata.is_dir() && inner.is_file() {
        return read(&inner);
    }
    if metadata.is_dir() {
        return Err(Error::invalid(format!("`{}` is a folder; name a file in it", path.display())));
    }
    if metadata.len() > MAX_BYTES {
        return Err(Error::too_large(format!(
            "`{}` has more than {MAX_BYTES} bytes; import it in parts",
            path.display()
        )));
    }
    let bytes = std::fs::read(path).map_err(cannot)?;
    let parts = match &bytes[..bytes.len().min(4)] {
        b"PK\x03\x04" => unzipped(path, bytes)?,
        [0x1f, 0x8b, ..] => vec![gunzipped(path, &bytes)?],
        _ => vec![bytes],
    };
    let texts = parts.into_iter().map(|bytes| as_text(path, bytes)).collect::<Result<_>>()?;
    let modified = metadata.modified().ok().and_then(|time| Timestamp::try_from(time).ok());
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = name.split('.').next().filter(|stem| !stem.is_empty()).unwrap_or(&name).to_owned();
    Ok(Source { path: path.to_owned(), name, stem, texts, modified })
}

fn as_text(path: &Path, bytes: Vec<u8>) -> Result<String> {
    let text = String::from_utf8(bytes).map_err(|error| {
        let line =
            1 + error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|b| **b == b'\n').count();
        damaged(path, line as u64, "the text is not UTF-8")
    })?;
    if text.contains('\0') {
        return Err(Error::invalid(format!("`{}` is not a text file", path.display())));
    }
    // Editors on Windows put a byte order mark first.
    Ok(text.strip_prefix('\u{feff}').map_or(text.clone(), str::to_owned))
}

fn gunzipped(path: &Path, bytes: &[u8]) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let unpacked = flate2::read::MultiGzDecoder::new(bytes).take(MAX_BYTES).read_to_end(&mut text);
    unpacked.map_err(|error| {
        let reason = io_reason(&error);
        Error::invalid(format!("`{}` cannot be unpacked: {reason}; nothing was imported", path.display()))
    })?;
    Ok(text)
}

/// The files `conversations*.json` of an archive, in the order of their names.
fn unzipped(path: &Path, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>> {
    let damaged = |error: &dyn std::fmt::Display| {
        Error::invalid(format!("`{}` cannot be unpacked: {error}; nothing was imported", path.display()))
    };
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(bytes)).map_err(|error| damaged(&error))?;
    let is_wanted = |name: &String| {
        let name = name.rsplit('/').next().unwrap_or_default();
        name.starts_with("conversations") && name.ends_with(".json")
    };
    let names = archive.file_names().filter_map(|name| name.ok().map(|name| name.into_owned()));
    let mut names: Vec<String> = names.filter(is_wanted).collect();
    names.sort();
    if names.is_empty() {
        return Err(Error::invalid(format!(
            "`{}` holds no `conversations.json`; name the data export of ChatGPT or Claude",
            path.display()
        )));
    }
    let mut parts = Vec::new();
    for name in names {
        let file = archive.by_name(&name).map_err(|error| damaged(&error))?;
        let mut part = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut part).map_err(|error| damaged(&error))?;
        parts.push(part);
    }
    Ok(parts)
}

/// Extensions of program code and of its data. Its paragraphs would become turns that were never said.
const CODE: [&str; 44] = [
    "py", "rs", "js", "mjs", "cjs", "ts", "tsx", "jsx", "java", "kt", "c", "h", "cc", "cpp", "hpp", "cs",
    "go", "rb", "php", "swift", "scala", "lua", "pl", "r", "jl", "hs", "ex", "exs", "erl", "clj", "dart",
    "sh", "bash", "zsh", "ps1", "sql", "css", "scss", "vue", "ipynb", "toml", "yaml", "yml", "xml",
];

/// The form of a file, by its content.
pub(crate) fn recognise(source: &Source) -> Result<Format> {
    let text = source.texts.first().map_or("", String::as_str).trim_start();
    if text.is_empty() {
        return Err(Error::invalid(format!("`{}` is empty", source.path.display())));
    }
    let first = text.lines().next().unwrap_or_default();
    let by_keys = match text.as_bytes()[0] {
        b'{' => match serde_json::from_str::<Map<String, Value>>(first) {
            Ok(keys) => form_of(&keys),
            // An object over several lines.
            Err(_) => serde_json::from_str::<Map<String, Value>>(text).ok().and_then(|keys| form_of(&keys)),
        },
        b'[' => first_of_list(text).and_then(|keys| form_of(&keys)),
        _ => None,
    };
    if let Some(form) = by_keys {
        return Ok(form);
    }
    let extension = source.path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    let is_named_json = matches!(extension.as_deref(), Some("json" | "jsonl" | "ndjson"));
    if is_named_json || text.starts_with('{') || is_json_list(text) || is_json(text) && extension.is_none() {
        return Err(unrecognised(source, text, first));
    }
    if extension.as_deref().is_some_and(|extension| CODE.contains(&extension)) {
        return Err(Error::invalid(format!(
            "`{0}` is a file of program code, not a conversation or notes; to import it as text all the same, use `strata import text {0}`",
            source.path.display()
        )));
    }
    if matches!(extension.as_deref(), Some("csv" | "tsv" | "xls" | "xlsx" | "ods")) {
        return Err(Error::invalid(format!(
            "`{0}` is a table, and its rows are neither messages nor notes; turn each row into a line such as \
             `{{\"role\": \"user\", \"content\": \"…\"}}` of a `.jsonl` file, or use `strata import text {0}` to import it as text all the same",
            source.path.display()
        )));
    }
    let is_markdown = matches!(extension.as_deref(), Some("md" | "markdown"))
        || (extension.is_none() && (text.starts_with("# ") || text.starts_with("---\n")));
    Ok(if is_markdown { Format::Markdown } else { Format::Text })
}

fn unrecognised(source: &Source, text: &str, first: &str) -> Error {
    let whole = source.texts.first().map_or(text, String::as_str);
    let blank = whole[..whole.len() - whole.trim_start().len()].matches('\n').count() as u64;
    let is_whole = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text);
    // JSON lines are whole line by line.
    let damage = if is_whole(first).is_ok() && !first.starts_with('[') { None } else { is_whole(text).err() };
    if let Some(error) = damage {
        return damaged(&source.path, blank + error.line() as u64, &reason(&error));
    }
    if !text.starts_with('{') && first_of_list(text).is_none() {
        let what = format!("`{}` is no object that holds a conversation or a memory", shown(first));
        return damaged(&source.path, blank + 1, &what);
    }
    Error::invalid(format!(
        "`{}` has no form that Strata knows (it begins with `{}`); name its format, as in `strata import openai FILE`",
        source.path.display(),
        shown(first)
    ))
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// Whether a text is a list of JSON, or the damaged beginning of one. A note may begin with a bracket too, as in `[x] done`.
fn is_json_list(text: &str) -> bool {
    text.starts_with("[{")
        || text.starts_with("[\n")
        || text.starts_with("[\r\n")
        || text.starts_with('[') && is_json(text)
}

/// The first object of a JSON list, also of a list that is damaged further on.
fn first_of_list(text: &str) -> Option<Map<String, Value>> {
    let rest = text.strip_prefix('[')?;
    serde_json::Deserializer::from_str(rest).into_iter().next()?.ok()
}

fn form_of(keys: &Map<String, Value>) -> Option<Format> {
    let has = |name: &str| keys.contains_key(name);
    Some(match () {
        () if has("strata") => Format::Strata,
        () if has("mapping") => Format::ChatGpt,
        () if has("chat_messages") => Format::Claude,
        () if has("sessions") && has("conversation_id") => Format::Neutral,
        () if has("memory") || keys.get("results").is_some_and(Value::is_array) => Format::Mem0,
        () if has("messages") || has("request") || has("body") || (has("role") && has("content")) => {
            Format::OpenAi
        }
        () => return None,
    })
}

/// Understands a file of a known form. With `skip_bad`, conversations and lines of a wrong shape are counted and left out.
pub(crate) fn understand(source: &Source, format: Format, skip_bad: bool) -> Result<Contents> {
    let mut reading = Reading { source, skip_bad, contents: Contents::default() };
    for text in &source.texts {
        match format {
            Format::OpenAi => openai::read(text, &mut reading)?,
            Format::ChatGpt => chatgpt::read(text, &mut reading)?,
            Format::Claude => claude::read(text, &mut reading)?,
            Format::Mem0 => mem0::read(text, &mut reading)?,
            Format::Neutral => neutral::read(text, &mut reading)?,
            Format::Markdown | Format::Text => notes::read(text, format, &mut reading),
            Format::Strata => return Err(Error::internal("an export of Strata is read by `archive`")),
        }
    }
    Ok(reading.contents)
}

/// Understands any bytes, in the form that they seem to have and in every other one.
#[cfg(feature = "fuzz")]
pub(crate) fn fuzz_understand(data: &[u8]) {
    let path = PathBuf::from("file");
    let Ok(text) = as_text(&path, data.to_vec()) else { return };
    let name = "file".to_owned();
    let source = Source { path, stem: name.clone(), name, texts: vec![text], modified: None };
    let _ = recognise(&source);
    for format in <Format as strum::VariantArray>::VARIANTS {
        for skip_bad in [false, true] {
            let _ = understand(&source, *format, skip_bad);
        }
    }
}

/// A file that is being understood.
pub(crate) struct Reading<'a> {
    source: &'a Source,
    skip_bad: bool,
    contents: Contents,
}

impl Reading<'_> {
    /// Takes the part at a place, or the reason why it cannot be understood.
    fn take<T>(&mut self, line: u64, what: &str, part: Result<T, String>) -> Result<Option<T>> {
        match part {
            Ok(part) => Ok(Some(part)),
            Err(reason) if self.skip_bad => {
                self.contents.skipped.add(format!("line {line}, {what}: {reason}"));
                Ok(None)
            }
            Err(reason) => Err(damaged(&self.source.path, line, &format!("{what}: {reason}"))),
        }
    }

    /// Adds a conversation of an export, with its id and title if the export has them.
    fn add_chat(
        &mut self,
        number: u64,
        id: Option<String>,
        title: Option<String>,
        place: String,
        messages: Vec<Said>,
    ) {
        let is_named_by_file = id.is_none();
        let session = id.unwrap_or_else(|| self.session(number));
        let title = title.filter(|title| !title.trim().is_empty());
        let chat = Chat { session, is_named_by_file, title, place, messages, ..Chat::default() };
        self.contents.chats.push(chat);
    }

    /// The name of a session that the file does not name.
    fn session(&self, suffix: impl std::fmt::Display) -> String {
        format!("{}-{suffix}", self.source.stem)
    }
}

/// The error for a file that cannot be understood.
fn damaged(path: &Path, line: u64, reason: &str) -> Error {
    Error::invalid(format!("`{}` is damaged: line {line}: {reason}; nothing was imported", path.display()))
}

/// The objects of a JSON list, each with the number of its first line. One object alone is a list of one.
fn objects<'a>(text: &'a str, path: &Path) -> Result<Vec<(u64, &'a RawValue)>> {
    let list: Vec<&RawValue> = if text.trim_start().starts_with('[') {
        serde_json::from_str(text)
    } else {
        serde_json::from_str(text).map(|one: &RawValue| vec![one])
    }
    .map_err(|error| damaged(path, error.line() as u64, &reason(&error)))?;
    let (mut lines, mut before) = (1, 0);
    let place = |raw: &RawValue| raw.get().as_ptr() as usize - text.as_ptr() as usize;
    let placed = list.into_iter().map(|raw| {
        let here = place(raw);
        lines += text.as_bytes()[before..here].iter().filter(|byte| **byte == b'\n').count() as u64;
        before = here;
        (lines, raw)
    });
    Ok(placed.collect())
}

/// The lines that are not blank, each with its number.
fn lines(text: &str) -> impl Iterator<Item = (u64, &str)> {
    (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty())
}

/// The reason of a parser, without a place that is relative to a part of the file.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let short = text.split(" at line ").next().unwrap_or_default();
    format!("{short}, at column {}", error.column())
}

/// A time in the forms that programs write: a number since the epoch, or a text like ISO 8601.
fn moment(value: Option<&Value>) -> Option<Timestamp> {
    match value? {
        Value::Number(number) => crate::values::number(number.as_f64()?),
        Value::String(text) => crate::values::written(text),
        _ => None,
    }
}
