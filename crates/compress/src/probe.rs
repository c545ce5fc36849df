//! The entropy probe: a quick look at bytes before they are compressed. Could they shrink at all?
//!
//! Two things shrink: bytes of which some are more frequent than others, and strings that come again. A count of sampled
//! bytes shows the first; what it does not show is looked for again in a small window. Both ask for more the shorter the
//! data is, since a codec's tables have to be paid for first.

/// Bytes counted at most.
const SAMPLES: usize = 256;
/// Fractional bits of [`GAINS`].
const FRACTION: u32 = 8;
/// What a sample adds to the order, by how often its byte was counted before it: n log2 n grows by so much, less
/// [`NOVELTY`] for a byte never counted.
const GAINS: [i16; SAMPLES] = gains();
/// What a byte never counted before takes away: 4 times Miller and Madow's correction for what a small sample hides of
/// an entropy (1955; 1 / (2 ln 2) bits a value), which also stands for the place it takes in an entropy coder's tables.
/// Of 0 to 16 times, 4 errs least in blocks of 300 to 1,400 bytes, where without it errors are half as many again.
const NOVELTY: i16 = 739;
/// Bytes of a string that comes again: LZ4's and Zstandard's least, at fast levels.
const STRING: usize = 4;
/// Bytes that come again at least: fewer pay for no match.
const LEAST: usize = 16;
/// The part of the data that has to come again: less than what has to be saved, because a small window sees only some.
const PART: usize = 80;

/// How closely data is looked at, and how orderly it has to be.
struct ProbePlan {
    /// For data shorter than this.
    below: usize,
    /// Order above which it is worth an attempt, in 1 / 256 bits a sample: uniform bytes have some -256.
    order: i32,
    /// Bytes at the front in which strings are remembered, 256 at most.
    window: usize,
    /// Strings behind it that are looked up.
    looks: usize,
}

/// Chosen to err least over kinds of data much like those of `strait-bench --only entropy-probe`, most of them made to deceive: so
/// what it says of those flatters. On 39 kinds that chose nothing here (other captures, programs, archives) a histogram
/// alone is nearly as good: wrong on 4.1, 0.7, 1.3 and 0.7 % of blocks of 300, 1,400, 16,384 and 65,536 bytes, and this on
/// 3.1, 0.5, 0.0 and 0.7; at 300 bytes this skips 0.6 % that would shrink, the histogram 0.1.
const PLANS: [ProbePlan; 3] = [
    ProbePlan { below: 512, order: 307, window: 128, looks: 64 },
    ProbePlan { below: 8_192, order: 0, window: 128, looks: 64 },
    ProbePlan { below: usize::MAX, order: -154, window: 256, looks: 256 },
];

/// Whether `data` is worth an attempt: false for what looks like random bytes. Empty data is not.
#[must_use]
pub fn shrinkable(data: &[u8]) -> bool {
    let [short, middle, long] = &PLANS;
    let plan = match data.len() {
        len if len < short.below => short,
        len if len < middle.below => middle,
        _ => long,
    };
    is_orderly(data, plan.order) || repeats(data, plan)
}

/// Whether some bytes are so much more frequent than others that an entropy coder gains.
fn is_orderly(data: &[u8], least: i32) -> bool {
    // An odd stride meets every column of records whose length is a power of two.
    let stride = (data.len() / SAMPLES).saturating_sub(1) | 1;
    let samples = SAMPLES.min(data.len() / stride);
    let mut counts = [0_u8; 256];
    // Indices, here and below: twice as fast as iterators over strides and windows.
    let order: i32 = (0..samples)
        .map(|sample| {
            let count = &mut counts[usize::from(data[sample * stride])];
            let gain = GAINS[usize::from(*count)];
            // Only the last sample can make this 256, and nothing is counted after it.
            *count = count.wrapping_add(1);
            i32::from(gain)
        })
        .sum();
    order > least * samples as i32
}

/// Whether strings of the front come again behind it, so many that a match finder gains.
fn repeats(data: &[u8], plan: &ProbePlan) -> bool {
    let Some(strings) = (data.len() + 1).checked_sub(STRING) else { return false };
    let window = plan.window.min(strings / 2);
    let mut places = [0_u8; 512];
    for place in 0..window {
        places[slot(string(data, place))] = place as u8;
    }
    let stride = ((strings - window) / plan.looks) | 1;
    let again = (0..plan.looks).map(|look| window + look * stride).filter(|at| {
        let here = string(data, *at);
        *at < strings && string(data, usize::from(places[slot(here)])) == here
    });
    again.count() * stride >= LEAST.max(data.len() / PART)
}

/// The string at a place, 0 where the data ends before it does.
fn string(data: &[u8], at: usize) -> u32 {
    match data.get(at..at + STRING) {
        Some(&[a, b, c, d]) => u32::from_le_bytes([a, b, c, d]),
        _ => 0,
    }
}

/// Multiplicative hashing by 2^32 over the golden ratio (Knuth, volume 3, section 6.4), the nine upper bits.
const fn slot(string: u32) -> usize {
    (string.wrapping_mul(0x9e37_79b1) >> 23) as usize
}

