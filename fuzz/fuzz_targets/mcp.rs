//! The target `mcp` of `strata-fuzz`, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Some(target) = strata_fuzz::target("mcp") {
        (target.run)(data);
    }
});
