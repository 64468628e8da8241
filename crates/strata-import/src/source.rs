//! Reads a foreign database on a blocking thread, conversation by conversation.
//!
//! The file is opened in a way that creates or changes no file beside it. The schema is read first, because columns have
//! different names in different programs. Messages are read in one pass, ordered by conversation and position.

use std::io::Read;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row};
use strata_core::{Error, ErrorKind, Result};
use strata_engine::ReadInto;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::at_row;
use super::values::moment;

/// The maximum number of messages in a batch, and of bytes of their content.
const BATCH_MESSAGES: usize = 500;
const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// The number of batches that wait for the writer, which is slower than the reader.
const WAITING: usize = 4;

/// A part of the database, in the order of reading.
pub(super) enum Event {
    /// The size of the database.
    Totals {
        /// All conversations.
        conversations: u64,
        /// All messages.
        messages: u64,
    },
    /// A conversation begins.
    Conversation(Conversation),
    /// The next messages of the conversation; an error for each row that cannot be read.
    Messages(Vec<Result<Message>>),
    /// The conversation has no more messages.
    End,
    /// The reader has failed and stops.
    Failed(Error),
}

/// A row of `conversations`, or an empty one if messages name a conversation without a row.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    pub(super) id: String,
    pub(super) title: Option<String>,
    pub(super) created_at: Option<Timestamp>,
    pub(super) summary: Option<String>,
    pub(super) diagnostic_state: Option<String>,
}

impl Conversation {
    /// If the program has stored a state or a summary, Strata imports them instead of deriving its own.
    pub(super) fn read_into(&self) -> ReadInto {
        let has_own = self.summary.is_some() || self.diagnostic_state.is_some();
        if has_own { ReadInto::Nothing } else { ReadInto::State }
    }
}

/// A row of `messages`.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) id: String,
    pub(super) role: String,
    pub(super) content: String,
    pub(super) created_at: Option<Timestamp>,
}

/// Starts to read. After the last event or a failure, the channel is closed.
pub(super) fn read(path: PathBuf) -> Receiver<Event> {
    let (sender, receiver) = channel(WAITING);
    tokio::task::spawn_blocking(move || {
        if let Err(ReadEnded::Failed(error)) = read_all(&path, &sender) {
            // If the receiver is closed, the error has no reader.
            let _ = sender.blocking_send(Event::Failed(error));
        }
    });
    receiver
}

/// Why the reader ended early.
enum ReadEnded {
    /// Reading failed.
    Failed(Error),
    /// The receiver is closed.
    ReceiverClosed,
}

impl From<Error> for ReadEnded {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

fn read_all(path: &Path, sender: &Sender<Event>) -> Result<(), ReadEnded> {
    let driver = |error| ReadEnded::Failed(translate(path, error));
    let conn = open(path)?;
    // All reads use one snapshot, because the other program may still write.
    conn.execute_batch("BEGIN").map_err(driver)?;
    let schema = Schema::read(&conn, path)?;
    let send = |event| sender.blocking_send(event).map_err(|_| ReadEnded::ReceiverClosed);

    let orphans = schema.orphan_conversations(&conn).map_err(driver)?;
    let conversations = count(&conn, "conversations").map_err(driver)? + orphans;
    let messages = count(&conn, "messages").map_err(driver)?;
    send(Event::Totals { conversations, messages })?;

    let mut statement = conn.prepare(&schema.messages_sql()).map_err(driver)?;
    let mut rows = statement.query([]).map_err(driver)?;
    let mut open: Option<Value> = None;
    let mut batch = Batch::default();
    let mut last_moment = None;
    while let Some(row) = rows.next().map_err(driver)? {
        let of: Value = row.get(0).map_err(driver)?;
        if open.as_ref() != Some(&of) {
            if open.is_some() {
                batch.flush(&send)?;
                send(Event::End)?;
            }
            let conversation = schema.conversation(&conn, &of).map_err(driver)??;
            last_moment = conversation.created_at;
            send(Event::Conversation(conversation))?;
            open = Some(of);
        }
        let mut message = message(row).map_err(driver)?;
        if let Ok(message) = &mut message {
            // A message without a time gets the time of the message before it.
            message.created_at = message.created_at.or(last_moment);
            last_moment = message.created_at;
        }
        batch.push(message, &send)?;
    }
    if open.is_some() {
        batch.flush(&send)?;
        send(Event::End)?;
    }
    drop(rows);
    empty_conversations(&conn, &schema, path, &send)
}

/// Reads the conversations without messages, which may have a title or a state.
fn empty_conversations(
    conn: &Connection,
    schema: &Schema,
    path: &Path,
    send: &impl Fn(Event) -> Result<(), ReadEnded>,
) -> Result<(), ReadEnded> {
    let driver = |error| ReadEnded::Failed(translate(path, error));
    let mut statement = conn.prepare(&schema.empty_sql()).map_err(driver)?;
    let mut rows = statement.query([]).map_err(driver)?;
    while let Some(row) = rows.next().map_err(driver)? {
        let id: Value = row.get(0).map_err(driver)?;
        send(Event::Conversation(schema.conversation(conn, &id).map_err(driver)??))?;
        send(Event::End)?;
    }
    Ok(())
}

#[derive(Default)]
struct Batch {
    messages: Vec<Result<Message>>,
    bytes: usize,
}

impl Batch {
    fn push(
        &mut self,
        message: Result<Message>,
        send: &impl Fn(Event) -> Result<(), ReadEnded>,
    ) -> Result<(), ReadEnded> {
        self.bytes += message.as_ref().map_or(0, |message| message.content.len());
        self.messages.push(message);
        if self.messages.len() >= BATCH_MESSAGES || self.bytes >= BATCH_BYTES {
            self.flush(send)
        } else {
            Ok(())
        }
    }

