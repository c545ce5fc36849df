//! Step 5: one ESP packet, numbered and sealed in the train it leaves in.

use strait_clock::Time;
use strait_wire::{Protocol, Tos, probe};

use super::link::Link;
use super::path_mtu::Wanted;
use super::{CONTROL_TOS, Outlet, Works};
use crate::esp::{payload_at, payload_room, seal, sealed_len};
use crate::{Notice, Reason};

impl Works {
    /// Seals a payload of `len` bytes, which `write` puts in its place.
    #[expect(clippy::too_many_arguments, reason = "what a packet is, where it goes, and when")]
    pub(super) fn emit(
        &mut self,
        link: &mut Link,
        next: Protocol,
        len: usize,
        tos: Tos,
        now: Time,
        outlet: &mut impl Outlet,
        write: impl FnOnce(&mut [u8]),
    ) -> Result<(), Reason> {
        let to = link.endpoint.ok_or(Reason::NoEndpoint)?;
        let whole = sealed_len(link.sa.as_ref().ok_or(Reason::NoSa)?.iv, len);
        if !self.train.takes(to, tos, whole) {
            self.depart(link, now, outlet);
        }
        let sa = link.sa.as_mut().ok_or(Reason::NoSa)?;
        let room = self.train.room(whole).ok_or(Reason::TooBig)?;
        let at = payload_at(sa.iv);
        if let Some(payload) = room.get_mut(at..at + len) {
            write(payload);
        }
        if seal(sa, room, len, next).is_err() {
            outlet.notice(Notice::Exhausted(sa.peer, sa.spi));
            return Err(Reason::Exhausted);
        }
        sa.usage.note(1, whole as u64, now);
        self.train.add(to, tos, whole);
        Ok(())
    }

    /// A probe of the path, if the search wants one; only ever called under traffic.
    pub(super) fn probe_path(&mut self, link: &mut Link, now: Time, outlet: &mut impl Outlet) {
        if !link.takes_blocks() || link.endpoint.is_none() {
            return;
        }
        if let Some(Wanted { id, size }) = link.path.poll(now) {
            let _ = self.probe(link, probe::Kind::Request, id, size, now, outlet);
        }
    }

    /// Asks for a sign of life with the smallest probe; until larger ones are answered too, only what every path
    /// takes is sent.
    pub(super) fn ask_life(&mut self, link: Option<&mut Link>, now: Time, outlet: &mut impl Outlet) {
        if let Some(link) = link {
            link.path.doubt(now);
            let _ = self.probe(link, probe::Kind::Request, 0, 0, now, outlet);
            link.path.suspect(now);
            self.probe_path(link, now, outlet);
            self.depart(link, now, outlet);
        }
    }

    /// Answers a probe of the peer's.
    pub(super) fn answer_probe(
        &mut self,
        link: Option<&mut Link>,
        id: u16,
        size: u16,
        now: Time,
        outlet: &mut impl Outlet,
    ) {
        if let Some(link) = link {
            let _ = self.probe(link, probe::Kind::Answer, id, size, now, outlet);
            self.depart(link, now, outlet);
        }
    }

    fn probe(
        &mut self,
        link: &mut Link,
        kind: probe::Kind,
        id: u16,
        size: u16,
        now: Time,
        outlet: &mut impl Outlet,
    ) -> Result<(), Reason> {
        let iv = link.sa.as_ref().ok_or(Reason::NoSa)?.iv;
        self.train_of = Some(link.spec.id);
        let probe = probe::Probe { kind, id, size };
        let padded = match kind {
            probe::Kind::Request => payload_room(iv, usize::from(size).saturating_sub(link.outer_len())),
            probe::Kind::Answer => 0,
        };
        self.emit(link, Protocol::AGGFRAG, padded.max(probe::LEN), CONTROL_TOS, now, outlet, |payload| {
            payload.fill(0);
            let _ = probe.emit(payload);
        })
    }
}
