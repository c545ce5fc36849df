use strait_wire::missing::RANGES_MAX;
use strait_wire::{Protocol, SeqLow};

use super::*;
use crate::{OutboundSa, Payloads, sample};

const RATE: u64 = 10_000_000;

fn at(millis: u64) -> Time {
    Time::from_millis(5_000 + millis)
}

fn rate() -> Rate {
    Rate::from_bits(RATE).unwrap()
}

/// An association on which as many payloads were sealed as `kept` says, all of them kept.
struct Kept {
    sa: OutboundSa,
    repair: OutboundRepair,
    memory: StoreMemory,
}

impl Kept {
    fn new(count: u64) -> Kept {
        let sa = OutboundSa::new(&sample::sa_spec(Payloads::STANDARD)).repaired(RepairTerms::Kept);
        let repair = OutboundRepair::new(&sa, rate(), 1);
        let mut kept = Kept { sa, repair, memory: StoreMemory::new(32 << 20) };
        for _ in 0..count {
            kept.seal(1_200, 0);
        }
        kept
    }

    fn seal(&mut self, len: usize, millis: u64) {
        let number = Esn(self.sa.numbers.next().unwrap().value());
        let (next, tos, at) = (Protocol::AGGFRAG, Tos(2), at(millis));
        let bytes = &vec![0xf0; len];
        let payload = StoredPayload { number, next, tos, at, repeats: 0, repeated_at: at, bytes };
        self.repair.keep(&payload, (Some(rate()), None), &mut self.memory);
    }

    fn want(&mut self, ranges: &[(u32, u16)], millis: u64) -> Result<(), Reason> {
        let mut missing = MissingRanges::new(self.sa.spi);
        for (first, count) in ranges {
            assert!(missing.push(MissingRange { first: SeqLow(*first), count: *count }));
        }
        self.repair.want(&missing, &self.sa, None, at(millis))
    }

    /// Everything that is sent now.
    fn sent(&mut self, millis: u64, twice: bool) -> (Vec<Repeat>, u64) {
        let (mut sent, mut refused) = (Vec::new(), 0);
        while self.repair.next_at(true).is_some_and(|due| due <= at(millis)) {
            let way = Way { rate: rate(), round: None, idle: true, twice };
            let (step, more) = self.repair.next(way, |_| true, at(millis));
            refused += more;
            sent.extend(step);
        }
        (sent, refused)
    }
}

fn payloads(numbers: impl IntoIterator<Item = u64>) -> Vec<Repeat> {
    numbers.into_iter().map(|number| Repeat::Payload(Esn(number))).collect()
}

#[test]
fn what_is_asked_for_is_sent_again_in_order() {
    let mut kept = Kept::new(10);
    kept.want(&[(2, 3), (7, 1)], 1).unwrap();
    assert_eq!(kept.sent(1, false), (payloads([2, 3, 4, 7]), 0));
    assert_eq!(kept.sent(2, false), (Vec::new(), 0));
}

#[test]
fn where_much_is_lost_a_second_copy_follows() {
    let mut kept = Kept::new(10);
    kept.want(&[(2, 2)], 1).unwrap();
    assert_eq!(kept.sent(1, true), (payloads([2, 3]), 0));
    assert_eq!(kept.repair.next_at(true), Some(at(13)));
    assert_eq!(kept.sent(13, true), (payloads([2, 3]), 0));
}

#[test]
fn repeated_requests_are_answered_a_few_times() {
    let mut kept = Kept::new(10);
    let mut sent = 0;
    for turn in 0..500 {
        kept.want(&[(5, 1)], turn).unwrap();
        let steps = kept.sent(turn, false).0;
        sent += steps.iter().filter(|step| matches!(step, Repeat::Payload(_))).count();
    }
    assert_eq!(sent, usize::from(REPEATS_MAX));
}

#[test]
fn a_peer_that_asks_for_everything_gets_its_share() {
    let mut kept = Kept::new(800);
    let (mut bytes, mut refused) = (0, 0);
    for turn in 0..200_u32 {
        let _ = kept.want(&[(turn * 4 + 1, 4)], turn.into());
        let (sent, more) = kept.sent(u64::from(turn), false);
        bytes += sent.iter().filter(|step| matches!(step, Repeat::Payload(_))).count() * 1_200;
        refused += more;
    }
    let allowed = RATE / 8 / SHARE / 5 + BURST_MIN.max(RATE / 8 / SHARE / 4);
    assert!(bytes as u64 <= allowed && bytes as u64 > allowed / 2, "{bytes} of {allowed}");
    assert!(refused > 300, "{refused}");
    let full: Vec<(u32, u16)> = (0..16).map(|turn| (turn * 8 + 1, 4)).collect();
    let all: Vec<_> = (0..WANTED_MAX / RANGES_MAX + 1).map(|_| kept.want(&full, 201)).collect();
    assert_eq!(all.last(), Some(&Err(Reason::RepeatOverBudget)), "ranges that wait");
}