    fn flush(&mut self, send: &impl Fn(Event) -> Result<(), ReadEnded>) -> Result<(), ReadEnded> {
        self.bytes = 0;
        let messages = std::mem::take(&mut self.messages);
        if messages.is_empty() { Ok(()) } else { send(Event::Messages(messages)) }
    }
}

/// Opens a database without writing anything, not even a file beside it.
fn open(path: &Path) -> Result<Connection> {
    let mut header = [0; 20];
    let read = std::fs::File::open(path).and_then(|mut file| {
        let mut filled = 0;
        while filled < header.len() {
            match file.read(&mut header[filled..])? {
                0 => break,
                more => filled += more,
            }
        }
        Ok(filled)
    });
    let filled = read.map_err(|error| {
        let kind = match error.kind() {
            std::io::ErrorKind::NotFound => ErrorKind::NotFound,
            _ => ErrorKind::Unavailable,
        };
        Error::new(kind, format!("`{}` cannot be read ({error}); check the path", path.display()))
            .with_source(error)
    })?;
    if filled == 0 || !header.starts_with(b"SQLite format 3\0") {
        return Err(Error::invalid(format!(
            "`{}` is not a SQLite database; name another file",
            path.display()
        )));
    }
    let conn = if is_idle_wal(path, &header) {
        // To open a database in WAL mode, even for reading, SQLite creates two files beside it, unless the database is declared
        // immutable. That is safe here: if another process had it open, there would be a log.
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        Connection::open_with_flags(immutable_uri(path)?, flags)
    } else {
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
    };
    let conn = conn.map_err(|error| translate(path, error))?;
    let set = conn.busy_timeout(std::time::Duration::from_secs(5));
    set.and_then(|()| conn.pragma_update(None, "query_only", true))
        .map_err(|error| translate(path, error))?;
    Ok(conn)
}

/// Whether a database is in WAL mode and not in use. In WAL mode, bytes 18 and 19 of the header are 2.
fn is_idle_wal(path: &Path, header: &[u8; 20]) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let log_is_empty = std::fs::metadata(log).map_or(true, |log| log.len() == 0);
    header[18] == 2 && header[19] == 2 && log_is_empty
}

