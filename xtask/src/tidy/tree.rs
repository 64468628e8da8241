//! The repository as the rules see it: its text files, and its crates with their Rust parsed.
//!
//! Test code is told from production code here and nowhere else. Start reading at [`Tree`].

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use proc_macro2::{TokenStream, TokenTree};
use syn::{Attribute, ImplItem, Item};

use crate::workspace::Workspace;

/// A text file of the repository.
pub(super) struct File {
    /// Its path from the root, with slashes.
    pub(super) path: String,
    pub(super) text: String,
}

/// All text files, and the crates among them.
pub(super) struct Tree {
    pub(super) files: Vec<File>,
    pub(super) crates: Vec<Crate>,
}

/// A crate of the workspace.
pub(super) struct Crate {
    pub(super) name: String,
    pub(super) sources: Vec<Source>,
}

/// A Rust file of a crate.
pub(super) struct Source {
    pub(super) path: String,
    pub(super) text: String,
    pub(super) role: Role,
    /// The path of its module inside the crate; empty for `lib.rs` and `main.rs`.
    pub(super) module: Vec<String>,
    pub(super) tokens: TokenStream,
    pub(super) syntax: syn::File,
}

/// The purpose of a Rust file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Under `src` and not for tests.
    Production,
    /// Under `src`, for tests alone: unit tests, fixtures, the conformance suite.
    UnitTest,
    /// A crate of its own that uses this one: integration tests, examples, benchmarks, the build script.
    Outside,
}

impl Tree {
    pub(super) fn read(workspace: &Workspace) -> Result<Self> {
        Self::of(read_files(workspace)?)
    }

    pub(super) fn of(files: Vec<File>) -> Result<Self> {
        let manifests = files.iter().filter_map(|file| {
            let folder = file.path.strip_suffix("Cargo.toml")?;
            Some((folder, package_name(&file.text)?))
        });
        let crates =
            manifests.map(|(folder, name)| Crate::of(name, folder, &files)).collect::<Result<_>>()?;
        Ok(Self { files, crates })
    }

    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.files.iter().find(|file| file.path == path).map(|file| file.text.as_str())
    }
}

impl Crate {
    fn of(name: String, folder: &str, files: &[File]) -> Result<Self> {
        let rust = files.iter().filter(|file| file.path.ends_with(".rs"));
        let mut sources: Vec<Source> = rust
            .filter_map(|file| Some((file, file.path.strip_prefix(folder)?)))
            .map(|(file, inside)| Source::parse(file, inside))
            .collect::<Result<_>>()?;
        let test_modules: Vec<Vec<String>> = sources.iter().flat_map(declared_for_tests).collect();
        for source in sources.iter_mut().filter(|source| source.role == Role::Production) {
            if test_modules.iter().any(|module| source.module.starts_with(module)) {
                source.role = Role::UnitTest;
            }
        }
        Ok(Self { name, sources })
    }

    pub(super) fn production(&self) -> impl Iterator<Item = &Source> {
        self.sources.iter().filter(|source| source.role == Role::Production)
    }

    /// Whether other crates can use it.
    pub(super) fn is_library(&self) -> bool {
        self.sources.iter().any(|source| source.path.ends_with("/src/lib.rs"))
    }
}

impl Source {
    /// `inside` is the path from the crate's folder.
    fn parse(file: &File, inside: &str) -> Result<Self> {
        let failed = |line: usize, error: String| anyhow!("{}:{line}: is no Rust: {error}", file.path);
        let tokens: TokenStream = file
            .text
            .parse()
            .map_err(|error: proc_macro2::LexError| failed(error.span().start().line, error.to_string()))?;
        let syntax = syn::parse2(tokens.clone())
            .map_err(|error| failed(error.span().start().line, error.to_string()))?;
        let module = module_of(inside);
        let role = match inside.starts_with("src/") {
            false => Role::Outside,
            true if is_test_path(&file.path) || module.iter().any(|name| is_test_module(name)) => {
                Role::UnitTest
            }
            true => Role::Production,
        };
        Ok(Self { path: file.path.clone(), text: file.text.clone(), role, module, tokens, syntax })
    }
}

/// Every file that is text; the others are data and have no rules.
fn read_files(workspace: &Workspace) -> Result<Vec<File>> {
    let mut files = Vec::new();
    for path in workspace.files()? {
        let bytes =
            fs::read(workspace.root().join(&path)).with_context(|| format!("reading {}", path.display()))?;
        if bytes.contains(&0) {
            continue;
        }
        if let Ok(text) = String::from_utf8(bytes) {
            files.push(File { path: slashed(&path), text });
        }
    }
    Ok(files)
}

fn slashed(path: &Path) -> String {
    path.to_string_lossy().replace('\\', "/")
}

fn package_name(manifest: &str) -> Option<String> {
    let manifest: toml::Table = manifest.parse().ok()?;
    Some(manifest.get("package")?.get("name")?.as_str()?.to_owned())
}

fn module_of(inside: &str) -> Vec<String> {
    let path = inside.trim_start_matches("src/").trim_end_matches(".rs").trim_end_matches("/mod");
    if path == "lib" || path == "main" || path.starts_with("bin/") {
        return Vec::new();
    }
    path.split('/').map(str::to_owned).collect()
}

/// Whether the file's path says that it is test code.
pub(super) fn is_test_path(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs") || path.ends_with("_tests.rs")
}

/// Modules that exist for tests, whatever their `cfg` says: other crates' tests may use them.
fn is_test_module(name: &str) -> bool {
    matches!(name, "conformance" | "fixture" | "fixtures")
}

