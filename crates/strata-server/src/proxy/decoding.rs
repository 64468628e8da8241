//! Compressed replies, as they are read for the recorder, and compressed requests. An upstream is asked for plain replies,
//! but some compress all the same. The client gets the bytes as they came.

use std::io::{self, Write};

use axum::http::HeaderMap;
use axum::http::header::CONTENT_ENCODING;
use brotli_decompressor::DecompressorWriter;
use flate2::write::{MultiGzDecoder, ZlibDecoder};

/// The most bytes of one decoded reply. A few compressed bytes may stand for very many.
const MAX_DECODED_BYTES: usize = 128 * 1024 * 1024;

/// The size of the buffer of a decoder.
const BUFFER_BYTES: usize = 16 * 1024;

/// Decodes the pieces of a reply.
pub(super) enum Decoder {
    Plain,
    Gzip(Box<MultiGzDecoder<Decoded>>),
    Deflate(Box<ZlibDecoder<Decoded>>),
    Brotli(Box<DecompressorWriter<Decoded>>),
    /// The encoding is not known, or the bytes are not what it says.
    Unreadable,
}

/// Decoded bytes that wait to be read.
pub(super) struct Decoded {
    bytes: Vec<u8>,
    /// How many more there may be.
    left: usize,
}

impl Decoded {
    /// Reserves the most bytes that there may be. The part that is never written takes no memory, and a buffer that grows would be
    /// copied.
    fn reserve(&mut self) {
        self.bytes.reserve_exact(self.left);
    }
}

impl Write for Decoded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self.left.checked_sub(bytes.len()).ok_or_else(|| io::Error::other("it is too large"))?;
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Decoder {
    /// The decoder for an answer with these headers.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let named = encoding(headers);
        Self::named(&named, MAX_DECODED_BYTES).unwrap_or_else(|| {
            tracing::warn!(
                encoding = named,
                "a reply is compressed in a way that cannot be read; it is not recorded"
            );
            Self::Unreadable
        })
    }

    /// The decoder for an encoding, which decodes at most so many bytes; `None` if it is not known.
    fn named(encoding: &str, left: usize) -> Option<Self> {
        let decoded = || Decoded { bytes: Vec::new(), left };
        Some(match encoding {
            "" | "identity" => Self::Plain,
            "gzip" | "x-gzip" => Self::Gzip(Box::new(MultiGzDecoder::new(decoded()))),
            "deflate" => Self::Deflate(Box::new(ZlibDecoder::new(decoded()))),
            "br" => Self::Brotli(Box::new(DecompressorWriter::new(decoded(), BUFFER_BYTES))),
            _ => return None,
        })
    }

    /// Decodes the next piece, and hands what it stands for to `read`.
    pub(super) fn feed<T>(&mut self, piece: &[u8], read: impl FnOnce(&[u8]) -> T) -> T {
        let decoded = match self {
            Self::Plain => return read(piece),
            Self::Gzip(decoder) => {
                decoder.write_all(piece).and_then(|()| decoder.flush()).map(|()| take(decoder.get_mut()))
            }
            Self::Deflate(decoder) => {
                decoder.write_all(piece).and_then(|()| decoder.flush()).map(|()| take(decoder.get_mut()))
            }
            Self::Brotli(decoder) => {
                decoder.write_all(piece).and_then(|()| decoder.flush()).map(|()| take(decoder.get_mut()))
            }
            Self::Unreadable => return read(b""),
        };
        if let Err(error) = &decoded {
            tracing::warn!(%error, "a compressed body cannot be read; it is not recorded further");
            *self = Self::Unreadable;
        }
        read(&decoded.unwrap_or_default())
    }
}