fn immutable_uri(path: &Path) -> Result<String> {
    let whole = std::path::absolute(path).map_err(|error| {
        Error::unavailable(format!("`{}` has no absolute path", path.display())).with_source(error)
    })?;
    let text = whole.to_str().ok_or_else(|| {
        Error::invalid(format!("path `{}` is not valid UTF-8; copy the file to another name", path.display()))
    })?;
    let mut uri = String::from(if cfg!(windows) { "file:///" } else { "file:" });
    for byte in text.replace('\\', "/").bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b':' => {
                uri.push(byte.into())
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    Ok(uri)
}

/// The names of the source's columns, quoted.
struct Schema {
    conversation_id: String,
    title: Option<String>,
    conversation_created: Option<String>,
    summary: Option<String>,
    diagnostic_state: Option<String>,
    conversation: String,
    message_id: String,
    role: String,
    content: String,
    created: Option<String>,
    order: String,
}

const MOMENTS: [&str; 11] = [
    "created_at",
    "timestamp",
    "created",
    "sent_at",
    "started_at",
    "start_time",
    "create_time",
    "created_on",
    "ts",
    "time",
    "date",
];

impl Schema {
    fn read(conn: &Connection, path: &Path) -> Result<Self> {
        let conversations = Table::find(conn, path, "conversations")?;
        let messages = Table::find(conn, path, "messages")?;
        let row_id = messages.row_id(conn);
        let message_id = messages.one_of(&["id", "message_id", "uuid"]).or_else(|| row_id.clone());
        let message_id = message_id.ok_or_else(|| messages.missing("id", path))?;
        let created = messages.one_of(&MOMENTS);
        let place = messages.one_of(&["seq", "position", "turn_index", "message_index", "ordinal", "idx"]);
        let mut order: Vec<String> = place.into_iter().collect();
        match row_id {
            // Row ids rise in the order of writing.
            Some(row_id) => order.push(row_id),
            None => order.extend(created.iter().chain([&message_id]).cloned()),
        }
        Ok(Self {
            conversation_id: conversations.need(&["id", "conversation_id", "uuid"], path)?,
            title: conversations.one_of(&["title", "name", "subject"]),
            conversation_created: conversations.one_of(&MOMENTS),
            summary: conversations.one_of(&["summary"]),
            diagnostic_state: conversations.one_of(&["diagnostic_state"]),
            conversation: messages.need(
                &["conversation_id", "conv_id", "conversation", "session_id", "chat_id", "thread_id"],
                path,
            )?,
            role: messages.need(&["role", "sender", "author", "speaker", "type"], path)?,
            content: messages.need(&["content", "text", "message", "body"], path)?,
            message_id,
            created,
            order: order.join(", "),
        })
    }

    fn messages_sql(&self) -> String {
        let Self { conversation, message_id, role, content, order, .. } = self;
        let created = self.created.as_deref().unwrap_or("NULL");
        format!(
            "SELECT {conversation}, {message_id}, {role}, {content}, {created} FROM messages
             ORDER BY {conversation}, {order}"
        )
    }

    fn empty_sql(&self) -> String {
        let Self { conversation_id, conversation, .. } = self;
        format!(
            "SELECT {conversation_id} FROM conversations WHERE {conversation_id} NOT IN
                 (SELECT {conversation} FROM messages WHERE {conversation} IS NOT NULL)"
        )
    }

    /// The number of conversations that have messages but no row of their own.
    fn orphan_conversations(&self, conn: &Connection) -> rusqlite::Result<u64> {
        let Self { conversation_id, conversation, .. } = self;
        let sql = format!(
            "SELECT count(DISTINCT {conversation}) FROM messages WHERE {conversation} NOT IN
                 (SELECT {conversation_id} FROM conversations WHERE {conversation_id} IS NOT NULL)"
        );
        number(conn, &sql)
    }

    fn conversation(&self, conn: &Connection, id: &Value) -> rusqlite::Result<Result<Conversation>> {
        let column = |column: &Option<String>| column.clone().unwrap_or_else(|| "NULL".to_owned());
        let sql = format!(
            "SELECT {}, {}, {}, {} FROM conversations WHERE {} = ?1",
            column(&self.title),
            column(&self.conversation_created),
            column(&self.summary),
            column(&self.diagnostic_state),
            self.conversation_id
        );
        let Some(name) = text(ValueRef::from(id)) else {
            let message = "a row of table `messages` or `conversations` has a conversation id that is neither text \
                           nor a number; correct or remove the row";
            return Ok(Err(Error::invalid(message)));
        };
        let found = conn.prepare_cached(&sql)?.query_row([id], |row| {
            let filled = |at| -> rusqlite::Result<Option<String>> {
                Ok(text(row.get_ref(at)?).filter(|text| !text.trim().is_empty()))
            };
            let created_at = moment(row.get_ref(1)?);
            Ok(created_at.map(|created_at| (filled(0), created_at, filled(2), filled(3))))
        });
        Ok(match found.optional()? {
            None => Ok(Conversation { id: name, ..Conversation::default() }),
            Some(Err(error)) => Err(at_row("conversations", &name, error)),
            Some(Ok((title, created_at, summary, diagnostic_state))) => Ok(Conversation {
                id: name,
                title: title?,
                created_at,
                summary: summary?,
                // Programs write an empty object for no state.
                diagnostic_state: diagnostic_state?.filter(|text| text.trim() != "{}"),
            }),
        })
    }
}

/// A table's name and columns.
struct Table {
    name: &'static str,
    columns: Vec<String>,
}

impl Table {
    fn find(conn: &Connection, path: &Path, name: &'static str) -> Result<Self> {
        let list = |sql: &str| -> rusqlite::Result<Vec<String>> {
            conn.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
        };
        let driver = |error| translate(path, error);
        let columns = list(&format!("SELECT name FROM pragma_table_info('{name}')")).map_err(driver)?;
        if columns.is_empty() {
            let tables = "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' \
                          ESCAPE '\\' ORDER BY name";
            let tables = list(tables).map_err(driver)?;
            let tables =
                if tables.is_empty() { "none".to_owned() } else { format!("`{}`", tables.join("`, `")) };
            return Err(Error::invalid(format!(
                "`{}` has no table `{name}` (its tables: {tables}); a conversation database has `conversations` and \
                 `messages`",
                path.display()
            )));
        }
        Ok(Self { name, columns })
    }

    /// The first of the names that is a column of the table, quoted.
    fn one_of(&self, names: &[&str]) -> Option<String> {
        let column = |name: &&str| self.columns.iter().find(|column| column.eq_ignore_ascii_case(name));
        names.iter().find_map(column).map(|column| format!("\"{}\"", column.replace('"', "\"\"")))
    }

    fn need(&self, names: &[&str], path: &Path) -> Result<String> {
        self.one_of(names).ok_or_else(|| self.missing(&names.join("`, `"), path))
    }

    fn missing(&self, names: &str, path: &Path) -> Error {
        Error::invalid(format!(
            "table `{}` of `{}` has none of the columns `{names}` (it has `{}`); in a copy of the database, add \
             a view of that name with such a column",
            self.name,
            path.display(),
            self.columns.join("`, `")
        ))
    }

    /// The name of the row id, if the table has one.
    fn row_id(&self, conn: &Connection) -> Option<String> {
        let is_table = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND lower(name) = ?1";
        let is_table: u32 = conn.query_row(is_table, [self.name], |row| row.get(0)).ok()?;
        let numbered = conn.prepare(&format!("SELECT rowid FROM {}", self.name)).is_ok();
        (is_table == 1 && numbered).then(|| "rowid".to_owned())
    }
}

fn count(conn: &Connection, table: &str) -> rusqlite::Result<u64> {
    number(conn, &format!("SELECT count(*) FROM {table}"))
}

fn number(conn: &Connection, sql: &str) -> rusqlite::Result<u64> {
    Ok(conn.query_row(sql, [], |row| row.get::<_, i64>(0))?.unsigned_abs())
}

fn message(row: &Row<'_>) -> rusqlite::Result<Result<Message>> {
    let id = text(row.get_ref(1)?);
    let label = id.clone().unwrap_or_else(|| "without id".to_owned());
    let wrong = |what: &str| {
        at_row("messages", &label, Error::invalid(format!("its {what} is not text; correct it")))
    };
    let (role, content) = (row.get_ref(2)?, row.get_ref(3)?);
    // A message may have no content, for example one that only calls a tool.
    let content = if matches!(content, ValueRef::Null) { Some(String::new()) } else { text(content) };
    let created_at = moment(row.get_ref(4)?).map_err(|error| at_row("messages", &label, error));
    Ok((|| {
        Ok(Message {
            id: id.ok_or_else(|| wrong("id"))?,
            role: text(role).ok_or_else(|| wrong("role"))?,
            content: content.ok_or_else(|| wrong("content"))?,
            created_at: created_at?,
        })
    })())
}

/// A value as text; `None` if it is NULL or not valid UTF-8.
fn text(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8(bytes.to_vec()).ok(),
    }
}

/// Translates an error of the foreign database.
fn translate(path: &Path, error: rusqlite::Error) -> Error {
    use rusqlite::ErrorCode;
    let path = path.display();
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            Error::invalid(format!("`{path}` is damaged or not a SQLite database; restore a copy of it"))
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            Error::unavailable(format!("`{path}` is locked by another program; close it and try again"))
                .retryable()
        }
        _ => Error::unavailable(format!("`{path}` cannot be read ({error}); close the program that uses it")),
    }
    .with_source(error)
}
