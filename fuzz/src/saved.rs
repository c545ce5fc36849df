//! The file of what was saved: whatever is in a series, adding to it is counted, and what is written is the same when it is read again.

use strait_node::saved::{SavedAmounts, SavedSample, SavedSeries};

/// Bytes of a block before its checksum, and blocks of a series.
const BLOCK: usize = 252;
const BLOCKS: usize = 635;

/// A time, a number of bytes, and then blocks, which get their checksums here.
pub fn check(data: &[u8]) {
    let Some((at, rest)) = data.split_first_chunk() else { return };
    let Some((bytes, rest)) = rest.split_first_chunk() else { return };
    let (at, bytes) = (u64::from_be_bytes(*at), u64::from(u32::from_be_bytes(*bytes)));
    let mut stored = Vec::new();
    for part in rest.chunks(BLOCK).take(BLOCKS) {
        let mut block = [0; BLOCK];
        block[..part.len()].copy_from_slice(part);
        stored.extend_from_slice(&block);
        stored.extend_from_slice(&crc32fast::hash(&block).to_be_bytes());
    }
    let Some(mut series) = SavedSeries::stored(&stored) else { return };
    let before = series.hour(at);
    let amounts = SavedAmounts { sent_bytes: bytes, ..SavedAmounts::default() };
    series.add(at, &SavedSample { amounts, ..SavedSample::default() });
    let hour = series.hour(at);
    let sum = before.sent_bytes + bytes;
    // A later time than the file has numbers for counts nowhere.
    assert!(
        hour == before || hour.sent_bytes <= sum && sum - hour.sent_bytes <= sum / 1_024,
        "{before:?} {hour:?} {bytes}"
    );
    assert!(series.between(at, at).sent_bytes == hour.sent_bytes);
    let again = SavedSeries::stored(&series.to_bytes()).expect("what was written is read");
    assert_eq!(again.name(), series.name());
    let of = |series: &SavedSeries| (series.hour(at), series.minute(at), series.second(at));
    assert_eq!(of(&again), of(&series));
}
