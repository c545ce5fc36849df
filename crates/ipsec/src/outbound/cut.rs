//! A protected packet that is larger than the path takes, as outer fragments (RFC 4303 section 3.3.4).

use strait_wire::Tos;
use strait_wire::fragment::Cutter;

use super::train::TRAIN_MAX;
use super::{Outlet, Way, Works};
use crate::Reason;

impl Works {
    /// Cuts the packet of `whole` bytes that was sealed behind the train.
    pub(super) fn cut_sealed(
        &mut self,
        way: &mut Way<'_, impl Outlet>,
        whole: usize,
        tos: Tos,
    ) -> Result<(), Reason> {
        let mut space = core::mem::take(&mut self.cutting);
        if space.is_empty() {
            space = vec![0; 2 * TRAIN_MAX].into_boxed_slice();
        }
        let result = self.cut_into(way, whole, tos, &mut space);
        self.cutting = space;
        result
    }

    fn cut_into(
        &mut self,
        way: &mut Way<'_, impl Outlet>,
        whole: usize,
        tos: Tos,
        space: &mut [u8],
    ) -> Result<(), Reason> {
        let to = way.link.endpoint.ok_or(Reason::NoEndpoint)?;
        let (sealed, piece) = space.split_at_mut_checked(TRAIN_MAX).ok_or(Reason::TooBig)?;
        let sealed = sealed.get_mut(..whole).ok_or(Reason::TooBig)?;
        sealed.copy_from_slice(self.train.room(whole).ok_or(Reason::TooBig)?);
        // No two packets of one association have the same number while fragments live.
        let id = way.link.sa.as_ref().map_or(0, |sa| sa.numbers.last().low().0);
        let mtu = usize::from(way.link.path.outer());
        let mut cutter = Cutter::new(sealed, mtu, id).map_err(|_| Reason::TooBig)?;
        while let Some(len) = cutter.cut(piece).map_err(|_| Reason::TooBig)? {
            if !self.train.takes(to, tos, len) {
                self.depart(way);
            }
            let room = self.train.room(len).ok_or(Reason::TooBig)?;
            room.copy_from_slice(piece.get(..len).unwrap_or_default());
            self.train.add(to, tos, len);
        }
        Ok(())
    }
}
