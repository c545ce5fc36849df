//! A file's transfer by `ftp` in virtual time: over a dial-up connection, over links of today, and through a tunnel.

use std::sync::Arc;
use std::time::Duration;

use strait_clock::Time;
use strait_compress::Allowed;
use strait_ipsec::{Domain, LeakPolicy, Rule};
use strait_keying::SetupError;
use strait_scheduler::{LinkRate, Rate};
use strait_sim::{
    DialUp, DialUpSettings, EventQueue, FlowShape, LinkSettings, NodeId, NodeSettings, PairSettings, SimLink,
    SimNetwork, TcpFields, TcpReceiver, TcpSender, TcpSettings, TcpTransfer,
};
use strait_wire::tcp::TcpFlags;
use strait_wire::{Tos, ip};

/// Bytes of a segment: an MTU of 296, which `pppd(8)` recommends for very slow links, less both headers.
const SEGMENT: usize = 256;
/// Bytes of a host's window and socket buffer: that of the paper's traces (Table 3).
const WINDOW: u64 = 4096;
/// How often hosts have their turn, on a telephone line, where a segment takes 70 ms and more, and on links of today.
const TURNS: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(1)];
/// A transfer that takes longer than this is broken: 1,000,000 bytes take an hour of 2,400 bit/s.
const LONGEST: Duration = Duration::from_secs(4000);
/// Today's links: the delay one way, how long packets wait before one at most, and bytes of a segment with and without a tunnel.
pub(super) const DELAY: Duration = Duration::from_millis(20);
const WAIT: Duration = Duration::from_millis(100);
const STEPS: [usize; 2] = [1448, 1348];
const HOSTS: [NodeId; 2] = [NodeId(0), NodeId(1)];

/// Which way a file goes, seen from the home machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FtpWay {
    Send,
    Receive,
}

impl FtpWay {
    pub(super) const BOTH: [FtpWay; 2] = [FtpWay::Send, FtpWay::Receive];

    pub(super) const fn name(self) -> &'static str {
        match self {
            FtpWay::Send => "send",
            FtpWay::Receive => "recv",
        }
    }

    const fn sender(self) -> usize {
        match self {
            FtpWay::Send => 0,
            FtpWay::Receive => 1,
        }
    }
}

/// How long a transfer took, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FtpTimes {
    /// As `ftp` measures it: from when the connection is there for the home machine until the last byte is in the socket's buffer,
    /// or has come.
    pub(super) said: f64,
    /// From when the sender begins until the last byte has come.
    pub(super) arrived: f64,
}

/// A dial-up connection from the home machine (host 0), over which one transfer follows the other.
pub(super) struct DialUpSession {
    dial_up: DialUp,
    now: Time,
    /// The next connection's port, and the number of each host's last packet.
    port: u16,
    idents: [u16; 2],
}

impl DialUpSession {
    pub(super) fn new(settings: DialUpSettings) -> DialUpSession {
        DialUpSession {
            dial_up: DialUp::new(settings),
            now: Time::from_millis(1000),
            port: 1024,
            idents: [0; 2],
        }
    }

    /// Moves a file.
    pub(super) fn transfer(&mut self, way: FtpWay, file: &Arc<[u8]>) -> FtpTimes {
        let (from, to) = (way.sender(), 1 - way.sender());
        self.port += 1;
        let shapes = [(from, to), (to, from)]
            .map(|(from, to)| FlowShape::new(HOSTS[from].inner_v4(self.port), HOSTS[to].inner_v4(self.port)));
        let settings =
            TcpSettings { step: SEGMENT, room: WINDOW, timestamps: false, ..TcpSettings::default() };
        let mut sender = TcpSender::carrying(shapes[0], settings, Arc::clone(file));
        let mut receiver = TcpReceiver::new(shapes[1]);
        // The server opens the connection, which is there for the home machine when the acknowledgement of its answer comes.
        let open = self.open(if way == FtpWay::Send { shapes[1] } else { shapes[0] });
        if way == FtpWay::Send {
            self.advance(open, |_, _, _| ());
        }
        let begin = self.now;
        let (end, taken_at) = (begin + LONGEST, (file.len() as u64).saturating_sub(WINDOW));
        let (mut taken, mut arrived) = (None, None);
        while self.now < end && !sender.is_done() {
            self.send(from, sender.poll(self.now));
            self.send(to, receiver.poll(self.now));
            let turn = self.now + TURNS[0];
            self.advance(turn, |host, at, packet| {
                if host == from {
                    receiver.take(packet, at);
                } else {
                    sender.take(packet, at);
                }
                if arrived.is_none() && receiver.received() >= file.len() as u64 {
                    arrived = Some(at);
                }
                if taken.is_none() && sender.acknowledged() >= taken_at {
                    taken = Some(at);
                }
            });
        }
        let seconds =
            |since: Time, at: Option<Time>| at.map_or(f64::INFINITY, |at| at.since(since).as_secs_f64());
        let said = if way == FtpWay::Send { taken } else { arrived };
        FtpTimes { said: seconds(open, said), arrived: seconds(begin, arrived) }
    }

