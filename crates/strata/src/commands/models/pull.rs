//! `strata models pull`: downloads a model's files.

use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use strata::config::STRATA_ENCODER;
use strata_models::http::HttpClient;
use strata_models::onnx::OnnxEncoder;
use strata_models::pull::{RemoteFile, digest, pull};

use super::{Context, check_name, directory};
use crate::failure::{Failure, Outcome};
use crate::output::{Output, note};

/// How long a server may take to begin its response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// The file names of the weights, in the order in which the encoder looks for them: best for a CPU first.
const WEIGHTS: [&str; 3] = ["model_int8.onnx", "model_quantized.onnx", "model.onnx"];

/// The file that every model needs beside its weights.
const TOKENIZER: &str = "tokenizer.json";

/// Optional files: the model's description, and how Strata should use it.
const OPTIONAL: [&str; 2] = ["config.json", "strata.json"];

/// A model that can be downloaded by its name.
struct Known {
    name: &'static str,
    base: &'static str,
    /// The path at the server, the local name, and the digest of each file.
    files: &'static [(&'static str, &'static str, &'static str)],
}

/// The known models, each at a fixed revision, so that the digests stay right.
const KNOWN: &[Known] = &[Known {
    name: "all-MiniLM-L6-v2",
    base: "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/resolve/1110a243fdf4706b3f48f1d95db1a4f5529b4d41",
    files: &[
        ("onnx/model.onnx", "model.onnx", "6fd5d72fe4589f189f8ebc006442dbb529bb7ce38f8082112682524616046452"),
        ("tokenizer.json", TOKENIZER, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
        ("config.json", "config.json", "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
    ],
}];

/// Download a model into the data directory
///
/// all-MiniLM-L6-v2 is known by name. For any other model, name the address of the folder with its files: the weights
/// (model_int8.onnx, model_quantized.onnx or model.onnx), tokenizer.json, and optionally config.json and strata.json. To
/// resume an interrupted download, run the same command again.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  strata models pull all-MiniLM-L6-v2\n  strata models pull mine --from https://models.example.com/mine --sha256 model.onnx=6fd5…"
)]
pub(crate) struct Args {
    /// The model's name, which is also the name of its folder
    #[arg(value_name = "NAME")]
    name: String,
    /// The address of the folder with the model's files
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// The SHA-256 that a file must have, as FILE=HEX; HEX alone applies to the weights
    #[arg(long, value_name = "[FILE=]HEX", value_parser = parse_digest)]
    sha256: Vec<Expected>,
}

/// A digest that a file must have.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Expected {
    /// The file; `None` for the weights.
    file: Option<String>,
    sha256: String,
}

fn parse_digest(text: &str) -> Result<Expected, String> {
    let (file, sha256) = match text.split_once('=') {
        Some((file, sha256)) => (Some(file.to_owned()), sha256),
        None => (None, text),
    };
    if sha256.len() == 64 && sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(Expected { file, sha256: sha256.to_lowercase() });
    }
    Err("a SHA-256 digest has 64 hexadecimal digits".to_owned())
}

pub(super) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    let Args { name, from, sha256 } = args;
    check_name(&name)?;
    let folder = directory(context)?.join(&name);
    let client = HttpClient::new(RESPONSE_TIMEOUT);
    let mut files = match from {
        Some(base) => files_at(&client, &base).await?,
        None => known_files(&name)?,
    };
    for expected in sha256 {
        expect(&mut files, expected)?;
    }
    for file in &files {
        let path = fetch(&client, file, &folder).await?;
        output.line(format_args!("{}  sha256 {}", file.name, digest(&path).await?))?;
        output.flush()?;
    }
    OnnxEncoder::open(&folder).map_err(|error| Failure::Failed(error.into()))?;
    output.line(format_args!("`{name}` is in `{}`", folder.display()))?;
    // A binary without networks uses an installed encoder of Strata by itself.
    if !cfg!(feature = "lite") || name != STRATA_ENCODER {
        note(format_args!("run `strata models use {name}` to use it"));
    }
    Ok(())
}

