//! The links between sites, which carry datagrams when an operation says so, and what befalls them there.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;

use core::time::Duration;

use strait_clock::Time;
use strait_wire::{Ecn, SeqLow, Spi, Tos};

use super::SITES;
use super::model::{ReferenceModel, Together, UnitOnLink};
use super::opened::OpenedDatagram;
use super::operation::{Between, Mishap};
use crate::SimDatagram;

/// Blocks in the making that a receiver keeps of one association, however many it holds in all.
const SLOTS: usize = 64;
/// How long it waits for the next part of one at least.
const PATIENCE: Duration = Duration::from_secs(1);
/// Datagrams that one may fall behind and still be new to the receiver.
const DELAY_MAX: usize = 4_000;
/// Most bytes that one call brings, as of a real socket.
const BATCH: usize = 65_000;

/// A datagram on its way.
#[derive(Clone, Debug)]
pub(super) struct Flying {
    pub(super) datagram: SimDatagram,
    /// The association and the unit it is of, if it is one of a peer's.
    opened: Option<OpenedDatagram>,
    /// Whether it is what was sent.
    intact: bool,
}

/// Datagrams that one call brings a receiver.
#[derive(Debug)]
pub(super) struct Brought {
    pub(super) from: SocketAddr,
    pub(super) tos: Tos,
    pub(super) segment: usize,
    pub(super) bytes: Vec<u8>,
}

/// All links, both ways.
#[derive(Debug)]
pub(super) struct Links {
    links: [[VecDeque<Flying>; SITES]; SITES],
    /// Whether each has kept the order of datagrams since all was let through.
    ordered: [[bool; SITES]; SITES],
    /// By receiver, units in parts that began to arrive, the newest last.
    begun: [VecDeque<usize>; SITES],
    /// By receiver: datagrams that arrived and are no keepalives, and those that it may open.
    arrived: [u64; SITES],
    fresh: [BTreeSet<(Spi, SeqLow)>; SITES],
}

