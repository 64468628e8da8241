//! Memory for any LLM application: the library façade and the binary
