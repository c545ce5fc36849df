//! Work that one peer of a hub makes it do: what that costs the packets of the others, on a thread of a known speed.

use core::time::Duration;

use strait_clock::Time;
use strait_compress::{Blocks, Coding, Method};
use strait_ipsec::Reason;
use strait_sim::{FlowShape, HubOutcome, HubThread};
use strait_wire::condition::Condition;
use strait_wire::{Protocol, block, condition, ip, probe};

use crate::stage::{A, B, millis, v4};

/// The peer that does harm, and the one that must not notice.
const HOSTILE: usize = 0;
const OTHER: usize = 1;
/// What a hostile peer costs another at most.
const LATE: Duration = Duration::from_millis(5);
/// How long the attacks take here.
const SPAN: u64 = 200_000_000;
/// How often the other peer sends: 10,000 packets a second.
const APART: u64 = 100_000;
const OTHERS: usize = (SPAN / APART) as usize;

/// Datagrams a second at 1 Mbit/s, with `payload` bytes each: 36 bytes of ESP and 28 of UDP and IP around.
const fn at_a_megabit(payload: usize) -> u64 {
    125_000 / (payload as u64 + 64)
}

/// A block of one part.
fn whole(coding: Coding, id: u16, bytes: &[u8]) -> Vec<u8> {
    let mut payload = vec![0; block::HEADER_LEN];
    block::Header { codec: coding.id(), kind: block::BlockKind::Alone, id, part: 0, parts: 1 }
        .emit(&mut payload)
        .unwrap();
    [payload, bytes.to_vec()].concat()
}

/// So many packets as one payload, as short as `method` makes them.
fn packed(method: &str, headers: bool, packets: &[u8]) -> Vec<u8> {
    let method: Method = method.parse().unwrap();
    let (mut blocks, mut output) = (Blocks::new(), vec![0; packets.len()]);
    let made = blocks.make(method, headers, packets, &mut output).unwrap();
    whole(made.coding, 1, &output[..made.len])
}

/// The smallest packets there are: an IPv4 header of a protocol that nothing knows.
fn tiny(count: usize) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 20, 0, 0, 0x40, 0, 64, 253, 0, 0, 10, 0, 1, 1, 10, 0, 2, 1];
    let sum = ip::v4_header_checksum(&packet).to_be_bytes();
    packet[10..12].copy_from_slice(&sum);
    packet.repeat(count)
}

/// Packets of 1,400 zeros, as a sparse file has them.
fn zeros(count: usize) -> Vec<u8> {
    v4(A, B, 9).udp(&[0; 1_372]).repeat(count)
}

/// What comes so many nanoseconds apart from a peer.
fn every(apart: u64, peer: usize) -> impl Iterator<Item = (Time, usize)> {
    (0..SPAN / apart).map(move |at| (Time::from_nanos(at * apart), peer))
}

/// The hostile peer sends `rate` datagrams a second, and the other its packets.
fn beside(rate: u64, hostile: &[u8]) -> (HubThread, HubOutcome) {
    let (mut hub, other) = (HubThread::new(3), good());
    let mut all: Vec<_> = every(1_000_000_000 / rate, HOSTILE).chain(every(APART, OTHER)).collect();
    all.sort();
    for (at, peer) in all {
        match peer {
            HOSTILE => hub.comes(at, peer, Protocol::AGGFRAG, hostile),
            _ => hub.comes(at, peer, Protocol::IPIP, &other),
        }
    }
    let outcome = hub.run();
    (hub, outcome)
}

/// How many datagrams that were.
const fn sent(rate: u64) -> u64 {
    SPAN / (1_000_000_000 / rate)
}

/// What the other peer sends.
fn good() -> Vec<u8> {
    FlowShape::new(B.inner_v4(9), A.inner_v4(9)).udp(&[7; 1_000])
}

fn refused(hub: &HubThread, reason: Reason) -> u64 {
    hub.counters().drops.get(reason)
}

/// All packets of the other peer arrived in time.
#[track_caller]
fn assert_unnoticed(outcome: &HubOutcome) {
    let latest = outcome.delays[OTHER].iter().max().copied().unwrap_or_default();
    assert_eq!((outcome.delays[OTHER].len(), outcome.lost[OTHER]), (OTHERS, 0), "{latest:?} at most");
    assert!(latest <= LATE, "{latest:?}");
}

#[test]
fn a_datagram_that_becomes_3276_packets_is_refused_whole() {
    for headers in [false, true] {
        let bomb = packed("zstd-3", headers, &tiny(3_276));
        assert!(bomb.len() < 228, "{} bytes", bomb.len());
        let rate = at_a_megabit(bomb.len());
        let (hub, outcome) = beside(rate, &bomb);
        assert_eq!((outcome.delays[HOSTILE].len(), refused(&hub, Reason::TooManyPackets)), (0, sent(rate)));
        assert_unnoticed(&outcome);
    }
}

