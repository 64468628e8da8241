//! `strata serve`: runs the HTTP server until a signal stops it.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use strata::config::{Config, StoreUrl};
use strata_core::key::KeyState;
use strata_core::store::{KeyQuery, Page};
use strata_engine::Engine;
use tokio::net::TcpListener;

use super::Context;
use crate::failure::{Failure, Outcome};
use crate::output::Output;

/// Serve memory over HTTP
///
/// On SIGINT or SIGTERM, the server finishes the accepted requests and stops. On an address other than loopback, it requires
/// an API key in the store (`strata keys create`).
#[derive(Debug, Default, clap::Args)]
#[command(
    after_help = "Example:\n  strata serve --listen 127.0.0.1:8100 --upstream https://api.openai.com/v1"
)]
pub(crate) struct Args {
    /// The address to listen on; port 0 takes a free port [default: 127.0.0.1:8100]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// The OpenAI-compatible server that chats are forwarded to
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: Option<String>,
    /// The upstream's API key, instead of the key that clients send
    #[arg(long, value_name = "KEY")]
    pub(crate) upstream_key: Option<String>,
}

impl Args {
    /// These arguments; those that are not given come from `others`.
    pub(crate) fn or(self, others: Self) -> Self {
        Self {
            listen: self.listen.or(others.listen),
            upstream: self.upstream.or(others.upstream),
            upstream_key: self.upstream_key.or(others.upstream_key),
        }
    }

    /// The name of the first flag that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let flags = [
            ("--listen", &self.listen),
            ("--upstream", &self.upstream),
            ("--upstream-key", &self.upstream_key),
        ];
        flags.into_iter().find(|(_, value)| value.is_some()).map(|(name, _)| name)
    }
}

pub(crate) async fn run(context: &Context, output: &mut Output) -> Outcome {
    let config = &context.config;
    let listen = config.listen;
    if let Some(exposure) = exposure(config)
        && !has_store(config)
    {
        return Err(Failure::usage(refusal(&exposure)));
    }
    // Signals are handled first, so that none is lost while the store opens.
    let stop = stop_signal()?;
    let listener = TcpListener::bind(listen).await.map_err(|error| not_bound(listen, error))?;
    let engine = context.engine().await?;
    if let Some(exposure) = exposure(config)
        && !has_live_key(&engine).await?
    {
        return Err(Failure::usage(refusal(&exposure)));
    }
    for advice in engine.store().advice() {
        tracing::warn!("{advice}");
    }
    serve_on(listener, engine, config, stop, output).await
}

/// Serves an engine until `stop` completes.
pub(super) async fn serve_on(
    listener: TcpListener,
    engine: Engine,
    config: &Config,
    stop: impl Future<Output = ()> + Send + 'static,
    output: &mut Output,
) -> Outcome {
    let address = listener.local_addr()?;
    let announced = output
        .line(format_args!("strata listens on http://{address}"))
        .and_then(|()| output.line(format_args!("store: {}", config.store)))
        .and_then(|()| {
            let proxy = &config.server.proxy;
            let mut upstreams = proxy.upstreams.iter().map(|one| &one.url).chain(&proxy.upstream);
            upstreams.try_for_each(|upstream| output.line(format_args!("upstream: {upstream}")))
        })
        .and_then(|()| output.flush());
    // A closed stdout is not fatal: the process that started the server may have ended.
    if let Err(error) = announced {
        tracing::warn!(%error, "the address cannot be printed");
    }
    let worker = strata::Worker::start(engine.clone(), strata::WorkerSettings::new(config));
    let mut settings = config.server.clone();
    settings.proxy.spill = config.store.path().map(spill_folder);
    let app = strata_server::App::new(engine, settings);
    let served = strata_server::serve(listener, app, stop).await;
    worker.stop(config.server.drain_timeout).await;
    served.map_err(|error| Failure::Failed(error.into()))
}

/// The folder beside the store for chats that it cannot take now.
pub(super) fn spill_folder(store: &Path) -> PathBuf {
    // Without a slash at its end, which would put the folder into a vault.
    let mut folder = store.components().collect::<PathBuf>().into_os_string();
    folder.push("-spill");
    folder.into()
}

/// Why other machines may reach the server; `None` if they cannot.
pub(super) fn exposure(config: &Config) -> Option<String> {
    let listen = config.listen;
    if !listen.ip().is_loopback() {
        return Some(format!("`{listen}` (from {}) is not a loopback address", config.origin("listen")));
    }
    let hosts = &config.server.allowed_hosts;
    let names =
        || format!("`{}` (from {}) is not a loopback name", hosts.join(","), config.origin("allowed_hosts"));
    (!hosts.is_empty()).then(names)
}

pub(super) fn refusal(exposure: &str) -> String {
    format!(
        "{exposure}, and the store has no API key; create one first, as in `strata keys create --user NAME`, or use \
         loopback only"
    )
}

/// Whether a store exists that could have keys. This is checked first, because a refused start must not create a store.
pub(super) fn has_store(config: &Config) -> bool {
    match &config.store {
        StoreUrl::Postgres(_) => true,
        StoreUrl::Sqlite(_) | StoreUrl::Vault(_) | StoreUrl::Memory => {
            config.store.path().is_some_and(Path::exists)
        }
    }
}

/// Whether the store has a valid key.
pub(super) async fn has_live_key(engine: &Engine) -> Outcome<bool> {
    let keys = engine.keys.list(&KeyQuery::unrevoked(Page::first(u32::MAX))).await?;
    let now = engine.now();
    Ok(keys.iter().any(|key| key.state(now) == KeyState::Live))
}

fn not_bound(listen: SocketAddr, error: io::Error) -> Failure {
    let advice = match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another program uses it; stop that program, or choose another port with `--listen`"
        }
        _ => "choose another address with `--listen`",
    };
    Failure::Failed(anyhow::Error::from(error).context(format!("cannot listen on `{listen}`; {advice}")))
}

/// Completes when a signal asks the process to stop.
pub(super) fn stop_signal() -> io::Result<impl Future<Output = ()> + Send> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        Ok(async move {
            tokio::select! {
                _ = interrupt.recv() => tracing::info!("SIGINT: stopping"),
                _ = terminate.recv() => tracing::info!("SIGTERM: stopping"),
            }
        })
    }
    #[cfg(not(unix))]
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
        tracing::info!("stopping");
    })
}
