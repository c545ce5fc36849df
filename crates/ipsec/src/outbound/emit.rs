//! Step 5: one protected packet, numbered and sealed in the train it leaves in.

use strait_wire::condition::{self, Condition};
use strait_wire::{Protocol, Tos, probe};

use super::path_mtu::{ANY_SIZE, Wanted};
use super::{CONTROL_TOS, Outlet, Way, Works};
use crate::sequence::NoNumber;
use crate::wrap::{Head, NotSealed};
use crate::{Notice, Reason};

/// What is about to be sealed, but for its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load<'a> {
    pub(super) head: Head<'a>,
    pub(super) next: Protocol,
    pub(super) len: usize,
    /// DSCP and ECN of what carries it.
    pub(super) tos: Tos,
}

impl Works {
    /// Seals a payload of `len` bytes in tunnel mode, which `write` puts in its place.
    pub(super) fn emit(
        &mut self,
        way: &mut Way<'_, impl Outlet>,
        next: Protocol,
        len: usize,
        tos: Tos,
        write: impl FnOnce(&mut [u8]),
    ) -> Result<(), Reason> {
        self.wrap(way, Load { head: Head::Fresh(tos), next, len, tos }, write)
    }

    /// Seals a payload, which `write` puts in its place.
    pub(super) fn wrap(
        &mut self,
        way: &mut Way<'_, impl Outlet>,
        load: Load<'_>,
        write: impl FnOnce(&mut [u8]),
    ) -> Result<(), Reason> {
        let Load { head, next, len, tos } = load;
        let to = way.link.endpoint.ok_or(Reason::NoEndpoint)?;
        let sa = way.link.sa.as_ref().ok_or(Reason::NoSa)?;
        let front = sa.front_len(head);
        let (at, whole) = (sa.payload_at(front), sa.sealed_len(front, len));
        if !self.train.takes(to, tos, whole) {
            self.depart(way);
        }
        let sa = way.link.sa.as_mut().ok_or(Reason::NoSa)?;
        let room = self.train.room(whole).ok_or(Reason::TooBig)?;
        if let Some(payload) = room.get_mut(at..at + len) {
            write(payload);
        }
        if let Err(why) = sa.seal(head, room, len, next) {
            return Err(unsealed(way, why));
        }
        sa.usage.note(1, whole as u64, way.now);
        way.link.sealed.payload += len;
        way.link.sealed.wire += whole + way.link.outer_len() + usize::from(self.settings.overhead);
        if way.link.must_cut(whole) {
            return self.cut_sealed(way, whole, tos);
        }
        self.train.add(to, tos, whole);
        Ok(())
    }

    /// A probe of the path, if the search wants one; only ever called under traffic.
    pub(super) fn probe_path(&mut self, way: &mut Way<'_, impl Outlet>) {
        if !way.link.takes_blocks() || way.link.endpoint.is_none() {
            return;
        }
        let link = &mut *way.link;
        if let Some(Wanted { id, size, again }) = link.path.poll(way.now, &link.spec.counters.in_datagrams) {
            if again {
                let _ = self.probe(way, probe::Kind::Request, id, ANY_SIZE);
            }
            let _ = self.probe(way, probe::Kind::Request, id, size);
            // Alone: the network may refuse it, and then all of its train is lost.
            self.depart(way);
        }
    }

    /// Asks for a sign of life with the smallest probe; until larger ones are answered too, only what every
    /// path takes is sent.
    pub(super) fn ask_life(&mut self, way: &mut Way<'_, impl Outlet>) {
        way.link.path.doubt(way.now);
        let _ = self.probe(way, probe::Kind::Request, 0, ANY_SIZE);
        self.probe_path(way);
        self.depart(way);
    }

    /// Answers a probe of the peer's.
    pub(super) fn answer_probe(&mut self, way: &mut Way<'_, impl Outlet>, id: u16, size: u16) {
        let _ = self.probe(way, probe::Kind::Answer, id, size);
        self.depart(way);
    }

    /// Tells a peer that reads more than the standards have what changed here; what is lost is said again by whoever orders it.
    pub(super) fn report(&mut self, way: &mut Way<'_, impl Outlet>, condition: Condition) {
        if !way.link.takes_blocks() || way.link.endpoint.is_none() {
            return;
        }
        self.train_of = Some(way.link.spec.id);
        let _ = self.emit(way, Protocol::AGGFRAG, condition::LEN, CONTROL_TOS, |payload| {
            let _ = condition.emit(payload);
        });
        self.depart(way);
    }

    fn probe(
        &mut self,
        way: &mut Way<'_, impl Outlet>,
        kind: probe::Kind,
        id: u16,
        size: u16,
    ) -> Result<(), Reason> {
        let sa = way.link.sa.as_ref().ok_or(Reason::NoSa)?;
        let room = usize::from(size).saturating_sub(way.link.outer_len());
        self.train_of = Some(way.link.spec.id);
        let probe = probe::Probe { kind, id, size };
        let padded = match kind {
            probe::Kind::Request => sa.payload_room(0, room),
            probe::Kind::Answer => 0,
        };
        self.emit(way, Protocol::AGGFRAG, padded.max(probe::LEN), CONTROL_TOS, |payload| {
            payload.fill(0);
            let _ = probe.emit(payload);
        })
    }
}

/// What is to be done about a packet that was not sealed.
fn unsealed(way: &mut Way<'_, impl Outlet>, why: NotSealed) -> Reason {
    match why {
        NotSealed::Unsealable => Reason::TooBig,
        NotSealed::NoNumber(NoNumber::NotReserved) => Reason::NotReserved,
        NotSealed::NoNumber(NoNumber::Exhausted) => {
            // What comes now waits for the next association, and asks for it.
            if let Some(sa) = way.link.sa.take() {
                way.outlet.notice(Notice::Exhausted(sa.peer, sa.spi));
            }
            Reason::Exhausted
        }
    }
}
