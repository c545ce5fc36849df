//! `compress(1)`: LZW with codes of 9 to 16 bits (`.Z`), as that of 4.3BSD does it by default.

use std::collections::BTreeMap;

/// Bits of the first codes and of the longest.
const BITS: [u32; 2] = [9, 16];
/// The code that empties the dictionary, and the first string's.
const CLEAR: u16 = 256;
const FIRST: u32 = 257;
/// Bytes of input after which it is looked whether the ratio falls, once the dictionary is full.
const CHECK_GAP: usize = 10_000;
/// The first bytes of a file: its type, block mode and 16 bits.
const HEAD: [u8; 3] = [0x1f, 0x9d, 0x90];

/// Codes as `compress` writes them: eight of one width fill whole bytes, and what of these is empty when the width changes is
/// written too.
struct ZWriter {
    out: Vec<u8>,
    width: u32,
    bits: u64,
    count: u32,
    /// Bytes of the group of eight codes that are there.
    group: u32,
}

impl ZWriter {
    fn put(&mut self, code: u16) {
        self.bits |= u64::from(code) << self.count;
        self.count += self.width;
        while self.count >= 8 {
            self.byte();
            self.count -= 8;
        }
    }

    fn byte(&mut self) {
        self.out.push(self.bits as u8);
        self.bits >>= 8;
        self.group = (self.group + 1) % self.width;
    }

    /// Ends the group, so that the next has another width.
    fn end_group(&mut self, width: u32) {
        while self.count > 0 || self.group > 0 {
            self.byte();
            self.count = 0;
        }
        self.width = width;
    }
}

/// The whole file that `compress` writes, longer than the input or not.
pub(super) fn compress(input: &[u8]) -> Vec<u8> {
    let mut out = ZWriter { out: HEAD.to_vec(), width: BITS[0], bits: 0, count: 0, group: 0 };
    let mut strings: BTreeMap<(u16, u8), u16> = BTreeMap::new();
    let (mut next, mut check_at, mut best) = (FIRST, CHECK_GAP, 0);
    let Some((first, rest)) = input.split_first() else { return out.out };
    let mut matched = u16::from(*first);
    for (before, byte) in (1..).zip(rest) {
        if let Some(longer) = strings.get(&(matched, *byte)) {
            matched = *longer;
            continue;
        }
        out.put(matched);
        if next >= 1 << out.width && out.width < BITS[1] {
            let width = out.width + 1;
            out.end_group(width);
        }
        if next < 1 << BITS[1] {
            strings.insert((matched, *byte), next as u16);
            next += 1;
        } else if before >= check_at {
            check_at = before + CHECK_GAP;
            let ratio = before * 256 / out.out.len();
            if ratio > best {
                best = ratio;
            } else {
                (best, next) = (0, FIRST);
                strings.clear();
                out.put(CLEAR);
                out.end_group(BITS[0]);
            }
        }
        matched = u16::from(*byte);
    }
    out.put(matched);
    if out.count > 0 {
        out.byte();
    }
    out.out
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::klogin::files;

    #[test]
    fn a_character_over_and_over_becomes_as_short_as_the_papers() {
        assert_eq!(compress(&files::content(0)).len(), 530);
        assert_eq!(compress(&[]), HEAD);
    }

    /// `gzip` reads `.Z` as well.
    #[test]
    fn gzip_expands_what_is_written() {
        let mixed = [files::content(1), files::content(2), files::content(0), files::content(1)].concat();
        for content in
            [files::content(0), files::content(1), files::content(2), mixed.clone(), mixed.repeat(4)]
        {
            let command =
                Command::new("gzip").arg("-dc").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
            let Ok(mut gzip) = command else { return };
            let file = compress(&content);
            let mut stdin = gzip.stdin.take().unwrap();
            let writer = std::thread::spawn(move || stdin.write_all(&file));
            let output = gzip.wait_with_output().unwrap();
            writer.join().unwrap().unwrap();
            assert!(output.status.success() && output.stdout == content, "{}", content.len());
        }
    }
}
