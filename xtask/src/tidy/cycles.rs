//! No cycle between the top-level modules of a crate: what the map draws as layers is layers in the code as well.
//!
//! An edge is a `use` or any other path from one module into another, through `crate::`, `super::` or a re-export of the
//! crate's root. The root itself (`lib.rs`, `main.rs`) is no module, and test code makes no edge.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, Item, ItemMod, Macro, Meta, UseTree};

use super::Problem;
use super::tree::{Crate, Source, attributes, impl_attributes, is_for_tests};

const FIX: &str =
    "move what both sides need into a module below them, or turn one edge round with a trait or a parameter";

/// Where one module names another: `file:line`, the first one found.
type Edges = BTreeMap<String, BTreeMap<String, String>>;

pub(super) fn check(crates: &[Crate]) -> Vec<Problem> {
    crates.iter().flat_map(check_crate).collect()
}

fn check_crate(package: &Crate) -> Vec<Problem> {
    let edges = edges(package);
    let cycles: BTreeSet<Vec<&str>> =
        edges.keys().filter_map(|module| shortest_cycle(&edges, module)).map(from_its_least).collect();
    cycles.into_iter().filter_map(|cycle| problem(package, &edges, &cycle)).collect()
}

fn problem(package: &Crate, edges: &Edges, cycle: &[&str]) -> Option<Problem> {
    let steps = cycle.iter().zip(cycle.iter().cycle().skip(1));
    let places: Vec<(String, &String)> = steps
        .filter_map(|(from, to)| Some((format!("{from} → {to}"), edges.get(*from)?.get(*to)?)))
        .collect();
    let (_, first) = places.first()?;
    let mut what = format!("`{}`: {} → {}", package.name, cycle.join(" → "), cycle.first()?);
    for (step, place) in &places {
        what += &format!("\n{step} in {place}");
    }
    Some(Problem::new(*first, what, FIX))
}

/// A shortest way from a module back to itself.
fn shortest_cycle<'a>(edges: &'a Edges, start: &'a str) -> Option<Vec<&'a str>> {
    let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut open = VecDeque::from([start]);
    while let Some(module) = open.pop_front() {
        for next in edges.get(module).into_iter().flat_map(BTreeMap::keys) {
            if next == start {
                return Some(way_to(&came_from, start, module));
            }
            if !came_from.contains_key(next.as_str()) {
                came_from.insert(next, module);
                open.push_back(next);
            }
        }
    }
    None
}

fn way_to<'a>(came_from: &BTreeMap<&'a str, &'a str>, start: &'a str, end: &'a str) -> Vec<&'a str> {
    let mut way = vec![end];
    while let Some(before) = way.last().filter(|last| **last != start).and_then(|last| came_from.get(last)) {
        way.push(before);
    }
    way.reverse();
    way
}

/// The same cycle, begun at its alphabetically first module, so that it is reported once.
fn from_its_least(mut cycle: Vec<&str>) -> Vec<&str> {
    let least = cycle.iter().enumerate().min_by_key(|(_, module)| **module).map_or(0, |(at, _)| at);
    cycle.rotate_left(least);
    cycle
}

fn edges(package: &Crate) -> Edges {
    let modules = top_modules(package);
    let exports = root_exports(package, &modules);
    let mut edges = Edges::new();
    for source in package.production() {
        let mut finder = Finder {
            source,
            module: source.module.clone(),
            modules: &modules,
            exports: &exports,
            edges: &mut edges,
        };
        finder.visit_file(&source.syntax);
    }
    edges
}

fn top_modules(package: &Crate) -> BTreeSet<String> {
    let roots = package.production().filter(|source| source.module.is_empty());
    roots
        .flat_map(|root| &root.syntax.items)
        .filter_map(|item| match item {
            Item::Mod(module) => Some(module.ident.to_string()),
            _ => None,
        })
        .collect()
}

