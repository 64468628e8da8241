//! Where Strata keeps things: the stores behind the core's port
