//! Step 5: one ESP packet, numbered and sealed in the train it leaves in.

use strait_wire::{Protocol, Tos, probe};

use super::path_mtu::Wanted;
use super::{CONTROL_TOS, Outlet, Way, Works};
use crate::esp::{payload_at, payload_room, seal, sealed_len};
use crate::{Notice, Reason};

impl Works {
    /// Seals a payload of `len` bytes, which `write` puts in its place.
    pub(super) fn emit(
        &mut self,
        way: &mut Way<'_, impl Outlet>,
        next: Protocol,
        len: usize,
        tos: Tos,
        write: impl FnOnce(&mut [u8]),
    ) -> Result<(), Reason> {
        let to = way.link.endpoint.ok_or(Reason::NoEndpoint)?;
        let whole = sealed_len(way.link.sa.as_ref().ok_or(Reason::NoSa)?.iv, len);
        if !self.train.takes(to, tos, whole) {
            self.depart(way);
        }
        let sa = way.link.sa.as_mut().ok_or(Reason::NoSa)?;
        let room = self.train.room(whole).ok_or(Reason::TooBig)?;
        let at = payload_at(sa.iv);
        if let Some(payload) = room.get_mut(at..at + len) {
            write(payload);
        }
        if seal(sa, room, len, next).is_err() {
            way.outlet.notice(Notice::Exhausted(sa.peer, sa.spi));
            // What comes now waits for the next association, and asks for it.
            way.link.sa = None;
            return Err(Reason::Exhausted);
        }
        sa.usage.note(1, whole as u64, way.now);
        self.train.add(to, tos, whole);
        Ok(())
    }

    /// A probe of the path, if the search wants one; only ever called under traffic.
    pub(super) fn probe_path(&mut self, way: &mut Way<'_, impl Outlet>) {
        if !way.link.takes_blocks() || way.link.endpoint.is_none() {
            return;
        }
        if let Some(Wanted { id, size }) = way.link.path.poll(way.now) {
            let _ = self.probe(way, probe::Kind::Request, id, size);
        }
    }

    /// Asks for a sign of life with the smallest probe; until larger ones are answered too, only what every
    /// path takes is sent.
    pub(super) fn ask_life(&mut self, way: &mut Way<'_, impl Outlet>) {
        way.link.path.doubt(way.now);
        let _ = self.probe(way, probe::Kind::Request, 0, 0);
        self.probe_path(way);
        self.depart(way);
    }

    /// Answers a probe of the peer's.
    pub(super) fn answer_probe(&mut self, way: &mut Way<'_, impl Outlet>, id: u16, size: u16) {
        let _ = self.probe(way, probe::Kind::Answer, id, size);
        self.depart(way);
    }

    fn probe(
        &mut self,
        way: &mut Way<'_, impl Outlet>,
        kind: probe::Kind,
        id: u16,
        size: u16,
    ) -> Result<(), Reason> {
        let iv = way.link.sa.as_ref().ok_or(Reason::NoSa)?.iv;
        self.train_of = Some(way.link.spec.id);
        let probe = probe::Probe { kind, id, size };
        let padded = match kind {
            probe::Kind::Request => payload_room(iv, usize::from(size).saturating_sub(way.link.outer_len())),
            probe::Kind::Answer => 0,
        };
        self.emit(way, Protocol::AGGFRAG, padded.max(probe::LEN), CONTROL_TOS, |payload| {
            payload.fill(0);
            let _ = probe.emit(payload);
        })
    }
}
