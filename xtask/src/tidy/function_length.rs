//! A function is short enough to be seen whole, and most functions are much shorter than that.
//!
//! A function's length is what an editor shows: from the line of its `fn` to its closing brace, with blank lines and
//! comments.

use syn::visit::{self, Visit};
use syn::{Block, ImplItem, ImplItemFn, Item, ItemFn, Signature, TraitItemFn};

use super::Problem;
use super::tree::{Crate, Source, attributes, impl_attributes, is_for_tests};

/// The most lines of a function; STYLE's number.
const MOST_LINES: usize = 60;

/// Half of all functions have at most this many lines.
const MOST_AT_MEDIAN: usize = 8;

/// Nine of ten functions have at most this many lines.
const MOST_AT_P90: usize = 25;

/// The number of functions that a problem with all functions names.
const NAMED: usize = 5;

/// A function of production code.
struct Function {
    path: String,
    name: String,
    line: usize,
    lines: usize,
}

pub(super) fn check(crates: &[Crate]) -> Vec<Problem> {
    let functions = functions(crates);
    functions.iter().filter_map(check_function).chain(check_spread(&functions)).collect()
}

/// Whether the median and the 90th percentile are above their limits. The functions a little above a limit are named, because
/// they are split most easily.
fn check_spread(functions: &[Function]) -> Vec<Problem> {
    let spread = Spread::of(functions);
    let limits = [(spread.median, MOST_AT_MEDIAN, "median"), (spread.p90, MOST_AT_P90, "90th percentile")];
    let broken = limits.into_iter().filter(|(lines, limit, _)| lines > limit);
    broken
        .map(|(lines, limit, measure)| {
            let nearest = functions.iter().filter(|function| function.lines == limit + 1).take(NAMED);
            let places: Vec<String> = nearest
                .map(|function| format!("`{}` in {}:{}", function.name, function.path, function.line))
                .collect();
            Problem::new(
                "all crates",
                format!("the {measure} of function length is {lines} lines; the limit is {limit}"),
                format!("split or simplify functions of more than {limit} lines: {}", places.join(", ")),
            )
        })
        .collect()
}

fn check_function(function: &Function) -> Option<Problem> {
    let Function { path, name, line, lines } = function;
    let fix = format!("split it; a function has at most {MOST_LINES} lines");
    (*lines > MOST_LINES).then(|| Problem::at(path, *line, format!("`{name}` has {lines} lines"), &fix))
}

/// Median, 90th percentile and maximum of function length.
struct Spread {
    median: usize,
    p90: usize,
    longest: usize,
}

impl Spread {
    fn of(functions: &[Function]) -> Self {
        let mut lines: Vec<usize> = functions.iter().map(|function| function.lines).collect();
        lines.sort_unstable();
        let at = |percent: usize| {
            lines.get((lines.len() * percent).div_ceil(100).saturating_sub(1)).copied().unwrap_or_default()
        };
        Self { median: at(50), p90: at(90), longest: at(100) }
    }
}

/// The number of functions, and how long they are.
pub(super) fn summary(crates: &[Crate]) -> String {
    let functions = functions(crates);
    let Spread { median, p90, longest } = Spread::of(&functions);
    format!(
        "functions: {}, lines: median {median} (limit {MOST_AT_MEDIAN}), p90 {p90} (limit {MOST_AT_P90}), \
         longest {longest} (limit {MOST_LINES})",
        functions.len(),
    )
}

fn functions(crates: &[Crate]) -> Vec<Function> {
    let mut found = Vec::new();
    for source in crates.iter().flat_map(Crate::production) {
        Finder { source, found: &mut found }.visit_file(&source.syntax);
    }
    found
}

struct Finder<'a> {
    source: &'a Source,
    found: &'a mut Vec<Function>,
}

impl Finder<'_> {
    fn see(&mut self, signature: &Signature, body: &Block) {
        let line = signature.fn_token.span.start().line;
        let end = body.brace_token.span.close().end().line;
        self.found.push(Function {
            path: self.source.path.clone(),
            name: signature.ident.to_string(),
            line,
            lines: end + 1 - line,
        });
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        if !is_for_tests(impl_attributes(item)) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.see(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.see(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        if let Some(body) = &item.default {
            self.see(&item.sig, body);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::testing::tree;
    use super::*;

    /// A function of so many lines.
    fn function(lines: usize) -> String {
        format!("fn f() {{\n{}}}\n", "    g();\n".repeat(lines - 2))
    }

    fn in_words(problems: impl IntoIterator<Item = Problem>) -> Vec<String> {
        problems.into_iter().map(|problem| format!("{}: {}", problem.place, problem.what)).collect()
    }

    /// The problems of single functions.
    fn problems(text: &str) -> Vec<String> {
        let tree = tree(&["a"], &[("crates/a/src/b.rs", text)]);
        in_words(functions(&tree.crates).iter().filter_map(check_function))
    }

    #[test]
    fn a_long_function_is_refused_wherever_it_stands() {
        assert_eq!(problems(&function(60)), [""; 0]);
        assert_eq!(problems(&function(61)), ["crates/a/src/b.rs:1: `f` has 61 lines"]);
        for around in ["impl A {\n{}\n}", "trait A {\n{}\n}", "mod a {\n{}\n}", "impl B for A {\n{}\n}"] {
            let text = around.replace("{}", &function(61));
            assert_eq!(problems(&text), ["crates/a/src/b.rs:2: `f` has 61 lines"], "{around}");
        }
        assert_eq!(problems(&format!("#[cfg(test)]\nmod a {{\n{}}}", function(61))), [""; 0]);
    }

    #[test]
    fn no_comment_lets_a_function_be_long() {
        assert_eq!(problems(&format!("// long: one table.\n{}", function(61))).len(), 1);
    }

    /// The problems of functions of these lengths together.
    fn wrong_with(lengths: &[usize]) -> Vec<String> {
        let text: String = lengths.iter().map(|lines| function(*lines)).collect();
        in_words(check(&tree(&["a"], &[("crates/a/src/b.rs", &text)]).crates))
    }

    #[test]
    fn half_of_all_functions_have_eight_lines_and_nine_of_ten_have_twenty_five() {
        let broken = |measure: &str, lines: usize, limit: usize| {
            format!("all crates: the {measure} of function length is {lines} lines; the limit is {limit}")
        };
        assert_eq!(wrong_with(&[8, 8, 25, 26]), [broken("90th percentile", 26, 25)]);
        assert_eq!(wrong_with(&[9, 9, 9, 2]), [broken("median", 9, 8)]);
        assert_eq!(wrong_with(&[[8; 9].as_slice(), &[25; 8], &[26]].concat()), [""; 0]);
        assert_eq!(wrong_with(&[26; 2]).len(), 2);
    }

    #[test]
    fn functions_just_above_a_limit_are_named() {
        let tree = tree(&["a"], &[("crates/a/src/b.rs", &[function(2), function(26)].concat())]);
        let found = check(&tree.crates);
        assert_eq!(
            found[0].fix,
            "split or simplify functions of more than 25 lines: `f` in crates/a/src/b.rs:3"
        );
    }

    #[test]
    fn the_summary_counts_production_functions() {
        let text: String = (2..=11).map(function).collect();
        let tree = tree(&["a"], &[("crates/a/src/b.rs", &text), ("crates/a/tests/c.rs", &function(99))]);
        assert!(
            summary(&tree.crates)
                .starts_with("functions: 10, lines: median 6 (limit 8), p90 10 (limit 25), longest 11 "),
            "{}",
            summary(&tree.crates)
        );
    }
}