/// The names that the crate's root re-exports or imports, each with the module that it comes from.
fn root_exports(package: &Crate, modules: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut exports = BTreeMap::new();
    for root in package.production().filter(|source| source.module.is_empty()) {
        for item in &root.syntax.items {
            let Item::Use(item) = item else { continue };
            for Leaf { path, name, .. } in leaves(&item.tree) {
                let inside = path.iter().find(|segment| !matches!(segment.as_str(), "crate" | "self"));
                if let Some(module) = inside.filter(|module| modules.contains(*module)) {
                    exports.insert(name, module.clone());
                }
            }
        }
    }
    exports
}

/// One name that a `use` brings in.
struct Leaf {
    path: Vec<String>,
    /// Its name here, which may be another one.
    name: String,
    line: usize,
}

fn leaves(tree: &UseTree) -> Vec<Leaf> {
    let mut found = Vec::new();
    collect_leaves(tree, &[], &mut found);
    found
}

fn collect_leaves(tree: &UseTree, before: &[String], found: &mut Vec<Leaf>) {
    let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
    let leaf = |name: &syn::Ident, here: &syn::Ident| Leaf {
        path: with(name),
        name: here.to_string(),
        line: name.span().start().line,
    };
    match tree {
        UseTree::Path(path) => collect_leaves(&path.tree, &with(&path.ident), found),
        UseTree::Group(group) => group.items.iter().for_each(|tree| collect_leaves(tree, before, found)),
        UseTree::Name(name) => found.push(leaf(&name.ident, &name.ident)),
        UseTree::Rename(name) => found.push(leaf(&name.ident, &name.rename)),
        UseTree::Glob(glob) => found.push(Leaf {
            path: before.to_vec(),
            name: "*".to_owned(),
            line: glob.star_token.span.start().line,
        }),
    }
}

/// Looks through one file for paths into other modules.
struct Finder<'a> {
    source: &'a Source,
    /// Where we are: the file's module, and the inline modules around.
    module: Vec<String>,
    modules: &'a BTreeSet<String>,
    exports: &'a BTreeMap<String, String>,
    edges: &'a mut Edges,
}

impl Finder<'_> {
    fn see(&mut self, path: &[String], line: usize) {
        let Some((from, to)) = self.module.first().zip(self.target(path)) else { return };
        if *from != to {
            let places = self.edges.entry(from.clone()).or_default();
            places.entry(to).or_insert_with(|| format!("{}:{line}", self.source.path));
        }
    }

    /// The top-level module that a path leads into.
    fn target(&self, path: &[String]) -> Option<String> {
        let absolute = match path.first()?.as_str() {
            "crate" => path[1..].to_vec(),
            "self" => [&self.module[..], &path[1..]].concat(),
            "super" => {
                let up = path.iter().take_while(|segment| *segment == "super").count();
                [&self.module[..self.module.len().checked_sub(up)?], &path[up..]].concat()
            }
            _ => return None,
        };
        let name = absolute.first()?;
        if self.modules.contains(name) { Some(name.clone()) } else { self.exports.get(name).cloned() }
    }

    /// Paths in what a macro or an attribute is given, which is not parsed.
    fn see_tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Group(group) => self.see_tokens(group.stream()),
                TokenTree::Ident(name) if name == "crate" || name == "super" => {
                    for path in paths_at(&tokens[at..]) {
                        self.see(&path, name.span().start().line);
                    }
                }
                TokenTree::Literal(literal) => {
                    let text = literal.to_string();
                    let path: Vec<String> = text.trim_matches('"').split("::").map(str::to_owned).collect();
                    self.see(&path, literal.span().start().line);
                }
                _ => {}
            }
        }
    }
}

