//! Orders as records, one JSON object a line.

use strait_clock::Random;

use super::date::{Moment, START};
use super::phrase::{any, between, favour, once_in, person, sentence, zipf};
use super::vocabulary::{CITIES, PRODUCTS, SITES, STREETS};

/// About `size` bytes of records, ending with a whole one.
pub(super) fn write(random: &mut Random, size: usize) -> Vec<u8> {
    let mut out = String::with_capacity(size + 2048);
    let mut now = START * 1000;
    let mut number = 218_340_u64;
    while out.len() < size {
        now += random.below(90_000);
        number += 1;
        out.push_str(&order(random, number, now));
        out.push('\n');
    }
    out.into_bytes()
}

fn order(random: &mut Random, number: u64, now: u64) -> String {
    let (given, family) = person(random);
    let when = Moment::from_unix(now / 1000);
    let items: Vec<String> = (0..=zipf(random, 5)).map(|_| item(random)).collect();
    let note = if once_in(random, 4) {
        let length = between(random, 4, 16);
        format!(",\"note\":\"{}\"", sentence(random, length))
    } else {
        String::new()
    };
    format!(
        "{{\"id\":\"{:08x}-{:04x}-4{:03x}\",\"number\":{number},\"type\":\"order.{}\",\"time\":\"{}T{:02}:{:02}:{:02}.{:03}Z\",\
         \"site\":\"{}\",\"customer\":{{\"id\":{},\"name\":\"{given} {family}\",\"street\":\"{} {}\",\"city\":\"{}\",\
         \"email\":\"{}.{}@mail.example\"}},\"items\":[{}],\"currency\":\"EUR\",\"priority\":{},\"paid\":{}{note}}}",
        random.below(1 << 32),
        random.below(1 << 16),
        random.below(1 << 12),
        favour(random, &["created", "paid", "shipped", "delivered", "cancelled"]),
        when.date(),
        when.hour,
        when.minute,
        when.second,
        now % 1000,
        favour(random, &SITES),
        between(random, 10_000, 14_000),
        any(random, &STREETS),
        1 + zipf(random, 120),
        favour(random, &CITIES),
        given.to_lowercase(),
        family.to_lowercase(),
        items.join(","),
        zipf(random, 4),
        !once_in(random, 3),
    )
}

fn item(random: &mut Random) -> String {
    let product = zipf(random, PRODUCTS.len());
    format!(
        "{{\"sku\":\"P-{:05}\",\"title\":\"{}\",\"quantity\":{},\"unit_price\":{}.{:02},\"in_stock\":{}}}",
        10_000 + product * 37,
        PRODUCTS.get(product).copied().unwrap_or_default(),
        1 + zipf(random, 24),
        3 + product * 7,
        [0, 50, 90, 99, 25][zipf(random, 5)],
        !once_in(random, 9),
    )
}
