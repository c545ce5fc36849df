//! What an end sends.

use std::io;
use std::time::Instant;

use strait_ipsec::OutboundSa;
use strait_ipsec::wrap::Head;
use strait_keying::sessionless::{CannotSend, Now};
use strait_wire::{Protocol, Tos};

use super::{Known, Out, PingEnd, broken, refused};

impl PingEnd {
    /// Sends a payload; gives the number of datagrams.
    pub(in crate::enskip::latency) fn send(
        &mut self,
        now: Now,
        next: Protocol,
        payload: &[u8],
    ) -> io::Result<usize> {
        if self.known.is_none() {
            self.learn(self.place.peer)?;
        }
        let known = self.known.as_ref().ok_or_else(|| broken("no card"))?;
        let packets = known.out.as_ref().map_or(0, |out| out.sa.usage().packets());
        if known.out.is_none() || known.sender.is_due(now, packets, 0) {
            self.begin(now)?;
        }
        let Known { out: Some(out), used, .. } = self.known.as_mut().ok_or_else(|| broken("no card"))? else {
            return Err(broken("no packet key"));
        };
        let mut datagrams = 0;
        if let Some(beside) = &mut out.key_packet
            && beside.schedule.wants(now.time, packets)
        {
            self.place.socket.send_to(&beside.bytes, self.place.to)?;
            datagrams += 1;
        }
        if !out.sa.look(now.time) {
            return Err(broken("the packet key has expired"));
        }
        let head = Head::Fresh(Tos(0));
        let front = out.sa.front_len(head);
        let mut datagram = vec![0; out.sa.sealed_len(front, payload.len())];
        let at = out.sa.payload_at(front);
        datagram[at..at + payload.len()].copy_from_slice(payload);
        let sealed = out.sa.seal(head, &mut datagram, payload.len(), next);
        sealed.map_err(|why| broken(&format!("a packet is not sealed: {why:?}")))?;
        out.sa.usage().note(1, 0, now.time);
        *used = (*used).max(out.first.0 - 1) + 1;
        self.place.socket.send_to(&datagram, self.place.to)?;
        Ok(datagrams + 1)
    }

    /// Begins a packet key, with its mark written before.
    fn begin(&mut self, now: Now) -> io::Result<()> {
        let PingEnd { known: Some(known), receiver, own, mark, .. } = self else {
            return Err(broken("no card"));
        };
        let kij = receiver.secret(own, &known.key).ok_or_else(|| broken("no secret"))?;
        let mut begun = known.sender.begin(now, own, kij, mark, known.used);
        if let Err(CannotSend::NotPersisted { mark: number }) = begun {
            let start = Instant::now();
            self.marks[0].write(number, self.settings.durable)?;
            self.waited.marks += start.elapsed();
            self.asked.marks += 1;
            let _ = mark.take_request();
            mark.persisted(number);
            begun = known.sender.begin(now, own, kij, mark, known.used);
        }
        let key = begun.map_err(|why| refused("begin a packet key", &why))?;
        let sa = OutboundSa::new(&key.association).new_within(key.reserve).until(key.expires);
        known.used = key.first.0 - 1;
        let key_packet = key.header.key_packet.clone();
        known.out = Some(Out { first: key.first, key_packet, sa: sa.headed(key.header, key.first) });
        self.asked.keys += 1;
        Ok(())
    }

    /// Sends what is to be acknowledged; gives the number of datagrams.
    pub(in crate::enskip::latency) fn answer(&mut self, now: Now) -> io::Result<usize> {
        let answers = std::mem::take(&mut self.answers);
        answers.iter().map(|answer| self.send(now, Protocol::AGGFRAG, &answer.to_bytes())).sum()
    }
}
