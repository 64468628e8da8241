//! Lets the linker merge functions whose machine code is equal, where Rust's own linker is the default. Generic code has
//! many of them: the binary becomes megabytes smaller, and nothing else changes.

#[allow(clippy::disallowed_methods, reason = "the environment is how cargo talks to a build script")]
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    let has_lld = is("TARGET", "x86_64-unknown-linux-gnu") && is("HOST", "x86_64-unknown-linux-gnu");
    if has_lld && is("PROFILE", "release") {
        println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
    }
}
