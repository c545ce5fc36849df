//! The victim's requests with its cookie, and the client's packets beside them.

use std::net::SocketAddr;

use serde::Serialize;
use strait_clock::Random;
use strait_sim::{FlowShape, NodeId};
use strait_wire::tcp::TcpFlags;

use super::DIGITS;

/// How the victim's requests begin.
const HEADERS: &str = "POST /orders HTTP/1.1\r\nHost: intranet.example\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n\
    Accept: text/html,application/xhtml+xml\r\nAccept-Language: en-GB\r\nAccept-Encoding: gzip, deflate\r\n";
/// What stands before the digits in a request, and in a guess.
const NAME: &str = "session=";
/// Few letters for fillers: no digit of a cookie, and more than five bits each, so that no codec makes much of them.
const LETTERS: &[u8; 40] = b"GHIJKLMNOPQRSTUVWXYZghijklmnopqrstuvwxyz";
/// Bytes of fillers in the client's first packet at most; the rest is in packets of its own, each as long at most.
const FILLER_MAX: usize = 900;
/// By how many fewer, as the filler has it.
const VARIED: u64 = 100;
/// How the client's bytes begin: a run that shrinks, since a rule leaves data alone that saves less than a twentieth; and right behind a
/// match, LZ4 looks at every byte for the next.
const RUN: [u8; 64] = [b'n'; 64];
/// Bytes of every value, as they come by chance, beside which those of a request and a guess have little weight.
const FLOOD: usize = 384;
/// The service that the victim speaks to, and one of another trust domain.
const PORTS: [u16; 2] = [80, 81];

/// Where the client's packets are beside the cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CrimePlace {
    /// In the victim's own request: the client has its browser post a body of the client's choice.
    SamePacket,
    /// In packets of the flow that has the cookie.
    SameFlow,
    /// In packets of another host to the same service: another flow of the domain.
    OtherFlow,
    /// In packets that a rule with another domain covers.
    OtherDomain,
    /// In packets of the same flow, which no rule covers.
    NoRule,
}

impl CrimePlace {
    /// Every place.
    pub const ALL: [CrimePlace; 5] = [
        CrimePlace::SamePacket,
        CrimePlace::SameFlow,
        CrimePlace::OtherFlow,
        CrimePlace::OtherDomain,
        CrimePlace::NoRule,
    ];

    /// In a few words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            CrimePlace::SamePacket => "same packet",
            CrimePlace::SameFlow => "same flow",
            CrimePlace::OtherFlow => "other flow of the domain",
            CrimePlace::OtherDomain => "other domain",
            CrimePlace::NoRule => "no rule",
        }
    }

    /// In one word, as a flag has it.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            CrimePlace::SamePacket => "same-packet",
            CrimePlace::SameFlow => "same-flow",
            CrimePlace::OtherFlow => "other-flow",
            CrimePlace::OtherDomain => "other-domain",
            CrimePlace::NoRule => "no-rule",
        }
    }

    /// Whether rules may put such packets into one block with the cookie.
    #[must_use]
    pub const fn shares_a_block(self) -> bool {
        !matches!(self, CrimePlace::OtherDomain | CrimePlace::NoRule)
    }

    /// The ports of rules, each a trust domain of its own: one for the victim's service, one for another.
    #[must_use]
    pub const fn ruled(self) -> &'static [u16] {
        match self {
            CrimePlace::NoRule => PORTS.split_at(1).1,
            _ => &PORTS,
        }
    }
}

/// What a guess says behind the digits that are known. All of one filler have the same characters, so that only matches differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GuessKind {
    /// This digit is next: the first of the two tries.
    Next(u8),
    /// The same characters with this digit apart from those that are known: the second try, which is right for no cookie.
    Apart(u8),
}

/// What fillers are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuessLetters {
    /// Letters that no cookie has.
    Few,
    /// Bytes of every value, and so many of them that an entropy coder gives all bytes of the block about eight bits: it is of no use
    /// then, and the length tells of matches alone.
    All,
    /// The same, but others for each guess, so that no two blocks are nearly equal.
    Fresh,
}

/// Bytes behind a guess, always as many: some of them shrink and some do not, so that the block gets longer and its packets do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GuessFiller {
    /// Which letters.
    pub(crate) seed: u64,
    /// How many that do not shrink, beside what it takes to make an entropy coder useless.
    pub(crate) len: usize,
    /// How many bytes in all, beside those.
    pub(crate) of: usize,
    /// Of which letters.
    pub(crate) letters: GuessLetters,
}

impl GuessFiller {
    /// The bytes.
    fn bytes(self) -> Vec<u8> {
        let mut random = Random::new(self.seed);
        let mut letter = || match self.letters {
            GuessLetters::Few => LETTERS[random.below(LETTERS.len() as u64) as usize % LETTERS.len()],
            GuessLetters::All | GuessLetters::Fresh => random.next_u64().to_be_bytes()[0],
        };
        let flood = if self.letters == GuessLetters::Few { 0 } else { FLOOD };
        let mut bytes: Vec<u8> = (0..flood + self.len).map(|_| letter()).collect();
        bytes.resize(flood + self.of.max(self.len), RUN[0]);
        bytes
    }
}

/// A host with a cookie, whose requests the client can bring about.
#[derive(Clone, Debug)]
pub struct CrimeVictim {
    cookie: String,
    place: CrimePlace,
    /// The TCP sequence number of its next byte.
    seq: u32,
    /// The port of the client's last packet in a flow of its own.
    port: u16,
}

