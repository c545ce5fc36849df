use std::sync::Arc;

use proptest::prelude::*;
use strait_clock::{Random, Time};
use strait_wire::Spi;
use strait_wire::history::{BlockHistory, Receipt};

use super::super::{HistoryError, KeptMemory, MemoryShare, PeerMemory, SentNumbers, UnitNumber};
use super::*;
use crate::{Blocks, Coding, Method};

const STREAMS: u8 = 2;
const PACKETS_MAX: usize = crate::headers::PACKETS_MAX;

/// Both ends of one direction.
struct Pair {
    sender: BulkSender,
    receiver: BulkReceiver,
    blocks: Blocks,
    buffers: HistoryBuffers,
    association: u32,
    number: u64,
    now: Time,
}

/// A block on its way.
struct Sent {
    history: BlockHistory,
    coding: Coding,
    bytes: Vec<u8>,
    packets: Vec<u8>,
    receipt: Receipt,
}

const fn key(flow: u64) -> StreamKey {
    StreamKey { flow, domain: 1, edition: 1 }
}

impl Pair {
    fn new() -> Pair {
        Pair {
            sender: BulkSender::new(STREAMS),
            receiver: BulkReceiver::new(STREAMS),
            blocks: Blocks::new(),
            buffers: HistoryBuffers::default(),
            association: 1,
            number: 0,
            now: Time::ZERO,
        }
    }

    fn send(&mut self, flow: u64, packets: &[u8]) -> Option<Sent> {
        self.now += core::time::Duration::from_millis(10);
        let plan = self.sender.plan(key(flow), &mut self.buffers.prefix, self.now)?;
        let mut output = vec![0; packets.len()];
        let made = self.blocks.make_behind(Method::ZSTD, false, packets, &mut output, &mut self.buffers)?;
        let history = self.sender.commit(&plan, self.buffers.kept.len(), self.now)?;
        let first = UnitNumber { association: self.association, number: self.number + 1 };
        self.number += 3;
        let low = Receipt::new(Spi(self.association), first.number);
        self.sender.sent(
            &history,
            SentNumbers::new(first, self.number, low),
            &mut self.buffers.kept,
            self.now,
        );
        let receipt = Receipt::new(Spi(self.association), self.number - 1);
        let bytes = output[..made.len].to_vec();
        Some(Sent { history, coding: made.coding, bytes, packets: packets.to_vec(), receipt })
    }

    /// Delivers it: never anything else than was sent.
    fn deliver(&mut self, sent: &Sent) -> Result<bool, HistoryError> {
        self.receiver.prefix(&sent.history, &mut self.buffers.prefix)?;
        let mut output = vec![0; sent.packets.len()];
        let buffers = &mut self.buffers;
        let len = self.blocks.expand_behind(sent.coding, PACKETS_MAX, &sent.bytes, &mut output, buffers);
        assert_eq!(len, Ok(sent.packets.len()));
        assert_eq!(output, sent.packets);
        Ok(self.receiver.keep(&sent.history, &mut self.buffers.kept))
    }

    fn acknowledge(&mut self, receipt: Receipt) {
        let newest = UnitNumber { association: self.association, number: self.number };
        self.sender.acknowledged(receipt, newest);
    }
}

/// Text of which every part is like the others, and none the same.
fn text(seed: u64, len: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    let words = ["valve", "pressure", "temperature", "closed", "open", "station", "north", "south", "alarm"];
    let mut text = Vec::new();
    while text.len() < len {
        let word = words[(random.next_u64() % 9) as usize];
        text.extend(format!("{word} {} ", random.next_u64() % 4_000).bytes());
    }
    text.truncate(len);
    text
}

#[test]
fn a_block_repeats_what_the_receiver_has_acknowledged() {
    let mut pair = Pair::new();
    let long = text(1, 24_000);
    let first = pair.send(7, &long).unwrap();
    let blind = pair.send(7, &long).unwrap();
    assert_eq!(blind.history.behind, None, "nothing was acknowledged yet");
    assert!(pair.deliver(&first).unwrap());
    pair.acknowledge(first.receipt);
    let second = pair.send(7, &long).unwrap();
    assert!(second.bytes.len() < first.bytes.len() / 20, "{} bytes", second.bytes.len());
    pair.deliver(&second).unwrap();
    let other = pair.send(8, &long).unwrap();
    assert_eq!(other.history.behind, None, "another flow knows nothing of it");
}

/// A receiver that shares this memory with those of other peers.
fn within(memory: &Arc<KeptMemory>) -> BulkReceiver {
    BulkReceiver::new(STREAMS).within(MemoryShare::of(Arc::new(PeerMemory::of(Arc::clone(memory)))))
}

