use proptest::prelude::*;
use strait_keying::sessionless::Cache;

use super::*;

/// Misses of a node's cache with so many entries, but for the first of each peer; pinned ones are there from the start.
fn missed_by_a_cache(changes: &[PeerIndex], pinned: &BTreeSet<PeerIndex>, size: usize) -> u64 {
    let mut cache = Cache::new(size - pinned.len());
    for peer in pinned {
        cache.insert(*peer, (), true);
    }
    for peer in changes {
        if cache.get(*peer).is_none() {
            cache.insert(*peer, (), false);
        }
    }
    let firsts: BTreeSet<_> = changes.iter().filter(|peer| !pinned.contains(peer)).collect();
    cache.counts().misses - firsts.len() as u64
}

/// Fails unless the plan keeps its promise with the cache of a node, and would not with one entry less.
fn keeps_its_promise(changes: &[PeerIndex], allowed: u64) -> Plan {
    let plan = Plan::best(changes, allowed);
    let (size, pinned) = (plan.size(allowed), &plan.pinned);
    let missed = missed_by_a_cache(changes, pinned, size);
    assert!(missed <= allowed && missed == plan.missed(size), "{size}: {missed} of {allowed}");
    if size > pinned.len() + 1 {
        let missed = missed_by_a_cache(changes, pinned, size - 1);
        assert!(missed > allowed && missed == plan.missed(size - 1), "{size} - 1: {missed} of {allowed}");
    }
    plan
}

/// Peers that are needed in turn, and each so many times one that is needed rarely: the name server beside all others.
fn rounds(peers: PeerIndex, times: usize) -> Vec<PeerIndex> {
    let busy = (0..times).flat_map(|_| [1, 2, 3].repeat(5).into_iter().chain([0]));
    let once = (4..peers).flat_map(|peer| [peer, 1, 2, 3]);
    busy.chain(once).collect()
}

#[test]
fn who_comes_rarely_among_many_is_pinned_and_the_rest_needs_few_entries() {
    // 0 comes again after so many others that come once each: without a pin, all of those had to be kept.
    let turn = |turn: PeerIndex| (0..30).map(move |peer| 10 + turn * 30 + peer).flat_map(|peer| [peer, 1, 2]);
    let changes: Vec<PeerIndex> = (0..10).flat_map(|at| turn(at).chain([0])).collect();
    let plan = keeps_its_promise(&changes, 0);
    assert_eq!((plan.size(0), plan.pinned), (4, BTreeSet::from([0])));
    assert_eq!(Returns::count(&changes, &BTreeSet::new()).smallest(0), 33);
}

#[test]
fn who_is_needed_all_the_time_is_not_pinned() {
    let plan = keeps_its_promise(&rounds(40, 20), 0);
    assert_eq!((plan.size(0), plan.pinned.len()), (5, 0));
    // Each of the busy ones comes once after four others: the rare one and the first of those that come once among them.
    assert_eq!(keeps_its_promise(&rounds(40, 20), 3).size(3), 4);
    assert_eq!(keeps_its_promise(&[5, 5, 5], 0).size(0), 1);
    assert_eq!(keeps_its_promise(&[], 0).size(0), 1);
}

proptest! {
    #[test]
    fn the_size_misses_as_little_as_promised_and_one_less_does_not(
        changes in proptest::collection::vec((0..6_u16, 0..30_u16), 0..400),
        allowed in 0..40_u64,
    ) {
        // A few peers come often, many now and then.
        let changes: Vec<PeerIndex> =
            changes.into_iter().map(|(often, rare)| if rare < 20 { often } else { rare }).collect();
        keeps_its_promise(&changes, allowed);
    }
}