impl CrimeVictim {
    /// A victim with a cookie of so many digits, which follow from `seed`.
    #[must_use]
    pub fn new(digits: usize, place: CrimePlace, seed: u64) -> CrimeVictim {
        let mut random = Random::new(seed);
        let digit = |random: &mut Random| char::from(DIGITS[random.below(16) as usize % 16]);
        let cookie = (0..digits).map(|_| digit(&mut random)).collect();
        CrimeVictim { cookie, place, seq: random.next_u64() as u32, port: 0 }
    }

    /// The digits.
    #[must_use]
    pub fn cookie(&self) -> &str {
        &self.cookie
    }

    /// The packets of one guess, in the order in which they are sent; how many of them are the client's.
    pub(crate) fn packets(
        &mut self,
        known: &str,
        kind: GuessKind,
        filler: GuessFiller,
    ) -> (Vec<Vec<u8>>, u64) {
        let bytes = filler.bytes();
        // Now shorter, now longer, so that a step is seldom where a packet more begins.
        let most = FILLER_MAX - (filler.seed % VARIED) as usize;
        let (first, rest) = bytes.split_at(bytes.len().min(most));
        let own = [&RUN, guess(known, kind).as_bytes(), first].concat();
        let mut packets = Vec::new();
        if self.place == CrimePlace::SamePacket {
            packets.push(self.request(&own));
        } else {
            packets.push(self.request(&[]));
            packets.push(self.own(&own));
        }
        let more = rest.chunks(most).map(|bytes| self.own(bytes));
        packets.extend(more.collect::<Vec<_>>());
        let victims = u64::from(self.place != CrimePlace::SamePacket);
        let own = packets.len() as u64 - victims;
        (packets, own)
    }

    /// The victim's request, which ends with this.
    fn request(&mut self, body: &[u8]) -> Vec<u8> {
        let head = format!("{HEADERS}Cookie: {NAME}{}\r\n\r\n", self.cookie);
        self.segment(&[head.as_bytes(), body].concat())
    }

    /// A packet of the client's own.
    fn own(&mut self, payload: &[u8]) -> Vec<u8> {
        match self.place {
            CrimePlace::SamePacket | CrimePlace::SameFlow | CrimePlace::NoRule => self.segment(payload),
            CrimePlace::OtherFlow => self.datagram(PORTS[0], payload),
            CrimePlace::OtherDomain => self.datagram(PORTS[1], payload),
        }
    }

    /// The only packet of a new flow. The queue serves new flows in the order in which they begin, and others in turn: so the order of
    /// victim and client is always the same.
    fn datagram(&mut self, to: u16, payload: &[u8]) -> Vec<u8> {
        self.port = self.port % 20_000 + 1;
        between(9, 40_000 + self.port, to).udp(payload)
    }

    /// The next segment of the victim's flow.
    fn segment(&mut self, payload: &[u8]) -> Vec<u8> {
        let packet = between(1, 40_000, PORTS[0]).tcp(self.seq, TcpFlags::PSH, payload);
        self.seq = self.seq.wrapping_add(u32::try_from(payload.len()).unwrap_or(0));
        packet
    }
}

/// What a guess says in place of a header with the cookie.
fn guess(known: &str, kind: GuessKind) -> String {
    let (GuessKind::Next(digit) | GuessKind::Apart(digit)) = kind;
    let others = DIGITS.iter().filter(|other| **other != digit);
    let others: Vec<String> = others.map(|other| char::from(*other).to_string()).collect();
    let (digit, others) = (char::from(digit), others.join("."));
    match kind {
        GuessKind::Next(_) => format!("{NAME}{known}{digit}.{others}."),
        GuessKind::Apart(_) => format!("{NAME}{known}.{digit}.{others}"),
    }
}

/// The flow of a host of the first site to a service of the second.
fn between(host: u8, from: u16, to: u16) -> FlowShape {
    let mut source = NodeId(0).inner_v4(from);
    if let SocketAddr::V4(source) = &mut source {
        let [a, b, c, _] = source.ip().octets();
        source.set_ip([a, b, c, host].into());
    }
    FlowShape::new(source, NodeId(1).inner_v4(to))
}

#[cfg(test)]
mod tests {
    use strait_sim::is_intact;

    use super::*;

    /// The characters of a text in order.
    fn sorted(text: &str) -> Vec<char> {
        let mut characters: Vec<char> = text.chars().collect();
        characters.sort_unstable();
        characters
    }

    #[test]
    fn every_try_has_the_same_characters() {
        let first = guess("07af", GuessKind::Next(b'0'));
        assert!(first.starts_with("session=07af0.1.2."), "{first}");
        for digit in DIGITS {
            for kind in [GuessKind::Next(*digit), GuessKind::Apart(*digit)] {
                assert_eq!(sorted(&guess("07af", kind)), sorted(&first), "{kind:?}");
            }
        }
    }

    #[test]
    fn packets_are_intact_and_only_the_victims_hold_the_cookie() {
        for place in CrimePlace::ALL {
            let mut victim = CrimeVictim::new(40, place, 7);
            let (packets, own) = victim.packets(
                "0",
                GuessKind::Next(b'1'),
                GuessFiller { seed: 1, len: 1_000, of: 2_500, letters: GuessLetters::Few },
            );
            assert!(packets.iter().all(|packet| is_intact(packet) && packet.len() <= 1_420), "{place:?}");
            let holds = |packet: &&Vec<u8>| packet.windows(40).any(|text| text == victim.cookie().as_bytes());
            assert_eq!(packets.iter().filter(holds).count(), 1, "{place:?}");
            let victims = usize::from(place != CrimePlace::SamePacket);
            assert_eq!((packets.len(), own), (victims + 3, 3), "{place:?}");
        }
    }
}
