//! What both ends of a byte cache compare after one of them was restarted, under ESP next header 144.
//!
//! ```text
//! question: sub-type 0xEC | cache | below (8)
//! answer:   sub-type 0xED | cache | below (8) | end (8) | { number (8) | ranges (1) | { start (3) | length (3) } | hash (16) }
//! ```
//!
//! The sender of a cache asks for the segments whose numbers are below one; the answer has some of those that the receiver holds, from the
//! highest down, and where its log ends. An answer without segments says that there are no more. Starts are counted from the segment's
//! first byte. The hash is of the bytes of all ranges.

use crate::{Malformed, field};

/// The private AGGFRAG sub-type of the question.
pub const CACHE_QUESTION: u8 = 0xec;
/// The private AGGFRAG sub-type of the answer.
pub const CACHE_DIGESTS: u8 = 0xed;
/// Bytes of the question.
pub const QUESTION_LEN: usize = 10;
/// Bytes of an answer without segments.
const ANSWER_LEN: usize = QUESTION_LEN + 8;
/// Bytes of a segment in the answer without its ranges, and of a range.
const DIGEST_LEN: usize = 9 + HASH_LEN;
const RANGE_LEN: usize = 6;
/// Bytes of a hash: what no accident makes equal.
pub const HASH_LEN: usize = 16;
/// Most segments of an answer: the receiver hashes each when it is asked, and the sender when it hears.
pub const DIGESTS_MAX: usize = 4;
/// Most ranges of a segment: 31 lost blocks in 1 MiB. What is beyond is not compared, and counts as forgotten.
pub const RANGES_MAX: usize = 32;
/// Positions of a log are below this: 2^56 bytes are 20 years of 1 Gbit/s. Behind it positions could not go on.
pub const POSITION_END: u64 = 1 << 56;
/// Bytes of a segment.
pub const SEGMENT_LEN: u32 = 1 << 20;

/// The question of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheQuestion {
    /// The place of the cache among those agreed on.
    pub cache: u8,
    /// Segments with lower numbers are asked for.
    pub below: u64,
}

/// What a receiver holds of one segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentDigest {
    /// The segment's number: the position of its first byte, over the bytes of a segment.
    pub number: u64,
    ranges: [(u32, u32); RANGES_MAX],
    len: u8,
    /// The hash of the bytes of all ranges.
    pub hash: [u8; HASH_LEN],
}

/// The answer of a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheDigests {
    /// What was asked.
    pub question: CacheQuestion,
    /// Where the receiver's log ends.
    pub end: u64,
    digests: [Option<SegmentDigest>; DIGESTS_MAX],
}

impl CacheQuestion {
    /// Reads it; bytes behind it are ignored.
    ///
    /// # Errors
    /// [`Malformed`] when it is short or has another sub-type.
    pub fn parse(bytes: &[u8]) -> Result<CacheQuestion, Malformed> {
        CacheQuestion::behind(CACHE_QUESTION, bytes).map(|(question, _)| question)
    }

    fn behind(subtype: u8, bytes: &[u8]) -> Result<(CacheQuestion, &[u8]), Malformed> {
        let (&[first, cache, ref below @ ..], rest) =
            field::split_header::<QUESTION_LEN>("question for a cache", bytes)?;
        if first != subtype {
            return Err(Malformed::new("sub-type of a question for a cache", bytes));
        }
        Ok((CacheQuestion { cache, below: u64::from_be_bytes(*below) }, rest))
    }

    /// Writes it at the start of `buf`.
    ///
    /// # Errors
    /// [`Malformed`] when `buf` is shorter than [`QUESTION_LEN`].
    pub fn emit(&self, buf: &mut [u8]) -> Result<(), Malformed> {
        self.emit_as(CACHE_QUESTION, buf)
    }

    fn emit_as(&self, subtype: u8, buf: &mut [u8]) -> Result<(), Malformed> {
        let [a, b, c, d, e, f, g, h] = self.below.to_be_bytes();
        let header = [subtype, self.cache, a, b, c, d, e, f, g, h];
        field::emit_header("buffer for a question for a cache", buf, header)
    }
}

impl SegmentDigest {
    /// Nothing of a segment yet.
    #[must_use]
    pub const fn new(number: u64) -> SegmentDigest {
        SegmentDigest { number, ranges: [(0, 0); RANGES_MAX], len: 0, hash: [0; HASH_LEN] }
    }

