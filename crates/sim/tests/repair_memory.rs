//! What loss repair takes of a hub's memory with forty peers whose paths lose datagrams both ways.

#![allow(unsafe_code, reason = "an allocator that counts has to be one")]
#![allow(clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use core::time::Duration;

use strait_keying::{PeerConfig, RepairMode, Start, Where};
use strait_sim::{
    Conversation, Filler, FlowShape, LinkSettings, LossModel, NodeId, NodeSettings, SimNetwork,
};

/// Bytes that are allocated now, and the most that ever were since it was set.
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

struct Weighing;

// SAFETY: every call goes to the system's allocator as it came; weighing touches no memory of it.
unsafe impl GlobalAlloc for Weighing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller's layout, as it came.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's memory and layout, as they came.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Weighing = Weighing;

const SITES: u8 = 40;
/// Forty sites and a hub, each pair with a busy flow in both directions for so many seconds, over paths of this round trip that lose
/// such a share of datagrams. The most memory that was taken beyond that of the network when it was up, in bytes, and how many datagrams
/// were repaired.
fn peak((round, loss, seconds): (Duration, f64, u32), repair: RepairMode) -> (usize, u64) {
    let hub = NodeId(0);
    let mut network = SimNetwork::new(8);
    let settings = NodeSettings { up: "100mbit".parse().unwrap(), ..NodeSettings::new(hub) };
    network.add_node(settings.clone()).unwrap();
    let loss = LossModel::Uniform(loss);
    let link = LinkSettings { delay: round / 2, loss, ..LinkSettings::default() };
    for id in (1..=SITES).map(NodeId) {
        let site = NodeSettings { up: "2mbit".parse().unwrap(), ..NodeSettings::new(id) };
        network.add_node(site.clone()).unwrap();
        network.set_link(id, hub, link);
        network.set_link(hub, id, link);
        network.add_peer(hub, PeerConfig { repair, ..site.as_peer(Where::Unknown, Start::OnTraffic) });
        let place = Where::Address(hub.outer_v4());
        network.add_peer(id, PeerConfig { repair, ..settings.as_peer(place, Start::Eager) });
    }
    for id in (1..=SITES).map(NodeId) {
        assert!(network.run_until_up(id, hub, Duration::from_secs(60)), "site {}", id.0);
    }
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let talk = |from: NodeId, to: NodeId| {
        Conversation::new(FlowShape::new(from.inner_v4(80), to.inner_v4(80)), Filler::Random)
    };
    let mut talks: Vec<_> = (1..=SITES).map(NodeId).map(|id| (id, talk(id, hub), talk(hub, id))).collect();
    // 1 Mbit/s each way.
    for _ in 0..50 * seconds {
        for (id, up, down) in &mut talks {
            network.send_all(*id, &[up.next_packet(1_200), up.next_packet(1_200)]);
            network.send_all(hub, &[down.next_packet(1_200), down.next_packet(1_200)]);
        }
        network.run_for(Duration::from_millis(20));
        (0..=SITES).for_each(|id| drop(network.node_mut(NodeId(id)).take_delivered()));
    }
    let repaired = (1..=SITES).map(NodeId).map(|id| {
        let repair = &network.node(hub).peer_counters(id).repair;
        repair.repaired.get() + repair.recovered.get()
    });
    (PEAK.load(Ordering::Relaxed) - before, repaired.sum())
}

#[test]
fn repairs_of_forty_peers_take_little_of_a_hub() {
    // By sending again, and by repair symbols.
    for (millis, loss, seconds, most) in [(60, 0.01, 3, 256), (400, 0.03, 6, 1_024)] {
        let path = (Duration::from_millis(millis), loss, seconds);
        let (without, none) = peak(path, RepairMode::Off);
        let (with, repaired) = peak(path, RepairMode::Auto);
        assert!(none == 0 && repaired > 100, "{none} {repaired}");
        // The hub has forty ends of paths, and each site one.
        let each = with.saturating_sub(without) / (2 * usize::from(SITES)) / 1024;
        println!("{millis} ms: {repaired} repaired, {each} KiB an end, {} KiB at the hub", each * 40);
        assert!(each < most, "{each} KiB for each peer: {without} without repair, {with} with it");
    }
}
