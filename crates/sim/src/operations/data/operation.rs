//! What may happen to the data plane, read from four bytes.

use core::time::Duration;

use strait_compress::CodecSet;
use strait_ipsec::Payloads;
use strait_scheduler::Rate;

/// Bytes of one operation.
pub const OPERATION_LEN: usize = 4;

/// Which site does something to or with which other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Between {
    /// The site that sends.
    pub from: usize,
    /// The site that receives.
    pub to: usize,
}

/// What is done to a datagram on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mishap {
    /// It is lost.
    Drop,
    /// It arrives twice.
    Duplicate,
    /// It falls behind all that are on their way.
    Delay,
    /// A bit of it changes.
    Corrupt,
    /// A copy of which a bit was changed arrives before it.
    Forge,
    /// It meets congestion.
    Mark,
}

/// What the host sends that cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oddity {
    /// No whole IP packet, or a header of the device's that does not agree with it.
    Malformed,
    /// For an address that no peer has.
    Stranger,
    /// From another peer's address.
    Foreign,
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataOperation {
    /// Nothing more comes at once: what waits for that leaves.
    Release,
    /// The host sends packets; `flow` says what they have in common, `shape` how many and how large.
    Send {
        /// From where to where.
        between: Between,
        /// What the flow is.
        flow: u8,
        /// How many packets, of what size.
        shape: u8,
    },
    /// The host sends a packet in fragments.
    SendFragments {
        /// From where to where.
        between: Between,
        /// Its size, and whether it is IPv6.
        shape: u8,
    },
    /// The host sends what cannot be sent.
    SendOddity {
        /// From where to where.
        between: Between,
        /// What it is.
        oddity: Oddity,
        /// Which of several forms.
        form: u8,
    },
    /// Time passes.
    Advance(Duration),
    /// The oldest datagrams of a link arrive.
    Deliver {
        /// On which link.
        between: Between,
        /// How many at most.
        count: u8,
        /// Whether the receiver knows that no more come at once.
        settles: bool,
    },
    /// Something happens to a datagram on its way.
    Befall {
        /// On which link.
        between: Between,
        /// What.
        mishap: Mishap,
        /// Which datagram.
        index: u8,
        /// Which bit, where one is changed.
        bit: u8,
    },
    /// A worker of the sender ends a job.
    Compress {
        /// Whose worker.
        site: usize,
        /// Which job.
        index: u8,
    },
    /// A worker of the receiver ends a job.
    Expand {
        /// Whose worker.
        site: usize,
        /// Which job.
        index: u8,
    },
    /// A new association, first at the receiver.
    Install {
        /// From where to where.
        between: Between,
        /// What may be inside.
        payloads: Payloads,
        /// The last sequence number that may be used, where that is limited.
        reserved: Option<u8>,
    },
    /// The sender stops using its association.
    Withdraw(Between),
    /// The receiver forgets an association, the oldest first.
    Forget(Between),
    /// The sender forgets the peer.
    RemovePeer(Between),
    /// The sender knows the peer again.
    AddPeer(Between),
    /// A site's address changes.
    Move(usize),
    /// The pace towards a peer.
    Pace {
        /// From where to where.
        between: Between,
        /// The rate; none for no pacing.
        rate: Option<Rate>,
        /// Whether the peer's reports tell it.
        estimated: bool,
    },
    /// The rate of a site's own link.
    Link {
        /// Whose.
        site: usize,
        /// The rate; none for no pacing.
        rate: Option<Rate>,
    },
    /// How packets wait.
    Queueing {
        /// Where.
        site: usize,
        /// Packets among which one finds others.
        window: usize,
        /// How long one waits for others.
        wait: Duration,
    },
    /// What may be compressed.
    Rules {
        /// Where.
        site: usize,
        /// Which set of rules.
        form: u8,
    },
    /// The key manager asks the peer for a sign of life.
    Probe(Between),
    /// The key manager has the peer told what changed.
    Condition(Between),
    /// The key manager sends a NAT keepalive.
    Keepalive(Between),
    /// A peer asks with probes, many of them.
    Probes {
        /// Who answers whom.
        between: Between,
        /// How many.
        count: u8,
    },
    /// The network does not take the next call.
    Refuse {
        /// Whose.
        site: usize,
        /// Whether because of the size.
        too_big: bool,
    },
    /// Everything is let through, and the books are compared to the packet.
    Settle,
}

