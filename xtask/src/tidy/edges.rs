//! The boundaries between crates, as ARCHITECTURE.md draws them, read from `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::Problem;
use crate::workspace::Metadata;

const FIX: &str = "go through a port, or change the boundary here and in ARCHITECTURE.md, with the reason";

/// One crate's boundary.
struct Boundary {
    name: &'static str,
    /// The siblings it may use, in its tests as well.
    siblings: &'static [&'static str],
    /// The crates that its ordinary dependencies may not bring in, however far down.
    never: &'static [&'static [&'static str]],
}

const DATABASES: &[&str] = &["rusqlite", "tokio-postgres", "sqlx", "redb"];
const MODELS: &[&str] = &["bpe-openai", "rten", "tokenizers", "ort"];
const RUNTIMES: &[&str] = &["tokio", "async-std", "smol", "notify"];
const SETTINGS: &[&str] = &["clap", "toml", "etcetera"];
const WEB: &[&str] = &["axum", "hyper", "hyper-util", "reqwest", "ureq", "tower-http"];
const WEB_FRAMEWORKS: &[&str] = &["axum", "rmcp", "utoipa"];

const BOUNDARIES: &[Boundary] = &[
    Boundary {
        name: "strata-language",
        siblings: &[],
        never: &[DATABASES, MODELS, RUNTIMES, SETTINGS, WEB, WEB_FRAMEWORKS],
    },
    Boundary { name: "strata-http", siblings: &[], never: &[DATABASES, MODELS, SETTINGS, WEB_FRAMEWORKS] },
    Boundary {
        name: "strata-core",
        siblings: &["strata-language"],
        never: &[DATABASES, MODELS, RUNTIMES, SETTINGS, WEB, WEB_FRAMEWORKS],
    },
    Boundary {
        name: "strata-engine",
        siblings: &["strata-language", "strata-core"],
        never: &[DATABASES, MODELS, RUNTIMES, SETTINGS, WEB, WEB_FRAMEWORKS],
    },
    // A store's tests run the use-cases over it; the store itself needs the contract alone.
    Boundary {
        name: "strata-store",
        siblings: &["strata-language", "strata-core", "strata-engine"],
        never: &[MODELS, SETTINGS, WEB, WEB_FRAMEWORKS],
    },
    Boundary {
        name: "strata-postgres",
        siblings: &["strata-language", "strata-core"],
        never: &[MODELS, SETTINGS, WEB, WEB_FRAMEWORKS],
    },
    // The vault keeps its derived index in a SQLite store.
    Boundary {
        name: "strata-vault",
        siblings: &["strata-core", "strata-store"],
        never: &[MODELS, SETTINGS, WEB, WEB_FRAMEWORKS],
    },
    Boundary {
        name: "strata-context",
        siblings: &["strata-core"],
        never: &[DATABASES, MODELS, SETTINGS, WEB, WEB_FRAMEWORKS],
    },
    Boundary {
        name: "strata-import",
        siblings: &["strata-core", "strata-engine", "strata-store"],
        never: &[MODELS, SETTINGS, WEB, WEB_FRAMEWORKS],
    },
    Boundary {
        name: "strata-models",
        siblings: &["strata-language", "strata-core", "strata-http"],
        never: &[DATABASES, SETTINGS, WEB_FRAMEWORKS],
    },
    // Bytes alone: the crates above decide what runs them.
    Boundary {
        name: "strata-weights",
        siblings: &[],
        never: &[DATABASES, MODELS, RUNTIMES, SETTINGS, WEB, WEB_FRAMEWORKS],
    },
    Boundary {
        name: "strata-server",
        siblings: &["strata-core", "strata-engine", "strata-http"],
        never: &[DATABASES, MODELS, SETTINGS],
    },
    Boundary {
        name: "strata",
        siblings: &[
            "strata-core",
            "strata-engine",
            "strata-store",
            "strata-postgres",
            "strata-vault",
            "strata-import",
            "strata-models",
            "strata-server",
            "strata-weights",
            "strata-evals",
        ],
        never: &[],
    },
    Boundary {
        name: "strata-evals",
        siblings: &["strata-language", "strata-core", "strata-engine", "strata-store", "strata-models"],
        never: &[SETTINGS, WEB_FRAMEWORKS],
    },
    Boundary {
        name: "strata-bench",
        siblings: &[
            "strata-core",
            "strata-engine",
            "strata-store",
            "strata-postgres",
            "strata-vault",
            "strata-context",
            "strata-models",
            "strata-weights",
        ],
        never: &[],
    },
    Boundary {
        name: "strata-fuzz",
        siblings: &[
            "strata-language",
            "strata-core",
            "strata-engine",
            "strata-import",
            "strata-server",
            "strata-vault",
        ],
        never: &[],
    },
    Boundary { name: "xtask", siblings: &[], never: &[] },
];

impl Boundary {
    fn forbids(&self, dependency: &str) -> bool {
        self.never.iter().any(|family| family.contains(&dependency))
    }
}

/// The graph by name: what each crate uses ordinarily, and what for its tests and build script as well.
#[derive(Default)]
struct Graph {
    ordinary: BTreeMap<String, BTreeSet<String>>,
    any: BTreeMap<String, BTreeSet<String>>,
}

