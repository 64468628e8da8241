//! A public item of a library crate has a user outside the crate, or a reason in [`REASONS`].
//!
//! Items are functions, types, traits, constants, modules, exported macros, and the inherent methods and constants of
//! types; fields and the methods of traits come with their type. An item has a user where its name occurs in another
//! crate of the workspace, in an integration test, example or benchmark, or in Rust code of the documentation; so has a
//! type in the signature or the public fields of such an item. The search goes by name and knows no types: a common
//! name hides an unused item, and never the other way round.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Fields, Ident, ImplItem, Item, ItemImpl, Type, UseTree, Visibility};

use super::Problem;
use super::tree::{Crate, File, Role, Tree, attributes, impl_attributes, is_for_tests};

/// For each crate, the items that stay public without a user, and why.
const REASONS: &str = "xtask/public.toml";

/// The crates whose public items are the product's own interface.
const PRODUCT: &[&str] = &["strata"];

const FIX: &str = "delete it, make it `pub(crate)`, or give the reason in xtask/public.toml: a line \
                   `\"Type::method\" = \"why it stays\"` under the crate's name";

type Reasons = BTreeMap<String, BTreeMap<String, String>>;

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let reasons: Reasons = match toml::from_str(tree.text(REASONS).unwrap_or_default()) {
        Ok(reasons) => reasons,
        Err(error) => return vec![Problem::new(REASONS, error.to_string(), "correct it")],
    };
    let crates: Vec<Names<'_>> = tree.crates.iter().map(Names::of).collect();
    let pages = names_in_pages(&tree.files);
    let mut problems = Vec::new();
    let mut excused: BTreeSet<(&str, String)> = BTreeSet::new();
    for package in tree.crates.iter().filter(|package| is_judged(package)) {
        for item in unused(package, &names_outside(package, &crates, &pages)) {
            if reasons.get(&package.name).is_some_and(|reasons| reasons.contains_key(&item.full_name())) {
                excused.insert((&package.name, item.full_name()));
            } else {
                let what = format!("`{}`: nothing outside `{}` names it", item.full_name(), package.name);
                problems.push(Problem::at(&item.path, item.line, what, FIX));
            }
        }
    }
    problems.extend(stale(&reasons, &excused));
    problems
}

fn is_judged(package: &Crate) -> bool {
    package.is_library() && !PRODUCT.contains(&package.name.as_str())
}

/// Entries of the list that excuse nothing, or give no reason.
fn stale(reasons: &Reasons, excused: &BTreeSet<(&str, String)>) -> Vec<Problem> {
    let entries = reasons.iter().flat_map(|(package, items)| {
        items.iter().map(move |(item, reason)| (package.as_str(), item, reason.trim()))
    });
    entries
        .filter_map(|(package, item, reason)| {
            if !excused.contains(&(package, item.clone())) {
                let what = format!("`{package}`: `{item}` is used now, or is gone");
                Some(Problem::new(REASONS, what, "take the entry off"))
            } else {
                reason.is_empty().then(|| {
                    Problem::new(REASONS, format!("`{package}`: `{item}` has no reason"), "say why it stays")
                })
            }
        })
        .collect()
}

/// A public item.
struct Public {
    /// The type of a method or an associated constant.
    owner: Option<String>,
    name: String,
    path: String,
    line: usize,
    /// The types in its signature or public fields.
    interface: BTreeSet<String>,
}

impl Public {
    fn full_name(&self) -> String {
        match &self.owner {
            Some(owner) => format!("{owner}::{}", self.name),
            None => self.name.clone(),
        }
    }
}

fn unused(package: &Crate, outside: &BTreeSet<String>) -> Vec<Public> {
    let mut finder = Finder::default();
    for source in package.production() {
        finder.path.clone_from(&source.path);
        finder.visit_file(&source.syntax);
    }
    let used = used_types(&finder, outside);
    // The methods of an unused type go with it.
    let is_unused = |item: &Public| match &item.owner {
        Some(owner) => used.contains(owner) && !outside.contains(&item.name),
        None => !used.contains(&item.name),
    };
    finder.items.into_iter().filter(is_unused).collect()
}

