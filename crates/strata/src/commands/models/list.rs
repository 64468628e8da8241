//! `strata models list`: lists the installed models and the one in use.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::json;
use strata::config::{Config, EmbedderChoice};
use strata_core::ports::Embedder;
use strata_models::onnx::OnnxEncoder;

use super::{Context, JsonArgs};
use crate::commands::doctor::size;
use crate::failure::Outcome;
use crate::output::Output;

/// One model of the list.
#[derive(Debug, Serialize)]
struct Model {
    name: String,
    /// The value of the setting `embedder` that chooses it.
    embedder: String,
    /// The name of its vector space; `None` if it has none or cannot be read.
    space: Option<String>,
    bytes: Option<u64>,
    in_use: bool,
    /// Why it cannot be used.
    problem: Option<String>,
}

pub(super) fn run(json: JsonArgs, context: &Context, output: &mut Output) -> Outcome {
    let models = models(&context.config);
    if json.json {
        output.json(&json!({ "models": models }))?;
        return Ok(());
    }
    let rows: Vec<_> = models
        .iter()
        .map(|model| {
            let space = model.space.clone().or_else(|| model.problem.clone()).unwrap_or("-".to_owned());
            [
                if model.in_use { "*" } else { "" }.to_owned(),
                model.name.clone(),
                model.bytes.map_or("-".to_owned(), size),
                model.embedder.clone(),
                space,
            ]
        })
        .collect();
    output.table(["", "NAME", "SIZE", "EMBEDDER", "SPACE"], &rows)?;
    Ok(())
}

/// The models inside the binary, the installed models, and the model in use if it is neither.
fn models(config: &Config) -> Vec<Model> {
    let used = used_folder(config);
    let mut models = vec![builtin(config, used.is_none()), words(config)];
    let installed = config.models.directory().as_deref().map(folders).unwrap_or_default();
    for folder in &installed {
        models.push(of_folder(folder, used.as_deref()));
    }
    match &config.models.embedder {
        EmbedderChoice::Onnx(folder) if !models.iter().any(|model| model.in_use) => {
            models.push(of_folder(folder, Some(folder)));
        }
        EmbedderChoice::Remote { url, model } => models.push(Model {
            name: model.clone(),
            embedder: format!("{url}#{model}"),
            space: strata::embedder(config).ok().flatten().map(|embedder| embedder.model().to_owned()),
            bytes: None,
            in_use: true,
            problem: None,
        }),
        _ => {}
    }
    models
}

/// The encoder inside the binary.
fn builtin(config: &Config, is_inside: bool) -> Model {
    Model {
        name: "builtin".to_owned(),
        embedder: "builtin".to_owned(),
        space: (config.models.embedder == EmbedderChoice::Builtin)
            .then(|| strata::embedder(config).ok().flatten().map(|embedder| embedder.model().to_owned()))
            .flatten(),
        bytes: None,
        in_use: config.models.embedder == EmbedderChoice::Builtin && is_inside,
        problem: None,
    }
}

/// The word vectors alone.
fn words(config: &Config) -> Model {
    Model {
        name: "words".to_owned(),
        embedder: "words".to_owned(),
        space: None,
        bytes: None,
        in_use: config.models.embedder == EmbedderChoice::Words,
        problem: None,
    }
}

/// The folder of the encoder in use. A binary without networks uses an installed one for `builtin`.
fn used_folder(config: &Config) -> Option<PathBuf> {
    match &config.models.embedder {
        EmbedderChoice::Builtin if cfg!(feature = "lite") => config.models.installed_encoder(),
        EmbedderChoice::Onnx(folder) => Some(folder.clone()),
        EmbedderChoice::Builtin | EmbedderChoice::Words | EmbedderChoice::Remote { .. } => None,
    }
}

/// The folders in a directory, sorted by name. A directory that cannot be read counts as empty, because it does not exist on
/// a machine without models.
fn folders(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

fn of_folder(folder: &Path, used: Option<&Path>) -> Model {
    let opened = OnnxEncoder::open(folder);
    let name = folder.file_name().map_or_else(|| folder.to_string_lossy(), |name| name.to_string_lossy());
    Model {
        name: name.into_owned(),
        embedder: format!("onnx:{}", folder.display()),
        space: opened.as_ref().ok().map(|encoder| encoder.model().to_owned()),
        bytes: Some(bytes_of(folder)),
        in_use: used.is_some_and(|used| same(used, folder)),
        problem: opened.err().map(|error| error.message().to_owned()),
    }
}

/// Whether two paths lead to the same folder.
fn same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

fn bytes_of(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.metadata().ok())
        .filter(|file| file.is_file())
        .map(|file| file.len())
        .sum()
}