#[test]
fn blocks_of_the_smallest_packets_delay_no_other_peer() {
    for (method, headers) in [("zstd-3", false), ("zstd-3", true), ("deflate-6", false), ("deflate-6", true)]
    {
        let bomb = packed(method, headers, &tiny(2_048));
        let (hub, outcome) = beside(at_a_megabit(bomb.len()), &bomb);
        assert!(refused(&hub, Reason::OverBudget) > 0, "{method}");
        assert!(!outcome.delays[HOSTILE].is_empty(), "what delays no other may pass");
        assert_unnoticed(&outcome);
    }
}

#[test]
fn a_burst_of_blocks_in_one_call_delays_no_other_peer() {
    let bomb = packed("zstd-3", false, &tiny(2_048));
    let mut hub = HubThread::new(2);
    for _ in 0..1_000 {
        hub.comes(millis_at(1), HOSTILE, Protocol::AGGFRAG, &bomb);
    }
    for _ in 0..100 {
        hub.comes(millis_at(1), OTHER, Protocol::IPIP, &good());
    }
    let outcome = hub.run();
    let latest = outcome.delays[OTHER].iter().max().copied().unwrap();
    // Opening and refusing 1,000 datagrams takes the thread 1 ms by itself.
    assert!(outcome.delays[OTHER].len() == 100 && latest <= LATE + millis(1), "{latest:?}");
}

fn millis_at(at: u64) -> Time {
    Time::from_millis(at)
}

#[test]
fn a_busy_hub_loses_no_twentieth_of_its_time_to_a_hostile_peer() {
    let bomb = packed("zstd-3", false, &tiny(2_048));
    let worked = |hostile: bool| {
        let (mut hub, other) = (HubThread::new(2), good());
        // The other peer alone takes 98 % of the thread.
        let mut all: Vec<_> = every(3_570, OTHER).collect();
        if hostile {
            all.extend(every(1_000_000_000 / at_a_megabit(bomb.len()), HOSTILE));
        }
        all.sort();
        for (at, peer) in all {
            match peer {
                HOSTILE => hub.comes(at, peer, Protocol::AGGFRAG, &bomb),
                _ => hub.comes(at, peer, Protocol::IPIP, &other),
            }
        }
        let outcome = hub.run();
        assert_eq!(outcome.lost, [0, 0]);
        assert!(outcome.delays[OTHER].iter().all(|late| *late <= 2 * LATE));
        outcome.worked
    };
    let (alone, attacked) = (worked(false), worked(true));
    let span = Duration::from_nanos(SPAN);
    assert!(alone > span * 97 / 100 && alone < span, "{alone:?}");
    assert!(attacked <= span * 105 / 100, "{attacked:?}, and {alone:?} alone");
}

#[test]
fn data_that_shrinks_a_hundredfold_is_never_limited() {
    let block = packed("zstd-3", false, &zeros(4));
    // 5,600 bytes of 60: what a thread that is never at rest lets pass. Others come all the time.
    let (hub, outcome) = beside(30_000, &block);
    assert!(outcome.delays[HOSTILE].len() > 20_000, "{}", outcome.delays[HOSTILE].len());
    assert_eq!(refused(&hub, Reason::OverBudget), 0);
}

#[test]
fn zero_pages_pass_in_full_while_the_hub_keeps_up() {
    let page = packed("zstd-3", true, &zeros(46));
    let rate = at_a_megabit(page.len());
    let (hub, outcome) = beside(rate, &page);
    assert_eq!(outcome.delays[HOSTILE].len() as u64, sent(rate) * 46);
    assert_eq!(refused(&hub, Reason::OverBudget), 0);
    assert_unnoticed(&outcome);
}

#[test]
fn the_only_peer_is_never_limited() {
    let page = packed("zstd-3", true, &zeros(46));
    let mut hub = HubThread::new(1);
    for _ in 0..3_000 {
        hub.comes(millis_at(1), HOSTILE, Protocol::AGGFRAG, &page);
    }
    assert_eq!(hub.run().delays[HOSTILE].len(), 3_000 * 46);
    assert_eq!(refused(&hub, Reason::OverBudget), 0);
}

#[test]
fn a_flood_of_probes_makes_no_flood_of_orders() {
    for kind in [probe::ProbeKind::Request, probe::ProbeKind::Answer] {
        let mut payload = vec![0; probe::LEN];
        probe::Probe { kind, id: 7, size: 0 }.emit(&mut payload).unwrap();
        let (hub, outcome) = beside(150_000, &payload);
        assert!(outcome.orders[HOSTILE] <= 16 + 4, "{} orders", outcome.orders[HOSTILE]);
        let orders = outcome.orders[HOSTILE] + refused(&hub, Reason::TooOften);
        assert_eq!(orders + outcome.lost[HOSTILE], sent(150_000));
        assert_unnoticed(&outcome);
    }
}

#[test]
fn a_flood_of_conditions_makes_two_notices_a_second() {
    let mut payload = vec![0; condition::LEN];
    Condition { load: 300, down: 1_000_000, estimates: None }.emit(&mut payload).unwrap();
    let (hub, outcome) = beside(150_000, &payload);
    assert!(outcome.notices[HOSTILE] <= 2, "{} notices", outcome.notices[HOSTILE]);
    assert!(refused(&hub, Reason::TooOften) > 20_000);
    assert_unnoticed(&outcome);
}