/// How a body is compressed; empty if it is not.
pub(super) fn encoding(headers: &HeaderMap) -> String {
    let named = headers.get(CONTENT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match named.trim().to_ascii_lowercase() {
        named if named == "identity" => String::new(),
        named => named,
    }
}

/// A compressed body as it is; `None` if it cannot be read, or has more than `most` bytes.
pub(super) fn unpacked(encoding: &str, bytes: &[u8], most: usize) -> Option<Vec<u8>> {
    match Decoder::named(encoding, most)? {
        Decoder::Plain => Some(bytes.to_vec()),
        Decoder::Unreadable => None,
        // A body that was cut off is not the client's.
        Decoder::Gzip(mut decoder) => {
            decoder.get_mut().reserve();
            decoder.write_all(bytes).and_then(|()| decoder.try_finish()).ok()?;
            Some(take(decoder.get_mut()))
        }
        Decoder::Deflate(mut decoder) => {
            decoder.get_mut().reserve();
            decoder.write_all(bytes).and_then(|()| decoder.try_finish()).ok()?;
            Some(take(decoder.get_mut()))
        }
        Decoder::Brotli(mut decoder) => {
            decoder.get_mut().reserve();
            decoder.write_all(bytes).and_then(|()| decoder.flush()).ok()?;
            Some(take(decoder.get_mut()))
        }
    }
}

/// The bytes decoded so far.
fn take(decoded: &mut Decoded) -> Vec<u8> {
    let mut bytes = std::mem::take(&mut decoded.bytes);
    bytes.shrink_to_fit();
    bytes
}

/// Compressed bodies: decoding ends at the limit, and pieces of a stream mean the same wherever they are cut.
#[cfg(feature = "fuzz")]
pub(crate) fn fuzz(cut: usize, bytes: &[u8]) {
    const MOST: usize = 1 << 20;
    for encoding in ["", "identity", "gzip", "x-gzip", "deflate", "br", "zstd"] {
        let whole = unpacked(encoding, bytes, MOST);
        assert!(whole.as_ref().is_none_or(|whole| whole.len() <= MOST), "{encoding}");
        let Some(mut decoder) = Decoder::named(encoding, MOST) else { continue };
        let (first, second) = bytes.split_at(cut.min(bytes.len()));
        let mut parts = decoder.feed(first, <[u8]>::to_vec);
        parts.extend(decoder.feed(second, <[u8]>::to_vec));
        assert!(whole.is_none_or(|whole| whole == parts), "{encoding}, cut at {cut}");
    }
}

#[cfg(test)]
pub(super) mod tests {
    use axum::http::HeaderValue;
    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};

    use super::*;

    pub(crate) fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn deflate(text: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    /// The text as a Brotli stream of blocks that are not compressed (RFC 7932, 9.2).
    pub(crate) fn brotli(text: &[u8]) -> Vec<u8> {
        let mut stream = Vec::new();
        for (number, block) in text.chunks(65_536).enumerate() {
            // A window of 16 bits: the bit 0, before the first block. Then: not the last block, four digits of its
            // length less one, not compressed.
            let first = u32::from(number == 0);
            let length = block.len() as u32 - 1;
            let head = (length << 3 | 1 << 19) << first;
            stream.extend_from_slice(&head.to_le_bytes()[..3]);
            stream.extend_from_slice(block);
        }
        // The last block, which is empty.
        stream.push(3);
        stream
    }

    fn headers(encoding: &str) -> HeaderMap {
        HeaderMap::from_iter([(CONTENT_ENCODING, HeaderValue::from_str(encoding).unwrap())])
    }

    #[test]
    fn pieces_are_decoded_as_they_arrive() {
        let text = "data: 多么长的回答 \n\n".repeat(20_000);
        for (encoding, bytes) in [
            ("gzip", gzip(text.as_bytes())),
            ("deflate", deflate(text.as_bytes())),
            ("br", brotli(text.as_bytes())),
            ("identity", text.as_bytes().to_vec()),
        ] {
            for size in [1, 7, 4_096, usize::MAX] {
                let mut decoder = Decoder::of(&headers(encoding));
                let mut read = Vec::new();
                for piece in bytes.chunks(size) {
                    decoder.feed(piece, |piece| read.extend_from_slice(piece));
                }
                assert!(read == text.as_bytes(), "{encoding} in pieces of {size}: {} bytes", read.len());
            }
        }
    }

    #[test]
    fn what_cannot_be_read_is_empty() {
        for encoding in ["zstd", "gzip", "br", "gzip, br"] {
            let mut decoder = Decoder::of(&headers(encoding));
            let mut read = Vec::new();
            for piece in [b"not compressed at all".as_slice(), b"and more"] {
                decoder.feed(piece, |piece| read.extend_from_slice(piece));
            }
            assert_eq!(read, b"", "{encoding}");
        }
    }

    #[test]
    fn a_request_is_unpacked_up_to_its_limit() {
        let text = "我的渡轮九点开。".repeat(100);
        for (encoding, bytes) in [
            ("gzip", gzip(text.as_bytes())),
            ("deflate", deflate(text.as_bytes())),
            ("br", brotli(text.as_bytes())),
        ] {
            assert_eq!(
                unpacked(encoding, &bytes, text.len()).as_deref(),
                Some(text.as_bytes()),
                "{encoding}"
            );
            assert_eq!(unpacked(encoding, &bytes, text.len() - 1), None, "{encoding}");
        }
        assert_eq!(unpacked("zstd", b"x", 100), None);
        assert_eq!(unpacked("gzip", b"not compressed", 100), None);
        let packed = gzip(text.as_bytes());
        assert_eq!(unpacked("gzip", &packed[..packed.len() - 9], text.len()), None, "it was cut off");
    }

    #[test]
    fn a_bomb_does_not_fill_the_memory() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        let zeros = vec![0; 1024 * 1024];
        for _ in 0..MAX_DECODED_BYTES / zeros.len() + 8 {
            encoder.write_all(&zeros).unwrap();
        }
        let bomb = encoder.finish().unwrap();
        let mut decoder = Decoder::of(&headers("gzip"));
        let mut total = 0;
        for piece in bomb.chunks(4_096) {
            decoder.feed(piece, |piece| total += piece.len());
        }
        assert!(total <= MAX_DECODED_BYTES && matches!(decoder, Decoder::Unreadable), "{total}");
    }
}
