//! Seeds of what carries files: units, ids of chunks, patches.

use std::io::Write;

use strait_clock::Time;
use strait_compress::Calibration;
use strait_fuzz::delta_messages::old_file;
use strait_fuzz::delta_patch::{key, signature};
use strait_model::BitRate;
use strait_stream::unit::UnitWriter;
use strait_transfer::delta::{DeltaKnown, DeltaPlanner, SentChunks};

use super::Seed;

/// Streams of a few units: stored, LZ4, Zstandard with history and control between.
pub fn unit_seeds() -> Vec<Seed> {
    let stream = |megabits: f64| {
        let mut writer = UnitWriter::new(Vec::new(), || Time::ZERO, Calibration::assumed());
        writer.set_limit(BitRate::megabits(megabits));
        for part in [&b"the first unit says it again and again, "[..], b"and the second one does not "] {
            writer.write_all(&part.repeat(6)).unwrap();
            writer.flush().unwrap();
            writer.control().unwrap();
            writer.write_all(&b"control ".repeat(20)).unwrap();
            writer.data().unwrap();
        }
        writer.begin_history().unwrap();
        writer.write_all(b"short").unwrap();
        writer.flush().unwrap();
        writer.into_inner()
    };
    let lz4 = [&[2, 0, 0, 0, 8, 0, 0, 20][..], &[0x1f, b'a', 1, 0, 0, 0x10, b'b', 0]].concat();
    let beyond = [0x19, 0, 0, 0, 6, 0, 0, 9, 0, 0x40, 0x02, 0, 0x10, b'a'];
    vec![
        ("unit", "thin-link", stream(1.5)),
        ("unit", "fast-link", stream(900.0)),
        ("unit", "lz4", lz4),
        ("unit", "bomb", beyond.to_vec()),
        ("unit", "unknown-coding", vec![7, 0, 0, 0, 1, 0, 0, 1, 9]),
        ("unit", "too-long", vec![1, 0, 0, 0, 9, 0xff, 0xff, 0xff, 0]),
        ("unit", "reserved", vec![1, 1, 0, 0, 1, 0, 0, 1, 0]),
    ]
}

/// Ids, questions and answers, with the kind of message before each.
pub fn delta_message_seeds() -> Vec<Seed> {
    let old = old_file();
    let signature = signature(&old);
    let ids = signature.message(0).unwrap();
    let in_two = |first: &[u8], second: &[u8]| {
        let len = u16::try_from(first.len()).unwrap().to_be_bytes();
        [&[0][..], &len, first, second].concat()
    };
    // Without its last id, which a second message with the same head brings.
    let (head, last) = (ids.len() % 8, ids.len() - 8);
    let second = [&ids[..head], &ids[last..]].concat();
    let fine =
        signature.fine(&strait_transfer::delta::FineAsk::parse(&[0, 2]).unwrap(), &mut &old[..]).unwrap();
    vec![
        ("delta_messages", "ids", in_two(&ids, &[])),
        ("delta_messages", "ids-in-two", in_two(&ids[..last], &second)),
        ("delta_messages", "ids-too-many", in_two(&ids, &second)),
        ("delta_messages", "question", vec![1, 0, 1, 2, 1, 8, 40]),
        ("delta_messages", "question-empty-run", vec![1, 0, 0]),
        ("delta_messages", "answer", [&[2][..], &fine.message()].concat()),
    ]
}

/// Patches of the target's own file, and two files.
pub fn delta_patch_seeds() -> Vec<Seed> {
    let old = old_file();
    let mut new = old.clone();
    new.splice(20_000..20_100, *b"something else");
    new.drain(..300);
    let signature = signature(&old);
    let ranges = || std::iter::once(0..new.len() as u64);
    let mut planner = DeltaPlanner::new(DeltaKnown::Ids(signature.ids()), key(), new.len() as u64, ranges());
    let plan = planner.next_window(&mut &new[..], &mut SentChunks::default(), None).unwrap().unwrap();
    let fine = signature.fine(plan.ask(), &mut &old[..]).unwrap();
    let patch = planner.patch(&plan, &fine, &mut &new[..]).unwrap().message();
    let known = DeltaKnown::Kept(strait_fuzz::delta_patch::signature(&old));
    let mut planner = DeltaPlanner::new(known, key(), new.len() as u64, ranges());
    let plan = planner.next_window(&mut &new[..], &mut SentChunks::default(), None).unwrap().unwrap();
    let kept = planner.patch_kept(&plan, &mut &new[..], &mut &old[..]).unwrap().message();
    let files = |old: &[u8], new: &[u8]| {
        let len = u16::try_from(old.len()).unwrap().to_be_bytes();
        [&[1][..], &len, old, new].concat()
    };
    let text = b"a line of text that both files have, more or less\n".repeat(30);
    vec![
        ("delta_patch", "patch", [&[0][..], &patch].concat()),
        ("delta_patch", "patch-kept", [&[0][..], &kept].concat()),
        ("delta_patch", "files", files(&text, &text[100..1_200])),
        ("delta_patch", "files-empty", files(b"", b"new")),
    ]
}
