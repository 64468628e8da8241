//! Progress bars: on stderr, and hidden where it is not a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use strata_import::Transferred;

/// A bar with a template of `indicatif`.
pub(super) fn bar(template: &str) -> ProgressBar {
    let bar = ProgressBar::new(0);
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// A bar for a store that is copied into another one.
pub(super) fn copy_bar() -> ProgressBar {
    let bar = bar("{spinner} {bar:40} {pos}/{len} turns and memories, {msg} {eta}");
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// Shows how far a copy has come. `all` is the number of all turns and memories.
pub(super) fn show_copied(bar: &ProgressBar, done: &Transferred, all: u64) {
    bar.set_length(all);
    bar.set_position(done.turns + done.memories);
    bar.set_message(format!("{} users", done.users));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_a_total_and_comes_to_it() {
        let bar = ProgressBar::hidden();
        show_copied(&bar, &Transferred { turns: 3, memories: 1, ..Transferred::default() }, 9);
        assert_eq!((bar.position(), bar.length()), (4, Some(9)));
    }
}
