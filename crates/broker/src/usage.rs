//! The room that each peer takes: sums of a list of all that is there, what changed since that was begun, and what is on its way.
//!
//! The sums are a cache. Other brokers may serve the same store, so that a limit can be exceeded by what they took within a minute.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use strait_keying::PublicKey;
use strait_transfer::broker::message::{BrokerFault, FaultKind, LetterKind, ObjectName};

use crate::access::Access;
use crate::charge;
use crate::names::LetterName;

/// The room that a peer takes, or a change of it; both may be less than nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charge {
    /// Bytes, by the rules of [`charge`].
    pub bytes: i128,
    /// Letters; of a sender also uploads that are no object yet.
    pub letters: i128,
}

/// The limits of a peer.
#[derive(Clone, Copy, Debug)]
pub struct Quota {
    /// Bytes, if they are limited.
    pub bytes: Option<u64>,
    /// Letters.
    pub letters: u64,
}

/// Sums of what is in the store and in the spool, by peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    sent: BTreeMap<PublicKey, Charge>,
    kept: BTreeMap<PublicKey, Charge>,
    /// Letters by sender and receiver.
    pairs: BTreeMap<(PublicKey, PublicKey), i128>,
    total: Charge,
}

/// The cache. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Usage(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// The sums of the last list; nothing before the first.
    listed: Option<Sums>,
    /// The changes between the beginnings of the last two lists; what goes while a list is made counts here, since that list may
    /// have left it out.
    before: Sums,
    /// The changes after that.
    since: Sums,
    /// The sums of all that is on its way, which no list has for sure.
    open: Sums,
    is_listing: bool,
}

/// Which sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Of a sender.
    Sent,
    /// Of a receiver.
    Kept,
}

/// Room for something on its way. It is given back when this is dropped.
#[derive(Debug)]
pub struct Reserved {
    usage: Usage,
    sums: Sums,
}

impl Usage {
    /// The room that a peer takes.
    #[must_use]
    pub fn of(&self, side: Side, peer: &PublicKey) -> Charge {
        self.lock().of(side, peer)
    }

    /// The receivers that have letters of a sender, ascending.
    #[must_use]
    pub fn receivers(&self, sender: &PublicKey) -> Vec<PublicKey> {
        let (first, last) = (PublicKey::from_bytes([0; 32]), PublicKey::from_bytes([0xff; 32]));
        let mut letters = BTreeMap::<PublicKey, i128>::new();
        for sums in self.lock().all() {
            for ((_, receiver), count) in sums.pairs.range((*sender, first)..=(*sender, last)) {
                *letters.entry(*receiver).or_default() += count;
            }
        }
        letters.into_iter().filter(|(_, count)| *count > 0).map(|(receiver, _)| receiver).collect()
    }

    /// Letters in the store, and what all of it takes.
    #[must_use]
    pub fn total(&self) -> Charge {
        let mut total = Charge::default();
        self.lock().all().for_each(|sums| total.add(sums.total, 1));
        total
    }

    /// Takes room, if all peers that `more` is about may have so much.
    ///
    /// # Errors
    /// The limit that is met.
    pub fn reserve(&self, more: Sums, access: &Access) -> Result<Reserved, BrokerFault> {
        let mut none = self.reserve_nothing();
        none.grow(&more, access)?;
        Ok(none)
    }

    /// Room for nothing yet.
    #[must_use]
    pub fn reserve_nothing(&self) -> Reserved {
        Reserved { usage: self.clone(), sums: Sums::default() }
    }

    /// Room for what is in the spool, and counted, and goes on.
    #[must_use]
    pub fn reopen(&self, spooled: Sums) -> Reserved {
        let mut state = self.lock();
        state.subtract(&spooled);
        state.open.merge(&spooled, 1);
        drop(state);
        Reserved { usage: self.clone(), sums: spooled }
    }

    /// Takes away what is gone from the store.
    pub fn subtract(&self, gone: &Sums) {
        self.lock().subtract(gone);
    }

