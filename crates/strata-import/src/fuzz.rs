//! The parsers of this crate as functions of any bytes, for the fuzz targets.

use crate::formats::fuzz_understand;

/// A file of another program, in the form that it seems to have and in every other one.
pub fn file(data: &[u8]) {
    fuzz_understand(data);
}
