//! The sources of configuration: the command line, the environment and a file.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use strata_core::{Error, Result};

/// The prefix of Strata's environment variables.
pub(super) const PREFIX: &str = "STRATA_";

/// The variable that names the configuration file. Every other variable with the prefix is a setting.
const CONFIG_VARIABLE: &str = "STRATA_CONFIG";

/// The configuration file that is read from the working directory if it exists.
pub const DEFAULT_FILE: &str = "strata.toml";

/// A setting given on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// The flag as the user writes it: `--store`.
    pub name: String,
    /// The setting.
    pub key: String,
    /// Its value.
    pub value: String,
}

impl Flag {
    /// The flag `--name` that sets the key of the same name.
    pub fn new(key: &str, value: impl Into<String>) -> Self {
        Self { name: format!("--{}", key.replace('_', "-")), key: key.to_owned(), value: value.into() }
    }
}

/// All sources of a configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// Flags of the command line; the last one of a setting wins.
    pub flags: Vec<Flag>,
    /// The variables `STRATA_*` and their values.
    pub environment: Vec<(String, String)>,
    /// The configuration file.
    pub file: Option<PathBuf>,
    /// The default of `data_dir`.
    pub data_dir: Option<PathBuf>,
}

impl Sources {
    /// `flags`, the environment of the process, and `config_file` or else `strata.toml` in the working directory.
    pub fn of_process(flags: Vec<Flag>, config_file: Option<PathBuf>) -> Result<Self> {
        let mut environment = Vec::new();
        let mut named_file = None;
        for (name, value) in std::env::vars_os() {
            // An empty variable counts as unset, as in most programs.
            let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX) && !value.is_empty())
            else {
                continue;
            };
            if name == CONFIG_VARIABLE {
                named_file = Some(PathBuf::from(value));
                continue;
            }
            let value = value.into_string().map_err(|_| {
                Error::invalid(format!("the value of `{name}` is not UTF-8; correct or unset it"))
            })?;
            environment.push((name.to_owned(), value));
        }
        environment.sort();
        let file = config_file.or(named_file).or_else(|| {
            let file = Path::new(DEFAULT_FILE);
            file.exists().then(|| file.to_owned())
        });
        Ok(Self { flags, environment, file, data_dir: super::platform_data_dir() })
    }
}

/// A variable that a setting names, as for the key of an upstream.
pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).and_then(|value| value.into_string().ok()).filter(|value| !value.is_empty())
}

/// Whether the user's terminal may show colour: `NO_COLOR` is unset, and the terminal is not a dumb one.
pub fn allows_colour() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
    !refused && !dumb
}

/// The program that opens addresses in the user's browser: the first of `$BROWSER`, else that of the desktop; none where there is
/// no desktop.
pub fn browser() -> Option<OsString> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let chosen = set("BROWSER").and_then(|list| std::env::split_paths(&list).next());
    let has_desktop = ["WAYLAND_DISPLAY", "DISPLAY"].into_iter().any(|name| set(name).is_some());
    let own = match () {
        () if cfg!(target_os = "macos") => Some("open".into()),
        () => has_desktop.then(|| "xdg-open".into()),
    };
    chosen.map(PathBuf::into_os_string).or(own)
}

/// The user's text editor: `$VISUAL`, else `$EDITOR`.
pub fn editor() -> Option<OsString> {
    ["VISUAL", "EDITOR"].into_iter().filter_map(std::env::var_os).find(|editor| !editor.is_empty())
}