/// The names that occur outside, and those that come with them: the types in the interface of something used.
fn used_types(finder: &Finder, outside: &BTreeSet<String>) -> BTreeSet<String> {
    let mut used = outside.clone();
    loop {
        let before = used.len();
        for item in &finder.items {
            let is_used = match &item.owner {
                Some(owner) => used.contains(owner) && outside.contains(&item.name),
                None => used.contains(&item.name),
            };
            if is_used {
                used.extend(item.interface.iter().cloned());
            }
        }
        for (name, brings) in &finder.brings {
            if used.contains(name) {
                used.extend(brings.iter().cloned());
            }
        }
        if used.len() == before {
            return used;
        }
    }
}

/// The names in the Rust files of one crate.
struct Names<'a> {
    package: &'a str,
    /// In the crate itself.
    inside: BTreeSet<String>,
    /// In its integration tests, examples and benchmarks.
    around: BTreeSet<String>,
}

impl<'a> Names<'a> {
    fn of(package: &'a Crate) -> Self {
        let mut names = Self { package: &package.name, inside: BTreeSet::new(), around: BTreeSet::new() };
        for source in &package.sources {
            let is_around = source.role == Role::Outside;
            let set = if is_around { &mut names.around } else { &mut names.inside };
            collect_names(source.tokens.clone(), set);
        }
        names
    }
}

/// Every name in code that uses a crate from outside.
fn names_outside(package: &Crate, crates: &[Names<'_>], pages: &BTreeSet<String>) -> BTreeSet<String> {
    let others = crates.iter().filter(|names| names.package != package.name);
    let inside = others.flat_map(|names| &names.inside);
    inside.chain(crates.iter().flat_map(|names| &names.around)).chain(pages).cloned().collect()
}

fn names_in_pages(files: &[File]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for page in files.iter().filter(|file| file.path.ends_with(".md")) {
        collect_words(&rust_code(page), &mut names);
    }
    names
}

fn collect_names(tokens: TokenStream, names: &mut BTreeSet<String>) {
    let mut after_doc = false;
    for token in tokens {
        match token {
            TokenTree::Ident(name) => {
                after_doc = name == "doc";
                names.insert(name.to_string());
            }
            TokenTree::Group(group) => collect_names(group.stream(), names),
            // A constant may be named in a format string alone; a comment's text is no use.
            TokenTree::Literal(literal) if !after_doc => {
                let text = literal.to_string();
                text.split('{').skip(1).for_each(|rest| collect_words(first_word(rest), names));
            }
            _ => {}
        }
    }
}

fn first_word(text: &str) -> &str {
    &text[..text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len())]
}

fn collect_words(text: &str, names: &mut BTreeSet<String>) {
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
    names.extend(words.map(str::to_owned));
}

/// The blocks of a page that are marked as Rust.
fn rust_code(page: &File) -> String {
    let mut inside = false;
    let mut code = String::new();
    for line in page.text.lines() {
        match line.trim_start().strip_prefix("```") {
            Some(language) => inside = !inside && language.starts_with("rust"),
            None if inside => code += &format!("{line}\n"),
            None => {}
        }
    }
    code
}

/// Collects the public items of production code.
#[derive(Default)]
struct Finder {
    path: String,
    items: Vec<Public>,
    /// The names that come with a name: the original of a renamed re-export, the associated types of a type's traits.
    brings: Vec<(String, BTreeSet<String>)>,
}

impl Finder {
    fn see(&mut self, owner: Option<&str>, name: &Ident, interface: BTreeSet<String>) {
        self.items.push(Public {
            owner: owner.map(str::to_owned),
            name: name.to_string(),
            path: self.path.clone(),
            line: name.span().start().line,
            interface,
        });
    }

