//! Charts as numbers for SVG: bars by day and lines by day. Templates draw them with attributes only, because the content
//! security policy allows no inline style.

/// The width of a chart's drawing, in its own units.
pub(super) const WIDTH: f64 = 600.0;

/// The height of a chart's drawing.
pub(super) const HEIGHT: f64 = 120.0;

/// A chart with a bar for each day.
#[derive(Debug, Default)]
pub(super) struct Chart {
    pub(super) title: &'static str,
    /// The content of the chart, for people who do not see it.
    pub(super) description: String,
    /// The largest value, in words.
    pub(super) top: String,
    pub(super) bars: Vec<Bar>,
    /// The first and the last day.
    pub(super) ends: (String, String),
    /// Whether there is nothing to draw.
    pub(super) is_empty: bool,
}

#[derive(Debug)]
pub(super) struct Bar {
    pub(super) x: String,
    pub(super) y: String,
    pub(super) width: String,
    pub(super) height: String,
    /// The day and the value, in words.
    pub(super) label: String,
}

/// One day of a chart; `None` if it has no value.
pub(super) struct DayValue {
    pub(super) day: String,
    pub(super) value: Option<f64>,
}

/// A chart of one value a day. `most` is the value of a full bar; without it, the largest value is. `words` writes a value.
pub(super) fn chart(
    title: &'static str,
    days: &[DayValue],
    most: Option<f64>,
    words: impl Fn(f64) -> String,
) -> Chart {
    let known = || days.iter().filter_map(|day| day.value);
    let largest = known().fold(0.0, f64::max);
    let full = most.unwrap_or(largest).max(f64::MIN_POSITIVE);
    let step = WIDTH / days.len().max(1) as f64;
    let bar = |(number, day): (usize, &DayValue)| {
        let value = day.value?;
        // A value that is not zero is always seen.
        let height = (value / full * HEIGHT).clamp(if value > 0.0 { 2.0 } else { 0.0 }, HEIGHT);
        Some(Bar {
            x: format!("{:.1}", number as f64 * step + step * 0.1),
            y: format!("{:.1}", HEIGHT - height),
            width: format!("{:.1}", step * 0.8),
            height: format!("{height:.1}"),
            label: format!("{}: {}", day.day, words(value)),
        })
    };
    let end = |day: Option<&DayValue>| day.map(|day| day.day.clone()).unwrap_or_default();
    let count = known().count();
    let last = days.iter().rev().find_map(|day| Some((day.day.clone(), day.value?)));
    let description = match last {
        Some((day, value)) => {
            format!(
                "{title}: {count} days with values, at most {}, last {} on {day}",
                words(largest),
                words(value)
            )
        }
        None => format!("{title}: no values yet"),
    };
    Chart {
        title,
        description,
        top: words(most.unwrap_or(largest)),
        bars: days.iter().enumerate().filter_map(bar).collect(),
        ends: (end(days.first()), end(days.last())),
        // Counts that are all zero draw nothing; a share of zero is a value.
        is_empty: largest <= 0.0 && (most.is_none() || known().next().is_none()),
    }
}

/// The width of a share in units of a drawing, at least a hair's breadth if it is not zero.
pub(super) fn share_width(part: f64, whole: f64, width: f64) -> String {
    let share = if whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 0.0 };
    format!("{:.1}", (share * width).max(if part > 0.0 { 1.0 } else { 0.0 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_the_height_of_their_values() {
        let day = |day: &str, value| DayValue { day: day.to_owned(), value };
        let days = [day("1", Some(10.0)), day("2", None), day("3", Some(5.0)), day("4", Some(0.0))];
        let chart = chart("Turns", &days, None, |value| format!("{value:.0}"));
        let bars: Vec<_> = chart.bars.iter().map(|bar| (bar.x.as_str(), bar.height.as_str())).collect();
        assert_eq!(bars, [("15.0", "120.0"), ("315.0", "60.0"), ("465.0", "0.0")]);
        assert_eq!((chart.top.as_str(), chart.is_empty), ("10", false));
        assert_eq!(chart.description, "Turns: 3 days with values, at most 10, last 0 on 4");
    }

    #[test]
    fn a_chart_without_values_says_so() {
        let chart = chart("Turns", &[], None, |value| value.to_string());
        assert!(chart.is_empty && chart.bars.is_empty());
        let zero = [DayValue { day: "1".to_owned(), value: Some(0.0) }];
        assert!(super::chart("Turns", &zero, None, |value| value.to_string()).is_empty);
        assert!(!super::chart("Hit rate", &zero, Some(1.0), |value| value.to_string()).is_empty);
        assert_eq!(share_width(0.0, 0.0, 100.0), "0.0");
        assert_eq!(
            (share_width(1.0, 10_000.0, 100.0), share_width(3.0, 2.0, 100.0)),
            ("1.0".to_owned(), "100.0".to_owned())
        );
    }
}
