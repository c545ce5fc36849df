//! Seeds of what two nodes are told to do: configurations, and messages of the control channel.

use strait_keying::sessionless::{KEM_PUBLIC_LEN, KemPublic, KeyCard, MarkJournal, MarkTable};
use strait_keying::{PrivateKey, PublicKey};
use strait_node::saved::{SavedAmounts, SavedKind, SavedSample, SavedSeries};

use super::Seed;

pub fn configuration_seeds() -> Vec<Seed> {
    let template = strait_node::config::template(std::path::Path::new("site.key"));
    // Every suggestion of the template taken up: its comments explain, or suggest a line that can be read.
    let suggestion = |line: &str| {
        let bare = line.strip_prefix("# ").unwrap_or(line);
        let reads =
            bare.starts_with('[') || bare.split_once(" = ").is_some_and(|(key, _)| !key.contains(' '));
        reads.then(|| format!("{bare}\n"))
    };
    let full: String = template.lines().filter_map(suggestion).collect();
    vec![
        ("configuration", "template", template.clone().into_bytes()),
        ("configuration", "full", full.into_bytes()),
        ("configuration", "misspelt", template.replace("address", "adress").into_bytes()),
        ("configuration", "cut", template.as_bytes()[..template.len() / 2].to_vec()),
    ]
}

pub fn control_message_seeds() -> Vec<Seed> {
    let field = |tag: u8, value: &[u8]| {
        let [high, low] = u16::try_from(value.len()).unwrap().to_be_bytes();
        [&[tag, high, low], value].concat()
    };
    let terms = [
        field(1, &[4, 0, 0, 1]),
        field(2, &[7]),
        field(3, &[1, 0, 0, 3, 232, 2, 0, 0, 4, 76, 3, 0, 0, 15, 160]),
        field(4, &[15]),
        field(5, &[0, 1, 0, 0]),
        field(6, &[1]),
        field(7, &[0]),
        field(8, &[5, 140]),
    ]
    .concat();
    let rates =
        [field(9, &1_500_000_u64.to_be_bytes()), field(10, &[3, 253, 0, 0, 0, 0, 8, 240, 209, 128])].concat();
    let message = |kind: u8, parts: &[&[u8]]| [&[kind, 1], parts.concat().as_slice()].concat();
    vec![
        ("control_message", "offer", message(1, &[&terms])),
        ("control_message", "accept-with-rates", message(2, &[&terms, &rates])),
        ("control_message", "confirm", message(3, &[])),
        ("control_message", "unknown-field", message(1, &[&field(200, b"later"), &terms])),
        ("control_message", "field-twice", message(1, &[&terms, &field(2, &[1])])),
        ("control_message", "cut", message(1, &[&terms[..20]])),
    ]
}

pub fn key_card_seeds() -> Vec<Seed> {
    let own = PrivateKey::generate(&[3; 32]);
    let of = |kem| KeyCard {
        kem,
        valid: (1_767_225_600, 1_798_761_600),
        ..KeyCard::plain("north".parse().unwrap(), own.public())
    };
    let text = of(None).sign(&own);
    let with_kem = KemPublic::from_bytes(&[0; KEM_PUBLIC_LEN]).unwrap();
    let body = |kem| {
        let bytes = of(kem).to_bytes(&own);
        bytes[..bytes.len() - 64].to_vec()
    };
    let twice = [body(None), vec![1, 0, 1, b'a']].concat();
    let unknown = [body(None), vec![200, 0, 1, 7]].concat();
    vec![
        ("key_card", "text", text.clone().into_bytes()),
        ("key_card", "text-cut", text.as_bytes()[..200].to_vec()),
        ("key_card", "body", body(None)),
        ("key_card", "body-kem", body(Some(with_kem))),
        ("key_card", "body-cut", body(None)[..60].to_vec()),
        ("key_card", "field-twice", twice),
        ("key_card", "unknown-field", unknown),
        ("key_card", "other-version", vec![2; 80]),
    ]
}

pub fn mark_file_seeds() -> Vec<Seed> {
    let node = PublicKey::from_bytes([1; 32]);
    let mut table = MarkTable::new(node);
    table.raise(node, 1_000_000).unwrap();
    table.raise(PublicKey::from_bytes([2; 32]), 2_000_000).unwrap();
    let (mut journal, file) = MarkJournal::begin(&table);
    // Without the journal, which the target adds.
    let begun = file[..144].to_vec();
    let entry = journal.append(&[(node, 3_000_000)].into()).unwrap().bytes;
    let with_entry = [&file[..4096], &entry[..80]].concat();
    let of = |settings: u8, bytes: &[u8]| [&[settings], bytes].concat();
    let mut later = with_entry.clone();
    later.resize(8192, 0);
    later.extend_from_slice(&journal.append(&[(node, 4_000_000)].into()).unwrap().bytes[..80]);
    later[4096 + 30] ^= 1;
    let writes: Vec<u8> = (0..32).flat_map(|number| [number << 3, number, 1, number]).collect();
    vec![
        ("mark_file", "table", of(3, &begun)),
        ("mark_file", "table-cut", of(1, &begun[..60])),
        ("mark_file", "table-alone", of(1, &begun)),
        ("mark_file", "entry", of(3, &with_entry)),
        ("mark_file", "entry-spoilt", of(3, &later)),
        ("mark_file", "other-version", of(3, b"straitM\x02")),
        ("mark_file", "nothing", of(1, &[])),
        ("mark_file", "writes", of(0, &writes)),
        ("mark_file", "torn", of(0, &[0, 1, 0, 9, 3, 60, 0, 10, 2, 1, 0, 11, 4, 255, 0, 12])),
        ("mark_file", "spoilt", of(0, &[0, 1, 0, 9, 0, 2, 0, 9, 5, 0x10, 0x18, 1, 7, 0, 0, 0])),
    ]
}

pub fn saved_seeds() -> Vec<Seed> {
    /// A noon, and the next day.
    const NOON: u64 = 1_790_000_000 / 86_400 * 86_400 + 43_200;
    let amounts = SavedAmounts { sent_bytes: 1_000_000, sent_wire_bytes: 300_000, ..SavedAmounts::default() };
    let minute = SavedSample { amounts, packets: [800, 3], rate: 2_000_000, ..SavedSample::default() };
    let mut series = SavedSeries::new(SavedKind::Peer, "site-b");
    series.add(NOON, &minute);
    series.add(NOON + 86_400, &minute);
    // Without checksums, which the target adds.
    let blocks: Vec<u8> = series.to_bytes().chunks(256).flat_map(|block| block[..252].to_vec()).collect();
    let of =
        |at: u64, bytes: u32, blocks: &[u8]| [&at.to_be_bytes()[..], &bytes.to_be_bytes(), blocks].concat();
    // The name, and what comes after it as far as there is something.
    let some = &blocks[..252 * 3];
    vec![
        ("saved", "whole", of(NOON, 70_000, &blocks)),
        ("saved", "next-day", of(NOON + 86_400, 1, some)),
        ("saved", "some", of(NOON, 2_047, some)),
        ("saved", "cut", of(NOON, 9, &blocks[..600])),
        ("saved", "name-alone", of(u64::MAX, u32::MAX, &blocks[..252])),
        ("saved", "nothing", of(0, 0, &[])),
    ]
}
