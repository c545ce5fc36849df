//! Packets that leave alone, at the pace at which they would be recorded: a victim's datagrams with its cookie, and the client's of
//! another flow between the same hosts and ports of the same service. What leaves alone is coded against earlier packets, of which history
//! there are receipts.

use std::time::Duration;

use serde::Serialize;
use strait_clock::{Random, Time};
use strait_compress::history::cache::CacheCapacity;
use strait_compress::{Allowed, Method};
use strait_ipsec::{CacheList, Domain, DomainCache, DomainTag, HistoryScope, HistoryTerms, LeakPolicy, Rule};
use strait_scheduler::Rate;
use strait_sim::{FlowShape, Halves, HalvesSettings, NodeId};

use super::{CrimeTally, DIGITS};

/// The rate of the link, and the time between two packets: each leaves an idle link.
const LINK: u64 = 1_500_000;
const PACE: Duration = Duration::from_millis(100);
/// The service that both flows speak to, and their own ports.
const SERVICE: u16 = 80;
const VICTIM: u16 = 40_000;
const CLIENT: u16 = 40_001;
/// Packets of the victim before the client begins, so that there is history.
const BEFORE: usize = 4;
/// Guesses of a digit with each of so many fillers, which go through the alignment of ESP twice.
const FILLERS: usize = 8;
/// What stands before the digits.
const NAME: &str = "session=";
/// Lines of a request that the client knows, where there is a cache: more than 256 bytes, from which on packets are copied from one.
const KNOWN_LINES: u32 = 20;
/// Random bytes behind a guess beside the filler's.
const BEHIND: usize = 8;

/// What packets that leave alone are coded against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoneHistory {
    /// No rule: headers alone.
    Contexts,
    /// A rule with `history = "flow"`: payloads of the same flow.
    Flow,
    /// A rule with `history = "service"`: payloads of all flows of the service.
    Service,
    /// A rule with `cache`: everything that was sent in the trust domain.
    Cache,
}

impl LoneHistory {
    /// All of them.
    pub const ALL: [LoneHistory; 4] =
        [LoneHistory::Contexts, LoneHistory::Flow, LoneHistory::Service, LoneHistory::Cache];

    /// In a few words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            LoneHistory::Contexts => "no rule",
            LoneHistory::Flow => "history = \"flow\"",
            LoneHistory::Service => "history = \"service\"",
            LoneHistory::Cache => "cache",
        }
    }

    fn rules(self) -> Vec<Rule> {
        let history = match self {
            LoneHistory::Contexts => return Vec::new(),
            LoneHistory::Flow => Some(HistoryScope::Flow),
            LoneHistory::Service => Some(HistoryScope::Service),
            LoneHistory::Cache => None,
        };
        let [Ok(from), Ok(to)] = ["10.0.1.0/24", "10.0.2.0/24"].map(str::parse) else { return Vec::new() };
        let (domain, allowed) = (Domain(0), Allowed::Only(Method::ZSTD));
        vec![Rule {
            cache: self.cache(),
            history,
            from,
            to,
            protocol: None,
            ports: vec![SERVICE..=SERVICE],
            domain,
            allowed,
            policy: LeakPolicy::NONE,
        }]
    }

    /// The byte cache of the domain.
    fn cache(self) -> Option<DomainCache> {
        let capacity = CacheCapacity::new(CacheCapacity::MIN)?;
        (self == LoneHistory::Cache).then_some(DomainCache { domain: DomainTag(1), capacity })
    }

    /// How a request begins, and so a guess, so that the one can be a template for the other. What is copied from a cache has at least
    /// 64 bytes, so there the client knows as much of what comes before the digits as a client of web pages does.
    fn head(self) -> Vec<u8> {
        let mut head = b"GET /orders ".to_vec();
        if self == LoneHistory::Cache {
            for line in 0..KNOWN_LINES {
                head.extend_from_slice(format!("header-{line}: {}\r\n", line * line * 7_919).as_bytes());
            }
        }
        head.extend_from_slice(NAME.as_bytes());
        head
    }
}

/// What the client of another flow found.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LoneDigits {
    /// What packets were coded against.
    pub history: LoneHistory,
    /// Digits, of one cookie.
    #[serde(flatten)]
    pub tally: CrimeTally,
}