/// The modules that a file declares for tests alone and that are files of their own.
fn declared_for_tests(source: &Source) -> Vec<Vec<String>> {
    let modules = source.syntax.items.iter().filter_map(|item| match item {
        Item::Mod(module) if module.content.is_none() && is_for_tests(&module.attrs) => Some(module),
        _ => None,
    });
    modules.map(|module| [&source.module[..], &[module.ident.to_string()]].concat()).collect()
}

/// Whether attributes make an item test code: `#[test]` and its like, or a `cfg` that asks for `test`.
pub(super) fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_test = attribute.path().segments.last().is_some_and(|segment| segment.ident == "test");
        is_test
            || (attribute.path().is_ident("cfg")
                && attribute.meta.require_list().is_ok_and(|list| asks_for_test(list.tokens.clone())))
    })
}

fn asks_for_test(tokens: TokenStream) -> bool {
    let mut negated = false;
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(name) => {
            negated = name == "not";
            name == "test"
        }
        TokenTree::Group(group) => !negated && asks_for_test(group.stream()),
        _ => false,
    })
}

/// The attributes of an item.
pub(super) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// The attributes of an item of an `impl` block.
pub(super) fn impl_attributes(item: &ImplItem) -> &[Attribute] {
    match item {
        ImplItem::Const(item) => &item.attrs,
        ImplItem::Fn(item) => &item.attrs,
        ImplItem::Type(item) => &item.attrs,
        ImplItem::Macro(item) => &item.attrs,
        _ => &[],
    }
}

/// A file's text up to its unit tests, which stand at the end.
pub(super) fn without_tests(text: &str) -> &str {
    let mut marks = text.match_indices("\n#[cfg(test)]\n");
    match marks.find(|(at, mark)| opens_module(&text[at + mark.len()..])) {
        Some((at, _)) => &text[..at + 1],
        None => text,
    }
}

fn opens_module(text: &str) -> bool {
    let line = text.lines().find(|line| !line.starts_with("#[")).unwrap_or_default();
    line.starts_with("mod ") && line.ends_with('{')
}

/// The longest line that a person reads; longer ones are data.
const MOST_CHARS: usize = 2_000;

/// The lines that people write, each with its file and number. The file of the rule itself is left out, and so is a file that a
/// tool writes.
pub(super) fn written_lines<'a>(
    files: &'a [File],
    rule: &'static str,
) -> impl Iterator<Item = (&'a File, usize, &'a str)> {
    let files = files.iter().filter(move |file| file.path != rule && file.path != "Cargo.lock");
    files
        .flat_map(|file| file.text.lines().zip(1..).map(move |(line, number)| (file, number, line)))
        .filter(|(_, _, line)| line.len() <= MOST_CHARS)
}

pub(super) fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

#[cfg(test)]
pub(super) mod testing {
    use super::*;

    pub(in crate::tidy) fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    /// A tree with the named crates under `crates` and these files.
    pub(in crate::tidy) fn tree(crates: &[&str], files: &[(&str, &str)]) -> Tree {
        let manifests = crates.iter().map(|name| {
            file(&format!("crates/{name}/Cargo.toml"), &format!("[package]\nname = \"{name}\"\n"))
        });
        Tree::of(manifests.chain(files.iter().map(|(path, text)| file(path, text))).collect()).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::testing::*;
    use super::*;

    fn roles(files: &[(&str, &str)]) -> Vec<(String, Role)> {
        let tree = tree(&["a"], files);
        tree.crates[0].sources.iter().map(|source| (source.module.join("::"), source.role)).collect()
    }

    #[test]
    fn the_role_of_a_file_follows_from_its_path() {
        for (path, module, role) in [
            ("src/lib.rs", "", Role::Production),
            ("src/b/c.rs", "b::c", Role::Production),
            ("src/b/mod.rs", "b", Role::Production),
            ("src/b/tests.rs", "b::tests", Role::UnitTest),
            ("src/b/tests/c.rs", "b::tests::c", Role::UnitTest),
            ("src/store/conformance/c.rs", "store::conformance::c", Role::UnitTest),
            ("tests/b.rs", "tests::b", Role::Outside),
            ("examples/b.rs", "examples::b", Role::Outside),
        ] {
            assert_eq!(roles(&[(&format!("crates/a/{path}"), "")]), [(module.to_owned(), role)], "{path}");
        }
    }

    #[test]
    fn a_module_that_is_declared_for_tests_is_test_code_with_all_below_it() {
        for (attribute, role) in [
            ("#[cfg(test)]", Role::UnitTest),
            ("#[cfg(any(test, feature = \"x\"))]", Role::UnitTest),
            ("#[cfg(not(test))]", Role::Production),
            ("#[cfg(feature = \"test\")]", Role::Production),
            ("", Role::Production),
        ] {
            let library = format!("{attribute}\nmod testing;");
            let files = [("crates/a/src/testing/b.rs", ""), ("crates/a/src/lib.rs", library.as_str())];
            assert_eq!(roles(&files)[0].1, role, "{attribute}");
        }
    }

    #[test]
    fn a_file_that_is_no_rust_is_named_with_its_line() {
        let files = [file("x/Cargo.toml", "[package]\nname = \"x\""), file("x/src/lib.rs", "\nfn x( {}")];
        let error = Tree::of(files.into()).err().unwrap().to_string();
        assert!(error.starts_with("x/src/lib.rs:2: is no Rust"), "{error}");
    }
}
