use super::*;
use chain::{BEST_SPEED, Compression, Encryption};
use claims::rules::RULES;
use layer::Sink;
use layer::encrypt::AesBy;
use layer::record::RecordSuite;
use printed::TABLE;
use strait_crypto::Suite;

/// A payload through a chain, into memory.
fn sent(chain: Chain, bytes: &[u8]) -> Vec<u8> {
    match run::pump(bytes, chain.sender(Sink::Memory(Vec::new())).unwrap()).unwrap() {
        Sink::Memory(sent) => sent,
        _ => panic!("not in memory"),
    }
}

fn stored(chain: Chain, wire: &[u8]) -> std::io::Result<Vec<u8>> {
    let sink = run::pump(wire, chain.receiver(Sink::Memory(Vec::new())).unwrap())?;
    match sink {
        Sink::Memory(stored) => Ok(stored),
        _ => panic!("not in memory"),
    }
}

#[test]
fn payloads_shrink_as_they_are_said_to() {
    for len in [QUICK.1, LEN] {
        let expected = [10.0..=12.0, 3.0..=4.0, 0.99..=1.0];
        for (payload, expected) in BrokerPayload::generated(len).into_iter().zip(expected) {
            assert_eq!(payload.bytes.len(), len);
            let chain = Chain { compression: Compression::Deflate(BEST_SPEED), ..Chain::BARE };
            let ratio = len as f64 / sent(chain, &payload.bytes).len() as f64;
            assert!(expected.contains(&ratio), "{} of {len} bytes: {ratio:.2}", payload.name);
        }
    }
}

#[test]
fn what_the_broker_stores_is_what_was_meant() {
    // Not a multiple of any block, chunk or record.
    let [payload, ..] = BrokerPayload::generated(300_001);
    let bytes = &payload.bytes;
    for chain in Chain::papers().into_iter().chain(Chain::advised()) {
        let inside = sent(Chain { records: None, ..chain }, bytes);
        assert_eq!(stored(chain, &sent(chain, bytes)).unwrap(), inside, "{chain}");
        let expanded = |stored: &[u8]| {
            let mut out = vec![0; bytes.len() + 1];
            let (made, _) = zlib_rs::decompress_slice(&mut out, stored, zlib_rs::InflateConfig::default());
            made.to_vec()
        };
        if chain.encryption == Encryption::None {
            let plain = if chain.compression == Compression::None { inside } else { expanded(&inside) };
            assert!(plain == *bytes, "{chain}");
        }
    }
    // What encrypts only changes and fills; a second pass of RC4 gives the text again.
    let rc4 = Chain { encryption: Encryption::Rc4(128), ..Chain::BARE };
    assert!(sent(rc4, &sent(rc4, bytes)) == *bytes);
    let [by_instructions, by_tables] = [AesBy::Instructions, AesBy::Tables]
        .map(|by| sent(Chain { encryption: Encryption::Aes(256, by), ..Chain::BARE }, bytes));
    assert!(by_instructions == by_tables && by_tables.len() == 300_001 + 15);
}

#[test]
fn a_record_that_was_changed_is_refused() {
    for records in [RecordSuite::Rc4Md5, RecordSuite::NullSha256] {
        let chain = Chain { records: Some(records), ..Chain::BARE };
        let mut wire = sent(chain, &[7; 40_000]);
        assert_eq!(stored(chain, &wire).unwrap(), [7; 40_000]);
        assert!(stored(chain, &wire[..wire.len() - 1]).is_err());
        wire[20_000] ^= 1;
        assert!(stored(chain, &wire).is_err());
        // A length that no record has.
        wire[3..5].copy_from_slice(&[0xff, 0xff]);
        assert!(stored(chain, &wire).is_err());
    }
}

#[test]
fn todays_layers_open_again() {
    let [payload, ..] = BrokerPayload::generated(200_000);
    let chains = today::chains();
    assert_eq!(chains.len(), 3 + 2 * 5 + 2);
    let lens: Vec<usize> = chains.iter().map(|chain| sent(*chain, &payload.bytes).len()).collect();
    for (chain, len) in chains.iter().zip(&lens) {
        assert_eq!(chain.compression == Compression::None, *len > payload.bytes.len(), "{chain}: {len}");
    }
    // 13 records of 16 KiB, each with a tag.
    let sealed = Chain { encryption: Encryption::Suite(Suite::Aes128Gcm), ..Chain::BARE };
    assert_eq!(sent(sealed, &payload.bytes).len(), 200_000 + 13 * 16);
    let lz4 = sent(Chain { compression: Compression::Lz4, ..Chain::BARE }, &payload.bytes);
    let (mut rest, mut back) = (&lz4[..], Vec::new());
    while let Some((head, behind)) = rest.split_first_chunk() {
        let (block, behind) = behind.split_at(u32::from_le_bytes(*head) as usize);
        let mut out = vec![0; 1 << 16];
        let mut codecs = strait_compress::Codecs::new();
        let len = codecs.expand(strait_compress::Codec::Lz4, block, &mut out).unwrap();
        back.extend_from_slice(&out[..len]);
        rest = behind;
    }
    assert!(back == payload.bytes);
}