    /// True if a list was made since the start.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.lock().listed.is_some()
    }

    /// A list is begun.
    pub fn begin(&self) {
        let mut state = self.lock();
        let since = std::mem::take(&mut state.since);
        state.before.merge(&since, 1);
        state.is_listing = true;
    }

    /// That list is whole.
    pub fn finish(&self, listed: Sums) {
        let mut state = self.lock();
        (state.listed, state.before, state.is_listing) = (Some(listed), Sums::default(), false);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reserved {
    /// Takes more room, if it fits.
    ///
    /// # Errors
    /// The limit that is met.
    pub fn grow(&mut self, more: &Sums, access: &Access) -> Result<(), BrokerFault> {
        let mut state = self.usage.lock();
        state.check(more, access)?;
        state.open.merge(more, 1);
        self.sums.merge(more, 1);
        Ok(())
    }

    /// All of it is in the store, or in the spool.
    pub fn settle(mut self) {
        let all = std::mem::take(&mut self.sums);
        self.replace(&all, &all);
    }

    /// This part of it is.
    pub fn settle_part(mut self, part: &Sums) {
        let all = std::mem::take(&mut self.sums);
        self.replace(&all, part);
    }

    /// Apart, the room that was taken until now.
    #[must_use]
    pub fn take(&mut self) -> Reserved {
        let usage = self.usage.clone();
        Reserved { usage, sums: std::mem::take(&mut self.sums) }
    }

    fn replace(&self, open: &Sums, since: &Sums) {
        let mut state = self.usage.lock();
        state.open.merge(open, -1);
        state.since.merge(since, 1);
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.usage.lock().open.merge(&self.sums, -1);
    }
}

impl State {
    fn subtract(&mut self, gone: &Sums) {
        let sums = if self.is_listing { &mut self.before } else { &mut self.since };
        sums.merge(gone, -1);
    }

    fn all(&self) -> impl Iterator<Item = &Sums> {
        self.listed.iter().chain([&self.before, &self.since, &self.open])
    }

    fn of(&self, side: Side, peer: &PublicKey) -> Charge {
        let mut sum = Charge::default();
        self.all().filter_map(|sums| sums.side(side).get(peer)).for_each(|more| sum.add(*more, 1));
        // Several brokers remove from one store.
        Charge { bytes: sum.bytes.max(0), letters: sum.letters.max(0) }
    }

    /// Checks that all peers may have so much more.
    fn check(&self, more: &Sums, access: &Access) -> Result<(), BrokerFault> {
        use FaultKind::{ReceiverLetters, ReceiverQuota, SenderLetters, SenderQuota};
        for (peer, more) in &more.sent {
            let met = self.met(Side::Sent, peer, *more, access, [SenderQuota, SenderLetters]);
            met.map_err(|(kind, limit)| BrokerFault::new(kind, limit))?;
        }
        // Receipts, which are not charged to who sends them, are as many as what they answer.
        for (pair, more) in more.pairs.iter().filter(|((sender, _), _)| more.sent.contains_key(sender)) {
            let has: i128 = self.all().filter_map(|sums| sums.pairs.get(pair)).sum();
            let share = access.share(&pair.1);
            if has + more > i128::from(share) {
                let text = format!("{}: the limit is {share}", access.name(&pair.1));
                return Err(BrokerFault::new(FaultKind::SenderShare, text));
            }
        }
        for (peer, more) in &more.kept {
            let met = self.met(Side::Kept, peer, *more, access, [ReceiverQuota, ReceiverLetters]);
            met.map_err(|(kind, limit)| BrokerFault::new(kind, format!("{}: {limit}", access.name(peer))))?;
        }
        Ok(())
    }

    /// The limit of a peer that is met, as its kind, of bytes and of letters, and in words.
    fn met(
        &self,
        side: Side,
        peer: &PublicKey,
        more: Charge,
        access: &Access,
        [bytes, letters]: [FaultKind; 2],
    ) -> Result<(), (FaultKind, String)> {
        let (has, may) = (self.of(side, peer), access.quota(side, peer));
        if let Some(limit) = may.bytes
            && more.bytes > 0
            && has.bytes + more.bytes > i128::from(limit)
        {
            return Err((bytes, format!("the limit is {limit} bytes")));
        }
        if more.letters > 0 && has.letters + more.letters > i128::from(may.letters) {
            return Err((letters, format!("the limit is {}", may.letters)));
        }
        Ok(())
    }
}

impl Charge {
    fn add(&mut self, other: Charge, times: i128) {
        self.bytes += other.bytes * times;
        self.letters += other.letters * times;
    }
}

impl Sums {
    /// Adds a letter. A receipt is charged to its receiver alone, whose transfer it answers: else who does not take receipts would use up
    /// what others may send.
    pub fn letter(&mut self, receiver: &PublicKey, name: &LetterName) {
        let own = Charge { bytes: charge::letter(name).into(), letters: 1 };
        let sender = name.object.sender;
        if name.kind == LetterKind::Transfer {
            self.sent.entry(sender).or_default().add(own, 1);
        }
        let kept = Charge { bytes: own.bytes + i128::from(charge::contents(name.contents)), ..own };
        self.kept.entry(*receiver).or_default().add(kept, 1);
        *self.pairs.entry((sender, *receiver)).or_default() += 1;
        self.total.add(own, 1);
    }

    /// Adds bytes of contents, as they are charged.
    pub fn contents(&mut self, sender: &PublicKey, charged: u64) {
        let more = Charge { bytes: charged.into(), letters: 0 };
        self.sent.entry(*sender).or_default().add(more, 1);
        self.total.add(more, 1);
    }

    /// Adds a piece of an upload that is no object yet, or the growth of one; the first bytes of the first piece bring the upload.
    pub fn growth(&mut self, object: &ObjectName, number: u64, from: u64, to: u64) {
        let charged = |length| if length == 0 { 0 } else { charge::piece(number, length) };
        self.contents(&object.sender, charged(to).saturating_sub(charged(from)));
        self.uploads(&object.sender, i128::from(number == 0 && from == 0));
    }

    /// Adds uploads that are no object yet, or takes them away.
    pub fn uploads(&mut self, sender: &PublicKey, count: i128) {
        if count != 0 {
            self.sent.entry(*sender).or_default().letters += count;
        }
    }

    /// Adds others, so many times.
    pub fn merge(&mut self, other: &Sums, times: i128) {
        for (mine, theirs) in [(&mut self.sent, &other.sent), (&mut self.kept, &other.kept)] {
            for (peer, more) in theirs {
                merge_one(mine.entry(*peer), |charge| charge.add(*more, times));
            }
        }
        for (pair, more) in &other.pairs {
            merge_one(self.pairs.entry(*pair), |count| *count += more * times);
        }
        self.total.add(other.total, times);
    }

    const fn side(&self, side: Side) -> &BTreeMap<PublicKey, Charge> {
        match side {
            Side::Sent => &self.sent,
            Side::Kept => &self.kept,
        }
    }
}

/// Changes a sum, which is not kept where it comes to nothing.
fn merge_one<K: Ord, V: Copy + Default + PartialEq>(entry: Entry<'_, K, V>, change: impl FnOnce(&mut V)) {
    let mut sum = match &entry {
        Entry::Occupied(there) => *there.get(),
        Entry::Vacant(_) => V::default(),
    };
    change(&mut sum);
    match entry {
        Entry::Occupied(there) if sum == V::default() => drop(there.remove()),
        Entry::Vacant(_) if sum == V::default() => {}
        entry => *entry.or_default() = sum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strait_transfer::TransferId;

    fn key(number: u8) -> PublicKey {
        PublicKey::from_bytes([number; 32])
    }

    fn bytes(charged: u64) -> Sums {
        let mut sums = Sums::default();
        sums.contents(&key(1), charged);
        sums
    }

    fn letter(kind: LetterKind) -> Sums {
        let object = ObjectName { sender: key(1), id: TransferId::from_bytes([2; 16]) };
        let name = LetterName { kind, object, made: 0, expires: 0, manifest: 1, contents: 0, count: 1 };
        let mut sums = Sums::default();
        sums.letter(&key(2), &name);
        sums
    }

    fn used(usage: &Usage) -> i128 {
        usage.of(Side::Sent, &key(1)).bytes
    }

    #[test]
    fn what_changes_while_a_list_is_made_is_counted_at_least_once() {
        let (usage, access) = (Usage::default(), Access::limited(100, 10));
        usage.reserve(bytes(60), &access).unwrap().settle();
        assert!(usage.reserve(bytes(41), &access).is_err());
        usage.begin();
        usage.reserve(bytes(40), &access).unwrap().settle();
        assert_eq!(used(&usage), 100);
        usage.finish(bytes(60));
        assert_eq!(used(&usage), 100);
        // A list that is begun behind a removal may have left it out, or not.
        usage.begin();
        usage.subtract(&bytes(60));
        assert_eq!(used(&usage), 40);
        usage.finish(bytes(40));
        assert_eq!(used(&usage), 40, "not taken away twice");
        usage.subtract(&bytes(45));
        assert_eq!(used(&usage), 0, "never below nothing");
    }

    #[test]
    fn room_for_what_is_on_its_way_outlasts_lists_and_goes_with_it() {
        let (usage, access) = (Usage::default(), Access::limited(100, 10));
        let mut room = usage.reserve(bytes(90), &access).unwrap();
        for _ in 0..3 {
            usage.begin();
            usage.finish(Sums::default());
            assert!(room.grow(&bytes(11), &access).is_err());
        }
        let piece = room.take();
        drop(room);
        assert_eq!(used(&usage), 90);
        drop(piece);
        assert_eq!(used(&usage), 0);
    }

    #[test]
    fn letters_are_counted_for_sender_and_receiver_and_receipts_for_the_receiver_alone() {
        let (usage, access) = (Usage::default(), Access::limited(1 << 20, 2));
        for _ in 0..2 {
            usage.reserve(letter(LetterKind::Transfer), &access).unwrap().settle();
        }
        let fault = usage.reserve(letter(LetterKind::Transfer), &access).unwrap_err();
        assert_eq!(fault.kind, FaultKind::SenderLetters);
        assert_eq!(usage.receivers(&key(1)), [key(2)]);
        usage.subtract(&letter(LetterKind::Transfer));
        usage.reserve(letter(LetterKind::Receipt), &access).unwrap().settle();
        let (sent, kept) = (usage.of(Side::Sent, &key(1)), usage.of(Side::Kept, &key(2)));
        assert_eq!((sent.letters, kept.letters, usage.total().letters), (1, 2, 2));
        let fault = usage.reserve(letter(LetterKind::Receipt), &access).unwrap_err();
        assert_eq!((fault.kind, fault.text.contains("peer-2")), (FaultKind::ReceiverLetters, true));
    }
}