#[test]
fn notices_take_no_more_of_the_link_than_repetitions() {
    let mut kept = Kept::new(10);
    let slow = Rate::from_bits(64_000).unwrap();
    let mut sent = 0;
    for turn in 400..10_400 {
        let _ = kept.want(&[(5, 1)], turn);
        let way = Way { rate: slow, round: None, idle: true, twice: false };
        sent += u64::from(kept.repair.next(way, |_| true, at(turn)).0.is_some());
    }
    let most = (64_000 / 8 / SHARE * 10 + BURST_MIN) / NOTICE_WIRE;
    assert!(sent <= most + 1 && sent > most / 2, "{sent} of {most}");
}

#[test]
fn numbers_that_cost_a_look_up_each_are_limited() {
    let mut kept = Kept::new(4_000);
    let asked = (0..1_000)
        .filter(|turn| kept.want(&[(1, 1_000)], *turn).is_ok() && !kept.sent(*turn, false).0.is_empty());
    let most = 2 + ASKED / 1_000;
    assert_eq!(asked.count() as u64, most);
}

#[test]
fn what_was_never_sent_is_refused() {
    let mut kept = Kept::new(10);
    for range in [(11, 1), (10, 2), (0, 1), (0, u16::MAX), (5, u16::MAX), (u32::MAX, 1), (1 << 31, 9)] {
        assert_eq!(kept.want(&[range], 1), Err(Reason::AbsurdRequest), "{range:?}");
        assert_eq!(kept.sent(1, false), (Vec::new(), 0), "{range:?}");
    }
    let other = MissingRanges::new(Spi(kept.sa.spi.0 + 1));
    assert_eq!(kept.repair.want(&other, &kept.sa, None, at(1)), Ok(()), "of the association before");
}

#[test]
fn what_has_not_left_yet_is_not_sent_again() {
    let mut kept = Kept::new(10);
    let mut missing = MissingRanges::new(kept.sa.spi);
    assert!(missing.push(MissingRange { first: SeqLow(4), count: 5 }));
    kept.repair.want(&missing, &kept.sa, Some(Esn(6)), at(1)).unwrap();
    assert_eq!(kept.sent(1, false), (payloads([4, 5]), 0));
    kept.repair.want(&missing, &kept.sa, Some(Esn(3)), at(2)).unwrap();
    assert_eq!(kept.sent(2, false), (Vec::new(), 0));
}

#[test]
fn what_is_not_kept_or_too_old_is_said_to_be_gone() {
    let mut kept = Kept::new(4);
    for _ in 0..3 {
        let _ = kept.sa.numbers.next().unwrap();
    }
    kept.seal(1_200, 0);
    kept.want(&[(3, 6)], 1).unwrap();
    let gone = Repeat::Nothing(Esn(5), 3);
    assert_eq!(kept.sent(1, false).0, [&payloads([3, 4])[..], &[gone], &payloads([8])].concat());
    kept.want(&[(8, 1)], 400).unwrap();
    assert_eq!(kept.sent(400, false).0, [Repeat::Nothing(Esn(8), 1)]);
}

#[test]
fn a_pause_after_bulk_data_shows_the_last_number() {
    let mut kept = Kept::new(0);
    kept.seal(1_200, 0);
    assert_eq!(kept.repair.next_at(true), None, "not for little");
    (0..NOTICE_BYTES / 1_200).for_each(|_| kept.seal(1_200, 3));
    assert_eq!(kept.repair.next_at(true), Some(at(23)));
    assert_eq!(kept.repair.next_at(false), None, "while more waits");
    assert_eq!(kept.sent(23, false), (vec![Repeat::Notice], 0));
    assert_eq!(kept.repair.next_at(true), None);
}

#[test]
fn a_peer_that_does_not_know_that_payloads_are_kept_is_told_once_there_are_many() {
    let mut kept = Kept::new(0);
    kept.sa.repair = RepairTerms::OnNotice;
    kept.repair.renew(&kept.sa);
    kept.seal(1_200, 0);
    assert_eq!(kept.repair.next_at(false), None);
    (0..NOTICE_BYTES / 1_200).for_each(|_| kept.seal(1_200, 3));
    assert_eq!(kept.repair.next_at(false), Some(Time::ZERO));
    let way = Way { rate: rate(), round: None, idle: false, twice: false };
    assert_eq!(kept.repair.next(way, |_| true, at(4)), (Some(Repeat::Notice), 0));
    (0..NOTICE_BYTES / 1_200 * 3).for_each(|_| kept.seal(1_200, 3));
    assert_eq!(kept.repair.next_at(false), None);
}

#[test]
fn stores_grow_with_the_path_within_the_bounds() {
    const NODE_MAX: usize = 32 << 20;
    let mut memory = StoreMemory::new(NODE_MAX);
    assert_eq!(capacity(None, Duration::ZERO), STORE_MIN);
    assert_eq!(capacity(Some(rate()), Duration::from_millis(300)), 512 * 1024);
    assert_eq!(capacity(Some(Rate::MAX), Duration::from_secs(1)), STORE_MAX);
    let given: Vec<usize> = (0..10).map(|_| memory.exchange(0, STORE_MAX)).collect();
    assert!(given.iter().sum::<usize>() <= NODE_MAX + 10 * STORE_MIN);
    assert_eq!((given[7], given[9]), (STORE_MAX, STORE_MIN), "what others ask for leaves each its least");
    assert_eq!(memory.exchange(STORE_MAX, STORE_MIN), STORE_MIN);
    assert_eq!(memory.exchange(STORE_MIN, STORE_MAX), STORE_MAX);
}
