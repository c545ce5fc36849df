//! The sender's end: which packets are coded against which.

use std::collections::VecDeque;

use core::time::Duration;

use strait_clock::Time;
use strait_wire::history::{LoneHead, Place, Receipt, Receipts};

use super::context::{PlaceState, SenderContext};
use super::late::LateReceipts;
use super::payload::{PayloadCoder, PlaceSet};
use super::{CONTEXT_BYTES, HistoryScope, MemoryShare, PAYLOAD_MAX, UnitNumber};
use crate::headers::PacketHeaders;

/// Most packets of all contexts that wait for receipts.
const PENDING_MAX: usize = 256;
/// How long a receipt is waited for where others want the place: three round trips over a satellite.
const WAIT: Duration = Duration::from_secs(2);
/// After so many packets in a row without a receipt, a context begins anew: what its receiver holds may be something else.
const MISSED_MAX: u8 = 4;

/// Bytes more than without history that the first units of a context may take: what the headers of IPv4 and UDP or TCP take that every
/// later unit refers to.
const SEED: usize = 24;

/// What a packet's rule says.
#[derive(Clone, Copy, Debug)]
pub struct LoneTerms {
    /// What shares a context.
    pub scope: HistoryScope,
    /// Flows of a service share a context only where this is equal: what one says tells of the others.
    pub share: u64,
    /// Whether payloads may be coded, and those of other flows against this one: only where a rule allows compression. Headers of RTP are,
    /// as headers before them.
    pub payload: bool,
    /// Bytes more than without history that a unit may take whose packet is kept: later ones are shorter for it.
    pub invest: usize,
}

/// A packet that was coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoneCoded {
    /// Bytes of the unit.
    pub len: usize,
    /// Whether the receiver is asked to keep it.
    pub kept: bool,
}

/// A unit that may leave.
#[derive(Clone, Copy, Debug)]
struct Prepared {
    context: usize,
    keep: Option<Place>,
    referred: PlaceSet,
    headers: PacketHeaders,
    /// Where the payload begins that later ones may refer to.
    payload_at: usize,
    /// Whether other flows may refer to its payload.
    shared: bool,
}

/// A packet that waits for its receipt.
#[derive(Clone, Copy, Debug)]
struct PendingPacket {
    receipt: Receipt,
    number: UnitNumber,
    context: usize,
    place: Place,
}

/// The packets of one peer that leave alone.
#[derive(Debug)]
pub struct LoneSender {
    contexts: Vec<SenderContext>,
    most: usize,
    pending: VecDeque<PendingPacket>,
    late: LateReceipts,
    payloads: PayloadCoder,
    coded: Vec<u8>,
    tried: Vec<u8>,
    prepared: Option<Prepared>,
    packets: u64,
    share: MemoryShare,
}

impl LoneSender {
    /// For a receiver that keeps so many contexts, of which 256 are used at most. Memory is taken as contexts come: 24 KiB each at most.
    #[must_use]
    pub fn new(contexts: u16) -> LoneSender {
        LoneSender {
            contexts: Vec::new(),
            most: usize::from(contexts).min(1 << u8::BITS),
            pending: VecDeque::with_capacity(PENDING_MAX),
            late: LateReceipts::default(),
            payloads: PayloadCoder::default(),
            coded: Vec::new(),
            tried: Vec::new(),
            prepared: None,
            packets: 0,
            share: MemoryShare::default(),
        }
    }

    /// Takes its memory from this share.
    #[must_use]
    pub fn within(self, share: MemoryShare) -> LoneSender {
        LoneSender { share, ..self }
    }