    /// Adds a range, start and length, behind those before; false when there is no room for it, or it cannot be.
    #[must_use]
    pub fn push(&mut self, start: u32, len: u32) -> bool {
        let end = self.ranges().last().map_or(0, |(start, len)| start + len);
        let is_possible = len > 0
            && (start > end || self.len == 0)
            && start.checked_add(len).is_some_and(|end| end <= SEGMENT_LEN);
        let Some(place) = self.ranges.get_mut(usize::from(self.len)).filter(|_| is_possible) else {
            return false;
        };
        *place = (start, len);
        self.len += 1;
        true
    }

    /// The ranges that are held, in order, none of which touches the next: start and length in bytes.
    #[must_use]
    pub fn ranges(&self) -> &[(u32, u32)] {
        self.ranges.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// Bytes that it takes in an answer.
    #[must_use]
    pub fn wire_len(&self) -> usize {
        DIGEST_LEN + self.ranges().len() * RANGE_LEN
    }

    fn parse(bytes: &[u8]) -> Result<(SegmentDigest, &[u8]), Malformed> {
        let (number, rest) = field::split_header::<8>("number of a segment", bytes)?;
        let (&[count], mut rest) = field::split_header::<1>("ranges of a segment", rest)?;
        let mut digest = SegmentDigest::new(u64::from_be_bytes(*number));
        if digest.number >= POSITION_END / u64::from(SEGMENT_LEN) || count == 0 {
            return Err(Malformed::new("segment of a cache", bytes));
        }
        for _ in 0..count {
            let (&[a, b, c, d, e, f], behind) = field::split_header::<RANGE_LEN>("range of a segment", rest)?;
            if !digest.push(u32::from_be_bytes([0, a, b, c]), u32::from_be_bytes([0, d, e, f])) {
                return Err(Malformed::new("range of a segment", rest));
            }
            rest = behind;
        }
        let (hash, rest) = field::split_header::<HASH_LEN>("hash of a segment", rest)?;
        digest.hash = *hash;
        Ok((digest, rest))
    }

    /// Writes it at the start of `buf`, and gives what is behind.
    fn emit<'a>(&self, buf: &'a mut [u8]) -> Result<&'a mut [u8], Malformed> {
        let what = "buffer for a segment of a cache";
        let malformed = Malformed::new(what, buf);
        let (mine, behind) = buf.split_at_mut_checked(self.wire_len()).ok_or(malformed)?;
        field::emit_header(what, mine, self.number.to_be_bytes())?;
        let mut rest = mine.get_mut(8..).unwrap_or_default();
        field::emit_header(what, rest, [self.len])?;
        rest = rest.get_mut(1..).unwrap_or_default();
        for (start, len) in self.ranges() {
            let ([_, a, b, c], [_, d, e, f]) = (start.to_be_bytes(), len.to_be_bytes());
            field::emit_header(what, rest, [a, b, c, d, e, f])?;
            rest = rest.get_mut(RANGE_LEN..).unwrap_or_default();
        }
        field::emit_header(what, rest, self.hash)?;
        Ok(behind)
    }
}

impl CacheDigests {
    /// An answer without segments.
    #[must_use]
    pub const fn new(question: CacheQuestion, end: u64) -> CacheDigests {
        CacheDigests { question, end, digests: [None; DIGESTS_MAX] }
    }

    /// Adds a segment below those before; false when there is no room for it, or it was not asked for.
    #[must_use]
    pub fn push(&mut self, digest: SegmentDigest) -> bool {
        let below = self.digests().last().map_or(self.question.below, |digest| digest.number);
        let Some(place) = self.digests.iter_mut().find(|place| place.is_none()) else { return false };
        if digest.number >= below || digest.ranges().is_empty() {
            return false;
        }
        *place = Some(digest);
        true
    }

    /// The segments, from the highest down.
    pub fn digests(&self) -> impl Iterator<Item = &SegmentDigest> {
        self.digests.iter().flatten()
    }

    /// Length of the message in bytes.
    #[must_use]
    pub fn wire_len(&self) -> usize {
        ANSWER_LEN + self.digests().map(SegmentDigest::wire_len).sum::<usize>()
    }

    /// Reads it; it ends where `bytes` end.
    ///
    /// # Errors
    /// [`Malformed`] when it is not what [`CacheDigests::emit`] writes.
    pub fn parse(bytes: &[u8]) -> Result<CacheDigests, Malformed> {
        let (question, rest) = CacheQuestion::behind(CACHE_DIGESTS, bytes)?;
        let (end, mut rest) = field::split_header::<8>("end of a cache", rest)?;
        let mut answer = CacheDigests::new(question, u64::from_be_bytes(*end));
        if answer.end > POSITION_END {
            return Err(Malformed::new("end of a cache", bytes));
        }
        while !rest.is_empty() {
            let (digest, behind) = SegmentDigest::parse(rest)?;
            if !answer.push(digest) {
                return Err(Malformed::new("segments of a cache", bytes));
            }
            rest = behind;
        }
        Ok(answer)
    }

