//! Arithmetic in the field GF(2^8) of RFC 8681, whose polynomial is x^8 + x^4 + x^3 + x^2 + 1.

/// The polynomial without its highest term.
const POLYNOMIAL: u8 = 0x1d;
/// Bytes that are multiplied side by side.
const LANES: usize = 8 * WORDS;
/// Words of eight bytes among them: as many as the widest registers of today's processors hold.
const WORDS: usize = 4;
const HIGHEST: u64 = 0x8080_8080_8080_8080;

/// The inverse of every element but 0.
const INVERSES: [u8; 256] = inverses();

const fn inverses() -> [u8; 256] {
    let mut inverses = [0; 256];
    let mut a: u8 = 255;
    while a > 0 {
        // Every power of 255 is 1, so that of 254 is the inverse: the product of the squares of squares.
        let (mut square, mut product, mut times) = (a, 1, 0);
        while times < 7 {
            square = multiply(square, square);
            product = multiply(product, square);
            times += 1;
        }
        inverses[a as usize] = product;
        a -= 1;
    }
    inverses
}

/// The product of two elements.
pub(super) const fn multiply(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b != 0 {
        if b & 1 != 0 {
            product ^= a;
        }
        let carry = a >> 7;
        a = (a << 1) ^ (carry * POLYNOMIAL);
        b >>= 1;
    }
    product
}

/// The inverse of `a`; 0 for 0, which has none.
pub(super) fn inverse(a: u8) -> u8 {
    INVERSES.get(usize::from(a)).copied().unwrap_or(0)
}

/// By what the source symbol `source` is multiplied in the repair symbol `number`: the entry of a Cauchy matrix, so that any few of
/// the symbols of one window solve as many unknown sources. Numbers of one window differ in their last seven bits.
pub(super) fn coefficient(source: u64, number: u64) -> u8 {
    const ROWS: u8 = 0x80;
    let low = |number: u64| number.to_be_bytes()[7] & (ROWS - 1);
    inverse(low(number) ^ (low(source) | ROWS))
}

/// Adds `factor` times `source` to the front of `sum`, which is at least as long.
pub(super) fn add_scaled(sum: &mut [u8], source: &[u8], factor: u8) {
    let masks = masks(factor);
    let (sources, rest) = source.as_chunks::<LANES>();
    let (front, behind) = sum.split_at_mut(sources.len() * LANES);
    let (sums, _) = front.as_chunks_mut::<LANES>();
    for (sum, source) in sums.iter_mut().zip(sources) {
        let mut result = multiply_words(words(source), &masks);
        result.iter_mut().zip(words(sum)).for_each(|(word, before)| *word ^= before);
        put_words(sum, result);
    }
    for (sum, product) in behind.iter_mut().zip(multiply_last(rest, &masks)).take(rest.len()) {
        *sum ^= product;
    }
}

/// Multiplies all of `bytes` by `factor`.
pub(super) fn scale(bytes: &mut [u8], factor: u8) {
    let masks = masks(factor);
    let (lanes, rest) = bytes.as_chunks_mut::<LANES>();
    for lane in lanes {
        put_words(lane, multiply_words(words(lane), &masks));
    }
    let products = multiply_last(rest, &masks);
    rest.iter_mut().zip(products).for_each(|(byte, product)| *byte = product);
}

/// Multiplies what is left of bytes at their end.
fn multiply_last(rest: &[u8], masks: &[u64; 8]) -> [u8; LANES] {
    let mut last = [0; LANES];
    last.iter_mut().zip(rest).for_each(|(place, byte)| *place = *byte);
    let products = multiply_words(words(&last), masks);
    put_words(&mut last, products);
    last
}

/// For each bit of the factor, the lowest first, all bits set if it is.
fn masks(factor: u8) -> [u64; 8] {
    core::array::from_fn(|bit| u64::from(factor >> bit & 1).wrapping_neg())
}

/// Multiplies each byte by the factor whose bits are `masks`, without a branch or a look-up that depends on the bytes.
fn multiply_words(mut words: [u64; WORDS], masks: &[u64; 8]) -> [u64; WORDS] {
    let mut products = [0; WORDS];
    for mask in masks {
        for (word, product) in words.iter_mut().zip(&mut products) {
            *product ^= *word & mask;
            let high = *word & HIGHEST;
            // 0x7f in each byte that overflows, of which the polynomial's bits are taken.
            let overflow = high - (high >> 7);
            *word = ((*word ^ high) << 1) ^ (overflow & u64::from_ne_bytes([POLYNOMIAL; 8]));
        }
    }
    products
}

fn words(bytes: &[u8; LANES]) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    let (chunks, _) = bytes.as_chunks();
    words.iter_mut().zip(chunks).for_each(|(word, bytes)| *word = u64::from_ne_bytes(*bytes));
    words
}

fn put_words(bytes: &mut [u8; LANES], words: [u64; WORDS]) {
    let (places, _) = bytes.as_chunks_mut();
    for (place, word) in places.iter_mut().zip(words) {
        *place = word.to_ne_bytes();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn powers_of_x_follow_from_the_polynomial() {
        let mut power = 1;
        let powers: Vec<u8> = (0..10)
            .map(|_| {
                let this = power;
                power = multiply(power, 2);
                this
            })
            .collect();
        assert_eq!(powers, [1, 2, 4, 8, 16, 32, 64, 128, 29, 58]);
        for a in 1..=255 {
            assert_eq!(multiply(a, inverse(a)), 1);
            assert_eq!((multiply(a, 0), multiply(0, a), multiply(a, 1)), (0, 0, a));
        }
    }

    #[test]
    fn scaled_bytes_are_the_products_of_each() {
        let source: Vec<u8> = (0..=255).collect();
        for factor in 0..=255 {
            for len in [0, 1, 31, 32, 33, 255, 256] {
                let mut sum: Vec<u8> = (0..=255).rev().collect();
                add_scaled(&mut sum, &source[..len], factor);
                let mut scaled = source.clone();
                scale(&mut scaled[..len], factor);
                for (at, byte) in source.iter().enumerate() {
                    let product = multiply(*byte, factor);
                    let expected = (255 - *byte) ^ if at < len { product } else { 0 };
                    assert_eq!(sum[at], expected, "byte {at} of {len} times {factor}");
                    assert_eq!(scaled[at], if at < len { product } else { *byte });
                }
            }
        }
    }

    #[test]
    fn coefficients_of_a_window_are_different_and_not_zero() {
        for number in [0, 127, 128, 1_000_003] {
            let row: BTreeSet<u8> = (1000..1128).map(|source| coefficient(source, number)).collect();
            assert_eq!(row.len(), 128, "of symbol {number}");
            assert!(!row.contains(&0));
        }
        // Every two by two square can be inverted.
        for (a, b) in [(5, 9), (5, 64), (126, 127)] {
            for (m, n) in [(3, 4), (0, 127), (64, 65)] {
                let diagonal = multiply(coefficient(a, m), coefficient(b, n));
                assert_ne!(diagonal, multiply(coefficient(b, m), coefficient(a, n)));
            }
        }
    }
}
