//! Makes units: stored from where their bytes are, or compressed.

use std::io::{self, IoSlice, Write};

use super::super::ladder::QUICKEST;
use super::super::worker::{AT_WORK, UnitEngine, UnitJob};
use super::super::{UnitCoding, UnitContext, UnitHeader};
use super::{FIRST_UNIT, UNIT, UNIT_SECONDS, UnitWriter};

impl<W: Write> UnitWriter<W> {
    /// Makes a unit of what is there, if anything is.
    pub(super) fn submit(&mut self) -> io::Result<()> {
        if self.filling.raw.is_empty() {
            return Ok(());
        }
        let raw = core::mem::take(&mut self.filling.raw);
        let place = self.place(&raw);
        let stores = self.stores(place);
        if stores {
            self.store(&raw)?;
        }
        self.filling.raw = raw;
        if stores {
            self.filling.raw.clear();
            return Ok(());
        }
        self.make(place)
    }

    /// The place in the ladder of a unit of `raw` in the context that is being filled.
    pub(super) fn place(&mut self, raw: &[u8]) -> Option<usize> {
        match self.filling.context {
            UnitContext::Data => self.choice.choose(raw, self.drain.rate(), self.clock.now()),
            UnitContext::Control => None,
        }
    }

    /// Whether a unit with this place is stored, and written from where it is. A worker that still compresses is waited for
    /// only at the second of two units that are stored: the first may be alone among others that are not.
    pub(super) fn stores(&mut self, place: Option<usize>) -> bool {
        let stored = self.filling.context == UnitContext::Data && place.is_none();
        let before = core::mem::replace(&mut self.stored, stored);
        let busy = matches!(self.engine, UnitEngine::Worker { under_way: 1.., .. });
        stored && (before || !busy)
    }

    /// Writes a stored unit of data. A history that is to begin anew does so with the next unit that has one.
    pub(super) fn store(&mut self, raw: &[u8]) -> io::Result<()> {
        self.grow();
        self.collect(0)?;
        let (coding, context, len) = (UnitCoding::Stored, UnitContext::Data, raw.len());
        let header = UnitHeader { coding, anew: false, context, payload: len, raw: len }.bytes();
        let began = self.clock.now();
        write_both(&mut self.inner, &header, raw)?;
        let wire = header.len() + len;
        self.drain.wrote(wire, wire, began, self.clock.now());
        self.count(len, wire);
        Ok(())
    }

    /// Compresses the unit that was filled.
    pub(super) fn make(&mut self, place: Option<usize>) -> io::Result<()> {
        self.grow();
        let next = UnitJob { context: self.filling.context, ..self.spare.pop().unwrap_or_default() };
        let mut job = core::mem::replace(&mut self.filling, next);
        job.place = place;
        job.anew = job.context == UnitContext::Data && core::mem::take(&mut self.anew);
        match &mut self.engine {
            UnitEngine::Own(encoder) => {
                job.run(encoder, &*self.clock);
                self.put(job)
            }
            UnitEngine::Worker { .. } => self.hand_over(job),
        }
    }

    /// Gives a job to the worker, and writes units that it has made: before that, if it has enough.
    fn hand_over(&mut self, job: UnitJob) -> io::Result<()> {
        self.collect(AT_WORK - 1)?;
        if let UnitEngine::Worker { jobs, under_way, .. } = &mut self.engine {
            jobs.send(job).map_err(|_| worker_is_gone())?;
            *under_way += 1;
        }
        while let UnitEngine::Worker { done, under_way, .. } = &mut self.engine
            && let Ok(made) = done.try_recv()
        {
            *under_way -= 1;
            self.put(made)?;
        }
        Ok(())
    }

    /// Writes units that the worker makes until it has at most `left`.
    pub(super) fn collect(&mut self, left: usize) -> io::Result<()> {
        while let UnitEngine::Worker { done, under_way, .. } = &mut self.engine
            && *under_way > left
        {
            let made = done.recv().map_err(|_| worker_is_gone())?;
            *under_way -= 1;
            self.put(made)?;
        }
        Ok(())
    }

    /// Writes a unit that was made, and learns from it.
    fn put(&mut self, mut job: UnitJob) -> io::Result<()> {
        let began = self.clock.now();
        self.inner.write_all(&job.unit)?;
        let ended = self.clock.now();
        let wire = job.unit.len();
        // There is no quicker codec: what is hoped for is that the link takes what is stored.
        let might = if job.place == Some(QUICKEST) { wire.max(job.raw.len()) } else { wire };
        self.drain.wrote(wire, might, began, ended);
        if let Some(place) = job.place {
            self.choice.learn(place, job.raw.len(), job.unit.len(), job.took, ended);
        }
        self.count(job.raw.len(), wire);
        job.raw.clear();
        self.spare.push(job);
        Ok(())
    }

    fn grow(&mut self) {
        let doubled = (self.unit_len * 2).min(UNIT);
        self.unit_len = match self.drain.rate() {
            None => doubled,
            Some(rate) => {
                let bytes = UNIT_SECONDS * rate.as_bits() / 8.0 / self.shrinks;
                doubled.min(bytes as usize).max(FIRST_UNIT)
            }
        };
    }

    fn count(&mut self, raw: usize, wire: usize) {
        self.shrinks = wire as f64 / raw as f64;
        self.totals.raw += raw as u64;
        self.totals.wire += wire as u64;
        self.totals.units += 1;
    }
}

/// Writes a header and what follows it, by as few calls as `inner` lets.
fn write_both(inner: &mut impl Write, header: &[u8], rest: &[u8]) -> io::Result<()> {
    let mut left = &mut [IoSlice::new(header), IoSlice::new(rest)][..];
    while !left.is_empty() {
        match inner.write_vectored(left) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut left, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn worker_is_gone() -> io::Error {
    io::Error::other("the thread that compresses has ended")
}