    /// Writes it into `buf`.
    ///
    /// # Errors
    /// [`Malformed`] when `buf` is shorter than [`CacheDigests::wire_len`].
    pub fn emit(&self, buf: &mut [u8]) -> Result<(), Malformed> {
        let what = "buffer for the segments of a cache";
        self.question.emit_as(CACHE_DIGESTS, buf)?;
        let rest = buf.get_mut(QUESTION_LEN..).unwrap_or_default();
        field::emit_header(what, rest, self.end.to_be_bytes())?;
        let mut rest = rest.get_mut(8..).unwrap_or_default();
        for digest in self.digests() {
            rest = digest.emit(rest)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn digest(number: u64, ranges: &[(u32, u32)]) -> SegmentDigest {
        let mut digest = SegmentDigest { hash: [7; HASH_LEN], ..SegmentDigest::new(number) };
        assert!(ranges.iter().all(|(start, len)| digest.push(*start, *len)));
        digest
    }

    #[test]
    fn question_and_answer_on_the_wire() {
        let question = CacheQuestion { cache: 3, below: 0x0102 };
        let mut bytes = [0; QUESTION_LEN];
        question.emit(&mut bytes).unwrap();
        assert_eq!(bytes, [0xec, 3, 0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(CacheQuestion::parse(&bytes), Ok(question));
        let mut answer = CacheDigests::new(question, 0x0304);
        assert!(answer.push(digest(5, &[(1, 0x01_0000)])));
        let mut bytes = vec![0; answer.wire_len()];
        answer.emit(&mut bytes).unwrap();
        let head = [0xed, 3, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 3, 4];
        let segment = [0, 0, 0, 0, 0, 0, 0, 5, 1, 0, 0, 1, 1, 0, 0];
        assert_eq!(bytes, [&head[..], &segment, &[7; 16]].concat());
        assert!(answer.emit(&mut bytes[..48]).is_err());
        assert_eq!(CacheDigests::parse(&bytes), Ok(answer));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let mut one = digest(5, &[(0, 10)]);
        for (start, len) in [(10, 1), (11, 0), (SEGMENT_LEN, 1), (11, SEGMENT_LEN), (u32::MAX, 2)] {
            assert!(!one.push(start, len), "{start}, {len}");
        }
        let mut answer = CacheDigests::new(CacheQuestion { cache: 0, below: 6 }, POSITION_END);
        assert!(!answer.push(digest(6, &[(0, 1)])) && !answer.push(SegmentDigest::new(1)));
        assert!(answer.push(one) && !answer.push(one) && answer.push(digest(4, &[(0, 1)])));
        let mut bytes = vec![0; answer.wire_len()];
        answer.emit(&mut bytes).unwrap();
        let changed = |at: usize, with: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = with;
            CacheDigests::parse(&bytes)
        };
        for (at, with) in [(0, CACHE_QUESTION), (9, 5), (10, 2), (17, 1), (18, 1), (26, 0), (26, 9)] {
            assert!(changed(at, with).is_err(), "byte {at}");
        }
    }

    proptest! {
        #[test]
        fn round_trip(
            cache: u8, end in 0..=POSITION_END, from in 0..1_u64 << 30,
            segments in proptest::collection::vec((1..9_u64, proptest::collection::vec((1..9_u32, 1..9_u32), 1..RANGES_MAX)), 0..=DIGESTS_MAX),
        ) {
            let mut answer = CacheDigests::new(CacheQuestion { cache, below: from + 100 }, end);
            let mut number = from + 100;
            for (less, ranges) in segments {
                number -= less;
                let mut at = 0;
                let held: Vec<_> = ranges.iter().map(|(gap, len)| { let start = at + gap; at = start + len; (start, *len) }).collect();
                prop_assert!(answer.push(digest(number, &held)));
            }
            let mut bytes = vec![0; answer.wire_len()];
            answer.emit(&mut bytes).unwrap();
            prop_assert_eq!(CacheDigests::parse(&bytes), Ok(answer));
            for len in 0..bytes.len() {
                prop_assert!(CacheDigests::parse(&bytes[..len]).map_or(true, |short| short.wire_len() == len));
            }
        }

        #[test]
        fn bytes_that_no_receiver_wrote_are_refused_or_written_the_same(mut bytes: Vec<u8>) {
            bytes.insert(0, CACHE_DIGESTS);
            if let Ok(answer) = CacheDigests::parse(&bytes) {
                let mut again = vec![0; answer.wire_len()];
                answer.emit(&mut again).unwrap();
                prop_assert_eq!(again, bytes);
            }
        }
    }
}
