//! Strata over HTTP: REST routes, operations, OpenAPI