/// Sends so many blocks of a flow; how many of them were kept. None refers to what is not kept any more.
fn kept_of(pair: &mut Pair, flow: u64, blocks: u64) -> usize {
    let kept = (0..blocks).filter(|seed| {
        // Receipts are given up in between.
        pair.now += core::time::Duration::from_millis(500);
        let sent = pair.send(flow, &text(*seed, 24_000)).unwrap();
        let is_kept = pair.deliver(&sent).unwrap();
        if is_kept {
            pair.acknowledge(sent.receipt);
        }
        is_kept
    });
    kept.count()
}

#[test]
fn without_memory_no_more_is_kept_and_what_was_acknowledged_stays_until_it_is_idle() {
    let memory = Arc::new(KeptMemory::new(320_000));
    let mut pair = Pair { receiver: within(&memory), ..Pair::new() };
    assert_eq!(kept_of(&mut pair, 7, 30), 4, "half of what there is");
    assert_eq!(memory.used(), pair.receiver.kept_bytes());
    assert_eq!(kept_of(&mut pair, 8, 15), 0);
    assert_eq!(kept_of(&mut pair, 8, 10), 4, "the other was idle for so long");
    pair.receiver.forget_unused();
    assert!(memory.used() > 0);
    pair.receiver.forget_unused();
    assert_eq!(memory.used(), 0);
}

#[test]
fn a_receiver_gives_up_what_others_may_have_that_came_later() {
    let memory = Arc::new(KeptMemory::new(1_600_000));
    let mut pairs = [(); 3].map(|()| Pair { receiver: within(&memory), ..Pair::new() });
    for turn in 0..40 {
        for (place, pair) in pairs.iter_mut().enumerate().filter(|(place, _)| turn >= 10 * place) {
            for flow in [7, 8] {
                let sent = pair.send(flow, &text(turn as u64, 24_000)).unwrap();
                match pair.deliver(&sent) {
                    Ok(true) => pair.acknowledge(sent.receipt),
                    Ok(false) => {}
                    Err(error) => assert_eq!((error, place < 2), (HistoryError::Gone, true)),
                }
            }
        }
        assert!(memory.used() <= memory.most());
    }
    let kept = pairs.map(|pair| pair.receiver.kept_bytes());
    assert!(kept.iter().all(|kept| (120_000..500_000).contains(kept)), "{kept:?}");
}

#[test]
fn no_more_waits_for_receipts_than_the_receiver_keeps() {
    let mut pair = Pair::new();
    let sent: Vec<Sent> = (0..30).map(|seed| pair.send(7, &text(seed, 24_000)).unwrap()).collect();
    let kept = sent.iter().filter(|sent| sent.history.keep.is_some()).count();
    assert_eq!(kept, 10, "256 KiB");
    for sent in &sent {
        pair.deliver(sent).unwrap();
    }
    assert_eq!(pair.receiver.kept_bytes(), 240_000);
}

#[test]
fn a_lost_block_or_receipt_does_not_hold_up_others() {
    let mut pair = Pair::new();
    for seed in 0..200 {
        let sent = pair.send(7, &text(seed, 24_000)).unwrap();
        if seed % 3 != 0 && pair.deliver(&sent).unwrap() && seed % 3 == 1 {
            pair.acknowledge(sent.receipt);
        }
        assert!(sent.history.keep.is_some(), "{seed}");
    }
}

#[test]
fn a_stream_is_taken_from_a_flow_that_is_silent() {
    let mut pair = Pair::new();
    for flow in 0..2 {
        pair.send(flow, &text(flow, 9_000)).unwrap();
    }
    assert!(pair.send(2, &text(2, 9_000)).is_none(), "both were just used");
    pair.now += core::time::Duration::from_secs(2);
    let sent = pair.send(2, &text(2, 9_000)).unwrap();
    assert_eq!(sent.history.stream, 0);
    assert_eq!(sent.history.keep.unwrap().number(), 2, "numbers go on");
}

#[test]
fn what_is_not_kept_or_not_agreed_is_refused() {
    let mut pair = Pair::new();
    let sent = pair.send(7, &text(1, 9_000)).unwrap();
    pair.deliver(&sent).unwrap();
    let number = sent.history.keep.unwrap();
    let mut prefix = Vec::new();
    let mut check = |history: BlockHistory| pair.receiver.prefix(&history, &mut prefix);
    let history = BlockHistory { behind: Some((number, 0)), ..sent.history };
    assert_eq!(check(history), Ok(()));
    assert_eq!(check(BlockHistory { behind: Some((number, 1)), ..history }), Ok(()), "number 0 is no block");
    assert_eq!(check(BlockHistory { behind: Some((number, 2)), ..history }), Err(HistoryError::Gone));
    assert_eq!(check(BlockHistory { behind: Some((number.next(), 0)), ..history }), Err(HistoryError::Gone));
    assert_eq!(check(BlockHistory { stream: 2, ..history }), Err(HistoryError::OverBudget { most: 2 }));
}