/// The paths that begin at the first token: one, or several where a group ends it (`crate::{a, b}`).
fn paths_at(tokens: &[TokenTree]) -> Vec<Vec<String>> {
    let mut path = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Ident(name) => path.push(name.to_string()),
            TokenTree::Punct(mark) if mark.as_char() == ':' => {}
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                let first = group.stream().into_iter().filter_map(|token| match token {
                    TokenTree::Ident(name) => Some([&path[..], &[name.to_string()]].concat()),
                    _ => None,
                });
                return first.collect();
            }
            _ => break,
        }
    }
    vec![path]
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

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        for Leaf { path, line, .. } in leaves(&item.tree) {
            self.see(&path, line);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let line = path.segments.first().map_or(0, |segment| segment.ident.span().start().line);
        self.see(&names, line);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invocation: &'ast Macro) {
        self.visit_path(&invocation.path);
        self.see_tokens(invocation.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let Meta::List(list) = &attribute.meta {
            self.see_tokens(list.tokens.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::testing::tree;
    use super::*;

    const ROOT: &str = "mod a;\npub mod b;\nmod c;\npub use c::{Thing, Other as Renamed};\n";

    fn problems(files: &[(&str, &str)]) -> Vec<Problem> {
        let files: Vec<(String, &str)> =
            files.iter().map(|(path, text)| (format!("crates/x/src/{path}"), *text)).collect();
        let mut files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        files.push(("crates/x/src/lib.rs", ROOT));
        check(&tree(&["x"], &files).crates)
    }

    #[test]
    fn a_cycle_is_printed_with_a_place_for_each_edge() {
        let found = problems(&[
            ("a.rs", "use crate::b::Item;"),
            ("b/deep.rs", "\nfn f() { crate::c::g(); }"),
            ("c.rs", "use std::fmt;\nuse crate::{a::{self, One}, b};"),
        ]);
        let whats: Vec<&str> = found.iter().map(|problem| problem.what.as_str()).collect();
        let short = "`x`: b → c → b\nb → c in crates/x/src/b/deep.rs:2\nc → b in crates/x/src/c.rs:2";
        let long = "`x`: a → b → c → a\na → b in crates/x/src/a.rs:1\nb → c in crates/x/src/b/deep.rs:2\n\
                    c → a in crates/x/src/c.rs:2";
        assert_eq!(whats, [long, short]);
        assert_eq!(found[0].place, "crates/x/src/a.rs:1");
    }

    #[test]
    fn every_way_to_name_a_module_is_an_edge() {
        for text in [
            "use crate::c::X;",
            "use super::c;",
            "use crate::c as d;",
            "use crate::c::*;",
            "use crate::Thing;",
            "use crate::Renamed;",
            "pub use crate::c::X;",
            "fn f(x: &dyn crate::c::X) {}",
            "fn f() { vec![crate::c::X] }",
            "macro_rules! m { () => { $crate::c::X }; }",
            "mod inner { use super::super::c; }",
            "#[serde(with = \"crate::c\")] struct S;",
            "fn f() { m! { use crate::{b, c::X}; } }",
        ] {
            assert_eq!(problems(&[("a.rs", text), ("c.rs", "use crate::a;")]).len(), 1, "{text}");
        }
    }

    #[test]
    fn what_is_no_edge_between_modules_makes_no_cycle() {
        for text in [
            "use crate::b::X;",
            "use self::c::X;",
            "use super::a::c;",
            "mod c { use super::X; }",
            "use other::c::X;",
            "//! See [`crate::c`].",
            "#[cfg(test)] mod tests { use crate::c; }",
            "#[cfg(test)] use crate::c;",
            "impl X { #[cfg(test)] fn f() { crate::c::g() } }",
        ] {
            assert_eq!(problems(&[("a.rs", text), ("c.rs", "use crate::a;")]), [], "{text}");
        }
        for path in ["a/tests.rs", "a/tests/b.rs", "a/conformance.rs", "a/fixture.rs"] {
            assert_eq!(problems(&[(path, "use crate::c;"), ("c.rs", "use crate::a;")]), [], "{path}");
        }
    }
}
