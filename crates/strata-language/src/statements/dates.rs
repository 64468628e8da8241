//! Absolute dates beside relative ones: «last Friday (2026-11-13)».

use jiff::Timestamp;
use jiff::tz::Offset;

use crate::Pattern;
use crate::time::{self, Precision};

/// A time that says by itself on which side of now it lies. A bare weekday or month may be a habit or lie on either
/// side, and gets no date.
static POINTS: Pattern = Pattern::new(
    r"(?i)\b(?:today|yesterday|tomorrow|tonight|last|next|this|ago)\b|今天|昨天|明天|前天|后天|後天|今晚|昨晚|明晚|今早|明早|上周|下周|上週|下週|这周|這週|本周|本週|上个月|上個月|下个月|下個月|这个月|這個月|本月|去年|今年|明年|前年|后年|後年|上星期|下星期|上礼拜|下礼拜|上禮拜|下禮拜|前$",
);

/// A number of days or years that is not said.
static VAGUE: Pattern = Pattern::new(r"(?i)\b(?:few|several|some|many)\b|[几幾数數]");

/// The text with the date after each relative time.
pub(super) fn absolute(text: &str, at: Timestamp, is_chinese: bool) -> String {
    let mut dated = String::with_capacity(text.len());
    let mut from = 0;
    for span in time::parse(text, at) {
        let Some(named) = text.get(span.text.clone()) else { continue };
        let is = |form: &Pattern| form.is_match(named);
        let points = is(&POINTS) && !is(&VAGUE);
        let has_year = named.as_bytes().windows(4).any(|four| four.iter().all(u8::is_ascii_digit));
        let Some(date) = date(&span, points && !has_year) else { continue };
        dated.push_str(&text[from..span.text.end]);
        let (open, close) = if is_chinese { ("（", "）") } else { (" (", ")") };
        dated.push_str(open);
        dated.push_str(&date);
        dated.push_str(close);
        from = span.text.end;
    }
    dated.push_str(&text[from..]);
    dated
}

/// The date of a span, as precise as the words are; `None` if it gets none.
fn date(span: &time::TimeSpan, is_relative: bool) -> Option<String> {
    if !is_relative {
        return None;
    }
    let day = Offset::UTC.to_datetime(span.start).date();
    let last = Offset::UTC.to_datetime(span.end).date().yesterday().ok()?;
    match span.precision {
        Precision::Hour | Precision::Day if last <= day => Some(day.to_string()),
        Precision::Hour | Precision::Day | Precision::Week => Some(format!("{day}/{last}")),
        Precision::Month => Some(day.strftime("%Y-%m").to_string()),
        Precision::Year => Some(day.year().to_string()),
        Precision::Season => None,
    }
}
