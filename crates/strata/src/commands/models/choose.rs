//! `strata models use`: writes the chosen embedder into the configuration file.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use strata::config::{DEFAULT_FILE, EmbedderChoice};
use strata_models::onnx::OnnxEncoder;
use toml_edit::{DocumentMut, value};

use super::{Context, check_name, directory};
use crate::failure::{Failure, Outcome};
use crate::output::{Output, note};

/// Choose the embedder in the configuration file
///
/// Sets `embedder` in the configuration file in use, or in a new strata.toml in the working directory. The rest of the file
/// stays as it is.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  strata models use all-MiniLM-L6-v2\n  strata models use https://api.example.com/v1#small"
)]
pub(crate) struct Args {
    /// An installed model's name, `builtin`, `words`, `onnx:DIR` or `URL#MODEL`
    #[arg(value_name = "MODEL")]
    model: String,
}

pub(super) fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    let embedder = embedder_of(&args.model, context)?;
    let file = context.config.file.clone().unwrap_or_else(|| PathBuf::from(DEFAULT_FILE));
    write_setting(&file, &embedder)?;
    output.line(format_args!("`embedder` is now `{embedder}` in `{}`", file.display()))?;
    let origin = context.config.origin("embedder");
    if origin.starts_with("STRATA_") {
        note(format_args!("{origin} is set and overrides the file; unset it"));
    }
    output.line(
        "restart a running server to apply it; the server then embeds existing items in the background",
    )?;
    Ok(())
}

/// The value for the setting, after a check that the model can be used.
fn embedder_of(model: &str, context: &Context) -> Outcome<String> {
    let folder = match model.parse() {
        Ok(EmbedderChoice::Onnx(folder)) => std::path::absolute(folder)?,
        Ok(EmbedderChoice::Remote { url, .. })
            if !url.starts_with("http://") && !url.starts_with("https://") =>
        {
            return Err(Failure::usage(format!(
                "`{url}` is not an endpoint's address; begin with `https://`"
            )));
        }
        Ok(_) => return Ok(model.to_owned()),
        Err(_) => {
            check_name(model)?;
            std::path::absolute(directory(context)?)?.join(model)
        }
    };
    if !folder.is_dir() {
        return Err(Failure::failed(format!(
            "there is no model at `{}`; `strata models list` shows the installed models, `strata models pull` downloads one",
            folder.display()
        )));
    }
    OnnxEncoder::open(&folder).map_err(|error| Failure::Failed(error.into()))?;
    Ok(format!("onnx:{}", folder.display()))
}

/// Sets only `embedder` in a TOML file. The file is replaced as a whole, so that no reader sees a part of it.
fn write_setting(file: &Path, embedder: &str) -> Outcome {
    let shown = file.display();
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => {
            return Err(anyhow::Error::from(error).context(format!("`{shown}` cannot be read")).into());
        }
    };
    let mut document: DocumentMut = text.parse().with_context(|| format!("`{shown}` is not valid TOML"))?;
    document["embedder"] = value(embedder);
    // A symbolic link stays: its target is replaced.
    let target = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    replace(&target, &document.to_string()).with_context(|| format!("`{shown}` cannot be written"))?;
    Ok(())
}

/// Replaces a file as a whole, so that it is never half written.
fn replace(file: &Path, text: &str) -> std::io::Result<()> {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut new = tempfile::NamedTempFile::new_in(directory)?;
    new.write_all(text.as_bytes())?;
    // A temporary file is private to its owner; the configuration keeps its permissions.
    if let Ok(metadata) = file.metadata() {
        new.as_file().set_permissions(metadata.permissions())?;
    }
    new.persist(file)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_one_line_of_the_file_changes() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("strata.toml");
        let check = |before: Option<&str>, expected: &str| {
            match before {
                Some(text) => std::fs::write(&file, text).unwrap(),
                None => drop(std::fs::remove_file(&file)),
            }
            write_setting(&file, "onnx:/m/a b").unwrap();
            assert_eq!(std::fs::read_to_string(&file).unwrap(), expected);
        };
        check(None, "embedder = \"onnx:/m/a b\"\n");
        check(
            Some("# mine\nlisten = '127.0.0.1:1' # here\n"),
            "# mine\nlisten = '127.0.0.1:1' # here\nembedder = \"onnx:/m/a b\"\n",
        );
        check(Some("embedder = 'builtin'\nlog = 'info'\n"), "embedder = \"onnx:/m/a b\"\nlog = 'info'\n");
        std::fs::write(&file, "embedder = \n").unwrap();
        assert!(write_setting(&file, "builtin").is_err());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "embedder = \n", "invalid TOML is left alone");
    }
}
