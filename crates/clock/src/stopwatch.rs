//! How long work takes, for code that may not read a clock itself.

use core::fmt;

/// A clock in nanoseconds that the caller hands in; or none, where time is virtual.
pub struct Stopwatch(Option<Box<dyn FnMut() -> u64 + Send>>);

impl Stopwatch {
    /// Measures nothing.
    pub const NONE: Stopwatch = Stopwatch(None);

    /// Measures with `nanos`, which never goes back.
    #[must_use]
    pub fn new(nanos: impl FnMut() -> u64 + Send + 'static) -> Stopwatch {
        Stopwatch(Some(Box::new(nanos)))
    }

    /// Does `work`, and says how many nanoseconds that took.
    pub fn time<T>(&mut self, work: impl FnOnce() -> T) -> (T, Option<u64>) {
        let Some(nanos) = &mut self.0 else { return (work(), None) };
        let began = nanos();
        let done = work();
        (done, Some(nanos().saturating_sub(began)))
    }
}

impl fmt::Debug for Stopwatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Stopwatch" } else { "no Stopwatch" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_what_passes_meanwhile() {
        let mut now = 5;
        let mut stopwatch = Stopwatch::new(move || {
            now += 7;
            now
        });
        assert_eq!(stopwatch.time(|| 'x'), ('x', Some(7)));
        let mut none = Stopwatch::NONE;
        assert_eq!(none.time(|| 'y'), ('y', None));
    }
}
