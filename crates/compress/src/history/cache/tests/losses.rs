//! Units and receipts that are lost, overtaken and repeated; restarts; units that no sender made.

use proptest::prelude::*;

use super::*;

/// What happens to the next unit.
#[derive(Clone, Debug)]
enum Step {
    /// So many bytes from there of what there is to say; or bytes that are new.
    Say(usize, usize),
    New(u64, usize),
    Lose(usize),
    Deliver(usize),
    Repeat(usize),
    Receipt(usize),
    LoseReceipt(usize),
    GiveUp(usize),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..150_000_usize, 0..CACHED_MAX).prop_map(|(at, len)| Step::Say(at, len)),
        2 => (any::<u64>(), 0..CACHED_MAX).prop_map(|(seed, len)| Step::New(seed, len)),
        1 => any::<usize>().prop_map(Step::Lose),
        8 => any::<usize>().prop_map(Step::Deliver),
        1 => any::<usize>().prop_map(Step::Repeat),
        7 => any::<usize>().prop_map(Step::Receipt),
        1 => any::<usize>().prop_map(Step::LoseReceipt),
        1 => any::<usize>().prop_map(Step::GiveUp),
        1 => Just(Step::Restart),
    ]
}

/// A pair, what is on its way, and what there is to say.
struct Run {
    pair: Pair,
    text: Vec<u8>,
    units: Vec<Sent>,
    receipts: Vec<CachePosition>,
}

impl Run {
    fn take(&mut self, at: usize) -> Option<Sent> {
        (!self.units.is_empty()).then(|| self.units.swap_remove(at % self.units.len()))
    }

    fn take_receipt(&mut self, at: usize) -> Option<CachePosition> {
        (!self.receipts.is_empty()).then(|| self.receipts.swap_remove(at % self.receipts.len()))
    }

    /// Units are overtaken by less than the margin here, so everything can be decoded.
    fn step(&mut self, step: &Step) {
        match *step {
            Step::Say(at, len) => {
                let at = at.min(self.text.len());
                let sent = self.pair.send(&self.text[at..(at + len).min(self.text.len())]);
                self.units.push(sent);
            }
            Step::New(seed, len) => {
                let sent = self.pair.send(&lines(seed, len));
                self.units.push(sent);
            }
            Step::Lose(at) => drop(self.take(at)),
            Step::Deliver(at) => {
                if let Some(unit) = self.take(at) {
                    self.receipts.extend(self.pair.deliver(&unit).unwrap());
                }
            }
            Step::Repeat(at) if !self.units.is_empty() => {
                let unit = self.units[at % self.units.len()].clone();
                self.receipts.extend(self.pair.deliver(&unit).unwrap());
            }
            Step::Receipt(at) => {
                if let Some(position) = self.take_receipt(at) {
                    self.pair.sender.acknowledged(position);
                }
            }
            Step::LoseReceipt(at) => drop(self.take_receipt(at)),
            Step::GiveUp(at) => {
                if let Some(position) = self.receipts.get(at % self.receipts.len().max(1)) {
                    self.pair.sender.lost(*position);
                }
            }
            Step::Restart => {
                // What a forgetful receiver held is not referred to by anything on its way: it came on an association that ended.
                self.pair.receiver.clear();
                self.pair.sender.clear();
                self.units.clear();
                self.receipts.clear();
            }
            Step::Repeat(_) => {}
        }
        if self.units.len() > 8 {
            self.units.remove(0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_is_lost_overtaken_or_repeated_nothing_wrong_is_delivered(steps in proptest::collection::vec(step(), 0..300)) {
        let mut run = Run {
            pair: Pair::new(CacheCapacity::MIN),
            text: lines(2, 150_000),
            units: Vec::new(),
            receipts: Vec::new(),
        };
        for step in &steps {
            run.step(step);
        }
        prop_assert!(run.pair.sender.held_bytes() <= run.pair.receiver.held_bytes());
    }

    #[test]
    fn anything_else_is_refused_or_stays_within_its_room(bytes: Vec<u8>, at in 0..40_usize, with: u8, cap in 0..2_000_usize) {
        let mut pair = Pair::new(CacheCapacity::MIN);
        let text = lines(3, 2_000);
        pair.exchange(&text);
        let payload = [&text[300..900], b"!", &text[100..200], b"and", &text[1_200..]].concat();
        let mut coded = pair.send(&payload).coded.unwrap();
        for len in 0..coded.len() {
            let _ = pair.receiver.decode(&coded[..len], &mut pair.back[..cap]);
        }
        let len = coded.len();
        coded[at % len] ^= with;
        for coded in [&coded[..], &bytes, &[&[1, 0, 0, 0][..], &bytes].concat()] {
            if let Ok(len) = pair.receiver.decode(coded, &mut pair.back[..cap]) {
                prop_assert!(len <= cap);
            }
        }
    }
}
