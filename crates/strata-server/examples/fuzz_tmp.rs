//! Temporary.
use std::sync::Arc;
use strata_core::{Engine, ports::*, store::InMemoryStore};
struct P(std::sync::atomic::AtomicU64);
impl Clock for P {
    fn now(&self) -> jiff::Timestamp {
        "2026-03-01T12:00:00Z".parse::<jiff::Timestamp>().unwrap()
            + jiff::SignedDuration::from_secs(self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed) as i64)
    }
}
impl IdSource for P {
    fn next(&self) -> uuid::Uuid {
        uuid::Uuid::from_u128(self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed) as u128)
    }
}
impl TokenCounter for P {
    fn count(&self, t: &str) -> u32 {
        t.len() as u32 / 4
    }
}
#[tokio::main]
async fn main() {
    let p = || Arc::new(P(Default::default()));
    let e = Engine::new(Arc::new(InMemoryStore::default()), p(), p(), p(), Default::default());
    let l = tokio::net::TcpListener::bind("127.0.0.1:8199").await.unwrap();
    strata_server::serve(l, strata_server::App::new(e, Default::default()), async {
        let _ = tokio::signal::ctrl_c().await;
    })
    .await
    .unwrap();
}
