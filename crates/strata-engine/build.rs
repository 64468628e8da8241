//! Reads the shipped profiles, which people write as TOML, into one JSON text. The crate itself reads no TOML, and a
//! profile that cannot be read fails the build.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a build script reads the environment and files"
)]

use std::error::Error;
use std::path::Path;

/// The profiles in their order.
const NAMES: [&str; 6] = ["diagnostic", "incident", "support", "coding", "research", "household"];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new("src/prompt/profiles");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut profiles = Vec::new();
    for name in NAMES {
        let text = std::fs::read_to_string(folder.join(format!("{name}.toml")))?;
        profiles.push(toml::from_str::<serde_json::Value>(&text)?);
    }
    let out = std::env::var_os("OUT_DIR").ok_or("cargo names no folder for the result")?;
    std::fs::write(Path::new(&out).join("profiles.json"), serde_json::to_string(&profiles)?)?;
    Ok(())
}
