//! Turns written bytes into units.

mod making;

use core::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use strait_compress::{Calibration, Method};
use strait_model::BitRate;

use super::UnitContext;
use super::choice::UnitChoice;
use super::drain::DrainRate;
use super::worker::{UnitClock, UnitEngine, UnitJob, UnitWorker, worker};

/// Bytes of a unit of data: 0.2 s of a link of 1.5 Mbit/s at a ratio of 6, and small beside the memory of a history.
const UNIT: usize = 256 << 10;
/// Bytes of a stream's first unit; each has twice as many as the one before, so that the link does not wait for the first.
const FIRST_UNIT: usize = 16 << 10;
/// Seconds of the link that a unit takes at most, unless it is as short as the first: an interruption loses the unit on its way.
const UNIT_SECONDS: f64 = 2.0;

/// What a writer has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitTotals {
    /// Bytes that were written to it and have become units.
    pub raw: u64,
    /// Bytes of these units, headers counted.
    pub wire: u64,
    /// Units.
    pub units: u64,
}

/// Writes units to `W`, each compressed as it pays just then.
///
/// Bytes become units when [`UnitWriter::flush`] is called, when the context changes, and when enough of them are there. While
/// data is stored, a whole unit in one write goes to `W` without a copy. An error of `W` ends the stream. Dropping it does not flush. At the highest levels it takes some 19 MB: 16 for
/// the history, and units of 256 KiB before and after they are compressed.
pub struct UnitWriter<W> {
    inner: W,
    clock: Arc<dyn UnitClock>,
    choice: UnitChoice,
    drain: DrainRate,
    engine: UnitEngine,
    /// The unit that is being filled.
    filling: UnitJob,
    unit_len: usize,
    /// Memory of units that were written.
    spare: Vec<UnitJob>,
    totals: UnitTotals,
    /// Bytes of the unit before: on the wire, for each before compression.
    shrinks: f64,
    /// Whether the unit before was stored.
    stored: bool,
    /// Whether the next unit of data begins the history anew.
    anew: bool,
}

impl<W: Write> UnitWriter<W> {
    /// A writer that compresses on the thread that writes. `calibration` is this machine's.
    pub fn new(inner: W, clock: impl UnitClock + 'static, calibration: Calibration) -> UnitWriter<W> {
        let engine = UnitEngine::Own(Box::default());
        UnitWriter::with_engine(inner, Arc::new(clock), calibration, engine)
    }

    /// A writer whose units are compressed where [`UnitWorker::run`] is called, while others are written.
    pub fn with_worker(
        inner: W,
        clock: impl UnitClock + 'static,
        calibration: Calibration,
    ) -> (UnitWriter<W>, UnitWorker) {
        let clock: Arc<dyn UnitClock> = Arc::new(clock);
        let (engine, worker) = worker(Arc::clone(&clock));
        (UnitWriter::with_engine(inner, clock, calibration, engine), worker)
    }

    fn with_engine(
        inner: W,
        clock: Arc<dyn UnitClock>,
        calibration: Calibration,
        engine: UnitEngine,
    ) -> UnitWriter<W> {
        UnitWriter {
            inner,
            clock,
            choice: UnitChoice::new(calibration),
            drain: DrainRate::default(),
            engine,
            filling: UnitJob::default(),
            unit_len: FIRST_UNIT,
            spare: Vec::new(),
            totals: UnitTotals::default(),
            shrinks: 1.0,
            stored: false,
            anew: false,
        }
    }

    /// Says what the writer below keeps to at most, if there is such a limit.
    pub fn set_limit(&mut self, rate: Option<BitRate>) {
        self.drain.limit(rate);
    }

    /// Says the link's rate as far as the caller knows it: levels suit it from the first unit on. Once buffers below are full, what
    /// writes show counts instead.
    pub fn expect_rate(&mut self, rate: Option<BitRate>) {
        self.drain.expect(rate);
    }

    /// Ends the history of the data: nothing that follows refers to what came before, or can be guessed from how it
    /// shrinks. Call it at the beginning of each file, except in a batch of small files of one owner and folder.
    ///
    /// # Errors
    /// Those of `W`.
    pub fn begin_history(&mut self) -> io::Result<()> {
        if self.filling.context == UnitContext::Data {
            self.submit()?;
        }
        self.choice.begin();
        self.anew = true;
        Ok(())
    }

    /// What follows is control.
    ///
    /// # Errors
    /// Those of `W`.
    pub fn control(&mut self) -> io::Result<()> {
        self.turn_to(UnitContext::Control)
    }

    /// What follows is data, as at the beginning.
    ///
    /// # Errors
    /// Those of `W`.
    pub fn data(&mut self) -> io::Result<()> {
        self.turn_to(UnitContext::Data)
    }

    /// What it has done so far; bytes that are not yet units do not count.
    #[must_use]
    pub const fn totals(&self) -> UnitTotals {
        self.totals
    }

    /// What data is compressed with just now; [`Method::NONE`] where that does not pay.
    #[must_use]
    pub fn method(&self) -> Method {
        self.choice.method()
    }

    /// The link's rate, as far as it is known or was found out.
    #[must_use]
    pub fn rate(&self) -> Option<BitRate> {
        self.drain.rate()
    }

    /// The writer below.
    pub const fn get_ref(&self) -> &W {
        &self.inner
    }

    /// The writer below; bytes that are not flushed are lost.
    pub fn into_inner(self) -> W {
        self.inner
    }

    fn turn_to(&mut self, context: UnitContext) -> io::Result<()> {
        if self.filling.context != context {
            self.submit()?;
            self.filling.context = context;
        }
        Ok(())
    }
}

impl<W: Write> Write for UnitWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // What is stored is not copied to fill a unit up.
        if bytes.len() >= self.unit_len && self.filling.context == UnitContext::Data && self.choice.stores() {
            self.submit()?;
        }
        let room = self.unit_len.saturating_sub(self.filling.raw.len());
        let taken = &bytes[..bytes.len().min(room)];
        if taken.len() < self.unit_len {
            self.filling.raw.extend_from_slice(taken);
            if taken.len() == room {
                self.submit()?;
            }
            return Ok(taken.len());
        }
        // A whole unit at once.
        let place = self.place(taken);
        if self.stores(place) {
            self.store(taken)?;
        } else {
            self.filling.raw.extend_from_slice(taken);
            self.make(place)?;
        }
        Ok(taken.len())
    }

    /// Makes a unit of what is there, and waits until `W` has taken everything.
    fn flush(&mut self) -> io::Result<()> {
        self.submit()?;
        self.collect(0)?;
        self.inner.flush()?;
        // What the caller waits for now is not the link.
        self.drain.idle();
        Ok(())
    }
}

impl<W> fmt::Debug for UnitWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnitWriter").field("totals", &self.totals).finish_non_exhaustive()
    }
}