impl DataOperation {
    /// The operation that these bytes say; there is one for any.
    #[must_use]
    pub fn read([kind, who, a, b]: [u8; OPERATION_LEN]) -> DataOperation {
        let (between, site) = (Between::read(who), Between::read(who).from);
        let mishap = |mishap| DataOperation::Befall { between, mishap, index: a, bit: b };
        let oddity = |oddity| DataOperation::SendOddity { between, oddity, form: a };
        match kind % 56 {
            0..=11 => DataOperation::Send { between, flow: a % 16, shape: b },
            12..=14 => DataOperation::Release,
            15..=18 => DataOperation::Advance(span(a, b)),
            19..=22 => DataOperation::Deliver { between, count: a, settles: b & 1 == 0 },
            23 | 24 => mishap(Mishap::Drop),
            25 => mishap(Mishap::Duplicate),
            26..=28 => mishap(Mishap::Delay),
            29 => mishap(Mishap::Corrupt),
            30 => mishap(Mishap::Forge),
            31 => mishap(Mishap::Mark),
            32..=34 => DataOperation::Compress { site, index: a },
            35 => DataOperation::Expand { site, index: a },
            36 | 37 => install(between, a, b),
            38 => DataOperation::Withdraw(between),
            39 => DataOperation::Forget(between),
            40 => DataOperation::RemovePeer(between),
            41 => DataOperation::AddPeer(between),
            42 => DataOperation::Move(site),
            43 => DataOperation::Pace { between, rate: rate(a), estimated: b & 3 == 3 },
            44 => DataOperation::Link { site, rate: rate(a) },
            45 => queueing(site, a, b),
            46 | 47 => DataOperation::Rules { site, form: a },
            48 => DataOperation::Probe(between),
            49 => DataOperation::Condition(between),
            50 => other(between, a, b),
            51 => oddity(Oddity::Malformed),
            52 => oddity(if b & 1 == 0 { Oddity::Stranger } else { Oddity::Foreign }),
            53 => DataOperation::SendFragments { between, shape: a },
            _ => DataOperation::Settle,
        }
    }
}

impl Between {
    fn read(byte: u8) -> Between {
        let (from, to) =
            [(0, 1), (1, 0), (0, 2), (2, 0), (0, 1), (1, 2), (2, 1), (0, 1)][usize::from(byte % 8)];
        Between { from, to }
    }
}

fn other(between: Between, a: u8, b: u8) -> DataOperation {
    match a % 3 {
        0 => DataOperation::Keepalive(between),
        1 => DataOperation::Probes { between, count: b },
        _ => DataOperation::Refuse { site: between.from, too_big: b & 1 == 1 },
    }
}

/// From a microsecond to a quarter of an hour.
fn span(a: u8, b: u8) -> Duration {
    Duration::from_micros(10_u64.pow(u32::from(a % 9)) * (1 + u64::from(b % 10)))
}

fn install(between: Between, a: u8, b: u8) -> DataOperation {
    let payloads = payloads(a);
    DataOperation::Install { between, payloads, reserved: (a >= 224).then_some(b) }
}

/// What may be inside, most often what Strait peers agree on.
pub(super) fn payloads(byte: u8) -> Payloads {
    match byte % 8 {
        0..=2 => Payloads::Strait { codecs: CodecSet::ALL, block_cap: 65_536 },
        3 => Payloads::Strait { codecs: CodecSet::EMPTY, block_cap: 65_536 },
        4 => Payloads::Strait { codecs: CodecSet::ALL, block_cap: 4_000 },
        5 => Payloads::STANDARD,
        6 => Payloads::Standard(None),
        _ => Payloads::Aggfrag,
    }
}

/// From 64 kbit/s to 2 Gbit/s, or none.
pub(super) fn rate(byte: u8) -> Option<Rate> {
    if byte & 3 == 0 { None } else { Rate::from_bits(64_000 << (byte >> 2 & 15)) }
}

fn queueing(site: usize, a: u8, b: u8) -> DataOperation {
    let window = [1, 2, 16, 256, 2_048][usize::from(a % 5)];
    let wait = if b & 1 == 0 { Duration::ZERO } else { Duration::from_micros(u64::from(b) * 100) };
    DataOperation::Queueing { site, window, wait }
}
