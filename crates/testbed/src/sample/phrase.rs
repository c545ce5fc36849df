//! Choices as people and machines make them: a few things often, most things seldom.

use strait_clock::Random;

use super::vocabulary::{FAMILY, GIVEN, WORDS};

/// An index in `0..count`, small ones much more often: `count` raised to a uniform power, which gives each index
/// a frequency proportional to 1 / (index + 1), Zipf's law.
pub(super) fn zipf(random: &mut Random, count: usize) -> usize {
    let top = f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    // Between 0 and `count`, so the cast loses nothing but the fraction.
    let index = (top + 1.0).powf(random.unit()) as usize - 1;
    index.min(count.saturating_sub(1))
}

/// One of `items`, the first ones more often.
pub(super) fn favour<'a>(random: &mut Random, items: &[&'a str]) -> &'a str {
    items.get(zipf(random, items.len())).copied().unwrap_or_default()
}

/// One of `items`, all alike.
pub(super) fn any<'a>(random: &mut Random, items: &[&'a str]) -> &'a str {
    let index = usize::try_from(random.below(items.len() as u64)).unwrap_or(0);
    items.get(index).copied().unwrap_or_default()
}

/// A number in `low..high`.
pub(super) const fn between(random: &mut Random, low: u64, high: u64) -> u64 {
    low + random.below(high - low)
}

/// True once in `times`.
pub(super) const fn once_in(random: &mut Random, times: u64) -> bool {
    random.below(times) == 0
}

/// A given and a family name.
pub(super) fn person(random: &mut Random) -> (&'static str, &'static str) {
    (any(random, &GIVEN), any(random, &FAMILY))
}

/// An address of a host at one of the sites, mostly among few.
pub(super) fn inside_address(random: &mut Random) -> String {
    format!("10.{}.{}.{}", 1 + zipf(random, 6), zipf(random, 8), 10 + zipf(random, 200))
}

/// An address somewhere in the Internet.
pub(super) fn outside_address(random: &mut Random) -> String {
    format!("203.0.{}.{}", between(random, 113, 115), between(random, 1, 255))
}

/// A sentence of `length` words.
pub(super) fn sentence(random: &mut Random, length: u64) -> String {
    let mut out = String::new();
    for index in 0..length {
        let word = favour(random, &WORDS);
        if index == 0 {
            out.extend(word.chars().take(1).map(|first| first.to_ascii_uppercase()));
            out.push_str(word.get(1..).unwrap_or_default());
        } else {
            out.push_str(if once_in(random, 14) { ", " } else { " " });
            out.push_str(word);
        }
    }
    out.push('.');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_prefers_the_first_and_reaches_the_last() {
        let mut random = Random::new(5);
        let mut counts = [0_u32; 10];
        for _ in 0..10_000 {
            counts[zipf(&mut random, 10)] += 1;
        }
        assert!(counts.windows(2).all(|pair| pair[0] > pair[1]), "{counts:?}");
        assert!(counts[9] > 100);
        assert_eq!(zipf(&mut random, 1), 0);
    }
}