const fn gains() -> [i16; SAMPLES] {
    let mut gains = [0; SAMPLES];
    gains[0] = -NOVELTY;
    let mut count = 1;
    while count < SAMPLES {
        let (before, after) = (count as u64, count as u64 + 1);
        let gain = after * log2(after) - before * log2(before);
        // Rounded from 32 fractional bits; at most log2 256 + 1 / ln 2 before it.
        gains[count] = ((gain + (1 << (31 - FRACTION))) >> (32 - FRACTION)) as i16;
        count += 1;
    }
    gains
}

/// log2 of 1 to 256, with 32 fractional bits: squaring doubles a logarithm, and what it carries over is its next bit.
const fn log2(number: u64) -> u64 {
    let whole = number.ilog2();
    let mut mantissa = number << (31 - whole);
    let (mut log, mut bit) = ((whole as u64) << 32, 1 << 31);
    while bit > 0 {
        mantissa = (mantissa * mantissa) >> 31;
        if mantissa >> 32 > 0 {
            mantissa >>= 1;
            log |= bit;
        }
        bit >>= 1;
    }
    log
}

/// Whether `data` looks like random bytes: encrypted, or compressed already.
#[must_use]
pub fn looks_random(data: &[u8]) -> bool {
    !shrinkable(data)
}

#[cfg(test)]
mod tests {
    use strait_clock::Random;

    use super::*;

    fn random_bytes(random: &mut Random, len: usize) -> Vec<u8> {
        (0..len).map(|_| random.next_u64().to_le_bytes()[0]).collect()
    }

    #[test]
    fn random_data_is_left_alone_at_every_length() {
        let mut random = Random::new(1);
        let mut tried = 0;
        for len in (crate::THRESHOLD..3_000).step_by(7) {
            tried += u32::from(shrinkable(&random_bytes(&mut random, len)));
        }
        assert!(tried <= 1, "{tried} of 416 random blocks taken for compressible");
    }

    #[test]
    fn text_and_constants_are_tried() {
        let text = b"GET /index.html HTTP/1.1\r\nHost: www.example.org\r\nAccept: text/html\r\n".repeat(40);
        for len in (crate::THRESHOLD..text.len()).step_by(13) {
            assert!(shrinkable(&text[..len]), "{len} bytes of text");
        }
        assert!(shrinkable(&[0; 1_400]));
        assert!(shrinkable(&[0xff; 65_535]));
    }

    #[test]
    fn base64_of_random_data_is_tried() {
        // Six bits in eight: only entropy coding gains, which a match finder does not see.
        let mut random = Random::new(2);
        let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let coded: Vec<u8> =
            random_bytes(&mut random, 1_400).iter().map(|byte| alphabet[usize::from(byte & 63)]).collect();
        assert!(shrinkable(&coded));
    }

    #[test]
    fn probe_detects_repetition_in_16_byte_records() {
        // One random column among fifteen constant ones, 4 KiB: a stride of 16 would see only it.
        let mut random = Random::new(3);
        let mut records = vec![0; 4_096];
        for record in records.chunks_exact_mut(16) {
            record[0] = random.next_u64().to_le_bytes()[0];
        }
        assert!(shrinkable(&records));
    }

    #[test]
    fn strings_that_come_again_are_seen_where_all_bytes_are_alike() {
        let mut random = Random::new(4);
        let kilobyte = random_bytes(&mut random, 1_024);
        for len in [1_500, 4_096, 16_384, 65_535] {
            assert!(shrinkable(&kilobyte.repeat(64)[..len]), "{len} bytes");
        }
        let counter: Vec<u8> = (0..=u8::MAX).cycle().take(1_400).collect();
        assert!(shrinkable(&counter));
    }

    #[test]
    fn one_string_that_comes_again_is_not_enough() {
        let mut random = Random::new(5);
        let mut data = random_bytes(&mut random, 16_384);
        data.copy_within(10..40, 9_000);
        assert!(looks_random(&data));
    }

    #[test]
    fn seven_bits_in_eight_pay_for_the_tables_in_a_packet_but_not_in_three_hundred_bytes() {
        let mut random = Random::new(6);
        let mut seven: Vec<u8> = random_bytes(&mut random, 1_400);
        seven.iter_mut().for_each(|byte| *byte &= 0x7f);
        assert!(shrinkable(&seven));
        assert!(looks_random(&seven[..300]));
    }

    #[test]
    fn gain_matches_n_log_n_formula() {
        let entropy = |n: f64| if n > 0.0 { n * n.log2() } else { 0.0 };
        for (count, gain) in GAINS.iter().enumerate() {
            let novelty = if count == 0 { f64::from(NOVELTY) / 256.0 } else { 0.0 };
            let exact = entropy(count as f64 + 1.0) - entropy(count as f64) - novelty;
            assert!((f64::from(*gain) / 256.0 - exact).abs() < 1.0 / 256.0, "{count}: {exact}");
        }
        // Four times 1 / (2 ln 2) bits.
        assert_eq!(NOVELTY, (4.0 / (2.0 * core::f64::consts::LN_2) * 256.0).round() as i16);
    }

    #[test]
    fn edges() {
        assert!(looks_random(&[]));
        assert!(looks_random(&[7]));
        assert!(shrinkable(&[7; 4]));
        assert!(looks_random(&[1, 2, 3, 4, 5, 6, 7, 8]));
    }
}
