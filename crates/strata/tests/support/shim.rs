//! Faults of the disk and of the clock under the real binary, switched on and off while it runs. `shim.c` lists the faults.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::TestStore;

/// The faults of one store.
pub(crate) struct Shim {
    control: PathBuf,
    store: PathBuf,
}

impl Shim {
    /// Faults for the file of a store and for all files whose paths begin like it, as its log does. There is no fault at
    /// first.
    pub(crate) fn new(file: &Path) -> Self {
        let folder = file.parent().and_then(|folder| folder.canonicalize().ok()).expect("the folder exists");
        let store = folder.join(file.file_name().expect("a store is a file"));
        Self::with_control(store.clone(), store.with_extension("faults"))
    }

    /// Faults for everything of a store that lies on the disk.
    pub(crate) fn of(store: &TestStore) -> Self {
        Self::new(store.path().expect("the store lies on the disk"))
    }

    /// Faults for a part of a store that is a folder.
    pub(crate) fn of_part(store: &TestStore, part: &str) -> Self {
        let folder = store.folder().canonicalize().expect("the folder exists");
        let name = store.path().and_then(Path::file_name).expect("the store lies on the disk");
        Self::with_control(folder.join(name).join(part), folder.join("part.faults"))
    }

    fn with_control(store: PathBuf, control: PathBuf) -> Self {
        std::fs::write(&control, "").expect("the control file can be written");
        Self { control, store }
    }

    /// Switches to these faults, each on a line of its own; an empty text ends all of them.
    pub(crate) fn set(&self, faults: &str) {
        // A rename, because the process must not read half a file.
        let next = self.control.with_extension("next");
        std::fs::write(&next, faults).expect("the control file can be written");
        std::fs::rename(&next, &self.control).expect("the control file can be replaced");
    }

    /// The variables with which a process gets the faults.
    pub(crate) fn variables(&self) -> Vec<(&'static str, PathBuf)> {
        vec![
            ("LD_PRELOAD", library().to_owned()),
            ("SHIM_CONTROL", self.control.clone()),
            ("SHIM_PATH", self.store.clone()),
        ]
    }
}

/// The compiled library. Each process compiles it once, with the C compiler that also links Rust programs.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/shim.c");
        let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("shim-{}.so", std::process::id()));
        let compiled =
            Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).status();
        assert!(compiled.expect("`cc` runs").success(), "the shim compiles");
        library
    })
}