pub(super) fn check(metadata: &Metadata) -> Result<Vec<Problem>> {
    let mut graph = Graph::default();
    for node in &metadata.resolve.nodes {
        let name = metadata.name(&node.id)?;
        for edge in &node.deps {
            let dependency = metadata.name(&edge.pkg)?;
            graph.any.entry(name.to_owned()).or_default().insert(dependency.to_owned());
            if edge.dep_kinds.iter().any(|kind| kind.kind.is_none()) {
                graph.ordinary.entry(name.to_owned()).or_default().insert(dependency.to_owned());
            }
        }
    }
    let members: BTreeSet<String> = metadata.members().map(|package| package.name.clone()).collect();
    let mut problems = check_graph(&members, &graph);
    for package in metadata.members() {
        for (field, value) in [("description", &package.description), ("license", &package.license)] {
            if value.as_ref().is_none_or(|value| value.trim().is_empty()) {
                let what = format!("has no `{field}` in its Cargo.toml");
                problems.push(Problem::new(&package.name, what, "add it"));
            }
        }
    }
    Ok(problems)
}

fn check_graph(members: &BTreeSet<String>, graph: &Graph) -> Vec<Problem> {
    let mut problems = Vec::new();
    for name in members {
        let Some(boundary) = BOUNDARIES.iter().find(|boundary| boundary.name == name) else {
            let fix = "add it to `BOUNDARIES` in xtask/src/tidy/edges.rs and to ARCHITECTURE.md";
            problems.push(Problem::new(name, "has no boundary", fix));
            continue;
        };
        let uses = graph.any.get(name).into_iter().flatten();
        for sibling in uses.filter(|dependency| members.contains(*dependency) && *dependency != name) {
            if !boundary.siblings.contains(&sibling.as_str()) {
                let what = format!("depends on `{sibling}`, which its boundary forbids");
                problems.push(Problem::new(name, what, FIX));
            }
        }
        for (dependency, path) in reachable(name, members, &graph.ordinary) {
            if boundary.forbids(&dependency) {
                let what = format!("brings in `{dependency}` ({path}), which its boundary forbids");
                problems.push(Problem::new(name, what, FIX));
            }
        }
    }
    problems
}

/// The crates that a crate's ordinary dependencies bring in, each with a path that leads to it. Siblings are not passed through:
/// they answer for themselves.
fn reachable(
    from: &str,
    members: &BTreeSet<String>,
    edges: &BTreeMap<String, BTreeSet<String>>,
) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    let mut open = vec![(from.to_owned(), from.to_owned())];
    while let Some((name, path)) = open.pop() {
        for dependency in edges.get(&name).into_iter().flatten() {
            if !members.contains(dependency) && !found.contains_key(dependency) {
                let path = format!("{path} > {dependency}");
                found.insert(dependency.clone(), path.clone());
                open.push((dependency.clone(), path));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ordinary: &[(&str, &str)], dev: &[(&str, &str)]) -> Vec<String> {
        let members = BOUNDARIES.iter().map(|boundary| boundary.name.to_owned()).collect();
        let mut graph = Graph::default();
        for (from, to) in ordinary {
            graph.ordinary.entry((*from).to_owned()).or_default().insert((*to).to_owned());
            graph.any.entry((*from).to_owned()).or_default().insert((*to).to_owned());
        }
        for (from, to) in dev {
            graph.any.entry((*from).to_owned()).or_default().insert((*to).to_owned());
        }
        check_graph(&members, &graph)
            .into_iter()
            .map(|problem| format!("{}: {}", problem.place, problem.what))
            .collect()
    }

    #[test]
    fn the_edges_of_the_design_are_allowed() {
        let edges = [
            ("strata", "strata-server"),
            ("strata", "strata-store"),
            ("strata", "strata-models"),
            ("strata-server", "strata-core"),
            ("strata-store", "strata-core"),
            ("strata-models", "strata-core"),
            ("strata-store", "rusqlite"),
            ("strata-server", "axum"),
        ];
        assert_eq!(
            check(&edges, &[("strata-core", "tokio"), ("strata-store", "strata-store")]),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_sibling_that_a_crate_may_not_know_is_named() {
        for (from, to) in [
            ("strata-core", "strata-store"),
            ("strata-store", "strata-server"),
            ("strata-store", "strata-models"),
            ("strata-server", "strata-store"),
            ("strata-models", "strata-store"),
            ("strata", "strata-bench"),
            ("xtask", "strata-core"),
        ] {
            for problems in [check(&[(from, to)], &[]), check(&[], &[(from, to)])] {
                assert_eq!(problems.len(), 1, "{from} to {to}");
                assert!(problems[0].starts_with(&format!("{from}: depends on `{to}`")), "{problems:?}");
            }
        }
    }

    #[test]
    fn what_comes_in_through_another_crate_is_found_with_its_path() {
        let problems = check(&[("strata-core", "innocent"), ("innocent", "tokio")], &[]);
        assert_eq!(problems.len(), 1);
        assert!(problems[0].contains("`tokio` (strata-core > innocent > tokio)"), "{problems:?}");
    }

    #[test]
    fn a_crate_without_a_boundary_is_refused() {
        let members = BTreeSet::from(["strata-extra".to_owned()]);
        let problems = check_graph(&members, &Graph::default());
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].what, "has no boundary");
    }
}
