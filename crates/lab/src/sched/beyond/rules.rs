//! What the paper says that other runs than those of its figures decide.

use super::Beyond;
use crate::claim::ClaimRule;

pub(in crate::sched) const RULES: [ClaimRule<Beyond>; 4] = [
    ClaimRule {
        section: "IV-B",
        words: "The problem with latency increase can be solved by introducing an upper bound [...] on total number of bytes \
                for the sliding window",
        reading: "with W = 30 and 2,048 bytes 984-byte payloads are at most a quarter later than without a window, and 24-byte \
                  ones keep nine tenths of their gain in throughput",
        judge: |it| {
            let (later, kept) = it.bounded_in_bytes()?;
            let words = format!("{later:.2} times the latency, {:.0} % of the gain", kept * 100.0);
            Some((later <= 1.25 && kept >= 0.9, words))
        },
    },
    ClaimRule {
        section: "IV-B",
        words: "The problem with latency increase can be solved by introducing an upper bound on time",
        reading: "packets with gaps between them, at every load up to 0.95: W = 30 with 100 µs adds at most that to the latency \
                  without a window, and W = 30 alone adds more",
        judge: Beyond::bounded_in_time,
    },
    ClaimRule {
        section: "IV-B",
        words: "The not very large performance improvement is due to the fact that in average very few packets were identified \
                to be related to the same SAs inside the sliding windows",
        reading: "with 10 associations instead of 100 the gain in throughput is more than twice as large, with one more than that \
                  again",
        judge: Beyond::more_aggregation_more_gain,
    },
    ClaimRule {
        section: "III-B",
        words: "the W parameter needs to be tuned in a proper way (typically small values need to be selected for these \
                applications)",
        reading: "packets with gaps between them: at every load a window that tunes itself is at most a tenth later, on average, \
                  than whichever is best of none, W = 10 and W = 30",
        judge: Beyond::tuned_is_near_the_best,
    },
];
