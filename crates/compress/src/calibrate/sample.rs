//! Text to measure codecs on: made up, always the same, as compressible as what people and programs write.

use strait_clock::Random;

/// What words are made of, the most frequent first: English letters (the order of a Linotype's keys), then figures.
const LETTERS: &[u8] = b"etaoinshrdlcumwfgypbvkjxqz12345";
/// Different words. The fewer there are, the more the text shrinks; with so many, in blocks of 16 KiB, Zstandard and
/// DEFLATE at level 1 make of it what they make of the Calgary corpus, within a tenth and in a fifth of its time.
const WORDS: usize = 4_095;
/// Letters of a word.
const LENGTHS: (u64, u64) = (2, 10);
/// Words of a line, on average.
const LINE: u64 = 12;

/// `len` bytes of words, frequent ones often and seldom ones seldom.
pub(super) fn text(len: usize) -> Vec<u8> {
    let mut random = Random::new(0);
    let words: Vec<Vec<u8>> = (0..WORDS).map(|_| word(&mut random)).collect();
    let mut text = Vec::with_capacity(len);
    while text.len() < len {
        text.extend(drawn(&mut random, &words));
        text.push(if random.below(LINE) == 0 { b'\n' } else { b' ' });
    }
    text.truncate(len);
    text
}

fn word(random: &mut Random) -> Vec<u8> {
    let (shortest, longest) = LENGTHS;
    let len = shortest + random.below(longest - shortest + 1);
    (0..len).map(|_| drawn(random, LETTERS)).copied().collect()
}

/// One of `items`, whose number is one less than a power of two: the r-th about as often as 1 / r (Zipf's law), since
/// each of 1, 2 to 3, 4 to 7 and so on comes up alike.
fn drawn<'a, T>(random: &mut Random, items: &'a [T]) -> &'a T {
    let octave = 1 << random.below(u64::from(items.len().count_ones()));
    let rank = octave + random.below(octave);
    &items[rank as usize - 1]
}