    /// Codes a whole IP packet into the front of `out`, with `receipts` for packets of the other end; `None` where the unit would not be
    /// shorter than `below` bytes. Nothing is remembered of it until [`LoneSender::sent`].
    pub fn encode(
        &mut self,
        packet: &[u8],
        terms: LoneTerms,
        (receipts, now): (Receipts, Time),
        below: usize,
        out: &mut [u8],
    ) -> Option<LoneCoded> {
        self.prepared = None;
        self.late.advance(now);
        let (headers, payload_at) = PacketHeaders::read(packet)?;
        let payload = packet.get(payload_at..).filter(|payload| payload.len() <= PAYLOAD_MAX)?;
        let at = self.find(match terms.scope {
            HistoryScope::Flow => headers.context(terms.share),
            HistoryScope::Service => headers.service(terms.share),
        })?;
        let context = self.contexts.get_mut(at)?;
        self.packets += 1;
        (context.used, context.seen) = (self.packets, context.seen.saturating_add(1));
        // Many flows have no second packet.
        if terms.scope == HistoryScope::Flow && context.seen == 1 {
            return None;
        }
        let stale = Time::from_nanos(now.as_nanos().saturating_sub(WAIT.as_nanos() as u64));
        let keep = context.vacant(stale).filter(|_| !payload.is_empty() || context.keeps_empty());
        self.coded.clear();
        let (against, headers) = nearest(context, headers, (&mut self.coded, &mut self.tried))?;
        let mut referred = against.map_or(0, |place| 1 << place.index());
        let (flow, shared) = (headers.flow(), terms.scope == HistoryScope::Service);
        let kept = context.payloads(flow, shared);
        let payload_coded = if terms.payload {
            self.payloads.code(&kept, payload)
        } else {
            self.payloads.code_rtp(&context.payloads(flow, false), payload).filter(|_| headers.is_udp())
        };
        let head = LoneHead {
            context: u8::try_from(at).ok()?,
            keep,
            against,
            coded: payload_coded.is_some(),
            receipts,
        };
        self.coded.extend_from_slice(payload_coded.map_or(payload, |(coded, _)| coded));
        referred |= payload_coded.map_or(0, |(_, set)| set);
        let len = head.head_len() + self.coded.len();
        let invests = keep.is_some() && context.missed < MISSED_MAX;
        let invest = if against.is_some() { terms.invest } else { terms.invest.max(SEED) };
        let below = below + if invests && terms.invest > 0 { invest } else { 0 };
        let (front, rest) =
            out.get_mut(..len).filter(|_| len < below)?.split_at_mut_checked(head.head_len())?;
        head.emit(front).ok()?;
        rest.copy_from_slice(&self.coded);
        let shared = shared && terms.payload;
        self.prepared = Some(Prepared { context: at, keep, referred, headers, payload_at, shared });
        Some(LoneCoded { len, kept: keep.is_some() })
    }

    /// The unit that `packet` was coded to last left under this number; `receipt` is what will come back for it.
    pub fn sent(&mut self, packet: &[u8], number: UnitNumber, receipt: Receipt, now: Time) {
        let Some(prepared) = self.prepared.take() else { return };
        let Prepared { context: at, keep, referred, headers, payload_at, shared } = prepared;
        let Some(context) = self.contexts.get_mut(at) else { return };
        context.note_unit(referred);
        let Some(place) = keep else { return };
        if context.is_pending(place) {
            let late = &mut self.late;
            self.pending.retain(|pending| {
                let stays = (pending.context, pending.place) != (at, place);
                stays || {
                    late.note(pending.receipt);
                    false
                }
            });
            context.missed = context.missed.saturating_add(1);
            if context.missed >= MISSED_MAX {
                context.forget(|state| matches!(state, PlaceState::Acknowledged(_)));
            }
        }
        let payload = packet.get(payload_at..).unwrap_or_default();
        context.keep(place, (number, now), (headers, shared), payload);
        if self.pending.len() == PENDING_MAX {
            self.give_up_oldest();
        }
        self.pending.push_back(PendingPacket { receipt, number, context: at, place });
        self.give_up_ambiguous(number);
        if self.late.may_come(receipt) {
            self.give_up(self.pending.len() - 1);
        }
    }

