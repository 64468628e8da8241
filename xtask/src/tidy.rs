//! `cargo xtask tidy`: the house rules that code can check. Pure Rust, no network, a few seconds.
//!
//! Each rule is a file of its own: a function from the [`Tree`] (or its text files) to the problems it sees, so that its
//! tests need no checkout. To add a rule, write its file and a line in [`RULES`]. Where to start: [`tree`] reads the
//! repository, [`edges`] holds the crates' boundaries, [`cycles`] those of their modules.

mod cycles;
mod designs;
mod edges;
mod file_length;
mod function_length;
mod links;
mod machine_paths;
mod map_paths;
mod module_names;
mod opening;
mod pages;
mod parts;
mod public_items;
mod pure_crates;
mod steady_tests;
mod tree;
mod words;

use anyhow::{Result, bail};

use crate::workspace::Workspace;
use tree::Tree;

/// One broken rule: where it is, what is wrong, and what to do about it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// A file, `file:line`, or a crate.
    pub(crate) place: String,
    /// Several lines where one does not say it.
    pub(crate) what: String,
    pub(crate) fix: String,
}

impl Problem {
    pub(crate) fn new(place: impl Into<String>, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { place: place.into(), what: what.into(), fix: fix.into() }
    }

    /// A problem in a line; lines count from 1.
    pub(crate) fn at(path: &str, line: usize, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(format!("{path}:{line}"), what, fix)
    }
}

type Rule = (&'static str, fn(&Tree) -> Vec<Problem>);

/// Every rule but the crates' boundaries, which need `cargo metadata`.
const RULES: &[Rule] = &[
    ("module cycle", |tree| cycles::check(&tree.crates)),
    ("part too broad", |tree| parts::check(&tree.crates)),
    ("public item without a user", public_items::check),
    ("file length", |tree| file_length::check(&tree.files)),
    ("function length", |tree| function_length::check(&tree.crates)),
    ("module opening", |tree| opening::check(&tree.files)),
    ("empty name", |tree| module_names::check(&tree.files)),
    ("unsteady test", |tree| steady_tests::check(&tree.files)),
    ("impure crate", |tree| pure_crates::check(&tree.files)),
    ("numbered design", |tree| designs::check(&tree.files)),
    ("forbidden word", |tree| words::check(&tree.files)),
    ("path of one machine", |tree| machine_paths::check(&tree.files)),
    ("documentation", |tree| pages::check(&tree.files)),
    ("dead link", |tree| links::check(&tree.files)),
    ("path of the map", |tree| map_paths::check(&tree.files)),
];

/// Runs every rule and prints what all of them found.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let tree = Tree::read(workspace)?;
    let metadata = workspace.metadata()?;
    let mut findings = vec![("crate boundary", edges::check(&metadata)?)];
    findings.extend(RULES.iter().map(|(name, check)| (*name, check(&tree))));
    for (name, problems) in &findings {
        print!("{}", report(name, problems));
    }
    println!("{}", function_length::summary(&tree.crates));
    println!("{}", file_length::summary(&tree));
    let broken = findings.iter().filter(|(_, problems)| !problems.is_empty()).count();
    let count: usize = findings.iter().map(|(_, problems)| problems.len()).sum();
    if count > 0 {
        bail!("{count} problems with {broken} house rules; CONTRIBUTING.md says why they exist");
    }
    println!("{} files and {} crates keep all {} rules", tree.files.len(), tree.crates.len(), findings.len());
    Ok(())
}

/// The findings of a rule: its name, each place with what is wrong, and what to do once for all problems with the same answer.
fn report(name: &str, problems: &[Problem]) -> String {
    if problems.is_empty() {
        return String::new();
    }
    let mut lines = vec![format!("{name}: {}", problems.len())];
    let mut fixes: Vec<&str> = Vec::new();
    for problem in problems {
        if !fixes.contains(&problem.fix.as_str()) {
            fixes.push(&problem.fix);
        }
    }
    for fix in fixes {
        for problem in problems.iter().filter(|problem| problem.fix == fix) {
            let what = problem.what.replace('\n', "\n      ");
            lines.push(format!("  {}: {what}", problem.place));
        }
        lines.push(format!("    to do: {fix}"));
    }
    lines.join("\n") + "\n\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_rule_place_and_wrong_and_says_once_what_to_do() {
        let problems = [
            Problem::at("a.rs", 3, "is long", "split it"),
            Problem::new("b.rs", "is unused", "delete it"),
            Problem::at("c.rs", 1, "is long\nvery", "split it"),
        ];
        assert_eq!(
            report("length", &problems),
            "length: 3\n  a.rs:3: is long\n  c.rs:1: is long\n      very\n    to do: split it\n  \
             b.rs: is unused\n    to do: delete it\n\n"
        );
        assert_eq!(report("length", &[]), "");
    }
}
