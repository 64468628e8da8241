//! A use-case part stays small: no type of `strata-engine` has more public methods than one sitting can hold.
//!
//! The rule asks nothing about what a part is: every type of the crate counts, `Engine` as well, over all its `impl` blocks
//! in all files. A type that needs more is two parts.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};
use syn::{ImplItem, Item, ItemImpl, Type, Visibility};

use super::Problem;
use super::tree::{Crate, attributes, impl_attributes, is_for_tests};

/// The crate of the use-cases.
const CRATE: &str = "strata-engine";

/// The most public methods of one type.
const MOST_METHODS: usize = 12;

pub(super) fn check(crates: &[Crate]) -> Vec<Problem> {
    let mut types = Types::default();
    for source in crates.iter().filter(|package| package.name == CRATE).flat_map(Crate::production) {
        types.path.clone_from(&source.path);
        types.visit_file(&source.syntax);
    }
    let broad = types.methods.iter().filter(|(_, methods)| methods.len() > MOST_METHODS);
    broad
        .map(|(name, methods)| {
            let place = methods.first().map_or(CRATE, |(place, _)| place);
            let names: Vec<&str> = methods.iter().map(|(_, name)| name.as_str()).collect();
            Problem::new(
                place,
                format!("`{name}` has {} public methods: {}", methods.len(), names.join(", ")),
                format!(
                    "move methods to a part of their own; a type of `{CRATE}` has at most {MOST_METHODS} `pub fn` \
                     in all its `impl` blocks together"
                ),
            )
        })
        .collect()
}

/// The public methods of each type, with their places.
#[derive(Default)]
struct Types {
    path: String,
    methods: BTreeMap<String, Vec<(String, String)>>,
}

impl<'ast> Visit<'ast> for Types {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_impl(&mut self, block: &'ast ItemImpl) {
        let (None, Type::Path(target)) = (&block.trait_, &*block.self_ty) else { return };
        let Some(name) = target.path.segments.last().map(|segment| segment.ident.to_string()) else { return };
        for item in block.items.iter().filter(|item| !is_for_tests(impl_attributes(item))) {
            let ImplItem::Fn(method) = item else { continue };
            if matches!(method.vis, Visibility::Public(_)) {
                let place = format!("{}:{}", self.path, method.sig.ident.span().start().line);
                self.methods.entry(name.clone()).or_default().push((place, method.sig.ident.to_string()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::testing::tree;
    use super::*;

    fn block(first: usize, count: usize, before: &str) -> String {
        let methods: String = (first..first + count)
            .map(|number| format!("{before} fn method_{number}(&self) {{}}\n"))
            .collect();
        format!("impl Recalling {{\n{methods}}}\n")
    }

    fn problems(package: &str, one: &str, other: &str) -> Vec<Problem> {
        let paths = ["one.rs", "other.rs"].map(|name| format!("crates/{package}/src/{name}"));
        check(&tree(&[package], &[(&paths[0], one), (&paths[1], other)]).crates)
    }

    #[test]
    fn the_public_methods_of_a_type_are_counted_over_all_files() {
        let half = block(0, 6, "pub async");
        assert_eq!(problems(CRATE, &half, &block(6, 6, "pub")), []);
        let found = problems(CRATE, &half, &block(6, 7, "pub"));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place, "crates/strata-engine/src/one.rs:2");
        assert!(found[0].what.starts_with("`Recalling` has 13 public methods: method_0, "), "{found:?}");
    }

    #[test]
    fn other_methods_and_other_crates_do_not_count() {
        let half = block(0, 12, "pub");
        for other in [
            block(12, 9, "pub(crate)"),
            block(12, 9, ""),
            block(12, 9, "#[cfg(test)] pub"),
            format!("#[cfg(test)]\nmod tests {{ {} }}", block(12, 9, "pub")),
            block(12, 9, "").replace("impl Recalling", "impl Trait for Recalling"),
            block(12, 9, "pub").replace("Recalling", "Learning"),
        ] {
            assert_eq!(problems(CRATE, &half, &other), [], "{other}");
        }
        assert_eq!(problems("strata-models", &half, &block(12, 9, "pub")), []);
    }
}