/// Figures of which every sentence is true, and of which none is.
fn figures() -> [BrokerFigures; 2] {
    let some = |cells: [f64; 8]| cells.map(|cell| (cell > 0.0).then_some(cell));
    let disk = |compressed| some([100.0, compressed, 0.0, 0.0, 80.0, 60.0, 40.0, 35.0]);
    let slow = |gain: f64| some([100.0, gain, 100.0, gain, 100.0, gain, 100.0, gain]);
    let fast = some([100.0, 85.0, 70.0, 65.0, 100.0, 90.0, 72.0, 66.0]);
    let wrong = some([100.0, 120.0, 100.0, 70.0, 60.0, 30.0, 50.0, 40.0]);
    [
        BrokerFigures {
            less: Some([disk(45.0), fast, slow(300.0)]),
            rc4_load: Some([40.0, 1.0]),
            keys: Some([[1.0, 1.0, 1.05], [1.0, 1.2, 1.4]]),
            levels: Some([(10.0, 1.0), (10.5, 2.0), (10.9, 9.0)]),
            ..BrokerFigures::of([disk(50.0), fast, slow(1050.0)])
        },
        BrokerFigures {
            less: Some([disk(45.0), wrong, slow(900.0)]),
            rc4_load: Some([60.0, 6.0]),
            keys: Some([[1.0, 1.0, 1.2], [1.0, 1.0, 1.05]]),
            levels: Some([(10.0, 1.0), (10.5, 1.5), (12.0, 9.0)]),
            ..BrokerFigures::of([disk(50.0), wrong, slow(500.0)])
        },
    ]
}

fn verdicts(figures: &BrokerFigures) -> Vec<Option<bool>> {
    RULES.iter().map(|rule| (rule.judge)(figures).map(|(holds, _)| holds)).collect()
}

#[test]
fn every_sentence_can_hold_and_can_fail() {
    for (figures, expected) in figures().iter().zip([true, false]) {
        let others: Vec<&str> = RULES
            .iter()
            .zip(verdicts(figures))
            .filter(|(_, verdict)| *verdict != Some(expected))
            .map(|(rule, _)| rule.words)
            .collect();
        assert_eq!(others, Vec::<&str>::new(), "{expected}");
    }
}

#[test]
fn the_posts_own_table_does_not_say_all_that_its_sentences_do() {
    let failing: Vec<&str> = RULES
        .iter()
        .zip(verdicts(&BrokerFigures::printed()))
        .filter(|(_, verdict)| *verdict == Some(false))
        .map(|(rule, _)| rule.words.split(' ').next().unwrap())
        .collect();
    assert_eq!(failing, ["When", "Hence", "and", "and"]);
    assert!(TABLE[printed::SLOW].iter().step_by(2).all(|cell| *cell == Some(100.0)));
}

#[test]
fn the_report_has_the_table_and_what_the_post_says() {
    let given = BrokerPayload {
        name: "mine".to_owned(),
        bytes: b"a line\n".repeat(30_000),
        note: "given".to_owned(),
    };
    let mut told = Vec::new();
    let made = broker(Effort::Quick, Some(given), None, &mut |step| told.push((step.done, step.of))).unwrap();
    let steps = told.len();
    assert!(told.into_iter().enumerate().all(|(at, step)| step == (at, steps)));
    let report = &made.report;
    let [counts, intensities, .., mine] = &report.tables[..4] else { panic!("too few tables") };
    assert!(counts.is_in_paper() && !intensities.is_in_paper() && mine.is_in_paper());
    assert_eq!(mine.subject, "speeds, mine");
    for row in &counts.rows {
        assert_eq!(row.cells[0].compared, Some(1.0), "{}", row.name);
        assert_eq!(row.cells[2].compared.is_none(), row.name == "disk to disk");
    }
    assert_eq!(report.claims.len(), RULES.len());
    assert!(report.claims.iter().all(|claim| !claim.judgements.is_empty()));
    // The post prints no load of RC4 beside the sentence; what its row for disks says is computed.
    let load = report.claims.iter().find(|claim| claim.words.contains("30-50%")).unwrap();
    assert!(load.judgements.iter().all(|it| it.figures != FigureSource::Printed));
    let computed = load.judgements.iter().find(|it| it.figures == FigureSource::Computed);
    assert_eq!(computed.map(|it| it.because.as_str()), Some("34.6 %"));
    assert_eq!(made.figures.len(), 5);
    for figure in &made.figures {
        assert!(figure.drawing().svg().starts_with("<svg "), "{}", figure.name);
    }
}

#[test]
fn a_file_that_cannot_be_used_is_named() {
    let folder = Workdir::create().unwrap();
    let path = folder.path().join("empty.tsv");
    std::fs::write(&path, []).unwrap();
    let said = |path: &Path| BrokerPayload::read(path).unwrap_err().to_string();
    assert!(said(&path).contains("empty.tsv is empty") && said(&path).contains("--file"));
    assert!(said(folder.path()).contains("cannot be read"));
    std::fs::write(&path, b"a\tb\n").unwrap();
    let payload = BrokerPayload::read(&path).unwrap();
    assert_eq!((payload.name.as_str(), &payload.bytes[..]), ("empty.tsv", &b"a\tb\n"[..]));
}
