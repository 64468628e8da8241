//! The target `query` of `strata-fuzz`, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Some(target) = strata_fuzz::target("query") {
        (target.run)(data);
    }
});
