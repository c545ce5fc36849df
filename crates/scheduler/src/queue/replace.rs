//! A packet that takes the place of the one before it in its flow, since that has nothing more to tell.

use super::FairQueue;
use super::flows::BUCKETS;
use super::packet::{Newcomer, Queued};

impl<N> FairQueue<N> {
    /// A packet comes that takes the place of the last one of its flow, if there is one that `may` be replaced; what was remembered of
    /// that. It keeps its turn, and the time at which it came.
    ///
    /// # Errors
    /// The new packet's note, when nothing was replaced.
    pub fn replace_last(
        &mut self,
        newcomer: &Newcomer,
        note: N,
        may: impl FnOnce(&Queued<N>) -> bool,
        write: impl FnOnce(&mut [u8]),
    ) -> Result<N, N> {
        let Newcomer { hash, tin, len, may_wait, .. } = *newcomer;
        let flow = self.turns.get(tin.index()).and_then(|turns| turns.find((hash % BUCKETS as u64) as usize));
        let Some((at, flow)) = flow.and_then(|at| Some((at, self.flows.get(at)?))) else { return Err(note) };
        let (tail, bytes) = (flow.tail, flow.bytes);
        let Some(last) = self.places.get_mut(tail).filter(|last| may(last)) else { return Err(note) };
        if last.buffer.len() < len || last.buffer.len() > len * 2 {
            let Some(buffer) = self.store.lend(len) else { return Err(note) };
            self.store.give_back(core::mem::replace(&mut last.buffer, buffer));
        }
        write(last.buffer.get_mut(..len).unwrap_or_default());
        let before = core::mem::replace(&mut last.len, len);
        self.patient = self.patient + usize::from(may_wait) - usize::from(last.may_wait);
        last.may_wait = may_wait;
        let replaced = core::mem::replace(&mut last.note, note);
        self.flows.weigh(at, bytes - before + len);
        self.queued = self.queued - before + len;
        Ok(replaced)
    }
}