/// Lets the client guess a cookie of so many digits, each of which it is told afterwards.
#[must_use]
pub fn lone_digits(history: LoneHistory, digits: usize, seed: u64) -> LoneDigits {
    let mut scene = LoneScene::new(history, digits, seed);
    for _ in 0..BEFORE {
        scene.victim();
    }
    let mut tally = CrimeTally { cookies: 1, ..CrimeTally::default() };
    for place in 0..digits {
        let decided = scene.digit(place);
        tally.digits += 1;
        tally.right += u64::from(scene.cookie.get(place) == Some(&decided));
    }
    tally.packets = scene.packets;
    LoneDigits { history, tally }
}

/// Victim and client on both ends of one direction.
struct LoneScene {
    halves: Halves,
    head: Vec<u8>,
    cookie: Vec<u8>,
    random: Random,
    now: Time,
    packets: u64,
}

impl LoneScene {
    fn new(history: LoneHistory, digits: usize, seed: u64) -> LoneScene {
        let caches = CacheList::of(history.cache());
        let terms = HistoryTerms { contexts: HistoryTerms::CONTEXTS, caches, ..HistoryTerms::NONE };
        let (rules, up) = (history.rules(), Rate::from_bits(LINK));
        let settings = HalvesSettings { rules, up, history: terms, ..HalvesSettings::default() };
        let mut random = Random::new(seed);
        let cookie = (0..digits).map(|_| one_of(DIGITS, &mut random)).collect();
        let halves = Halves::new(settings, Time::ZERO);
        LoneScene { halves, head: history.head(), cookie, random, now: Time::ZERO, packets: 0 }
    }

    /// The length of what a packet becomes; the other end receives it, and receipts come back.
    fn carry(&mut self, port: u16, payload: &[u8]) -> usize {
        let shape = FlowShape::new(NodeId(0).inner_v4(port), NodeId(1).inner_v4(SERVICE));
        let mut sent = self.halves.send(&[shape.udp(payload)], self.now);
        let (rest, end) = self.halves.drain(self.now);
        sent.extend(rest);
        self.now = end + PACE;
        for datagram in &sent {
            let _ = self.halves.receive(datagram, self.now);
        }
        sent.iter().map(|datagram| datagram.bytes.len()).sum()
    }

    /// The victim asks again, with its cookie.
    fn victim(&mut self) {
        let request = [&self.head, &self.cookie[..], b" end"].concat();
        self.carry(VICTIM, &request);
    }

    /// The digit whose guesses take least; of several, any.
    fn digit(&mut self, place: usize) -> u8 {
        let mut taken = [0; DIGITS.len()];
        for filler in 0..FILLERS {
            for (digit, taken) in DIGITS.iter().zip(&mut taken) {
                // The newest packets are referred to: the client sees to it that the victim's is among them.
                self.victim();
                let known = self.cookie.get(..place).unwrap_or_default();
                // Anew for each guess, so that the one before is no template for it.
                let behind: Vec<u8> =
                    (0..BEHIND + filler).map(|_| self.random.next_u64().to_be_bytes()[0]).collect();
                let guess = [&self.head, known, &[*digit], &behind].concat();
                *taken += self.carry(CLIENT, &guess);
                self.packets += 1;
            }
        }
        let least = taken.iter().min();
        let alike: Vec<u8> = DIGITS
            .iter()
            .zip(&taken)
            .filter(|(_, taken)| Some(*taken) == least)
            .map(|(digit, _)| *digit)
            .collect();
        let chosen = self.random.below(alike.len().max(1) as u64);
        alike.into_iter().nth(usize::try_from(chosen).unwrap_or(0)).unwrap_or(DIGITS[0])
    }
}

fn one_of(of: &[u8; 16], random: &mut Random) -> u8 {
    of[random.below(16) as usize % 16]
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGITS_OF_A_COOKIE: usize = 40;
    /// Chance gives 2.5 of 40, and more than 7 once in 500 cookies.
    const BY_CHANCE: u64 = 7;

    fn right(history: LoneHistory) -> u64 {
        let found = lone_digits(history, DIGITS_OF_A_COOKIE, 5);
        println!("{}: {:?}", history.name(), found.tally);
        found.tally.right
    }

    #[test]
    fn another_flow_finds_no_digits_by_headers_or_history_of_its_own() {
        assert!(right(LoneHistory::Contexts) <= BY_CHANCE);
        assert!(right(LoneHistory::Flow) <= BY_CHANCE);
    }

    #[test]
    fn a_history_that_flows_share_tells_digits() {
        assert!(right(LoneHistory::Service) > 2 * BY_CHANCE);
    }

    #[test]
    fn a_cache_that_flows_share_tells_digits() {
        assert!(right(LoneHistory::Cache) > 2 * BY_CHANCE);
    }
}
