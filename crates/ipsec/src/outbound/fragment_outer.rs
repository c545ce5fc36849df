//! A protected packet that is larger than the path takes, as outer fragments (RFC 4303 section 3.3.4).

use strait_wire::Tos;
use strait_wire::fragment::Cutter;

use super::context::{Outlet, TxContext};
use super::departure::Departure;
use super::train::TRAIN_MAX;
use crate::Reason;

/// Where a packet is cut into outer fragments; without memory of its own until there was one.
#[derive(Debug, Default)]
pub(super) struct OuterFragmenter {
    space: Box<[u8]>,
}

impl OuterFragmenter {
    /// Cuts the packet of `whole` bytes that was sealed behind the train.
    pub(super) fn fragment(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        departure: &mut Departure,
        whole: usize,
        tos: Tos,
    ) -> Result<(), Reason> {
        if self.space.is_empty() {
            self.space = vec![0; 2 * TRAIN_MAX].into_boxed_slice();
        }
        let heading = tx.link.association.heading(tos).ok_or(Reason::NoEndpoint)?;
        let (sealed, piece) = self.space.split_at_mut_checked(TRAIN_MAX).ok_or(Reason::TooBig)?;
        let sealed = sealed.get_mut(..whole).ok_or(Reason::TooBig)?;
        sealed.copy_from_slice(departure.train.room(whole).ok_or(Reason::TooBig)?);
        // No two packets of one association have the same number while fragments live.
        let id = tx.link.association.sa.as_ref().map_or(0, |sa| sa.numbers.last().low().0);
        let mtu = usize::from(tx.link.association.path.outer());
        let mut cutter = Cutter::new(sealed, mtu, id).map_err(|_| Reason::TooBig)?;
        while let Some(len) = cutter.cut(piece).map_err(|_| Reason::TooBig)? {
            if !departure.train.takes(heading, len) {
                departure.depart(tx);
            }
            let room = departure.train.room(len).ok_or(Reason::TooBig)?;
            room.copy_from_slice(piece.get(..len).unwrap_or_default());
            departure.add(heading, len);
        }
        Ok(())
    }
}