fn known_files(name: &str) -> Outcome<Vec<RemoteFile>> {
    let Some(known) = KNOWN.iter().find(|known| known.name == name) else {
        let names: Vec<String> = KNOWN.iter().map(|known| format!("`{}`", known.name)).collect();
        return Err(Failure::usage(format!(
            "model `{name}` is unknown; name its address with `--from URL`, or use {}",
            names.join(" or ")
        )));
    };
    let file = |(path, name, sha256): &(&str, &str, &str)| RemoteFile {
        url: format!("{}/{path}", known.base),
        name: (*name).to_owned(),
        sha256: Some((*sha256).to_owned()),
    };
    Ok(known.files.iter().map(file).collect())
}

/// The files of a model at an address.
async fn files_at(client: &HttpClient, base: &str) -> Outcome<Vec<RemoteFile>> {
    if !base.starts_with("http://") && !base.starts_with("https://") {
        return Err(Failure::usage("`--from` needs an address that begins with `https://`"));
    }
    let file = |name: &str| {
        let url = format!("{}/{name}", base.trim_end_matches('/'));
        RemoteFile { url, name: name.to_owned(), sha256: None }
    };
    let mut files = Vec::new();
    for name in WEIGHTS {
        if is_there(client, &file(name)).await? {
            files.push(file(name));
            break;
        }
    }
    if files.is_empty() {
        return Err(Failure::failed(format!(
            "the address has none of {}; name the folder with the model's weights",
            WEIGHTS.map(|name| format!("`{name}`")).join(", ")
        )));
    }
    files.push(file(TOKENIZER));
    for name in OPTIONAL {
        if is_there(client, &file(name)).await? {
            files.push(file(name));
        }
    }
    Ok(files)
}

/// Whether a server has a file. The request is a `GET`, because not every server answers `HEAD`.
async fn is_there(client: &HttpClient, file: &RemoteFile) -> Outcome<bool> {
    let response = client.get(&file.url, 0).await.map_err(|error| Failure::Failed(error.into()))?;
    let status = response.status();
    if status.is_server_error() {
        return Err(Failure::failed(format!(
            "the server answered {status} for `{}`; try again later",
            file.name
        )));
    }
    Ok(status.is_success() || status.is_redirection())
}

fn expect(files: &mut [RemoteFile], expected: Expected) -> Outcome {
    let name = expected.file.as_deref();
    let file = files.iter_mut().find(|file| match name {
        Some(name) => file.name == name,
        None => WEIGHTS.contains(&file.name.as_str()),
    });
    match file {
        Some(file) => file.sha256 = Some(expected.sha256),
        None => {
            let name = name.unwrap_or("model.onnx");
            return Err(Failure::usage(format!("the model has no file `{name}`; correct `--sha256`")));
        }
    }
    Ok(())
}

async fn fetch(client: &HttpClient, file: &RemoteFile, folder: &Path) -> Outcome<std::path::PathBuf> {
    let bar = ProgressBar::new(0);
    if let Ok(style) =
        ProgressStyle::with_template("{prefix} {bar:40} {bytes}/{total_bytes} {bytes_per_sec} {eta}")
    {
        bar.set_style(style);
    }
    bar.set_prefix(file.name.clone());
    let show = |done: u64, total: Option<u64>| {
        bar.set_length(total.unwrap_or(done));
        bar.set_position(done);
    };
    let path = pull(client, file, folder, show).await;
    bar.finish_and_clear();
    path.map_err(|error| Failure::Failed(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_of_a_file_or_of_the_weights() {
        let hex = "6FD5D72FE4589F189F8EBC006442DBB529BB7CE38F8082112682524616046452";
        let lower = hex.to_lowercase();
        assert_eq!(parse_digest(hex), Ok(Expected { file: None, sha256: lower.clone() }));
        let named = parse_digest(&format!("tokenizer.json={hex}")).unwrap();
        assert_eq!(named.file.as_deref(), Some("tokenizer.json"));
        for wrong in ["", "abc", &hex[1..], &format!("{hex}0"), &"g".repeat(64)] {
            assert!(parse_digest(wrong).is_err(), "{wrong}");
        }
        let mut files = known_files("all-MiniLM-L6-v2").unwrap();
        expect(&mut files, Expected { file: None, sha256: "x".into() }).unwrap();
        assert_eq!(files[0].sha256.as_deref(), Some("x"));
        assert!(expect(&mut files, Expected { file: Some("other".into()), sha256: lower }).is_err());
    }
}