    /// The other end has kept the packet that this receipt is for; `newest` is the number that was used last.
    pub fn acknowledged(&mut self, receipt: Receipt, newest: UnitNumber) {
        self.give_up_ambiguous(newest);
        let Some(at) = self.pending.iter().rposition(|pending| pending.receipt == receipt) else { return };
        if let Some(PendingPacket { number, context, place, .. }) = self.pending.remove(at)
            && let Some(context) = self.contexts.get_mut(context)
        {
            context.acknowledge(place, number);
        }
    }

    /// Another association is used from now on: receipts for the one before are not taken any more.
    pub fn new_association(&mut self) {
        self.forget_pending();
        for context in &mut self.contexts {
            context.forget(|state| matches!(state, PlaceState::Pending(..)));
        }
    }

    /// The receiver has forgotten everything, or keeps so many contexts from now on.
    pub fn clear(&mut self, contexts: u16) {
        self.forget_pending();
        self.contexts.clear();
        self.share.resize(0);
        self.prepared = None;
        self.most = usize::from(contexts).min(1 << u8::BITS);
    }

    /// Contexts in use.
    #[must_use]
    pub const fn contexts(&self) -> usize {
        self.contexts.len()
    }

    fn give_up_oldest(&mut self) {
        self.give_up(0);
    }

    /// Waits no more for the packet in this place of the list.
    fn give_up(&mut self, at: usize) {
        let Some(PendingPacket { receipt, number, context, place }) = self.pending.remove(at) else { return };
        self.late.note(receipt);
        if let Some(context) = self.contexts.get_mut(context) {
            context.give_up(place, number);
        }
    }

    /// Waits no more for packets whose receipts would name other units: of the numbers that fit, it means the nearest before `newest`.
    fn give_up_ambiguous(&mut self, newest: UnitNumber) {
        while let Some(PendingPacket { number, .. }) = self.pending.front()
            && (number.association != newest.association || number.number + Receipt::NUMBERS <= newest.number)
        {
            self.give_up_oldest();
        }
    }

    fn forget_pending(&mut self) {
        for PendingPacket { receipt, .. } in self.pending.drain(..) {
            self.late.note(receipt);
        }
    }

    /// The place of the context with this key, which it gets if there is none: one that was never acknowledged goes first, then the
    /// one used least lately.
    fn find(&mut self, key: crate::headers::ContextKey) -> Option<usize> {
        if let Some(at) = self.contexts.iter().position(|context| context.key == key) {
            return Some(at);
        }
        let contexts = self.contexts.len();
        if contexts < self.most && self.share.resize((contexts + 1) * CONTEXT_BYTES) {
            self.contexts.push(SenderContext::new(key));
            return Some(contexts);
        }
        let value = |context: &SenderContext| (context.has_acknowledged(), context.used);
        let (at, context) = self.contexts.iter_mut().enumerate().min_by_key(|(_, context)| value(context))?;
        context.begin(key);
        let late = &mut self.late;
        self.pending.retain(|pending| {
            pending.context != at || {
                late.note(pending.receipt);
                false
            }
        });
        Some(at)
    }
}

/// Codes headers against those of the place that makes them shortest; of several, the newest. Gives the place, and the headers as both
/// ends keep them.
fn nearest(
    context: &SenderContext,
    headers: PacketHeaders,
    (best, tried): (&mut Vec<u8>, &mut Vec<u8>),
) -> Option<(Option<Place>, PacketHeaders)> {
    let mut found = (None, headers);
    found.1.code(None, best)?;
    for place in context.referable() {
        let mut kept = headers;
        tried.clear();
        kept.code(context.headers(place), tried)?;
        if tried.len() < best.len() {
            core::mem::swap(best, tried);
            found = (Some(place), kept);
        }
        // One byte says that all is as expected.
        if best.len() <= 1 {
            break;
        }
    }
    Some(found)
}
