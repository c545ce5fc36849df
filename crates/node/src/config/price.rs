//! What traffic on the wire costs, as providers write it.

use std::str::FromStr;

/// Units that traffic is sold in, and their bytes.
const SOLD: [(&str, f64); 3] = [("GB", 1e9), ("MB", 1e6), ("TB", 1e12)];
/// Bytes of a gigabyte.
const GIGABYTE: f64 = 1e9;

/// A price of traffic on the wire, in any currency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// Of a byte: a number that is not less than 0.
    byte: f64,
}

/// What is no price.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a price: write a number and /GB, such as 8/GB")]
pub struct BadPrice {
    given: String,
}

impl Price {
    /// What so many bytes cost; negative where they are less than none.
    #[must_use]
    pub fn of(self, bytes: i64) -> f64 {
        self.byte * bytes as f64
    }

    /// What a gigabyte (10^9 bytes) costs.
    #[must_use]
    pub fn of_gigabyte(self) -> f64 {
        self.byte * GIGABYTE
    }

    /// The price of which a gigabyte costs this much; none for what is no number, or less than 0.
    #[must_use]
    pub fn per_gigabyte(price: f64) -> Option<Price> {
        (price.is_finite() && price >= 0.0).then_some(Price { byte: price / GIGABYTE })
    }
}

impl FromStr for Price {
    type Err = BadPrice;

    fn from_str(given: &str) -> Result<Price, BadPrice> {
        let wrong = || BadPrice { given: given.to_owned() };
        let (number, unit) = given.split_once('/').unwrap_or((given, "GB"));
        let (_, bytes) = SOLD.into_iter().find(|(name, _)| *name == unit.trim()).ok_or_else(wrong)?;
        let number: f64 = number.trim().parse().map_err(|_| wrong())?;
        if number.is_finite() && number >= 0.0 { Ok(Price { byte: number / bytes }) } else { Err(wrong()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_as_providers_write_them() {
        for (given, a_gigabyte) in
            [("8/GB", 8.0), ("8", 8.0), ("0.01/MB", 10.0), ("2000 / TB", 2.0), ("0", 0.0)]
        {
            let price: Price = given.parse().unwrap();
            assert!((price.of_gigabyte() - a_gigabyte).abs() < 1e-9, "{given}");
            assert!((price.of(-500_000_000) + a_gigabyte / 2.0).abs() < 1e-9, "{given}");
        }
        for given in ["", "8/GiB", "-1/GB", "nan", "8/GB/month", "cheap"] {
            assert!(given.parse::<Price>().unwrap_err().to_string().contains("8/GB"), "{given}");
        }
        assert_eq!(Price::per_gigabyte(8.0), "8/GB".parse().ok());
        assert_eq!((Price::per_gigabyte(-1.0), Price::per_gigabyte(f64::NAN)), (None, None));
    }
}
