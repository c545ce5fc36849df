//! One packet for a peer that knows nothing private: its payload is the packet in tunnel mode and the upper
//! layer in transport mode, as IPComp (RFC 3173) if that is asked for and smaller.

use strait_clock::Time;
use strait_compress::{Codec, Outcome};
use strait_wire::ip::{Front, Packet};
use strait_wire::{Protocol, block, ipcomp, vnet};

use super::segments::next_header;
use super::{Transmitter, Unsealed, put};
use crate::offload::SuperPacket;
use crate::outbound::compressor::{Compressor, TrialResult};
use crate::outbound::context::{Lost, Outlet, TxContext};
use crate::outbound::job::{CompressUnit, Task};
use crate::outbound::plain::Plain;
use crate::wrap::Head;
use crate::{IpcompSpec, Mode, Padding, Payloads, Reason};

impl Transmitter {
    /// One gathered packet; several, if they were gathered for an association that took them together.
    pub(super) fn send_standard(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        compressor: &mut Compressor,
        work: &mut CompressUnit,
    ) -> Result<(), Lost> {
        if work.plain.packets() > 1 {
            self.send_apart(tx, compressor, work.plain.bytes());
            return Ok(());
        }
        let packet = work.plain.bytes();
        let (packets, len) = (work.plain.packets(), packet.len());
        let fits = Packet::parse(packet).is_ok_and(|ip| tx.link.association.carries(&ip, len));
        let sent = if fits { self.send_payload(tx, compressor, work) } else { Err(Reason::TooBig) };
        sent.map_err(|reason| Lost { reason, packets })?;
        self.departure.complete(packets);
        tx.link.note_sent(packets, len);
        tx.outlet.sealed(work.plain.bytes());
        Ok(())
    }

    /// Packets that were gathered together, each on its own; those that cannot leave so are counted.
    fn send_apart(&mut self, tx: &mut TxContext<'_, impl Outlet>, compressor: &mut Compressor, bytes: &[u8]) {
        let mut job = compressor.pool.idle_or_surplus();
        for packet in block::packets(bytes).map_while(Result::ok) {
            job.work.assign(Task::plain(tx.link.spec.id));
            job.work.plain.clear();
            let sent = match SuperPacket::new(packet, &vnet::Header::PLAIN) {
                Ok(packet) if job.work.plain.take(&packet, 0, packet.len(0)) == 1 => {
                    self.send_standard(tx, compressor, &mut job.work)
                }
                _ => Err(Lost { reason: Reason::MalformedPacket, packets: 1 }),
            };
            self.departure.note_lost(sent.map(|()| true));
        }
        compressor.pool.put_back(job);
    }

    fn send_payload(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        compressor: &mut Compressor,
        work: &mut CompressUnit,
    ) -> Result<(), Reason> {
        let CompressUnit { plain, output, task, .. } = work;
        let sa = tx.link.association.sa.as_ref().ok_or(Reason::NoSa)?;
        let (mode, agreed) = (sa.mode, sa.payloads);
        let (head, next, payload) = split(mode, plain)?;
        let unsealed = Unsealed { head, next, len: payload.len(), tos: plain.tos() };
        if let Payloads::Standard(Some(agreed)) = agreed
            && task.method.codec != Codec::None
            && task.group.policy.padding == Padding::None
            && let Some(bytes) = compress(compressor, tx.now, (agreed, task), plain, payload, output)
        {
            let header = ipcomp::Header { next, cpi: agreed.cpi };
            let len = ipcomp::HEADER_LEN + bytes.len();
            return self.seal(tx, Unsealed { next: Protocol::IPCOMP, len, ..unsealed }, |room| {
                let _ = header.emit(room);
                put(room, ipcomp::HEADER_LEN, bytes);
            });
        }
        self.seal(tx, unsealed, |room| put(room, 0, payload))
    }
}

/// The payload compressed, if that is smaller with its header (RFC 3173 section 2.2).
fn compress<'a>(
    compressor: &mut Compressor,
    now: Time,
    (agreed, task): (IpcompSpec, &Task),
    plain: &Plain,
    payload: &[u8],
    output: &'a mut [u8],
) -> Option<&'a [u8]> {
    let (after, took) = compressor.pool.tools.ipcomp(agreed.algorithm, payload, output);
    let (method, before) = (agreed.algorithm.into(), payload.len());
    let outcome = Outcome { method, before, of: before, after, took, prefix: 0 };
    let (to, allowed) = (task.to, task.group.allowed);
    let (padded, sizes) = (after.unwrap_or(0), Padding::None.sizes(before, before, before));
    let tried = TrialResult { to, allowed, packets: plain.packets(), outcome, padded, sizes };
    compressor.learn(&tried, &plain.flows(), now);
    output.get(..after?)
}

/// What goes in front, what the payload is, and the payload.
fn split(mode: Mode, plain: &Plain) -> Result<(Head<'_>, Protocol, &[u8]), Reason> {
    let packet = plain.bytes();
    let Mode::Transport { from, to } = mode else {
        return Ok((Head::Fresh(plain.tos()), next_header(packet), packet));
    };
    let ip = Packet::parse(packet).map_err(|_| Reason::MalformedPacket)?;
    let front = Front::parse(packet).map_err(|_| Reason::MalformedPacket)?;
    // A fragment has no upper layer of its own (RFC 4301 section 7).
    if (ip.src(), ip.dst()) != (from, to) || front.fragment.is_some() {
        return Err(Reason::NotBetweenHosts);
    }
    let (headers, payload) = packet.split_at_checked(front.len).ok_or(Reason::MalformedPacket)?;
    Ok((Head::Own(headers, front), front.next, payload))
}
