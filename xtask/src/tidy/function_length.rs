//! A function is short enough to be seen whole, or says why it is not.
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

/// What the summary compares with: the median and the 90th percentile that the house aims at.
const AIMS: (usize, usize) = (8, 25);

/// What opens the reason of a long function.
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
    functions(crates).iter().filter_map(check_function).collect()
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

/// Median, 90th percentile and maximum over all crates.
pub(super) fn summary(crates: &[Crate]) -> String {
    let mut lines: Vec<usize> = functions(crates).iter().map(|function| function.lines).collect();
    lines.sort_unstable();
    let at = |percent: usize| {
        lines.get((lines.len() * percent).div_ceil(100).saturating_sub(1)).copied().unwrap_or_default()
    };
    let (median, p90) = AIMS;
    format!(
        "functions: {}, lines: median {} (aim {median}), p90 {} (aim {p90}), longest {} (limit {MOST_LINES})",
        lines.len(),
        at(50),
        at(90),
        at(100)
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

    fn problems(text: &str) -> Vec<String> {
        let tree = tree(&["a"], &[("crates/a/src/b.rs", text)]);
        check(&tree.crates)
            .into_iter()
            .map(|problem| format!("{}: {}", problem.place, problem.what))
            .collect()
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

    #[test]
    fn the_summary_counts_production_functions() {
        let text: String = (2..=11).map(function).collect();
        let tree = tree(&["a"], &[("crates/a/src/b.rs", &text), ("crates/a/tests/c.rs", &function(99))]);
        assert!(
            summary(&tree.crates)
                .starts_with("functions: 10, lines: median 6 (aim 8), p90 10 (aim 25), longest 11 "),
            "{}",
            summary(&tree.crates)
        );
    }
}
