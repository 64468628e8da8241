//! The conversation: messages and commands, each answered.

use std::io;

use strata::{ChatReply, Memory, MemoryItem, RecalledItem, ReplyStatus};
use strata_core::store::TurnQuery;
use strata_core::trace::{Trace, TraceCandidate};
use strata_core::{ErrorKind, MemoryId, TurnId};
use strata_server::wire::kind_of;

use crate::commands::ids::{self, IdText};
use crate::failure::{Failure, Outcome};
use crate::output::{Output, Style, counted, note};

const HELP: &str = "\
/why            show what was recalled for the last reply, and why
/memories       list the current memories
/forget ID      destroy a memory (its number in /memories, or the end of its id), and hide its source messages from recall
/forget that    destroy what was learned from your last message, and hide that message from recall
/new            start a new session; your memories stay
/help           show this list
/quit           end the chat, as Ctrl-D does; Ctrl-C stops a reply";

/// Whether the chat continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Continue,
    End,
}

/// A conversation under way.
pub(super) struct Talk<'a> {
    memory: Memory,
    output: &'a mut Output,
    is_terminal: bool,
    last: Option<ChatReply>,
    /// The memories in the order in which `/memories` last numbered them.
    listed: Vec<MemoryId>,
}

impl<'a> Talk<'a> {
    pub(super) fn new(memory: Memory, output: &'a mut Output, is_terminal: bool) -> Self {
        Self { memory, output, is_terminal, last: None, listed: Vec::new() }
    }

    /// Answers one line. Errors of the store or the user are printed and do not end the chat.
    pub(super) async fn take(&mut self, line: &str) -> Outcome<Next> {
        let done = match line.strip_prefix('/') {
            Some(command) => self.run_command(command).await,
            None => self.reply(line).await.map(|()| Next::Continue),
        };
        self.output.flush()?;
        match done {
            Err(Failure::Failed(error) | Failure::Usage(error)) => {
                crate::output::print_error(&error);
                Ok(Next::Continue)
            }
            done => done,
        }
    }

    async fn run_command(&mut self, command: &str) -> Outcome<Next> {
        let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        match (name, rest.trim()) {
            ("quit" | "exit", _) => return Ok(Next::End),
            ("help", _) => self.output.line(HELP)?,
            ("why", _) => self.why().await?,
            ("memories", _) => self.memories().await?,
            ("forget", "that") => self.forget_that().await?,
            ("forget", id) => self.forget(id).await?,
            ("new", _) => self.begin_anew()?,
            _ => note(format_args!("`/{name}` is not a command; `/help` lists the commands")),
        }
        Ok(Next::Continue)
    }

