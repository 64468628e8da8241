//! Progress bars: on stderr, and hidden where it is not a terminal.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar with a template of `indicatif`.
pub(super) fn bar(template: &str) -> ProgressBar {
    let bar = ProgressBar::new(0);
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
