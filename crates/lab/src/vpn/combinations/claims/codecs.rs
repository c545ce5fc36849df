//! What sections 6 and 7 say of headers, payloads and codecs.

use super::{ALMOST, DEFLATE, LZS, TEN, USUALLY, both, more_than, tally, tally_of_both};
use crate::claim::{ClaimRule, Finding};
use crate::vpn::combinations::parameters::{NULL, ParameterCell, Parameters, SLOW_NETWORKS};

pub(super) const RULES: [ClaimRule<Parameters>; 8] = [
    ClaimRule {
        section: "6.2",
        words: "if the payload size is relatively large, e.g., multiple kilobytes, the omission of the header overheads \
                will not significantly affect the results",
        reading: "with 4 and 63 KiB every speedup with headers is within 5 % of the one without",
        judge: |it| {
            // The inequality is not a pipeline's.
            it.pipeline.is_none().then_some(())?;
            let cells = both(it.cells().filter(|cell| cell.size > 0));
            let quotient = |cell, codec| it.gain(cell, codec) / it.without_headers(cell, codec).0;
            tally_of_both(it, cells, quotient, |quotient| (quotient - 1.0).abs() <= 0.05).every()
        },
    },
    ClaimRule {
        section: "7",
        words: "Most of the results for the 4 KB payload size closely resemble those for the 1 KB payload size",
        reading: "in more than half of the cells, with the recommended codec, the speedups are within a fifth",
        judge: |it| {
            let quotient = |cell| super::gain(it, cell) / super::gain(it, ParameterCell { size: 0, ..cell });
            let cells = it.cells().filter(|cell| cell.size == 1);
            more_than(USUALLY, &tally(it, cells, quotient, |it| (it - 1.0).abs() <= 0.2))
        },
    },
    ClaimRule {
        section: "7",
        words: "compression ratio is more important than compression throughput when using slow network links, whereas \
                the compression and decompression rates are more important than the compression ratio for fast network \
                links",
        reading: "a tenth more ratio gives more than a tenth more of both rates in more than 90 % of the cells that \
                  shrink on 56 kbit/s and 1.54 Mbit/s, and less on 100 Mbit/s and 1 Gbit/s",
        judge: more_important,
    },
    ClaimRule {
        section: "7",
        words: "DEFLATE usually yields a higher speedup than LZS for 56 kbps and 1.544 Mbps connections",
        reading: "in more than half of the cells",
        judge: |it| {
            let cells = it.cells().filter(|cell| cell.network < SLOW_NETWORKS);
            more_than(USUALLY, &tally(it, cells, |cell| lzs_over_deflate(it, cell), |it| it < 1.0))
        },
    },
    ClaimRule {
        section: "7",
        words: "LZS usually yields a higher speedup than DEFLATE for 10 Mbps, 100 Mbps, and 1 Gbps links",
        reading: "in more than half of the cells",
        judge: |it| {
            let cells = it.cells().filter(|cell| cell.network >= SLOW_NETWORKS);
            more_than(USUALLY, &tally(it, cells, |cell| lzs_over_deflate(it, cell), |it| it > 1.0))
        },
    },
    ClaimRule {
        section: "7",
        words: "if our LZS implementation were significantly slower, it would be advisable to use DEFLATE rather than \
                LZS for 10 Mbps links",
        reading: "there is a factor up to ten, by which LZS is faster (section 5.2), that does it: DEFLATE then has the \
                  higher speedup in more than half of the cells",
        judge: were_lzs_slower,
    },
    ClaimRule {
        section: "7",
        words: "fast compression algorithms should be used with fast network connections, and algorithms that achieve \
                high compression ratios should be used with slow network connections",
        reading: "the geometric mean of the speedups is higher with DEFLATE on 56 kbit/s and 1.54 Mbit/s, and with LZS \
                  on 100 Mbit/s and 1 Gbit/s",
        judge: by_means,
    },
    ClaimRule {
        section: "7",
        words: "In almost every case, the speedups for MD5 and SHA-1 (when using compression) are both greater than 1 \
                or are both less than 1",
        reading: "in more than 90 % of the cells without encryption, with either codec",
        judge: |it| {
            let alone = |hash: &str| it.place(NULL, hash);
            let (md5, sha1) = (alone("MD5")?, alone("SHA-1")?);
            // Above 0 when both are on the same side of 1.
            let sides = |cell: ParameterCell, codec| {
                (it.gain(cell, codec) - 1.0)
                    * (it.gain(ParameterCell { protection: sha1, ..cell }, codec) - 1.0)
            };
            let cells = both(it.cells().filter(|cell| cell.protection == md5));
            more_than(ALMOST, &tally_of_both(it, cells, sides, |sides| sides > 0.0))
        },
    },
];