    async fn reply(&mut self, message: &str) -> Outcome {
        let (output, mut broken) = (&mut *self.output, None::<io::Error>);
        let has_model = self.memory.has_model();
        let mut on_text = |piece: &str| {
            let printed = if has_model { output.piece(piece) } else { print_memories(output, piece) };
            if let Err(error) = printed {
                broken = Some(error);
            }
        };
        let stop = async {
            // Without signals, a reply cannot be stopped.
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        let reply = self.memory.chat_until(message, &mut on_text, stop).await?;
        if let Some(error) = broken {
            return Err(error.into());
        }
        self.output.line("")?;
        match &reply.status {
            ReplyStatus::Complete | ReplyStatus::MemoryAlone => {}
            ReplyStatus::Interrupted => note("(stopped; the reply is recorded up to here)"),
            ReplyStatus::Failed { reason } => note(format_args!("({reason})")),
        }
        self.last = Some(reply);
        if self.is_terminal {
            self.output.line("")?;
        }
        Ok(())
    }

    async fn why(&mut self) -> Outcome {
        let Some(reply) = &self.last else {
            note("there is no reply yet; say something first");
            return Ok(());
        };
        if reply.recalled.is_empty() {
            self.output.line("nothing was recalled for the last reply")?;
            return Ok(());
        }
        let trace = self.memory.engine().requests.trace(self.memory.user_id(), reply.request_id).await?;
        self.output.line(format_args!("recalled for the last reply, from {}:", places(&trace)))?;
        for (item, number) in reply.recalled.iter().zip(1..) {
            print_recalled(self.output, number, item, &trace)?;
        }
        note(format_args!(
            "`strata explain {} --user {}` shows all candidates",
            reply.request_id,
            self.memory.user_id()
        ));
        Ok(())
    }

    async fn memories(&mut self) -> Outcome {
        let memories: Vec<MemoryItem> = self.memory.memories().await?;
        self.listed = memories.iter().map(|memory| memory.id).collect();
        if memories.is_empty() {
            self.output.line("there are no memories yet")?;
            return Ok(());
        }
        let rows: Vec<_> = memories
            .iter()
            .zip(1..)
            .map(|(memory, number): (_, u32)| {
                [
                    number.to_string(),
                    memory.kind.as_str().to_owned(),
                    memory.id.to_string(),
                    memory.content.clone(),
                ]
            })
            .collect();
        self.output.table(["#", "KIND", "ID", "MEMORY"], &rows)?;
        Ok(())
    }

    async fn forget(&mut self, id: &str) -> Outcome {
        if self.is_unlisted(id) {
            note(match self.listed.len() {
                0 => format!("there is no memory {id} yet; `/memories` numbers the memories"),
                count => format!(
                    "there is no memory {id}; `/memories` has listed {}",
                    counted(count as u64, "memory")
                ),
            });
            return Ok(());
        }
        let Some(id) = self.named(id).await? else {
            let how = "name a number from `/memories`, an id or its last characters, or `that`";
            note(match id.is_empty() {
                true => how.to_owned(),
                false => format!("`{id}` names no memory, and nothing was forgotten; {how}"),
            });
            return Ok(());
        };
        let memory = self.memory.engine().memories.get(self.memory.user_id(), id).await?;
        let said_by = self.said_by(id).await?;
        self.memory.forget(id).await?;
        self.output.line("forgotten:")?;
        self.output.text(&memory.content)?;
        if !said_by.is_empty() {
            let said =
                if said_by.len() == 1 { "message that said it is" } else { "messages that said it are" };
            self.memory.engine().sessions.hide_turns(self.memory.user_id(), said_by).await?;
            self.output.line(format_args!("the {said} no longer recalled; the session still contains it"))?;
        }
        Ok(())
    }

    /// The visible source turns of a memory and its former statements. If they stayed visible, recall would answer the next
    /// question with them.
    async fn said_by(&self, id: MemoryId) -> Outcome<Vec<TurnId>> {
        let (engine, user) = (self.memory.engine(), self.memory.user_id());
        let mut said_by = Vec::new();
        for version in engine.memories.history(user, id).await? {
            said_by.extend(version.source_turns);
            if version.id == id {
                break;
            }
        }
        said_by.sort_unstable();
        said_by.dedup();
        let turns = engine.store().turns(user, &TurnQuery::Ids(said_by)).await?;
        Ok(turns.into_iter().filter(|turn| turn.hidden.is_none()).map(|turn| turn.id).collect())
    }

    /// Whether a text is a number that `/memories` has not given, and too short for an id.
    fn is_unlisted(&self, text: &str) -> bool {
        let number = text.parse::<usize>().ok().filter(|_| text.len() < ids::FEWEST);
        number.is_some_and(|number| number == 0 || number > self.listed.len())
    }

    /// The memory that a text names; `None` if the text is neither a listed number nor an id.
    async fn named(&self, text: &str) -> Outcome<Option<MemoryId>> {
        let listed =
            text.parse::<usize>().ok().and_then(|number| self.listed.get(number.checked_sub(1)?).copied());
        match (listed, text.parse::<IdText>()) {
            (Some(id), _) => Ok(Some(id)),
            (None, Ok(id)) => Ok(Some(ids::memory(self.memory.engine(), self.memory.user_id(), &id).await?)),
            (None, Err(_)) => Ok(None),
        }
    }

    /// Destroys the memories learned from the last message, and hides the message from recall.
    async fn forget_that(&mut self) -> Outcome {
        let Some(reply) = self.last.take() else {
            note("there is no message to forget yet");
            return Ok(());
        };
        let forgotten = self.forget_learned(reply.turn).await?;
        self.memory.engine().sessions.hide_turns(self.memory.user_id(), vec![reply.turn]).await?;
        self.output.line("your last message is no longer recalled")?;
        if !forgotten.is_empty() {
            self.output.line("forgotten:")?;
        }
        for content in forgotten {
            self.output.text(&content)?;
        }
        Ok(())
    }

    /// Destroys the memories learned from a turn, and returns their texts.
    async fn forget_learned(&self, turn: TurnId) -> Outcome<Vec<String>> {
        let believed = self.memory.memories().await?;
        let learned = believed.into_iter().filter(|memory| memory.source_turns.contains(&turn));
        let mut forgotten = Vec::new();
        for memory in learned {
            match self.memory.forget(memory.id).await {
                Ok(_) => forgotten.push(memory.content),
                // Another process has already destroyed it.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(forgotten)
    }

    fn begin_anew(&mut self) -> Outcome {
        let id = self.memory.engine().next_id().simple().to_string();
        // An id ends with random digits; it begins with the time.
        self.memory = self.memory.session(format!("chat-{}", &id[id.len() - 8..]))?;
        self.last = None;
        note(format_args!("session `{}`", self.memory.session_id()));
        Ok(())
    }
}

/// Prints a recalled item with the reason why it was found.
fn print_recalled(
    output: &mut Output,
    number: usize,
    recalled: &RecalledItem,
    trace: &Trace,
) -> io::Result<()> {
    let item = &recalled.item;
    let day = item.created_at().strftime("%Y-%m-%d");
    output.line(format_args!("{number}. {} of {day}, {}", kind_of(item), reason(recalled, trace)))?;
    output.text(recalled.shortened.as_deref().unwrap_or_else(|| item.content()))
}

/// Prints a reply of memory itself, which comes whole: what it says, and the items with their dates.
fn print_memories(output: &mut Output, text: &str) -> io::Result<()> {
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            output.line("")?;
        }
        match line.strip_prefix("• [").and_then(|rest| rest.split_once(']')) {
            Some((date, item)) => {
                output.styled(Style::Faint, &format!("• [{date}]"))?;
                output.styled(Style::Plain, item)?;
            }
            None if is_unsure(line) => output.styled(Style::Unknown, line)?,
            None => output.styled(Style::Memory, line)?,
        }
    }
    output.flush()
}

/// Whether a line says that memory does not know, or is not sure.
fn is_unsure(line: &str) -> bool {
    ["I don't know", "I am not sure", "我不知道", "我不确定"].iter().any(|words| line.starts_with(words))
}

/// The scope of a recall, in words.
fn places(trace: &Trace) -> &'static str {
    match trace.scope {
        strata_core::scope::Scope::Session => "this session",
        strata_core::scope::Scope::User => "all your sessions",
        strata_core::scope::Scope::Global => "all your sessions and the memories that all users share",
    }
}

/// Why an item was recalled, in a few words.
fn reason(found: &RecalledItem, trace: &Trace) -> String {
    let mut reasons = vec![format!("relevance {:.2}", found.relevance)];
    let candidate = trace.candidates.iter().find(|candidate| candidate.item == found.item.id());
    if let Some(TraceCandidate { terms, words, encoder, mean, timely, fresher_by, .. }) = candidate {
        let parts = [
            ("the same words", *terms),
            ("words of similar meaning", *words),
            ("meaning", encoder.or(*mean)),
        ];
        let parts =
            parts.into_iter().filter_map(|(name, part)| Some((name, part.filter(|part| *part > 0.0)?)));
        reasons.extend(parts.map(|(name, part)| format!("{name} {part:.2}")));
        if *timely {
            reasons.push("from the time you named".to_owned());
        }
        if *fresher_by > 0 {
            reasons.push("newer than a contradicting item".to_owned());
        }
    }
    reasons.join(", ")
}
