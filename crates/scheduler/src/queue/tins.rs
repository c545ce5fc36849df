//! Classes of service: interactive before bulk, with shares of the link.
//!
//! As with `diffserv3` of Linux's `sch_cake`, three tins of flows, by DSCP. A tin that has a share and has not used it up goes
//! before the others; one that has is served when no other tin has packets.

use core::fmt;
use core::str::FromStr;

/// A share in hundredths of a percent of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TinShare(u16);

/// All of the link.
const WHOLE: u16 = 10_000;

impl TinShare {
    /// So many hundredths of a percent: more than none, less than all.
    #[must_use]
    pub const fn from_hundredths(hundredths: u16) -> Option<TinShare> {
        if hundredths == 0 || hundredths >= WHOLE { None } else { Some(TinShare(hundredths)) }
    }

    /// In hundredths of a percent.
    #[must_use]
    pub const fn hundredths(self) -> u16 {
        self.0
    }
}

impl fmt::Display for TinShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:02}", self.0 / 100, self.0 % 100);
        write!(f, "{} %", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// A share that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseShareError {
    text: String,
}

impl fmt::Display for ParseShareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is not a share of the link; write more than \"0%\" and less than \"100%\", for example \"25%\"",
            self.text
        )
    }
}

impl core::error::Error for ParseShareError {}

impl FromStr for TinShare {
    type Err = ParseShareError;

    /// Reads `25%`, `6.25 %`: at most two digits behind the point.
    fn from_str(text: &str) -> Result<TinShare, ParseShareError> {
        let number = text.trim().strip_suffix('%').map(str::trim_end);
        number
            .and_then(hundredths)
            .and_then(TinShare::from_hundredths)
            .ok_or(ParseShareError { text: text.to_owned() })
    }
}

fn hundredths(number: &str) -> Option<u16> {
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let digits =
        |text: &str| (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then_some(());
    digits(whole).and(digits(part))?;
    let scale = match part.len() {
        1 => 10,
        2 => 1,
        _ => return None,
    };
    whole.parse::<u16>().ok()?.checked_mul(100)?.checked_add(part.parse::<u16>().ok()? * scale)
}

/// What the tins get when all of them want more: the rest of the two is the normal one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    interactive: TinShare,
    bulk: TinShare,
}

impl Shares {
    /// Those of `cake_config_diffserv3`: a quarter and a sixteenth.
    pub const CAKE: Shares = Shares { interactive: TinShare(2_500), bulk: TinShare(625) };

    /// These two, if they leave something for the rest.
    #[must_use]
    pub const fn new(interactive: TinShare, bulk: TinShare) -> Option<Shares> {
        if interactive.0 + bulk.0 >= WHOLE { None } else { Some(Shares { interactive, bulk }) }
    }

    /// What interactive traffic may take before all other.
    #[must_use]
    pub const fn interactive(self) -> TinShare {
        self.interactive
    }

    /// What bulk traffic gets whatever else there is.
    #[must_use]
    pub const fn bulk(self) -> TinShare {
        self.bulk
    }

    const fn of(self, tin: Tin) -> Option<TinShare> {
        match tin {
            Tin::Interactive => Some(self.interactive),
            Tin::Normal => None,
            Tin::Bulk => Some(self.bulk),
        }
    }
}

/// A class of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tin {
    /// Latency-sensitive traffic: served first, up to its share.
    Interactive,
    /// Traffic whose DSCP names no other class.
    Normal,
    /// Background traffic: guaranteed a small share.
    Bulk,
}

impl Tin {
    /// All, those that go first first.
    pub const ALL: [Tin; 3] = [Tin::Interactive, Tin::Normal, Tin::Bulk];

    /// Where packets with this DSCP (RFC 2474, six bits) belong. Interactive are the classes that RFC 4594 section 2.3 has for network control,
    /// telephony, signalling, real-time interaction and conferences, and VOICE-ADMIT (RFC 5865); bulk are CS1 (RFC 4594) and LE (RFC 8622).
    #[must_use]
    pub const fn of_dscp(dscp: u8) -> Tin {
        match dscp {
            // CS4, AF41 to AF43, CS5, VA, EF, CS6, CS7.
            32 | 34 | 36 | 38 | 40 | 44 | 46 | 48 | 56 => Tin::Interactive,
            // LE, CS1.
            1 | 8 => Tin::Bulk,
            _ => Tin::Normal,
        }
    }

    /// What it is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Tin::Interactive => "interactive",
            Tin::Normal => "normal",
            Tin::Bulk => "bulk",
        }
    }

    pub(super) const fn index(self) -> usize {
        self as usize
    }
}

/// Whose turn it is among the tins, and what each has still to its credit.
#[derive(Debug)]
pub(super) struct Balance {
    shares: Shares,
    /// Link bytes after which a share that was not used is lost.
    memory: i64,
    /// By tin, in hundredths of a percent of a byte.
    credit: [i64; 3],
}

