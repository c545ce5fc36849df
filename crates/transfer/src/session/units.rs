//! The stream of a session: messages inside units, compressed as the link takes them.

use std::io::{self, Read, Write};
use std::time::Instant;

use strait_clock::Time;
use strait_compress::Calibration;
use strait_model::BitRate;
use strait_stream::unit::{UnitReader, UnitWorker, UnitWriter};

use super::event::{TransferEvent, Watch};
use super::outgoing::UnitOut;
use crate::message::MessageReader;

/// The two halves of a stream, and what is known of the machine and the link.
#[derive(Debug)]
pub struct StreamEnds<R, W> {
    /// What the peer writes.
    pub reader: R,
    /// What the peer reads.
    pub writer: W,
    /// What this machine's codecs take.
    pub calibration: Calibration,
    /// The rate that writes keep to at most, if there is one.
    pub limit: Option<BitRate>,
    /// The link's rate as far as it was known when the stream was opened. What writes show counts once there are some.
    pub link: Option<BitRate>,
}

/// Tells how many bytes pass.
#[derive(Debug)]
pub(crate) struct Counted<'a, T> {
    inner: T,
    watch: Watch<'a>,
}

impl<T> Counted<'_, T> {
    fn count(&self, bytes: usize) -> usize {
        self.watch.tell(TransferEvent::Wire { bytes: bytes as u64 });
        bytes
    }
}

impl<T: Read> Read for Counted<'_, T> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let got = self.inner.read(bytes)?;
        Ok(self.count(got))
    }
}

impl<T: Write> Write for Counted<'_, T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let put = self.inner.write(bytes)?;
        Ok(self.count(put))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Reads messages from units.
pub(crate) type Messages<'a, R> = MessageReader<UnitReader<Counted<'a, R>>>;
/// Writes messages into units.
pub(crate) type Units<'a, W> = UnitWriter<Counted<'a, W>>;

impl<R: Read, W: Write> StreamEnds<R, W> {
    /// Messages, units, and what compresses them in a thread of the caller's.
    pub(crate) fn open(self, watch: Watch<'_>) -> (Messages<'_, R>, Units<'_, W>, UnitWorker) {
        let begun = Instant::now();
        let clock = move || Time::from_nanos(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
        let writer = Counted { inner: self.writer, watch };
        let (mut units, worker) = UnitWriter::with_worker(writer, clock, self.calibration);
        units.set_limit(self.limit);
        units.expect_rate(self.link);
        let reader = UnitReader::new(Counted { inner: self.reader, watch });
        (MessageReader::new(reader), units, worker)
    }
}

impl<W: Write> UnitOut for UnitWriter<W> {
    fn context(&mut self, data: bool) -> io::Result<()> {
        if data { self.data() } else { self.control() }
    }

    fn begin_history(&mut self) -> io::Result<()> {
        UnitWriter::begin_history(self)
    }
}