#[test]
fn a_stream_begins_anew_when_no_receipt_comes_any_more() {
    let mut pair = Pair::new();
    let first = pair.send(7, &text(1, 9_000)).unwrap();
    pair.deliver(&first).unwrap();
    pair.acknowledge(first.receipt);
    // The receiver has lost what it had; nothing that refers to it is delivered there.
    pair.receiver = BulkReceiver::new(STREAMS);
    let mut refused = 0;
    loop {
        let sent = pair.send(7, &text(refused, 9_000)).unwrap();
        match pair.deliver(&sent) {
            Err(error) => assert_eq!(error, HistoryError::Gone),
            Ok(_) => break,
        }
        refused += 1;
        pair.now += core::time::Duration::from_millis(400);
        assert!(refused < 20);
    }
}

#[test]
fn a_plan_of_before_a_restart_or_of_another_flow_does_not_leave() {
    let mut pair = Pair::new();
    let plan = pair.sender.plan(key(1), &mut Vec::new(), pair.now).unwrap();
    pair.sender.clear(STREAMS);
    assert_eq!(pair.sender.commit(&plan, 10, pair.now), None);
}

#[test]
fn a_receiver_keeps_no_more_than_its_bounds_whatever_comes() {
    let mut receiver = BulkReceiver::new(1);
    let mut random = Random::new(3);
    for _ in 0..2_000 {
        let number = strait_wire::history::BlockNumber::new(random.next_u64() as u16);
        let history = BlockHistory { stream: 0, keep: number, behind: None };
        receiver.keep(&history, &mut vec![7; (random.next_u64() % 65_536) as usize]);
        assert!(receiver.kept_bytes() <= RECEIVER_MAX);
    }
}

/// What happens to the next block.
#[derive(Clone, Debug)]
enum Step {
    Send { flow: u64, seed: u64, len: usize },
    Lose(usize),
    Deliver(usize),
    Receipt(usize),
    LoseReceipt(usize),
    Rekey,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..3_u64, 0..4_u64, 200..20_000_usize)
            .prop_map(|(flow, seed, len)| Step::Send { flow, seed, len }),
        1 => any::<usize>().prop_map(Step::Lose),
        6 => (0..3_usize).prop_map(Step::Deliver),
        4 => any::<usize>().prop_map(Step::Receipt),
        1 => any::<usize>().prop_map(Step::LoseReceipt),
        1 => Just(Step::Rekey),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 64 } else { 1_024 }))]
    #[test]
    fn whatever_is_lost_or_overtaken_nothing_wrong_is_delivered(steps in proptest::collection::vec(step(), 0..300)) {
        let mut pair = Pair::new();
        let (mut blocks, mut receipts): (Vec<(u32, Sent)>, Vec<Receipt>) = (Vec::new(), Vec::new());
        for step in steps {
            match step {
                Step::Send { flow, seed, len } => {
                    let association = pair.association;
                    blocks.extend(pair.send(flow, &text(seed, len)).map(|sent| (association, sent)));
                }
                Step::Lose(at) if !blocks.is_empty() => drop(blocks.remove(at % blocks.len())),
                Step::Deliver(at) if !blocks.is_empty() => {
                    let (_, block) = blocks.remove(at % blocks.len());
                    // Overtaken by three blocks at most, which the receiver has room for.
                    if pair.deliver(&block).unwrap() {
                        receipts.push(block.receipt);
                    }
                }
                Step::Receipt(at) if !receipts.is_empty() => {
                    let receipt = receipts.swap_remove(at % receipts.len());
                    pair.acknowledge(receipt);
                }
                Step::LoseReceipt(at) if !receipts.is_empty() => drop(receipts.swap_remove(at % receipts.len())),
                Step::Rekey => {
                    (pair.association, pair.number) = (pair.association + 1, 0);
                    pair.sender.new_association();
                    receipts.clear();
                    // A receipt tells four associations in a row apart; a receiver has none of so long ago.
                    let oldest = pair.association.saturating_sub(3);
                    blocks.retain(|(association, _)| *association >= oldest);
                }
                Step::Restart => {
                    pair.receiver = BulkReceiver::new(STREAMS);
                    (pair.association, pair.number) = (pair.association + 1, 0);
                    pair.sender.clear(STREAMS);
                    blocks.clear();
                    receipts.clear();
                }
                _ => {}
            }
            prop_assert!(pair.receiver.kept_bytes() <= usize::from(STREAMS) * RECEIVER_MAX);
        }
    }
}