fn lzs_over_deflate(it: &Parameters, cell: ParameterCell) -> f64 {
    it.gain(cell, LZS) / it.gain(cell, DEFLATE)
}

fn more_important(it: &Parameters) -> Option<Finding> {
    let (better, faster) = (it.with_codecs(1.1, 1.0), it.with_codecs(1.0, 1.1));
    let quotient = |cell, codec| better.gain(cell, codec) / faster.gain(cell, codec);
    let shrinks = |(cell, codec): &(ParameterCell, usize)| it.compression(*cell, *codec).ratio.saving() > 0.0;
    let slow = both(it.cells().filter(|cell| cell.network < SLOW_NETWORKS)).filter(shrinks);
    let fast = both(it.cells().filter(|cell| cell.network > TEN)).filter(shrinks);
    let slow = more_than(ALMOST, &tally_of_both(it, slow, quotient, |quotient| quotient > 1.0))?;
    let fast = more_than(ALMOST, &tally_of_both(it, fast, quotient, |quotient| quotient < 1.0))?;
    Some((slow.0 && fast.0, format!("slow networks: {}. Fast ones: {}", slow.1, fast.1)))
}

fn were_lzs_slower(it: &Parameters) -> Option<Finding> {
    /// What LZS is faster by than DEFLATE, by section 5.2.
    const ORDER_OF_MAGNITUDE: u32 = 10;
    let share = |times: u32| {
        let slower = it.with_codecs(1.0, 1.0 / f64::from(times));
        let cells = it.cells().filter(|cell| cell.network == TEN);
        let quotient = |cell| slower.gain(cell, LZS) / it.gain(cell, DEFLATE);
        tally(it, cells, quotient, |it| it < 1.0).share()
    };
    let found = (1..=ORDER_OF_MAGNITUDE).find(|times| share(*times) > USUALLY);
    let now = share(1) * 100.0;
    Some(match found {
        Some(1) => (false, format!("in {now:.0} % of the cells as it is")),
        Some(times) => (
            true,
            format!(
                "in {now:.0} % of the cells as it is, in {:.0} % {times} times slower",
                share(times) * 100.0
            ),
        ),
        None => {
            let most = share(ORDER_OF_MAGNITUDE) * 100.0;
            (
                false,
                format!(
                    "in {now:.0} % of the cells as it is, in {most:.0} % {ORDER_OF_MAGNITUDE} times slower"
                ),
            )
        }
    })
}

fn by_means(it: &Parameters) -> Option<Finding> {
    let mean = |network: usize| {
        let cells: Vec<f64> = it
            .cells()
            .filter(|cell| cell.network == network)
            .map(|cell| lzs_over_deflate(it, cell).ln())
            .collect();
        (cells.iter().sum::<f64>() / cells.len() as f64).exp()
    };
    let means: Vec<f64> = (0..it.networks.len()).map(mean).collect();
    let as_said = |(network, mean): (usize, &f64)| match network {
        _ if network < SLOW_NETWORKS => *mean < 1.0,
        _ if network > TEN => *mean > 1.0,
        _ => true,
    };
    let words = means.iter().zip(&it.networks).map(|(mean, (name, _))| format!("{mean:.2} on {name}"));
    let words = words.collect::<Vec<_>>().join(", ");
    Some((means.iter().enumerate().all(as_said), format!("LZS over DEFLATE: {words}")))
}
