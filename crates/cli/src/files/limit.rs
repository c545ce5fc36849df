//! A half of a stream that keeps to a rate.

use std::io::{self, Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use strait_scheduler::Rate;

/// What passes at once: short enough that the link is not filled in bursts.
const SLICE: Duration = Duration::from_millis(50);

/// Passes bytes at most at a rate.
#[derive(Debug)]
pub(crate) struct Limited<T> {
    inner: T,
    rate: Option<Rate>,
    /// When the next bytes may pass.
    next: Instant,
}

impl<T> Limited<T> {
    pub(crate) fn new(inner: T, rate: Option<Rate>) -> Limited<T> {
        Limited { inner, rate, next: Instant::now() }
    }

    /// How many of these bytes pass now, after waiting.
    fn admit(&mut self, bytes: usize) -> usize {
        let Some(rate) = self.rate else { return bytes };
        thread::sleep(self.next.saturating_duration_since(Instant::now()));
        bytes.min(usize::try_from(rate.bytes_in(SLICE)).unwrap_or(usize::MAX).max(1))
    }

    /// So many passed.
    fn passed(&mut self, bytes: usize) -> usize {
        if let Some(rate) = self.rate {
            self.next = self.next.max(Instant::now()) + rate.time_for(bytes as u64);
        }
        bytes
    }
}

impl<T: Read> Read for Limited<T> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let now = self.admit(bytes.len());
        let got = self.inner.read(&mut bytes[..now])?;
        Ok(self.passed(got))
    }
}

impl<T: Write> Write for Limited<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let now = self.admit(bytes.len());
        let put = self.inner.write(&bytes[..now])?;
        Ok(self.passed(put))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_at_least_the_time_of_the_rate() {
        let mut out = Limited::new(Vec::new(), Rate::from_bits(800_000));
        let begun = Instant::now();
        out.write_all(&[1; 20_000]).unwrap();
        // The last slice of 5 kB passes before its time.
        assert!(begun.elapsed() >= Duration::from_millis(150));
        assert_eq!(out.inner.len(), 20_000);
    }
}
