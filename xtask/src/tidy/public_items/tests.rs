use super::super::tree::testing::tree;
use super::*;

/// The problems of a library `lib` beside a crate `app` and the list of reasons.
fn check_with(library: &str, app: &str, reasons: &str) -> Vec<String> {
    let files =
        [("crates/lib/src/lib.rs", library), ("crates/app/src/main.rs", app), ("xtask/public.toml", reasons)];
    found(&files)
}

fn found(files: &[(&str, &str)]) -> Vec<String> {
    let problems = check(&tree(&["lib", "app", "strata"], files));
    problems.into_iter().map(|problem| format!("{}: {}", problem.place, problem.what)).collect()
}

#[test]
fn each_kind_of_item_without_a_user_is_listed() {
    for (library, name) in [
        ("pub fn item() {}", "item"),
        ("pub struct Item;", "Item"),
        ("pub enum Item { A }", "Item"),
        ("pub trait Item {}", "Item"),
        ("pub type Item = u8;", "Item"),
        ("pub const ITEM: u8 = 1;", "ITEM"),
        ("pub static ITEM: u8 = 1;", "ITEM"),
        ("pub mod item {}", "item"),
        ("mod inner { pub fn item() {} }", "item"),
        ("#[macro_export] macro_rules! item { () => {}; }", "item"),
        ("pub use inner::Item; mod inner { pub struct Item; }", "Item"),
        ("pub struct Used; impl Used { pub async fn item(&self) {} }", "Used::item"),
        ("pub struct Used; impl Used { pub const ITEM: u8 = 1; }", "Used::ITEM"),
    ] {
        let expected = format!("crates/lib/src/lib.rs:1: `{name}`: nothing outside `lib` names it");
        assert_eq!(check_with(library, "use lib::Used;", ""), [expected], "{library}");
    }
}

#[test]
fn what_is_not_public_or_has_a_user_is_not_listed() {
    for library in [
        "fn item() {}",
        "pub(crate) struct Item;",
        "#[cfg(test)] pub mod item {}",
        "#[cfg(test)] mod tests { pub fn item() {} }",
        "pub struct Used { pub field: u8 }",
        "pub trait Used { fn item(&self); }",
        "pub struct Used; impl Trait for Used { fn item(&self) {} }",
        "pub struct Used; impl Used { fn item(&self) {} }",
        "pub struct Used { pub field: Item } pub struct Item;",
        "pub fn used() -> Option<Vec<Item>> {} pub struct Item { pub field: Deep } pub enum Deep {}",
        "pub enum Used { A(Item) } pub struct Item;",
        "pub trait Used { fn item(&self) -> Item; } pub struct Item;",
        "pub struct Used; impl Iterator for Used { type Item = Thing; } pub struct Thing;",
        "pub use inner::Item as Used; mod inner { pub struct Item; }",
    ] {
        assert_eq!(check_with(library, "fn main() { lib::used(); Used }", ""), [""; 0], "{library}");
    }
}

#[test]
fn a_type_in_the_body_or_a_private_field_has_no_user_for_that() {
    for library in [
        "pub struct Used { field: Item } pub struct Item;",
        "pub fn used() { Item; } pub struct Item;",
        "pub struct Used; impl Used { pub(crate) fn f() -> Item {} } pub struct Item;",
    ] {
        assert_eq!(check_with(library, "use lib::{Used, used};", "").len(), 1, "{library}");
    }
}

#[test]
fn the_methods_of_an_unused_type_go_with_it() {
    assert_eq!(check_with("pub struct Item; impl Item { pub fn a() {} pub fn b() {} }", "", "").len(), 1);
}

#[test]
fn users_are_other_crates_tests_examples_and_the_code_of_pages() {
    let library = ("crates/lib/src/lib.rs", "pub const ITEM: u8 = 1;");
    for user in [
        ("crates/app/src/deep/x.rs", "fn f() { g!(lib::ITEM) }"),
        ("crates/app/src/x.rs", "fn f() { println!(\"{ITEM:>3}\") }"),
        ("crates/lib/tests/x.rs", "use lib::ITEM;"),
        ("crates/lib/examples/x.rs", "use lib::ITEM;"),
        ("docs/x.md", "```rust\nuse lib::ITEM;\n```\n"),
    ] {
        assert_eq!(found(&[library, user]), [""; 0], "{user:?}");
    }
    for other in [
        ("crates/lib/src/x.rs", "use crate::ITEM;"),
        ("crates/lib/src/tests.rs", "use crate::ITEM;"),
        ("crates/app/src/x.rs", "// ITEM\n/// `ITEM`, {ITEM}\nconst X: &str = \"ITEM\";"),
        ("docs/x.md", "ITEM\n```sh\nITEM\n```\n"),
    ] {
        assert_eq!(found(&[library, other]).len(), 1, "{other:?}");
    }
}

#[test]
fn the_product_and_binaries_may_have_what_nothing_here_uses() {
    assert_eq!(found(&[("crates/strata/src/lib.rs", "pub fn item() {}")]), [""; 0]);
    assert_eq!(found(&[("crates/app/src/main.rs", "pub fn item() {}")]), [""; 0]);
}

#[test]
fn a_reason_excuses_an_item_and_goes_when_nothing_needs_it() {
    let library = "pub struct Used; impl Used { pub fn item() {} }";
    let reasons = "[lib]\n\"Used::item\" = \"a later issue connects it\"\n";
    assert_eq!(check_with(library, "use lib::Used;", reasons), [""; 0]);
    assert_eq!(
        check_with(library, "fn f() { lib::Used::item() }", reasons),
        ["xtask/public.toml: `lib`: `Used::item` is used now, or is gone"]
    );
    let empty = reasons.replace("a later issue connects it", " ");
    assert_eq!(
        check_with(library, "use lib::Used;", &empty),
        ["xtask/public.toml: `lib`: `Used::item` has no reason"]
    );
    assert_eq!(check_with("", "", "[lib").len(), 1);
}