    /// Milliseconds that a typed character takes to the other host on average, each in a packet of its own.
    pub(super) fn typed(&mut self, text: &[u8]) -> f64 {
        let shape = FlowShape::new(HOSTS[0].inner_v4(513), HOSTS[1].inner_v4(513));
        let mut took = Duration::ZERO;
        for (number, character) in (0..).zip(text) {
            self.now += Duration::from_millis(500);
            // Of what was typed before, the echo was acknowledged.
            let fields = TcpFields { seq: number, ack: number, flags: TcpFlags::PSH, ..TcpFields::default() };
            self.send(0, vec![shape.tcp_with(&fields, &[*character])]);
            while let Some(next) = self.dial_up.next_at() {
                if let Some((_, at, _)) = self.dial_up.poll(next).pop() {
                    took += at.since(self.now);
                    self.now = at;
                }
            }
        }
        took.as_secs_f64() * 1e3 / text.len() as f64
    }

    /// When the acknowledgement that opens a connection has come to the home machine.
    fn open(&mut self, server: FlowShape) -> Time {
        // What the transfer before has still on its way comes first.
        self.now += Duration::from_secs(1);
        self.dial_up.poll(self.now);
        self.send(1, vec![server.tcp_with(&TcpFields::default(), &[])]);
        while let Some(next) = self.dial_up.next_at() {
            if let Some((_, at, _)) = self.dial_up.poll(next).pop() {
                return at;
            }
        }
        self.now
    }

    fn send(&mut self, host: usize, packets: Vec<Vec<u8>>) {
        for packet in packets {
            self.idents[host] = self.idents[host].wrapping_add(1);
            self.dial_up.send(host, &numbered(packet, self.idents[host]), self.now);
        }
    }

    /// Lets time pass until `until`; `take` gets what arrives of whom and when, without the header of IP.
    fn advance(&mut self, until: Time, mut take: impl FnMut(usize, Time, &[u8])) {
        self.now = self.now.max(until);
        for (host, at, packet) in self.dial_up.poll(self.now) {
            if let Ok(packet) = ip::Packet::parse(&packet) {
                take(host, at, packet.payload());
            }
        }
    }
}

