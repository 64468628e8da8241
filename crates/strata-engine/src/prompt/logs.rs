//! Raw logs: lines that a program wrote, recognised by the structure that they repeat.
//!
//! No list of formats stands behind it. A line looks like a log's if a time with seconds stands in a head without prose,
//! if it begins with a level, if it is a JSON object, or if it is a frame of a stack trace. One such line may be a remark;
//! several in a row are a log.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use super::filter::{RAW_LOG, RawLogs};

/// The bytes of a line's beginning in which its time stands.
const HEAD_BYTES: usize = 80;

/// The structure that lines of a log share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Structure {
    /// `[YYYY-MM-DD HH:MM:SS` somewhere in the line (layered-prompt design).
    Bracketed,
    /// A time with seconds, or seconds since a start, in the head of the line.
    Timed,
    /// A level, such as `ERROR:` or `E/`, at the beginning.
    Level,
    /// A JSON object.
    Json,
    /// A frame of a stack trace.
    Frame,
}

/// A line of a log, and the number of such lines in a row that make one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LogLine {
    structure: Structure,
    needs: usize,
}

/// Replaces or removes raw logs. Blank and indented lines between two log lines belong to the log, because stack traces
/// have them. The line that names an error stays before its stack trace.
pub(super) fn strip_logs(text: &str, logs: RawLogs) -> Cow<'_, str> {
    let mut left = String::with_capacity(text.len());
    let mut changed = false;
    let mut run: Option<Run> = None;
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let (start, end) = (offset, offset + line.len());
        offset = end;
        match (log_line(line), run.as_mut()) {
            (Some(found), Some(run)) if run.continues(found) => {
                run.end = end;
                run.lines += 1;
                run.needs = run.needs.min(found.needs);
                if found.structure != Structure::Frame {
                    run.structure = found.structure;
                }
            }
            (None, Some(run)) if line.trim().is_empty() || line.starts_with([' ', '\t']) => {
                // The line of code below a frame belongs to it.
                if run.structure == Structure::Frame && !line.trim().is_empty() {
                    run.end = end;
                }
            }
            (found, _) => {
                if let Some(run) = run.take() {
                    changed |= run.close(text, start, logs, &mut left);
                }
                match found {
                    Some(LogLine { structure, needs }) => {
                        run = Some(Run { start, end, lines: 1, needs, structure });
                    }
                    None => left.push_str(line),
                }
            }
        }
    }
    if let Some(run) = run {
        changed |= run.close(text, text.len(), logs, &mut left);
    }
    if changed { Cow::Owned(left) } else { Cow::Borrowed(text) }
}

/// Consecutive log lines.
struct Run {
    start: usize,
    end: usize,
    lines: usize,
    needs: usize,
    structure: Structure,
}

impl Run {
    fn continues(&self, line: LogLine) -> bool {
        let timed = [Structure::Bracketed, Structure::Timed];
        let is_frame = [self.structure, line.structure].contains(&Structure::Frame);
        is_frame
            || self.structure == line.structure
            || (timed.contains(&self.structure) && timed.contains(&line.structure))
    }

    /// Writes the replacement of the run, and the text between the run and `next`. Returns whether the run was a log.
    fn close(&self, text: &str, next: usize, logs: RawLogs, left: &mut String) -> bool {
        if self.lines < self.needs {
            left.push_str(&text[self.start..next]);
            return false;
        }
        if logs == RawLogs::Noted {
            left.push_str(RAW_LOG);
            if text[..self.end].ends_with('\n') {
                left.push('\n');
            }
        }
        left.push_str(&text[self.end..next]);
        true
    }
}

fn log_line(line: &str) -> Option<LogLine> {
    let found = |structure, needs| Some(LogLine { structure, needs });
    let leading = line.trim_start_matches([' ', '\t', '>', '|', '`']);
    if is_stamp(leading.as_bytes()) {
        return found(Structure::Bracketed, 1);
    }
    let bare = line.trim();
    if bare.starts_with("{\"") && bare.ends_with('}') {
        return found(Structure::Json, 2);
    }
    if let Some(needs) = frame(line) {
        return found(Structure::Frame, needs);
    }
    if let Some(needs) = timed(bare) {
        return found(Structure::Timed, needs);
    }
    let may_be_level = bare.starts_with(|c: char| "[TDINWECFSVtdiwel".contains(c));
    if may_be_level && PATTERNS.as_ref().is_some_and(|patterns| patterns.level.is_match(bare)) {
        return found(Structure::Level, 3);
    }
    if line.match_indices('[').any(|(at, _)| is_stamp(&line.as_bytes()[at..])) {
        return found(Structure::Bracketed, 2);
    }
    None
}

struct Patterns {
    /// A time with seconds; or at the beginning, seconds since a start in brackets, or seconds since 1970.
    time: Regex,
    /// A date beside the time, or a level.
    dated: Regex,
    level: Regex,
    /// A request in the log of a web server.
    request: Regex,
    frame: Regex,
}

