//! Where to look for changes of a person.

/// Where to look.
#[derive(Debug, Clone)]
pub(crate) enum Scope {
    /// At all files.
    All,
    /// At these files and folders, which a watcher has named: a file with the times of the snapshot is unchanged.
    Hinted(Vec<String>),
    /// At these files, by their bytes.
    Named(Vec<String>),
}

impl Scope {
    /// The paths; `None` for all.
    pub(crate) fn paths(&self) -> Option<&Vec<String>> {
        match self {
            Self::All => None,
            Self::Hinted(paths) | Self::Named(paths) => Some(paths),
        }
    }
}
