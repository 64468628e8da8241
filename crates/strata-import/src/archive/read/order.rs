//! The order of the lines of an export, and the damage that ends the good ones. Leaves alone what the lines say.

use strata_core::error::shown;
use strata_core::{Error, Result, Turn, UserId};

use super::super::{ArchiveCounts, Line, VERSION};
use super::{ArchiveOptions, Reader};

/// The order that the lines of an export have.
#[derive(Debug, Default)]
pub(super) struct Order {
    begun: bool,
    user: bool,
    session: Option<(String, u64, u64)>,
    pub(super) counts: ArchiveCounts,
    /// The lines that are good.
    pub(super) lines: u64,
}

impl Order {
    /// The next line; `None` at the end of the file. Only good lines are counted.
    pub(super) fn next(&mut self, reader: &mut Reader) -> Result<Option<Line>> {
        let Some(line) = reader.next()? else { return Ok(None) };
        self.follow(&line).map_err(|wrong| reader.wrong(&wrong))?;
        self.counts.count(&line);
        self.lines += 1;
        Ok(Some(line))
    }

    /// The damage that ended the reading, in words, if the lines before it are to be imported.
    pub(super) fn damage(&self, ended: Result<()>, options: &ArchiveOptions) -> Result<Option<String>> {
        let Err(error) = ended else { return Ok(None) };
        let message = error.message().to_owned();
        if options.skip_bad && self.begun && self.lines > 0 {
            return Ok(Some(message));
        }
        let advice = if self.lines > 1 { "; `--skip-bad` imports the lines before it" } else { "" };
        let message = format!("{message}; nothing was imported{advice}");
        Err(Error::new(error.kind(), message).with_source(error))
    }

    /// Checks that `line` may follow the lines before it.
    fn follow(&mut self, line: &Line) -> Result<(), String> {
        let is_head = matches!(line, Line::Strata(_));
        if is_head == self.begun {
            return Err(
                if is_head { "a second export begins here" } else { "the beginning is missing" }.into()
            );
        }
        self.begun = true;
        match line {
            Line::Strata(head) if head.version != VERSION => Err(format!(
                "the export has version {}, and this Strata reads version {VERSION}",
                head.version
            )),
            Line::Strata(_) => Ok(()),
            Line::User(name) => {
                self.session_is_whole()?;
                (self.user, self.session) = (true, None);
                UserId::from_stored(name.clone()).map(drop).map_err(|error| error.message().to_owned())
            }
            _ if !self.user && !matches!(line, Line::Key(_)) => Err("no user begins before it".to_owned()),
            Line::Session(line) => {
                self.session_is_whole()?;
                self.session = Some((line.session.id.to_string(), line.session.turn_count, 0));
                Ok(())
            }
            Line::Turn(turn) => self.turn(turn),
            Line::Summary(summary) => self.belongs(summary.session.as_str()),
            Line::Memory(_) | Line::Job(_) | Line::Key(_) | Line::End(_) => self.session_is_whole(),
        }
    }

    fn turn(&mut self, turn: &Turn) -> Result<(), String> {
        self.belongs(turn.session.as_str())?;
        let Some((name, _, next)) = &mut self.session else { return Ok(()) };
        if turn.seq != *next {
            return Err(format!(
                "turn {} of session `{name}` stands where turn {next} is expected",
                turn.seq
            ));
        }
        *next += 1;
        Ok(())
    }

    fn belongs(&self, session: &str) -> Result<(), String> {
        match &self.session {
            Some((name, ..)) if name == session => Ok(()),
            _ => Err(format!("it belongs to session `{}`, which does not begin before it", shown(session))),
        }
    }

    fn session_is_whole(&self) -> Result<(), String> {
        match &self.session {
            Some((name, count, next)) if count != next => {
                Err(format!("session `{name}` has {count} turns, and {next} of them stand before this line"))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn finish(&self, reader: &Reader) -> Result<()> {
        let Some(end) = &reader.ended else {
            return Err(reader.wrong("the file ends here, and the last line of an export is missing"));
        };
        if end.counts != self.counts {
            return Err(reader.wrong("the counts of the last line are not those of the lines before it"));
        }
        Ok(())
    }
}