static PATTERNS: LazyLock<Option<Patterns>> = LazyLock::new(|| {
    Some(Patterns {
        time: ascii(r"(?:^|[^\d:A-Za-z]|\dT|:)\d\d:\d\d:\d\d(?:[^\d:]|$)|^\[ *\d+\.\d+s?\]|^1[4-9]\d{8}(?:\.\d+|\d{3})?(?-u:\b)").ok()?,
        dated: ascii(r"(?-u:\b)\d{4}[-/.]\d\d[-/.]\d\d|^\d\d-\d\d |\d\d/[A-Z][a-z]{2}/\d{4}|(?-u:\b)[A-Z][a-z]{2} [ \d]\d |^[IWEF]\d{4} |^\[ *\d|(?-u:\b)(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL|SEVERE)(?-u:\b)|^1[4-9]\d{8}").ok()?,
        level: ascii(r"^(?:\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL|SEVERE)\]?(?:[:\s]|$)|[VDIWEF]/[\w.$-]+ ?\(? *\d*\)?:|(?:trace|debug|info|warn|error)(?:\[[^\]]*\])?: |level=\w+ )").ok()?,
        request: ascii(r#"\[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d[^\]]*\] "[A-Z]+ "#).ok()?,
        frame: ascii(r#"^(?:\s+at [\w$.<>\[\]/ ]+(?:\(|:\d)|\s+at .+:\d+(?::\d+)?\)?\s*$|at [\w$.<>]+\([^)]*\)\s*$|\s+File "[^"]+", line \d+|Traceback \(most recent call last\):|Caused by: [\w.$]+|\s+\.\.\. \d+ (?:more|common frames omitted)|\s+\d+: +(?:0x[0-9a-f]+ - )?[\w<]+[\w:<>$ ]*::|stack backtrace:|goroutine \d+ \[|\t\S+\.go:\d+|\s+from \S+:\d+:in )"#).ok()?,
    })
});

/// Compiles a pattern whose classes of letters, digits and blanks are ASCII. Those of Unicode take many times as long to
/// compile, and the first message would wait for them.
fn ascii(pattern: &str) -> Result<Regex, regex::Error> {
    let pattern = pattern.replace(r"\w", "[0-9A-Za-z_]").replace(r"\d", "[0-9]").replace(r"\s", r"[ \t\r\n]");
    Regex::new(&pattern)
}

/// Compiles the patterns, so that the first message does not wait for them.
pub(super) fn warm() {
    LazyLock::force(&PATTERNS);
}

/// The number of lines that a frame of a stack trace needs.
fn frame(line: &str) -> Option<usize> {
    let bare = line.trim_start();
    let begins =
        ["at ", "File ", "...", "from ", "Traceback (", "Caused by: ", "stack backtrace:", "goroutine "];
    let may_be = begins.iter().any(|begin| bare.starts_with(begin))
        || (bare.len() < line.len()
            && (bare.starts_with(|c: char| c.is_ascii_digit()) || bare.contains(".go:")));
    if !may_be {
        return None;
    }
    let patterns = PATTERNS.as_ref()?;
    let line = line.trim_end_matches(['\n', '\r']);
    patterns.frame.is_match(line).then(|| if line.starts_with("Traceback (") { 1 } else { 2 })
}

/// The number of lines that a line with a time in its head needs.
fn timed(line: &str) -> Option<usize> {
    let head = &line[..(0..=HEAD_BYTES.min(line.len())).rev().find(|at| line.is_char_boundary(*at))?];
    let is_clock = |part: &[u8]| part[0].is_ascii_digit() && part[1] == b':' && part[2].is_ascii_digit();
    if !head.starts_with(['[', '1']) && !head.as_bytes().windows(3).any(is_clock) {
        return None;
    }
    let patterns = PATTERNS.as_ref()?;
    let time = patterns.time.find(head)?;
    if !head[..time.start()].split_whitespace().all(is_of_head) {
        return None;
    }
    if patterns.request.is_match(line) {
        return Some(1);
    }
    Some(if patterns.dated.is_match(head) { 2 } else { 3 })
}

/// Whether a word before the time belongs to a program's head, not to prose: it has digits or marks, is in capitals, or
/// names a month or a day.
fn is_of_head(word: &str) -> bool {
    const NAMES: &str = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec Mon Tue Wed Thu Fri Sat Sun";
    let core = word.trim_end_matches([',', '.', ':']);
    let is_word = !core.is_empty() && core.chars().all(char::is_alphabetic);
    !is_word
        || NAMES.split(' ').any(|name| name == core)
        || (core.len() > 1 && core.chars().all(|c| c.is_ascii_uppercase()))
}

fn is_stamp(bytes: &[u8]) -> bool {
    const FORM: &[u8] = b"[dddd-dd-dd dd:dd:dd";
    bytes.len() >= FORM.len()
        && FORM.iter().zip(bytes).all(|(form, byte)| match form {
            b'd' => byte.is_ascii_digit(),
            b' ' => matches!(byte, b' ' | b'T'),
            _ => form == byte,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(log: &str) {
        let text = format!("The pump stopped again.\n{log}\nWhat now?");
        let noted = strip_logs(&text, RawLogs::Noted);
        assert_eq!(noted, format!("The pump stopped again.\n{RAW_LOG}\nWhat now?"), "{log}");
        let removed = strip_logs(&text, RawLogs::Removed);
        assert_eq!(removed, "The pump stopped again.\nWhat now?", "{log}");
    }

    #[test]
    fn logs_are_known_by_the_structure_that_their_lines_repeat() {
        for log in [
            "2031-05-04 10:15:32,123 - kiln.heater - ERROR - no flame\n2031-05-04 10:15:33,001 - kiln.heater - INFO - retry",
            "ERROR:kiln:no flame\nWARNING:kiln:retry\nINFO:kiln:lit",
            "2031-05-04T10:15:32.123Z INFO lit\n2031-05-04T10:15:33Z WARN dim",
            "2031-05-04 10:15:32.123 UTC [77] LOG:  checkpoint\n2031-05-04 10:15:39.123 UTC [77] LOG:  done",
            "May  4 10:15:32 barn kernel: usb 1-1\nMay  4 10:15:33 barn sshd[812]: closed",
            "<34>1 2031-05-04T10:15:32Z barn app - - x\n<34>1 2031-05-04T10:15:33Z barn app - - y",
            "[    0.000000] Linux version\n[    0.004021] Command line: quiet",
            "[0.012s][info][gc] Using G1\n[0.319s][info][gc] Pause Young",
            "203.0.113.9 - - [04/May/2031:10:15:32 +0000] \"GET /kiln HTTP/1.1\" 200 17",
            "2031/05/04 10:15:32 [error] 31#31: *4 upstream timed out\n2031/05/04 10:15:33 [warn] 31#31: buffered",
            "I0504 10:15:32.123456       1 main.go:12] lit\nE0504 10:15:33.123456       1 main.go:40] out",
            "{\"level\":\"info\",\"msg\":\"lit\"}\n{\"level\":\"error\",\"msg\":\"out\"}",
            "05-04 10:15:32.123  1234  1250 E Kiln: out\n05-04 10:15:32.523  1234  1250 I Kiln: lit",
            "E/Kiln( 1234): out\nI/Kiln( 1234): lit\nW/Kiln( 1234): dim",
            "time=\"2031-05-04T10:15:32Z\" level=info msg=lit\ntime=\"2031-05-04T10:15:33Z\" level=warn msg=dim",
            "10:15:32.123 [main] INFO  c.k.App - lit\n10:15:33.001 [main] WARN  c.k.App - dim",
            "1935742532.123 lit\n1935742533.001 dim",
            "INFO [2031-05-04 10:15:32] lit\nWARN [2031-05-04 10:15:33] dim",
        ] {
            check(log);
        }
    }

    #[test]
    fn the_frames_of_a_stack_trace_are_a_log_and_the_error_stays() {
        let strip = |text: &str| strip_logs(text, RawLogs::Noted).into_owned();
        for (text, left) in [
            (
                "java.lang.IllegalStateException: cold\n\tat kiln.Heater.light(Heater.java:12)\n\tat kiln.Main.main(Main.java:4)\n\t... 3 more\nHelp",
                "java.lang.IllegalStateException: cold\n[raw log — see findings above]\nHelp",
            ),
            (
                "Traceback (most recent call last):\n  File \"kiln.py\", line 3, in <module>\n    light()\nValueError: cold\nHelp",
                "[raw log — see findings above]\nValueError: cold\nHelp",
            ),
            (
                "TypeError: heater is undefined\n    at light (/srv/kiln.js:4:11)\n    at Object.<anonymous> (/srv/kiln.js:9:1)\n",
                "TypeError: heater is undefined\n[raw log — see findings above]\n",
            ),
            (
                "stack backtrace:\n   0: kiln::light\n             at ./src/main.rs:4:5\n   1: kiln::main\n",
                "[raw log — see findings above]\n",
            ),
        ] {
            assert_eq!(strip(text), left, "{text}");
        }
    }

    #[test]
    fn prose_schedules_lists_and_code_are_no_log() {
        for text in [
            "The fan stopped at 23:24:45 and came back at 23:30:12.\nIt stopped at 23:41:01 once more.",
            "09:00 breakfast\n10:30 the talk\n12:00 lunch",
            "2031-05-04 kick-off\n2031-05-11 review\n2031-05-18 release",
            "1. Drain it.\n2. Fill it.\n3. Light it.",
            "- 10:15 drain\n- 10:45 fill",
            "ERROR: the lamp blinks twice.\nCall me.",
            "INFO for guests\nWARN the neighbours",
            "{\"kiln\": 4}",
            "10:15:32 is when it stopped.",
            "fn main() {\n    let at = 4;\n}\n",
            "我在 10:15:32 看到它停了。\n然后 10:20:11 又亮了。",
        ] {
            assert_eq!(strip_logs(text, RawLogs::Noted), text);
        }
    }
}
