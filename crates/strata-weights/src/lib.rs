//! The weights of Strata's two networks as bytes inside the binary: `strata-models` runs them, `data/README.md` describes them.
//!
//! They are a crate of their own, so that only programs that use the networks link 69 MB. Deliberately absent: code.

/// Bytes at an address that suits every tensor, so that tensors are used where they are.
#[repr(C, align(64))]
struct Aligned<Bytes: ?Sized>(Bytes);

/// The encoder: it makes the vector of a turn or a question.
pub static ENCODER: &[u8] = {
    static WEIGHTS: &Aligned<[u8]> = &Aligned(*include_bytes!("../data/strata-encoder.bin"));
    &WEIGHTS.0
};

/// The reader: it judges sentences, and pairs of sentences.
pub static READER: &[u8] = {
    static WEIGHTS: &Aligned<[u8]> = &Aligned(*include_bytes!("../data/strata-reader.bin"));
    &WEIGHTS.0
};

#[cfg(test)]
mod tests {
    #[test]
    fn tensors_can_be_used_where_they_are() {
        for weights in [super::ENCODER, super::READER] {
            assert_eq!(weights.as_ptr().align_offset(64), 0);
            assert!(weights.len() > 30_000_000);
        }
    }
}
