use std::sync::Arc;

use super::*;

async fn store() -> (Arc<dyn Store>, ()) {
    (Arc::new(InMemoryStore::new()), ())
}

crate::conformance_suite!(store);
