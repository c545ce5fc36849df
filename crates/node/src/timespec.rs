//! Spans as system calls take them.

use std::time::Duration;

/// Seconds at most, 68 years: all that the calls of 32-bit systems take.
const SECONDS_MAX: u64 = i32::MAX as u64;

/// A span with nanoseconds, cut to what the type holds.
pub(crate) fn timespec(span: Duration) -> libc::timespec {
    // Both fit 32 bits; how many there are depends on the system.
    libc::timespec { tv_sec: span.as_secs().min(SECONDS_MAX) as _, tv_nsec: span.subsec_nanos() as _ }
}

/// A span with microseconds, cut to what the type holds.
pub(crate) fn timeval(span: Duration) -> libc::timeval {
    libc::timeval { tv_sec: span.as_secs().min(SECONDS_MAX) as _, tv_usec: span.subsec_micros() as _ }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_cut_to_what_the_type_holds() {
        let all = |span| {
            let (nanos, micros) = (timespec(span), timeval(span));
            [nanos.tv_sec, nanos.tv_nsec, micros.tv_sec, micros.tv_usec].map(i64::from)
        };
        assert_eq!(all(Duration::new(3, 4_000_999)), [3, 4_000_999, 3, 4_000]);
        assert_eq!(all(Duration::MAX)[0], i64::from(i32::MAX));
    }
}
