//! Handshakes that others begin: who is let in, and what they and strangers without a connection are answered.

use quinn_proto::{Incoming, Transmit};
use strait_clock::Time;
use strait_ipsec::outbound::Via;
use strait_ipsec::{Reason, Source};

use super::super::admission::{self, Address, AdmissionVerdict};
use super::super::answers::{FLIGHT, RETRY};
use super::super::transport::STREAMS_CID;
use super::super::{Channel, ChannelGuest, ChannelId, wire_len};
use super::Channels;
use crate::Role;

impl Channels {
    /// Whether a handshake was let in since this was asked whose sender's datagrams are expected.
    pub(crate) fn take_admitted(&mut self) -> bool {
        core::mem::take(&mut self.admitted)
    }

    /// Where handshakes are under way with senders that have shown more than an address.
    pub(crate) fn guests(&self) -> impl Iterator<Item = Source> {
        let guests = self.table.iter().filter_map(|(_, channel)| channel.guest);
        guests.filter(|guest| guest.address != Address::Claimed).map(|guest| guest.source)
    }

    pub(super) fn admit(&mut self, incoming: Incoming, buffer: &mut Vec<u8>, now: Time) {
        let source = Source::of(incoming.remote_address().ip());
        let address = if incoming.remote_address_validated() {
            Address::Proven
        } else if self.gate.is_some() || self.answers.is_peers(source, now) {
            // The token stands for a proven address, as a Retry would need its place in the datagram.
            Address::Peers
        } else {
            Address::Claimed
        };
        let guests = || self.table.iter().filter_map(|(_, channel)| channel.guest);
        let same = guests().filter(|guest| guest.source == source).count();
        let verdict = admission::judge(guests().count(), same, address);
        if verdict == AdmissionVerdict::Ignore {
            return self.endpoint.ignore(incoming);
        }
        let enters = verdict != AdmissionVerdict::Prove && self.answers.pay(source, address, FLIGHT, now);
        if enters {
            if verdict == AdmissionVerdict::Replace {
                match self.oldest_stranger() {
                    Some(oldest) => self.end(oldest, now),
                    None => return self.endpoint.ignore(incoming),
                }
            }
            return self.accept(incoming, ChannelGuest { source, address, paid: FLIGHT }, buffer, now);
        }
        self.retry(incoming, source, buffer, now);
    }

    /// Asks the sender to show that it receives at its address, without any state here.
    fn retry(&mut self, incoming: Incoming, source: Source, buffer: &mut Vec<u8>, now: Time) {
        if self.gate.is_some()
            || !incoming.may_retry()
            || !self.answers.pay(source, Address::Claimed, RETRY, now)
        {
            self.answers.refuse(Reason::AnswerOverBudget);
            return self.endpoint.ignore(incoming);
        }
        match self.endpoint.retry(incoming, buffer) {
            Ok(transmit) => self.transmit(&transmit, buffer, Via::Udp, true),
            Err(error) => self.endpoint.ignore(error.into_incoming()),
        }
    }

    /// The oldest handshake whose peer has not proved its key yet.
    fn oldest_stranger(&self) -> Option<ChannelId> {
        let mut guests = self.table.iter().filter(|(_, channel)| channel.role == Role::Responder);
        guests.find(|(_, guest)| guest.connection.is_handshaking()).map(|(id, _)| id)
    }

    fn accept(&mut self, incoming: Incoming, guest: ChannelGuest, buffer: &mut Vec<u8>, now: Time) {
        let for_streams = is_for_streams(&incoming);
        let config = for_streams.then(|| self.streams.server(incoming.remote_address())).flatten();
        if for_streams && config.is_none() {
            return self.endpoint.ignore(incoming);
        }
        let mark = self.begin_mark();
        match self.endpoint.accept(incoming, self.epoch.instant(now), buffer, config) {
            Ok((handle, connection)) => {
                self.admitted |= guest.address != Address::Claimed;
                let local = connection.local_ip();
                let id = self.table.add(Channel::new(handle, connection, Some(guest), local, now), mark);
                if for_streams {
                    self.table.keep_for_streams(id);
                }
                self.hear(id);
            }
            Err(error) => {
                if let Some(transmit) = error.response {
                    self.respond(&transmit, buffer, now);
                }
            }
        }
    }

    /// Whether what a channel sends to a stranger is within its budget.
    pub(super) fn pays(&mut self, id: ChannelId, transmit: &Transmit, now: Time) -> bool {
        let Some(ChannelGuest { source, address, paid }) =
            self.table.get_mut(id).and_then(|channel| channel.guest.as_mut())
        else {
            return false;
        };
        let wire = wire_len(transmit.destination, transmit.size);
        match paid.checked_sub(wire) {
            Some(left) => *paid = left,
            None => return self.answers.pay(*source, *address, wire, now),
        }
        true
    }

    /// Sends what QUIC answers without a connection: Version Negotiation, a close, a stateless reset.
    pub(super) fn respond(&mut self, transmit: &Transmit, buffer: &[u8], now: Time) {
        if self.gate.is_some() {
            return self.answers.refuse(Reason::NoToken);
        }
        let Transmit { destination, size, .. } = *transmit;
        let source = Source::of(destination.ip());
        if self.answers.pay(source, Address::Claimed, wire_len(destination, size), now) {
            self.transmit(transmit, buffer, Via::Udp, true);
        } else {
            self.answers.refuse(Reason::AnswerOverBudget);
        }
    }
}

/// Whether a connection that begins is to carry streams.
fn is_for_streams(incoming: &Incoming) -> bool {
    incoming.orig_dst_cid().len() == STREAMS_CID
}
