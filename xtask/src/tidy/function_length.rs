//! A function is short enough to be seen whole, or says why it is not; and most functions are much shorter than that.
//!
//! A function's length is what an editor shows: from the line of its `fn` to its closing brace, with blank lines and
//! comments. A function that is better off long has a comment directly above it, above or below its attributes:
//! `// long: ` and the reason.

use syn::visit::{self, Visit};
use syn::{Attribute, Block, ImplItem, ImplItemFn, Item, ItemFn, Signature, TraitItemFn};

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

/// The beginning of the reason of a long function.
const MARK: &str = "// long:";

/// A function of production code.
struct Function {
    path: String,
    name: String,
    line: usize,
    lines: usize,
    /// The text after [`MARK`] above it.
    reason: Option<String>,
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
    let problem = |what: String, fix: &str| Some(Problem::at(&function.path, function.line, what, fix));
    let Function { name, lines, reason, .. } = function;
    match (*lines > MOST_LINES, reason.as_deref()) {
        (true, None | Some("")) => problem(
            format!("`{name}` has {lines} lines"),
            &format!("split it at {MOST_LINES} lines, or give the reason above it: `{MARK} …`"),
        ),
        (false, Some(_)) => {
            problem(format!("`{name}` has {lines} lines"), &format!("take `{MARK}` off, it is not long"))
        }
        _ => None,
    }
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
        Finder { source, lines: source.text.lines().collect(), found: &mut found }.visit_file(&source.syntax);
    }
    found
}

struct Finder<'a> {
    source: &'a Source,
    lines: Vec<&'a str>,
    found: &'a mut Vec<Function>,
}

impl Finder<'_> {
    fn see(&mut self, attributes: &[Attribute], signature: &Signature, body: &Block) {
        let line = signature.fn_token.span.start().line;
        let end = body.brace_token.span.close().end().line;
        let top = attributes.first().map_or(line, |first| first.pound_token.span.start().line.min(line));
        self.found.push(Function {
            path: self.source.path.clone(),
            name: signature.ident.to_string(),
            line,
            lines: end + 1 - line,
            reason: self.reason(top, line),
        });
    }

    /// The reason in the comment above the function, whose attributes begin at line `top`.
    fn reason(&self, top: usize, line: usize) -> Option<String> {
        let comment =
            self.lines[..top - 1].iter().rev().take_while(|line| line.trim_start().starts_with("//"));
        comment
            .chain(&self.lines[top - 1..line - 1])
            .find_map(|line| Some(line.trim().strip_prefix(MARK)?.trim().to_owned()))
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
        self.see(&item.attrs, &item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.see(&item.attrs, &item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        if let Some(body) = &item.default {
            self.see(&item.attrs, &item.sig, body);
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
    fn a_reason_above_lets_a_function_be_long() {
        for above in [
            "// long: one table.",
            "// long: one table,\n// and more.",
            "// long: one table.\n/// Documented.\n#[inline]",
            "/// Documented.\n// long: one table.\n#[inline]",
        ] {
            assert_eq!(problems(&format!("{above}\n{}", function(61))), [""; 0], "{above}");
        }
        for above in ["// long:", "// A long one.", "// long: of another function.\n"] {
            assert_eq!(problems(&format!("{above}\n{}", function(61))).len(), 1, "{above}");
        }
    }

    #[test]
    fn a_reason_that_is_not_needed_goes() {
        assert_eq!(problems(&format!("// long: once.\n{}", function(60))).len(), 1);
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
