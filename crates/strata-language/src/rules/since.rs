//! The beginning of a state, from expressions such as «last March», «two years ago», «for six years», 三年了.

use jiff::tz::Offset;
use jiff::{Timestamp, ToSpan as _};

use crate::Pattern;
use crate::time::{self, Precision, TimeSpan};

/// A duration after «for», in English.
pub(super) const LASTING: &str = r"(?:(?:about|around|over|almost|nearly|roughly|more than|at least|the (?:past|last)) )*(?:\d{1,2}|an?|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|a couple of|a few|several|many) (?:year|month|week|day|decade)s?(?: already)?";

/// A duration at the end of a clause, in Chinese.
pub(super) const LASTING_CHINESE: &str = r"(?<before>[^\d一二两三四五六七八九十零〇第])(?:已经|快|都)*(?:有|快)?(?<n>\d{1,2}|[一二两三四五六七八九十]{1,3})(?<u>年|个月|个星期|周|天)多?$";

/// The beginning that a clause names, if it is not in the future.
pub(super) fn begin(clause: &str, at: Timestamp) -> Option<Timestamp> {
    static ENGLISH: Pattern = Pattern::new(
        r"(?i)\bfor (?:(?:about|around|over|almost|nearly|roughly|more than|at least|the (?:past|last)) )*(?<n>\d{1,2}|an?|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty) (?<u>year|month|week|day)s?\b",
    );
    static CHINESE: Pattern = Pattern::new(LASTING_CHINESE);
    let named = |text: &str| {
        let span = time::parse(text, at).into_iter().next()?;
        let start = to_the_month(text, &span, at)?;
        (start <= at).then_some(start)
    };
    if let Some(found) = ENGLISH.captures(clause) {
        return named(&format!("{} {}s ago", &found["n"], &found["u"]));
    }
    let plain = clause.trim_end_matches(['了', '啦', '。', ' ']);
    if let Some(found) = CHINESE.captures(plain) {
        return named(&format!("{}{}前", &found["n"], &found["u"]));
    }
    named(clause)
}

/// Two years ago means the same month two years before, not the first day of that year.
fn to_the_month(text: &str, span: &TimeSpan, at: Timestamp) -> Option<Timestamp> {
    let words = text.get(span.text.clone()).unwrap_or_default();
    if span.precision != Precision::Year || !(words.ends_with("ago") || words.ends_with('前')) {
        return Some(span.start);
    }
    let (now, then) = (Offset::UTC.to_datetime(at).date(), Offset::UTC.to_datetime(span.start).date());
    let month = now.first_of_month().checked_sub((now.year() - then.year()).years()).ok()?;
    Offset::UTC.to_timestamp(month.at(0, 0, 0, 0)).ok()
}
