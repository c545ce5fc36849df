//! Pixels as a PNG file (W3C Portable Network Graphics Specification, third edition; RFC 2083): true colour, eight bits
//! each, no filter, which charts gain little from.

use libdeflater::{CompressionLvl, Compressor};

/// Pixels row by row, three bytes each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pixels {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) bytes: Vec<u8>,
}

/// Section 5.2.
const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
/// Bit depth 8, colour type 2 (red, green, blue), deflate, the five basic filters, not interlaced (section 11.2.1).
const FORM: [u8; 5] = [8, 2, 0, 0, 0];
/// The filter that changes nothing (section 9.2).
const NO_FILTER: u8 = 0;

/// The file.
pub(crate) fn encoded(pixels: &Pixels) -> Vec<u8> {
    let length = |length: usize| u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    let header = [&length(pixels.width)[..], &length(pixels.height), &FORM].concat();
    let mut rows = Vec::with_capacity(pixels.bytes.len() + pixels.height);
    for row in pixels.bytes.chunks_exact(pixels.width * 3) {
        rows.push(NO_FILTER);
        rows.extend_from_slice(row);
    }
    let mut out = SIGNATURE.to_vec();
    for (kind, data) in [(b"IHDR", header), (b"IDAT", zlib(&rows)), (b"IEND", Vec::new())] {
        let chunk = [&kind[..], &data].concat();
        out.extend(length(data.len()));
        out.extend_from_slice(&chunk);
        out.extend(libdeflater::crc32(&chunk).to_be_bytes());
    }
    out
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut compressor = Compressor::new(CompressionLvl::default());
    let mut out = vec![0; compressor.zlib_compress_bound(bytes.len())];
    let len = compressor.zlib_compress(bytes, &mut out);
    // The bound is what it says.
    out.truncate(len.unwrap_or_else(|error| unreachable!("{error}")));
    out
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// What another implementation of zlib finds in the one IDAT chunk, after every CRC was checked.
    pub(crate) fn decoded(file: &[u8]) -> Pixels {
        let mut rest = file.strip_prefix(SIGNATURE).unwrap();
        let mut chunks = Vec::new();
        while let Some((length, after)) = rest.split_first_chunk() {
            let (body, after) = after.split_at(4 + u32::from_be_bytes(*length) as usize);
            let (crc, after) = after.split_first_chunk().unwrap();
            assert_eq!(u32::from_be_bytes(*crc), zlib_rs::crc32::crc32(0, body));
            chunks.push(body.split_at(4));
            rest = after;
        }
        let [(b"IHDR", header), (b"IDAT", data), (b"IEND", [])] = chunks[..] else { panic!("{chunks:?}") };
        let number = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().unwrap()) as usize;
        let (width, height) = (number(0), number(4));
        let mut rows = vec![0; (width * 3 + 1) * height];
        let config = zlib_rs::InflateConfig { window_bits: 15 };
        let (rows, code) = zlib_rs::decompress_slice(&mut rows, data, config);
        assert_eq!((code, rows.len()), (zlib_rs::ReturnCode::Ok, (width * 3 + 1) * height));
        let bytes = rows.chunks_exact(width * 3 + 1).flat_map(|row| row[1..].to_vec()).collect();
        Pixels { width, height, bytes }
    }

    #[test]
    fn pixels_come_back() {
        let bytes: Vec<u8> = (0..7 * 5 * 3).map(|at| (at * 37 % 256) as u8).collect();
        let pixels = Pixels { width: 7, height: 5, bytes };
        let file = encoded(&pixels);
        assert_eq!(decoded(&file), pixels);
        // The last chunk is always the same; its CRC is known from any PNG file.
        assert!(file.ends_with(b"\0\0\0\0IEND\xae\x42\x60\x82"));
    }
}
