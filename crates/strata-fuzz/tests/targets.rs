//! Each target runs on its examples, on those of all other targets, and on changes of its own.

use strata_fuzz::TARGETS;
use strata_fuzz::change::{Numbers, changed};

/// The number of changed inputs for each target: all of them take a few seconds in an unoptimised build.
const INPUTS: usize = 300;

/// `cargo xtask torture` gives each run another seed.
#[allow(clippy::disallowed_methods, clippy::expect_used, reason = "a test reads its seed")]
fn seed() -> u64 {
    let given = std::env::var("STRATA_TEST_SEED");
    given.map_or(0, |seed| seed.parse::<u64>().expect("a number as a seed") << 16)
}

#[test]
fn every_target_takes_any_bytes() {
    let all: Vec<&str> = TARGETS.iter().flat_map(|target| target.examples).copied().collect();
    for target in TARGETS {
        let examples: Vec<Vec<u8>> = target.examples.iter().map(|text| text.as_bytes().to_vec()).collect();
        assert!(!examples.is_empty(), "{} has examples", target.name);
        let mut numbers = Numbers::new(7 ^ seed());
        let inputs = (0..INPUTS).map(|_| changed(&examples, &mut numbers));
        for input in all.iter().map(|text| text.as_bytes().to_vec()).chain(inputs) {
            let ran = std::panic::catch_unwind(|| (target.run)(&input));
            assert!(ran.is_ok(), "`{}` panics on {:?}", target.name, String::from_utf8_lossy(&input));
        }
    }
}

#[test]
fn every_target_has_its_file_for_libfuzzer() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/fuzz_targets");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap().replace(".rs", ""))
        .collect();
    files.sort();
    assert_eq!(files, TARGETS.iter().map(|target| target.name).collect::<Vec<_>>());
    let manifest = std::fs::read_to_string(format!("{folder}/../Cargo.toml")).unwrap();
    for name in files {
        assert!(
            manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")),
            "{name} is in the manifest"
        );
    }
}
