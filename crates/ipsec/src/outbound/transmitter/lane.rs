//! Pieces of streams inside ESP.

use strait_wire::Protocol;

use super::{Transmitter, put};
use crate::Reason;
use crate::outbound::context::{CONTROL_TOS, Outlet, TxContext};

impl Transmitter {
    /// A packet of a lane, ahead of everything that waits: a person waits for it, and it is short.
    ///
    /// # Errors
    /// [`Reason`] when there is no session in which it could leave.
    pub(in crate::outbound) fn send_piece(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        packet: &[u8],
    ) -> Result<(), Reason> {
        if !tx.link.association.can_send() || !tx.link.association.takes_blocks() {
            return Err(Reason::NoSa);
        }
        self.departure.begin_train(tx.link.spec.id);
        self.seal_fresh(tx, Protocol::AGGFRAG, packet.len(), CONTROL_TOS, |payload| put(payload, 0, packet))?;
        self.departure.depart_first(tx);
        // While that is in use, answers say that it passes; without any, QUIC carries the piece again.
        if !tx.link.association.direct.is_in_use() {
            self.probe_direct(tx);
        }
        Ok(())
    }
}