/// The same packet with the next number of its host, as hosts of 1995 gave each (RFC 791).
fn numbered(mut packet: Vec<u8>, ident: u16) -> Vec<u8> {
    packet[4..6].copy_from_slice(&ident.to_be_bytes());
    packet[10..12].fill(0);
    let sum = ip::v4_header_checksum(&packet[..ip::V4_HEADER_LEN]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// A link of today with this rate and this delay, each way.
pub(super) fn today(rate: Rate, delay: Duration) -> LinkSettings {
    LinkSettings::modem(rate, delay, WAIT)
}

/// Seconds until a file has come over a link that is like this each way, without a tunnel.
pub(super) fn over_link(link: LinkSettings, file: &Arc<[u8]>) -> f64 {
    let shapes =
        [(0, 1), (1, 0)].map(|(from, to)| FlowShape::new(HOSTS[from].inner_v4(20), HOSTS[to].inner_v4(20)));
    let settings = TcpSettings { step: STEPS[0], ..TcpSettings::default() };
    let mut sender = TcpSender::carrying(shapes[0], settings, Arc::clone(file));
    let mut receiver = TcpReceiver::new(shapes[1]);
    let mut links = [SimLink::new(link, 1), SimLink::new(link, 2)];
    let mut events: EventQueue<(usize, Vec<u8>)> = EventQueue::default();
    let begin = Time::from_millis(1000);
    let (mut now, end) = (begin, begin + LONGEST);
    while now < end {
        for (way, packets) in [(0, sender.poll(now)), (1, receiver.poll(now))] {
            for packet in packets {
                for (at, _) in links[way].carry(packet.len() as u64, Tos(0), now).into_iter().flatten() {
                    events.push(at, (way, packet.clone()));
                }
            }
        }
        now += TURNS[1];
        while let Some((at, (way, packet))) = events.pop_if(|at, _| at <= now) {
            let Ok(packet) = ip::Packet::parse(&packet) else { continue };
            if way == 1 {
                sender.take(packet.payload(), at);
                continue;
            }
            receiver.take(packet.payload(), at);
            if receiver.received() >= file.len() as u64 {
                return at.since(begin).as_secs_f64();
            }
        }
    }
    f64::INFINITY
}

/// Seconds until a file has come over a link that is like this each way, through a tunnel that may compress it as it chooses.
///
/// # Errors
/// [`SetupError`] when no node can run so.
pub(super) fn through_tunnel(link: LinkSettings, file: &Arc<[u8]>) -> Result<f64, SetupError> {
    let up = link.rate.map_or(LinkRate::Unpaced, LinkRate::Given);
    let node = |id| NodeSettings { up, rules: rules(), ..NodeSettings::new(id) };
    let [a, b] = HOSTS;
    let pair = PairSettings { a: node(a), b: node(b), forth: link, back: link, ..PairSettings::default() };
    let mut network = SimNetwork::pair(1, pair)?;
    network.run_until_up(a, b, LONGEST);
    // What the handshake has left behind is over.
    network.run_for(Duration::from_secs(5));
    let settings = TcpSettings { step: STEPS[1], ..TcpSettings::default() };
    let mut transfers = [TcpTransfer::carrying([a, b], 20, settings, Arc::clone(file))];
    let (begin, end) = (network.now(), network.now() + LONGEST);
    while network.now() < end && transfers[0].receiver().received() < file.len() as u64 {
        TcpTransfer::run(&mut transfers, &mut network, (TURNS[1], TURNS[1]), |_, _, _| ());
    }
    Ok(network.now().since(begin).as_secs_f64())
}

/// All that the two hosts say may be compressed.
fn rules() -> Vec<Rule> {
    let [Ok(from), Ok(to)] = ["10.0.1.0/24", "10.0.2.0/24"].map(str::parse) else { return Vec::new() };
    let rule = |(from, to)| Rule {
        history: Some(strait_ipsec::HistoryScope::Flow),
        cache: None,
        from,
        to,
        protocol: None,
        ports: Vec::new(),
        domain: Domain(1),
        allowed: Allowed::Any,
        policy: LeakPolicy::NONE,
    };
    [(from, to), (to, from)].map(rule).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::klogin::files;

    #[test]
    fn every_way_of_a_file_ends() {
        let file: Arc<[u8]> = files::content(1)[..20_000].into();
        for way in FtpWay::BOTH {
            let mut session = DialUpSession::new(DialUpSettings::default());
            for _ in 0..2 {
                let times = session.transfer(way, &file);
                // What a socket holds is not sent yet; and a client has its connection later than the server.
                assert!(times.said < times.arrived && times.arrived < 30.0, "{times:?}");
            }
            assert_eq!(session.dial_up.way(0).tally().damaged + session.dial_up.way(1).tally().damaged, 0);
        }
        let Some(rate) = Rate::from_bits(1_540_000) else { panic!("a rate") };
        let link = today(rate, DELAY);
        let (plain, tunnel) = (over_link(link, &file), through_tunnel(link, &file).unwrap());
        assert!(plain < 1.0 && tunnel < 1.0, "{plain} {tunnel}");
    }
}
