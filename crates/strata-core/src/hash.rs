//! Hashes: FNV-1a for numbers that are stored or shared between processes, SipHash for numbers that stay in one
//! process.
//!
//! Neither withstands an attacker who looks for a collision; secrets and files are hashed with SHA-256. Segments,
//! idempotency keys and chunk digests on disk depend on FNV-1a, so its constants never change.

use std::fmt::Write;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};

/// The FNV-1a hash of nothing: the start value for [`fnv_step`] and [`fnv_append`].
pub const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

/// The prime factor of 64-bit FNV-1a.
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// Adds one number, which may be wider than a byte.
#[inline]
pub const fn fnv_step(hash: u64, number: u64) -> u64 {
    (hash ^ number).wrapping_mul(FNV_PRIME)
}

/// Adds bytes.
#[inline]
pub fn fnv_append(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| fnv_step(hash, u64::from(*byte)))
}

/// The FNV-1a hash of bytes, in 64 bits.
#[inline]
pub fn fnv(bytes: &[u8]) -> u64 {
    fnv_append(FNV_START, bytes)
}

/// The FNV-1a hash of bytes, in 32 bits.
#[inline]
pub fn fnv32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// A hash of a value that is never stored: another version of Strata may hash the same value differently.
pub fn in_process(value: &(impl Hash + ?Sized)) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(value)
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_values_of_fnv_1a_come_out() {
        // http://www.isthe.com/chongo/src/fnv/test_fnv.c
        for (text, wide, narrow) in [
            ("", 0xcbf2_9ce4_8422_2325, 0x811c_9dc5),
            ("a", 0xaf63_dc4c_8601_ec8c, 0xe40c_292c),
            ("foobar", 0x8594_4171_f739_67e8, 0xbf9c_f968),
        ] {
            assert_eq!((fnv(text.as_bytes()), fnv32(text.as_bytes())), (wide, narrow), "{text}");
        }
        assert_eq!(fnv_append(fnv(b"foo"), b"bar"), fnv(b"foobar"));
    }

    #[test]
    fn bytes_are_written_in_two_digits_each() {
        assert_eq!(hex(&[0, 10, 255]), "000aff");
    }
}
