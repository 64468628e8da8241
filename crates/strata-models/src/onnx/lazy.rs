//! A model whose weights are read on first use, and that runs on a thread that may block.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use strata_core::{Error, Result};

use super::session::{Session, space_name, space_name_of};

/// The place of a model's weights.
enum Weights {
    Folder(PathBuf),
    Program(&'static [u8]),
}

/// A model that is made from its weights at the first use.
pub(super) struct LazyModel<T> {
    name: String,
    weights: Weights,
    prepare: fn(Session) -> Result<T>,
    loaded: OnceLock<Result<T, String>>,
}

impl<T> LazyModel<T> {
    /// The model in a folder. This fails if the folder holds no model, and reads no weights yet.
    pub(super) fn open(dir: PathBuf, prepare: fn(Session) -> Result<T>) -> Result<Self> {
        let name = space_name(&dir)?;
        Ok(Self { name, weights: Weights::Folder(dir), prepare, loaded: OnceLock::new() })
    }

    /// A model whose weights are inside the program.
    pub(super) fn of_program(
        name: &str,
        weights: &'static [u8],
        prepare: fn(Session) -> Result<T>,
    ) -> Result<Self> {
        let name = space_name_of(name, weights)?;
        Ok(Self { name, weights: Weights::Program(weights), prepare, loaded: OnceLock::new() })
    }

    /// Its name, which changes with its weights.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether the weights are in memory.
    pub(super) fn is_loaded(&self) -> bool {
        self.loaded.get().is_some()
    }

    fn get(&self) -> Result<&T> {
        self.loaded
            .get_or_init(|| self.load().map_err(|error| describe(&error)))
            .as_ref()
            .map_err(|message| Error::unavailable(message.clone()))
    }

    fn load(&self) -> Result<T> {
        (self.prepare)(match &self.weights {
            Weights::Folder(dir) => Session::open(dir)?,
            Weights::Program(weights) => Session::of_program(weights)?,
        })
    }
}

impl<T: Send + Sync + 'static> LazyModel<T> {
    /// Runs work with the model on a thread that may block.
    pub(super) async fn run<R: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&T) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let model = Arc::clone(self);
        tokio::task::spawn_blocking(move || work(model.get()?))
            .await
            .map_err(|error| Error::internal("the thread of a model has panicked").with_source(error))?
    }
}

/// An error with its causes in one line. The text is kept for later calls, because errors cannot be cloned.
fn describe(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
