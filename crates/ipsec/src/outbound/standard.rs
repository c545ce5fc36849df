//! One packet for a peer that knows nothing private: its payload is the packet in tunnel mode and the upper
//! layer in transport mode, as IPComp (RFC 3173) if that is asked for and smaller.

use strait_clock::Time;
use strait_compress::{Codec, Outcome};
use strait_wire::ip::{Front, Packet};
use strait_wire::{Protocol, ipcomp};

use super::emit::Load;
use super::job::{Job, Task};
use super::plain::Plain;
use super::raw::next_header;
use super::squeeze::{Attempt, put};
use super::{Lost, Outlet, Way, Works};
use crate::wrap::Head;
use crate::{IpcompSpec, Mode, Payloads, Reason};

impl Works {
    /// One gathered packet.
    pub(super) fn standard(&mut self, way: &mut Way<'_, impl Outlet>, job: &mut Job) -> Result<(), Lost> {
        let packet = job.plain.bytes();
        let (packets, len) = (job.plain.packets(), packet.len());
        let fits = Packet::parse(packet).is_ok_and(|ip| way.link.carries(&ip, len));
        let sent = if fits { self.single_standard(way, job) } else { Err(Reason::TooBig) };
        sent.map_err(|reason| Lost { reason, packets })?;
        way.link.note_sent(packets, len);
        way.outlet.sealed(job.plain.bytes());
        Ok(())
    }

    fn single_standard(&mut self, way: &mut Way<'_, impl Outlet>, job: &mut Job) -> Result<(), Reason> {
        let Job { plain, squeezed, task, .. } = job;
        let sa = way.link.sa.as_ref().ok_or(Reason::NoSa)?;
        let (mode, agreed) = (sa.mode, sa.payloads);
        let (head, next, payload) = split(mode, plain)?;
        let load = Load { head, next, len: payload.len(), tos: plain.tos() };
        if let Payloads::Standard(Some(agreed)) = agreed
            && task.method.codec != Codec::None
            && let Some(bytes) = self.ipcomp(way.now, (agreed, task), plain, payload, squeezed)
        {
            let header = ipcomp::Header { next, cpi: agreed.cpi };
            let len = ipcomp::HEADER_LEN + bytes.len();
            return self.wrap(way, Load { next: Protocol::IPCOMP, len, ..load }, |room| {
                let _ = header.emit(room);
                put(room, ipcomp::HEADER_LEN, bytes);
            });
        }
        self.wrap(way, load, |room| put(room, 0, payload))
    }

    /// The payload compressed, if that is smaller with its header (RFC 3173 section 2.2).
    fn ipcomp<'a>(
        &mut self,
        now: Time,
        (agreed, task): (IpcompSpec, &Task),
        plain: &Plain,
        payload: &[u8],
        squeezed: &'a mut [u8],
    ) -> Option<&'a [u8]> {
        let (after, took) = self.engines.squeezer.ipcomp(agreed.algorithm, payload, squeezed);
        let outcome = Outcome {
            method: agreed.algorithm.into(),
            before: payload.len(),
            of: payload.len(),
            after,
            took,
        };
        let Task { to, allowed, .. } = *task;
        let attempt = Attempt { to, allowed, packets: plain.packets(), outcome };
        self.account(&attempt, &plain.flows(), now);
        squeezed.get(..after?)
    }
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
