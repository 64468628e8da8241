//! Tooling. 
fn main() {}