    fn see_renamed(&mut self, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => self.see_renamed(&path.tree),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.see_renamed(tree)),
            UseTree::Rename(leaf) => {
                self.brings.push((leaf.rename.to_string(), BTreeSet::from([leaf.ident.to_string()])));
            }
            _ => {}
        }
    }

    fn see_impl(&mut self, block: &ItemImpl) {
        let Type::Path(target) = &*block.self_ty else { return };
        let Some(owner) = target.path.segments.last().map(|segment| segment.ident.to_string()) else {
            return;
        };
        for item in block.items.iter().filter(|item| !is_for_tests(impl_attributes(item))) {
            match item {
                ImplItem::Fn(item) if is_public(&item.vis) => {
                    self.see(
                        Some(&owner),
                        &item.sig.ident,
                        types(|visitor| visitor.visit_signature(&item.sig)),
                    );
                }
                ImplItem::Const(item) if is_public(&item.vis) => {
                    self.see(Some(&owner), &item.ident, types(|visitor| visitor.visit_type(&item.ty)));
                }
                ImplItem::Type(item) => {
                    self.brings.push((owner.clone(), types(|visitor| visitor.visit_type(&item.ty))));
                }
                _ => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_for_tests(attributes(item)) {
            return;
        }
        match item {
            Item::Fn(item) if is_public(&item.vis) => {
                self.see(None, &item.sig.ident, types(|visitor| visitor.visit_signature(&item.sig)));
            }
            Item::Struct(item) if is_public(&item.vis) => {
                self.see(None, &item.ident, public_fields(&item.fields));
            }
            Item::Enum(item) if is_public(&item.vis) => {
                let variants = types(|visitor| item.variants.iter().for_each(|v| visitor.visit_variant(v)));
                self.see(None, &item.ident, variants);
            }
            Item::Trait(item) if is_public(&item.vis) => {
                self.see(None, &item.ident, types(|visitor| visitor.visit_item_trait(item)));
            }
            Item::Type(item) if is_public(&item.vis) => {
                self.see(None, &item.ident, types(|visitor| visitor.visit_type(&item.ty)));
            }
            Item::Const(item) if is_public(&item.vis) => {
                self.see(None, &item.ident, types(|visitor| visitor.visit_type(&item.ty)));
            }
            Item::Static(item) if is_public(&item.vis) => {
                self.see(None, &item.ident, types(|visitor| visitor.visit_type(&item.ty)));
            }
            Item::Mod(item) if is_public(&item.vis) => self.see(None, &item.ident, BTreeSet::new()),
            Item::Macro(item) if item.attrs.iter().any(|it| it.path().is_ident("macro_export")) => {
                item.ident.iter().for_each(|name| self.see(None, name, BTreeSet::new()));
            }
            Item::Use(item) if is_public(&item.vis) => self.see_renamed(&item.tree),
            Item::Impl(block) => self.see_impl(block),
            _ => {}
        }
        if let Item::Mod(item) = item {
            visit::visit_item_mod(self, item);
        }
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn public_fields(fields: &Fields) -> BTreeSet<String> {
    let public = fields.iter().filter(|field| is_public(&field.vis));
    types(|visitor| public.for_each(|field| visitor.visit_type(&field.ty)))
}

/// The names of all types and traits in a piece of syntax; bodies of functions do not count.
fn types(look: impl FnOnce(&mut Types)) -> BTreeSet<String> {
    let mut types = Types::default();
    look(&mut types);
    types.names
}

#[derive(Default)]
struct Types {
    names: BTreeSet<String>,
}

impl<'ast> Visit<'ast> for Types {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.names.extend(path.segments.iter().map(|segment| segment.ident.to_string()));
        visit::visit_path(self, path);
    }

    fn visit_block(&mut self, _: &'ast syn::Block) {}

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
}

#[cfg(test)]
mod tests;
