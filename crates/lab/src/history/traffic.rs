//! What is sent.

use core::time::Duration;
use std::net::SocketAddr;

use strait_clock::{Random, Time};
use strait_sim::{FlowShape, TcpFields};
use strait_testbed::sample;
use strait_wire::tcp::TcpFlags;

use crate::steps::Effort;

/// Packets and when they come.
#[derive(Clone, Debug)]
pub(super) struct HistoryTraffic {
    /// In a few words.
    pub(super) name: &'static str,
    /// Whether somebody waits for each packet.
    pub(super) is_interactive: bool,
    /// In the order of their times.
    pub(super) packets: Vec<(Time, Vec<u8>)>,
}

/// Both hosts, and the port that serves.
const HOSTS: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 9, 0, 1]];
/// Half of a round trip, and a little for the host.
const ANSWER: Duration = Duration::from_millis(27);
/// Payload of a full segment with timestamps over Ethernet.
const SEGMENT: usize = 1_448;
/// A keystroke of ssh with `chacha20-poly1305` or AES-GCM: 36 bytes, random to who sees them.
const KEYSTROKE: usize = 36;
/// Bytes that were sent before.
const EARLIER: usize = 1_000;
/// A fast typist: five keys a second.
const BETWEEN_KEYS: Duration = Duration::from_millis(210);
/// A meter that is read each second.
const BETWEEN_POLLS: Duration = Duration::from_secs(1);

/// Everything, shorter for [`Effort::Quick`].
pub(super) fn all(effort: Effort) -> [HistoryTraffic; 5] {
    let (keys, polls, bytes) =
        if effort == Effort::Quick { (100, 60, 300_000) } else { (1_000, 600, 900_000) };
    let files = sample::generate(sample::DEFAULT_SEED);
    let file =
        |name: &str| files.iter().find(|file| file.name == name).map_or(&[][..], |file| &file.bytes[..]);
    let (text, archive) = (file("syslog.log"), file("archive.bin"));
    let earlier = text.rchunks(EARLIER).next().unwrap_or_default();
    let [text, archive] = [text, archive].map(|content| &content[..bytes.min(content.len())]);
    [
        keystrokes(keys),
        polled(polls),
        transfers("text", (earlier, text), 1),
        transfers("the same text twice", (earlier, text), 2),
        transfers("an archive twice", (earlier, archive), 2),
    ]
}

/// One TCP connection, seen from both sides.
struct Conversation {
    ends: [SocketAddr; 2],
    sent: [u32; 2],
}

impl Conversation {
    fn new(client: u16, service: u16) -> Conversation {
        let [near, far] = HOSTS;
        Conversation { ends: [(near, client).into(), (far, service).into()], sent: [1, 1] }
    }

    /// A segment of the end `from`, with timestamps as Linux has them: two fillers in front (RFC 7323 section 3.2).
    fn segment(&mut self, from: usize, at: Time, payload: &[u8]) -> (Time, Vec<u8>) {
        let to = 1 - from;
        let clock = u32::try_from(at.as_nanos() / 1_000_000).unwrap_or(u32::MAX);
        let echo = clock.saturating_sub(ANSWER.as_millis() as u32);
        let options = [&[1, 1, 8, 10][..], &clock.to_be_bytes(), &echo.to_be_bytes()].concat();
        let flags = if payload.is_empty() { TcpFlags::ACK } else { TcpFlags::PSH };
        let fields =
            TcpFields { seq: self.sent[from], ack: self.sent[to], flags, window: 501, options: &options };
        let packet = FlowShape::new(self.ends[from], self.ends[to]).tcp_with(&fields, payload);
        self.sent[from] = self.sent[from].wrapping_add(payload.len() as u32);
        (at, packet)
    }
}

/// Keys, their echoes, and what acknowledges those.
fn keystrokes(keys: u32) -> HistoryTraffic {
    let (mut random, mut login) = (Random::new(1), Conversation::new(50_000, 22));
    let mut packets = Vec::new();
    for key in 0..keys {
        let mut bytes = || (0..KEYSTROKE).map(|_| random.next_u64() as u8).collect::<Vec<u8>>();
        let at = Time::from_millis(1_000) + BETWEEN_KEYS * key;
        packets.push(login.segment(0, at, &bytes()));
        packets.push(login.segment(1, at + ANSWER * 2, &bytes()));
        packets.push(login.segment(0, at + ANSWER * 4, &[]));
    }
    HistoryTraffic { name: "keystrokes of ssh", is_interactive: true, packets }
}

/// A Modbus meter: ten registers are asked for, and some of their values have changed (Modbus application protocol 1.1b3, 6.3).
fn polled(polls: u16) -> HistoryTraffic {
    let (mut random, mut meter) = (Random::new(2), Conversation::new(50_001, 502));
    let mut registers = [1_000_u16; 10];
    let mut packets = Vec::new();
    for number in 0..polls {
        let at = Time::from_millis(1_000) + BETWEEN_POLLS * u32::from(number);
        let [high, low] = number.to_be_bytes();
        packets.push(meter.segment(0, at, &[high, low, 0, 0, 0, 6, 1, 3, 0, 0, 0, 10]));
        for register in registers.iter_mut().step_by(3) {
            *register = register.wrapping_add((random.next_u64() % 5) as u16);
        }
        let values = registers.iter().flat_map(|register| register.to_be_bytes());
        let answer: Vec<u8> = [high, low, 0, 0, 0, 23, 1, 3, 20].into_iter().chain(values).collect();
        packets.push(meter.segment(1, at + ANSWER * 2, &answer));
        packets.push(meter.segment(0, at + ANSWER * 4, &[]));
    }
    HistoryTraffic { name: "polls of a Modbus meter", is_interactive: true, packets }
}

/// The same content so many times, each over a connection of its own, one after another. What comes before is another transfer, of one
/// kilobyte: tunnels are there for long, and their caches were compared long ago.
fn transfers(name: &'static str, (earlier, content): (&[u8], &[u8]), times: u16) -> HistoryTraffic {
    let mut packets = Vec::new();
    for (number, content) in (0..).zip(core::iter::once(earlier).chain((0..times).map(|_| content))) {
        let mut connection = Conversation::new(51_000 + number, 80);
        let at = Time::from_millis(1_000 * (u64::from(number) + 1));
        packets.extend(content.chunks(SEGMENT).map(|segment| connection.segment(0, at, segment)));
    }
    HistoryTraffic { name, is_interactive: false, packets }
}
