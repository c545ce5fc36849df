//! Daily keys at a receiver: which day a header is of, and what is shared on it.

use strait_ipsec::Place;
use strait_wire::sessionless::{AcknowledgementKind, Header, Name};

use super::known::passed;
use super::{Receiver, Refusal};
use crate::PublicKey;
use crate::sessionless::algorithms::without_daily_keys;
use crate::sessionless::clock::{EpochLength, Now};
use crate::sessionless::daily::{DailyPolicy, Day};
use crate::sessionless::node_keys::{NodeKeys, key_name};
use crate::sessionless::shared::Kij;

impl Receiver {
    /// The day whose keys are in the Kij of a header, with that Kij at hand; none for one that does without.
    pub(super) fn day_of(
        &mut self,
        now: Now,
        own: &NodeKeys,
        name: Name,
        header: &Header,
        length: EpochLength,
        from: Place,
    ) -> Result<Option<Day>, Refusal> {
        let (is_daily, _) = without_daily_keys(header.algorithms);
        if !is_daily {
            let required = own.daily.policy() == DailyPolicy::Require;
            return if required { Err(Refusal::NoDailyKey) } else { Ok(None) };
        }
        let day = Day::of_epoch(header.epoch, length).ok_or(Refusal::NoDailyKey)?;
        let entry = ((name, day), self.is_pinned(name));
        let kij = self.secrets.peek(name).ok_or(Refusal::Busy)?;
        let derived = self.daily.ensure(entry, &mut self.stopwatch, || {
            if !own.daily.has(&kij.peer(), day) {
                return Err(Refusal::NoDailyKey);
            }
            if !self.budget.take(now.time) {
                return Err(Refusal::Busy);
            }
            own.daily.agree(kij, day).ok_or(Refusal::NoDailyKey)
        });
        if derived == Err(Refusal::NoDailyKey) {
            self.say_unknown_day(now, name, header, from);
        }
        derived.map(|()| Some(day))
    }

    /// Has the sender told that it had better do without keys of this day.
    fn say_unknown_day(&mut self, now: Now, name: Name, header: &Header, from: Place) {
        let Some(sender) = self.senders.peek(name) else { return };
        if header.answer && passed(sender.undated, now.time) {
            sender.undated = Some(now.time);
            let (peer, kind) =
                (sender.known.peer, AcknowledgementKind::DailyKeyUnknown { epoch: header.epoch });
            self.answer(now.time, peer, kind, Some(from));
        }
    }

    /// The Kij of a day with a sender that is known, for packets to it; nothing where either end has no key of that day.
    pub fn secret_of_day(&mut self, own: &NodeKeys, key: &PublicKey, day: Day) -> Option<&Kij> {
        let name = key_name(key);
        if self.daily.peek((name, day)).is_none() {
            self.secret(own, key)?;
        }
        let entry = ((name, day), self.is_pinned(name));
        let agree = || self.secrets.peek(name).and_then(|kij| own.daily.agree(kij, day)).ok_or(());
        self.daily.ensure(entry, &mut self.stopwatch, agree).ok()?;
        self.daily.peek((name, day)).map(|kij| &*kij)
    }

    /// Wipes all that follows from daily keys, as some of them are gone or have changed; what is still needed is derived anew.
    pub fn forget_days(&mut self) {
        self.daily.retain(|_, _| false);
        self.epoch_keys.retain(|(_, _, _, is_daily, _), _| !is_daily);
    }

    /// The same of one peer.
    pub fn forget_days_of(&mut self, key: &PublicKey) {
        let name = key_name(key);
        self.daily.retain(|(of, _), _| *of != name);
        self.epoch_keys.retain(|(of, _, _, is_daily, _), _| *of != name || !is_daily);
    }
}