impl Links {
    pub(super) fn new() -> Links {
        Links {
            links: [const { [const { VecDeque::new() }; SITES] }; SITES],
            ordered: [[true; SITES]; SITES],
            begun: [const { VecDeque::new() }; SITES],
            arrived: [0; SITES],
            fresh: [const { BTreeSet::new() }; SITES],
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.links.iter().flatten().all(VecDeque::is_empty)
    }

    /// By sender, whether what comes to `to` comes in order.
    pub(super) fn ordered(&self, to: usize) -> [bool; SITES] {
        core::array::from_fn(|from| self.ordered[from][to])
    }

    /// Datagrams that arrived at a site, but for keepalives, and how many of them it may open.
    pub(super) fn arrived(&self, at: usize) -> (u64, u64) {
        (self.arrived[at], self.fresh[at].len() as u64)
    }

    /// All links keep the order of what comes from now on.
    pub(super) fn order_again(&mut self, model: &mut ReferenceModel) {
        for (from, to) in super::pairs() {
            if !core::mem::replace(&mut self.ordered[from][to], true) {
                model.forget_order(from, to);
            }
        }
    }

    /// A datagram leaves for `to`.
    pub(super) fn push(
        &mut self,
        (from, to): (usize, usize),
        datagram: SimDatagram,
        opened: Option<OpenedDatagram>,
    ) {
        self.links[from][to].push_back(Flying { datagram, opened, intact: true });
    }

    /// Something happens to a datagram.
    pub(super) fn befall(
        &mut self,
        Between { from, to }: Between,
        mishap: Mishap,
        (index, bit): (u8, u8),
        model: &mut ReferenceModel,
    ) {
        let link = &mut self.links[from][to];
        if link.is_empty() {
            return;
        }
        let at = usize::from(index) % link.len();
        let unit = link[at].opened.map(|opened| opened.unit);
        match mishap {
            Mishap::Drop => {
                spoil(unit, &mut model.units);
                link.remove(at);
            }
            Mishap::Duplicate => {
                let copy = link[at].clone();
                link.insert(at + 1, copy);
            }
            Mishap::Delay => self.delay((from, to), at, &mut model.units),
            // A bit that changes again is as it was.
            Mishap::Corrupt | Mishap::Forge if !link[at].intact => {}
            Mishap::Corrupt => {
                spoil(unit, &mut model.units);
                flip(&mut link[at], bit);
            }
            Mishap::Forge => {
                let mut copy = link[at].clone();
                flip(&mut copy, bit);
                link.insert(at, copy);
            }
            Mishap::Mark => {
                let tos = &mut link[at].datagram.tos;
                if tos.ecn() != Ecn::NotEct {
                    *tos = tos.with_ecn(Ecn::Ce);
                }
            }
        }
    }

    fn delay(&mut self, (from, to): (usize, usize), at: usize, units: &mut [UnitOnLink]) {
        let link = &mut self.links[from][to];
        for opened in link.iter().filter_map(|flying| flying.opened) {
            units[opened.unit].displaced = true;
        }
        let Some(flying) = link.remove(at) else { return };
        if link.len() > DELAY_MAX {
            spoil(flying.opened.map(|opened| opened.unit), units);
        }
        link.push_back(flying);
        self.ordered[from][to] = false;
    }

    /// The oldest datagrams arrive, as one call brings them: of one size from one address, with the last perhaps
    /// shorter. What is for another address than `here`, or of an association that is not among those `taken`,
    /// is of no use.
    pub(super) fn bring(
        &mut self,
        (from, to): (usize, usize),
        (here, taken): (SocketAddr, &[Spi]),
        most: usize,
        (model, now): (&mut ReferenceModel, Time),
    ) -> Option<(Brought, usize)> {
        let mut brought: Option<Brought> = None;
        let mut count = 0;
        while count < most {
            let Some(flying) = self.links[from][to].front() else { break };
            if brought.as_ref().is_some_and(|brought| !brought.takes(&flying.datagram)) {
                break;
            }
            let Some(flying) = self.links[from][to].pop_front() else { break };
            count += 1;
            if !self.note(&flying, to, (here, taken), &mut model.units, now) {
                continue;
            }
            let SimDatagram { from, tos, bytes, .. } = flying.datagram;
            let segment = bytes.len();
            let batch = brought.get_or_insert(Brought { from, tos, segment, bytes: Vec::new() });
            batch.bytes.extend_from_slice(&bytes);
        }
        (count > 0).then(|| (brought.unwrap_or_else(|| Brought::nothing(here)), count))
    }

    /// What the arrival of this datagram means; whether it arrives at all.
    fn note(
        &mut self,
        flying: &Flying,
        to: usize,
        (here, taken): (SocketAddr, &[Spi]),
        units: &mut [UnitOnLink],
        now: Time,
    ) -> bool {
        let arrives = flying.datagram.to == here;
        let known = flying.opened.is_some_and(|opened| taken.contains(&opened.spi));
        if let Some(OpenedDatagram { spi, seq, unit, .. }) = flying.opened.filter(|_| flying.intact) {
            if arrives && known {
                self.fresh[to].insert((spi, seq));
            } else {
                units[unit].spoiled = true;
            }
            self.part(to, unit, units, now);
        }
        self.arrived[to] += u64::from(arrives && flying.datagram.bytes != [0xff]);
        arrives
    }

    /// A part of a unit came: too late for the receiver, perhaps.
    fn part(&mut self, to: usize, unit: usize, units: &mut [UnitOnLink], now: Time) {
        if units[unit].together == Together::Alone {
            return;
        }
        let before = units[unit].touched.replace(now).unwrap_or(now);
        let begun = &mut self.begun[to];
        let newer = begun.iter().rev().position(|begun| *begun == unit);
        if newer.is_some_and(|newer| newer >= SLOTS) || before + PATIENCE < now {
            units[unit].spoiled = true;
        } else if newer.is_none() {
            begun.push_back(unit);
        }
    }
}

impl Brought {
    fn nothing(here: SocketAddr) -> Brought {
        Brought { from: here, tos: Tos(0), segment: 0, bytes: Vec::new() }
    }

    fn takes(&self, next: &SimDatagram) -> bool {
        let whole = self.bytes.len().is_multiple_of(self.segment.max(1));
        whole
            && (self.from, self.tos) == (next.from, next.tos)
            && next.bytes.len() <= self.segment
            && self.bytes.len() + next.bytes.len() <= BATCH
    }
}

fn spoil(unit: Option<usize>, units: &mut [UnitOnLink]) {
    if let Some(unit) = unit {
        units[unit].spoiled = true;
    }
}

fn flip(flying: &mut Flying, bit: u8) {
    flying.intact = false;
    let bytes = &mut flying.datagram.bytes;
    let len = bytes.len();
    // The header and what is behind it, the beginning more often.
    let at = usize::from(bit >> 3) * usize::from(bit >> 3) % len.max(1);
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << (bit & 7);
    }
}