impl Balance {
    pub(super) fn new(shares: Shares, memory: i64) -> Balance {
        let mut balance = Balance { shares, memory, credit: [0; 3] };
        balance.earn(memory);
        balance
    }

    pub(super) fn set(&mut self, shares: Shares, memory: i64) {
        (self.shares, self.memory) = (shares, memory);
        self.earn(0);
    }

    /// Which of the tins that want to send does, and whether by its share.
    pub(super) fn choose(&self, wants: impl Fn(Tin) -> bool) -> Option<(Tin, bool)> {
        let by_share =
            [Tin::Interactive, Tin::Bulk].into_iter().find(|tin| self.credit[tin.index()] > 0 && wants(*tin));
        let otherwise = || [Tin::Normal, Tin::Interactive, Tin::Bulk].into_iter().find(|tin| wants(*tin));
        by_share.map(|tin| (tin, true)).or_else(|| otherwise().map(|tin| (tin, false)))
    }

    /// `bytes` of the link went to this tin, more or (in a correction) fewer than was thought. What it took because no other tin wanted
    /// to is not counted against its share.
    pub(super) fn charge(&mut self, tin: Tin, by_share: bool, bytes: i64) {
        if by_share {
            self.credit[tin.index()] -= bytes * i64::from(WHOLE);
        }
        self.earn(bytes);
    }

    fn earn(&mut self, bytes: i64) {
        for tin in Tin::ALL {
            let Some(share) = self.shares.of(tin).map(|share| i64::from(share.0)) else { continue };
            let credit = &mut self.credit[tin.index()];
            *credit = (*credit + bytes * share).min((self.memory * share).max(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_as_they_are_printed() {
        for (text, hundredths) in [
            ("25%", 2_500),
            ("6.25 %", 625),
            (" 50 % ", 5_000),
            ("0.5%", 50),
            ("99.99%", 9_999),
            ("7.0%", 700),
        ] {
            let share = text.parse::<TinShare>().expect(text);
            assert_eq!(share.hundredths(), hundredths, "{text}");
            assert_eq!(share.to_string().parse(), Ok(share));
        }
        for text in
            ["", "25", "0%", "100%", "0.001%", "-1%", "+1%", "1.%", ".5%", "1e1%", "99999%", "70000%", "%"]
        {
            assert!(text.parse::<TinShare>().is_err(), "{text}");
        }
        let share = |hundredths| TinShare::from_hundredths(hundredths).expect("a share");
        assert!(Shares::new(share(5_000), share(5_000)).is_none());
        assert!(Shares::new(share(5_000), share(4_999)).is_some());
    }

    /// What each tin gets of 100,000 bytes in packets of 1,000.
    fn served(balance: &mut Balance, wants: [bool; 3]) -> [i64; 3] {
        let mut served = [0; 3];
        for _ in 0..100 {
            let (tin, by_share) = balance.choose(|tin| wants[tin.index()]).expect("someone wants to send");
            balance.charge(tin, by_share, 1_000);
            served[tin.index()] += 1_000;
        }
        served
    }

    #[test]
    fn when_all_want_more_each_gets_its_share() {
        let mut balance = Balance::new(Shares::CAKE, 1);
        let near = |wants, expected: [i64; 3]| {
            let served = served(&mut balance, wants);
            assert!(
                served.iter().zip(expected).all(|(got, wanted)| (got - wanted).abs() <= 1_000),
                "{served:?} {wants:?}"
            );
        };
        let mut near = near;
        near([true, true, true], [25_000, 68_750, 6_250]);
        near([false, true, true], [0, 93_750, 6_250]);
        near([true, false, true], [93_750, 0, 6_250]);
        // What it got while the other tins were empty is not counted against its share.
        near([true, false, false], [100_000, 0, 0]);
        near([true, true, false], [25_000, 75_000, 0]);
    }

    #[test]
    fn unused_share_is_kept_for_bounded_time() {
        let mut balance = Balance::new(Shares::CAKE, 20_000);
        assert_eq!(served(&mut balance, [false, true, false]), [0, 100_000, 0]);
        let mut first = 0;
        while balance.choose(|tin| tin != Tin::Bulk) == Some((Tin::Interactive, true)) {
            balance.charge(Tin::Interactive, true, 100);
            first += 100;
        }
        // A quarter of what is remembered, and a quarter of what went meanwhile.
        assert!((6_600..=6_800).contains(&first), "{first}");
    }

    #[test]
    fn classes_by_name() {
        for (dscp, tin) in [
            (0, Tin::Normal),
            (1, Tin::Bulk),
            (8, Tin::Bulk),
            (46, Tin::Interactive),
            (48, Tin::Interactive),
            (10, Tin::Normal),
        ] {
            assert_eq!(Tin::of_dscp(dscp), tin, "{dscp}");
        }
        assert_eq!((0..64).filter(|dscp| Tin::of_dscp(*dscp) == Tin::Interactive).count(), 9);
    }
}
