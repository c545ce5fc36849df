//! What an association with a header sends beside its packets, and what is told of the peer's headers.

use strait_wire::Protocol;
use strait_wire::sessionless::{ACKNOWLEDGEMENT_LEN, Acknowledgement};

use super::{Transmitter, put};
use crate::Place;
use crate::outbound::context::{CONTROL_TOS, Outlet, TxContext};
use crate::outbound::train::{Heading, Via};

impl Transmitter {
    /// The key packet, and the header in a datagram of its own, if they are due; only ever called under traffic.
    pub(in crate::outbound) fn beside(&mut self, tx: &mut TxContext<'_, impl Outlet>) {
        let association = &mut tx.link.association;
        let Some(to) = association.place() else { return };
        let Some(sa) = association.sa.as_mut() else { return };
        let number = sa.numbers.last();
        let Some(header) = &mut sa.header else { return };
        if let Some(key_packet) = header.key_packet(tx.now, number) {
            let heading = Heading { via: Via::Udp, to, tos: CONTROL_TOS };
            let latest = || Some(&tx.link.spec.counters.endpoint);
            self.departure.send_control(heading, key_packet, latest, tx.now, tx.outlet);
        }
        if header.is_overdue(number) {
            sa.lead = header.bytes().len();
            self.send_empty(tx);
        }
    }

    /// Tells the peer whether its header was taken, where it is or at `elsewhere`, for a peer whose place is not known. An association that
    /// is new has its header in front of this.
    pub(in crate::outbound) fn acknowledge(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        acknowledgement: Acknowledgement,
        elsewhere: Option<Place>,
    ) {
        let association = &mut tx.link.association;
        let before = (association.endpoint, association.local);
        if let Some(Place { remote, local }) = elsewhere {
            (association.endpoint, association.local) = (Some(remote), local);
        }
        self.departure.begin_train(tx.link.spec.id);
        let _ = self.seal_fresh(tx, Protocol::AGGFRAG, ACKNOWLEDGEMENT_LEN, CONTROL_TOS, |payload| {
            put(payload, 0, &acknowledgement.to_bytes());
        });
        self.departure.depart(tx);
        (tx.link.association.endpoint, tx.link.association.local) = before;
    }
}
