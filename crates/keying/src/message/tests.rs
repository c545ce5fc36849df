use proptest::prelude::*;
use strait_compress::history::cache::CacheCapacity;
use strait_compress::{Codec, CodecSet};
use strait_crypto::{Ranking, Suite, SuiteSet};
use strait_ipsec::{CacheList, DomainCache, DomainTag, HistoryTerms, IvMode, ReportWish};
use strait_scheduler::{LinkRate, Rate};
use strait_wire::Spi;

use super::*;
use crate::agreement::PairAgreement;

fn capabilities() -> Capabilities {
    Capabilities {
        ranking: Ranking { nanos_per_packet: [1_000, 1_200, 4_000, 1_000] },
        down: Rate::from_bits(1_500_000).into(),
        expansion: Expansion::from_iter([(Codec::Zstd, 16_000), (Codec::Lz4, 5_000)]),
        ..Capabilities::typical()
    }
}

fn offer() -> Message {
    Message::Offer(SessionTerms { spi: Spi(0x0456_789a), capabilities: capabilities() })
}

/// A message without its length.
fn body(message: &Message) -> Vec<u8> {
    message.emit()[2..].to_vec()
}

/// A message of `kind` with these fields.
fn crafted(kind: u8, fields: &[(u8, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![kind, VERSION];
    for (tag, value) in fields {
        bytes.push(*tag);
        bytes.extend_from_slice(&u16::try_from(value.len()).unwrap().to_be_bytes());
        bytes.extend_from_slice(value);
    }
    bytes
}

/// The fields of `offer()`, to change one of them.
fn fields() -> Vec<(u8, Vec<u8>)> {
    let bytes = body(&offer());
    let (mut rest, mut fields) = (&bytes[2..], Vec::new());
    while let [tag, high, low, after @ ..] = rest {
        let (value, next) = after.split_at(usize::from(u16::from_be_bytes([*high, *low])));
        fields.push((*tag, value.to_vec()));
        rest = next;
    }
    fields
}

fn parse_fields(fields: &[(u8, Vec<u8>)]) -> Result<Message, MessageError> {
    let borrowed: Vec<(u8, &[u8])> = fields.iter().map(|(tag, value)| (*tag, value.as_slice())).collect();
    Message::parse(&crafted(OFFER, &borrowed))
}

#[test]
fn emitted_bytes_are_those_written_by_hand() {
    assert_eq!(Message::Confirm.emit(), [0, 2, 3, 1]);
    let bytes = offer().emit();
    assert_eq!(usize::from(u16::from_be_bytes([bytes[0], bytes[1]])), bytes.len() - 2);
    assert_eq!(bytes[2..11], [1, 1, 1, 0, 4, 0x04, 0x56, 0x78, 0x9a]);
}

#[test]
fn truncation_is_an_error_at_every_length() {
    let bytes = body(&offer());
    let mut whole_fields = 0;
    for len in 0..bytes.len() {
        match Message::parse(&bytes[..len]) {
            Err(MessageError::Truncated { at, need }) => {
                assert!(at == len && need >= 1, "{len}: {at} {need}")
            }
            Err(MessageError::Missing { .. }) => whole_fields += 1,
            // The last fields, rate, reports and measurements, may be absent.
            Ok(message) => assert_ne!(message, offer(), "{len}"),
            Err(other) => panic!("{len}: {other}"),
        }
    }
    assert_eq!(whole_fields, 8, "one for the head and for each required field but the last");
}

#[test]
fn unknown_fields_are_skipped() {
    let mut fields = fields();
    fields.insert(0, (200, vec![1, 2, 3]));
    fields.push((0x7f, Vec::new()));
    assert_eq!(parse_fields(&fields), Ok(offer()));
}

#[test]
fn a_field_missing_twice_or_of_another_length_is_refused() {
    let original = fields();
    for (place, (tag, value)) in original.iter().enumerate() {
        let optional = matches!(
            *tag,
            capabilities::DOWN
                | capabilities::DELIVERY
                | capabilities::REPORTS
                | capabilities::REPAIR
                | capabilities::EXPANSION
                | capabilities::COSTS
                | capabilities::LANES
        );
        let mut without = original.clone();
        without.remove(place);
        assert_eq!(parse_fields(&without).is_ok(), optional, "without {tag}");

        let mut twice = original.clone();
        twice.push((*tag, value.clone()));
        assert!(matches!(parse_fields(&twice), Err(MessageError::Twice { .. })), "twice {tag}");

        for len in [0, value.len() - 1, value.len() + 1] {
            let mut other = original.clone();
            other[place].1.resize(len, 0);
            let list = len == 0 && matches!(*tag, capabilities::EXPANSION | capabilities::COSTS);
            assert_eq!(parse_fields(&other).is_ok(), list, "{tag} with {len} bytes");
        }
    }
}

#[test]
fn values_out_of_range_are_refused() {
    let table: [(u8, &[u8]); 8] = [
        (SPI, &[0x03, 0xff, 0xff, 0xff]),
        (SPI, &[0x10, 0, 0, 0]),
        (SPI, &[0, 0, 0, 0]),
        (SPI, &[0xff, 0xff, 0xff, 0xff]),
        (capabilities::IV, &[2]),
        (capabilities::FORMAT, &[0xff]),
        (capabilities::DOWN, &[0; 8]),
        (capabilities::DOWN, &[0xff; 8]),
    ];
    for (tag, value) in table {
        let mut fields = fields();
        let place = fields.iter().position(|(known, _)| *known == tag).unwrap();
        fields[place].1 = value.to_vec();
        assert!(matches!(parse_fields(&fields), Err(MessageError::Value { .. })), "{tag} {value:?}");
    }
}

#[test]
fn unknown_kind_version_or_length_is_refused() {
    assert_eq!(Message::parse(&[]), Err(MessageError::Truncated { at: 0, need: 2 }));
    assert_eq!(Message::parse(&[CONFIRM]), Err(MessageError::Truncated { at: 1, need: 1 }));
    assert_eq!(Message::parse(&[CONFIRM, VERSION]), Ok(Message::Confirm));
    for kind in (0..=u8::MAX).filter(|kind| !(OFFER..=CONFIRM).contains(kind)) {
        assert_eq!(Message::parse(&[kind, VERSION]), Err(MessageError::Kind(kind)));
    }
    for version in (0..=u8::MAX).filter(|version| *version != VERSION) {
        assert_eq!(Message::parse(&[CONFIRM, version]), Err(MessageError::Version(version)));
    }
    let mut most = crafted(CONFIRM, &[(250, &vec![0; MAX_LEN - 5])]);
    assert_eq!(most.len(), MAX_LEN);
    assert_eq!(Message::parse(&most), Ok(Message::Confirm));
    most.push(0);
    assert_eq!(Message::parse(&most), Err(MessageError::TooLong { given: MAX_LEN + 1 }));
}

#[test]
fn a_suite_without_a_cost_is_the_last_choice() {
    let mut fields = fields();
    let place = fields.iter().position(|(tag, _)| *tag == capabilities::COSTS).unwrap();
    fields[place].1 = vec![99, 0, 0, 0, 1, Suite::Aes256Gcm.id(), 0, 0, 0, 7];
    let Ok(Message::Offer(terms)) = parse_fields(&fields) else { panic!("not an offer") };
    assert_eq!(terms.capabilities.ranking.cost(Suite::Aes256Gcm), 7);
    assert_eq!(terms.capabilities.ranking.order()[0], Suite::Aes256Gcm);
}

#[test]
fn capabilities_without_delivery_field_mean_no_reports() {
    let down = |fields: &[(u8, Vec<u8>)]| match parse_fields(fields) {
        Ok(Message::Offer(terms)) => Ok((terms.capabilities.delivery, terms.capabilities.down)),
        other => Err(format!("{other:?}")),
    };
    let said: Vec<_> = fields().into_iter().filter(|(tag, _)| *tag != capabilities::DELIVERY).collect();
    let given = LinkRate::Given(Rate::from_bits(1_500_000).unwrap());
    assert_eq!(down(&said), Ok((DeliveryReporting::Untold, given)));
    let unpaced: Vec<_> = said.into_iter().filter(|(tag, _)| *tag != capabilities::DOWN).collect();
    let with = |value: u8| [&unpaced[..], &[(capabilities::DELIVERY, vec![value])]].concat();
    assert_eq!(down(&unpaced), Ok((DeliveryReporting::Untold, LinkRate::Unpaced)));
    assert_eq!(down(&with(0)), Ok((DeliveryReporting::Reported, LinkRate::Unpaced)));
    assert_eq!(down(&with(1)), Ok((DeliveryReporting::Reported, LinkRate::Auto)));
    let error = MessageError::Value { field: "delivery", given: 2 };
    assert_eq!(parse_fields(&with(2)), Err(error));
}

#[test]
fn an_end_that_does_not_say_what_it_does_with_reports_gets_them_often() {
    let said = fields();
    let silent: Vec<_> = said.into_iter().filter(|(tag, _)| *tag != capabilities::REPORTS).collect();
    let reports = |fields: &[(u8, Vec<u8>)]| match parse_fields(fields) {
        Ok(Message::Offer(terms)) => Ok(terms.capabilities.reports),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error),
    };
    let with = |value: u8| [&silent[..], &[(capabilities::REPORTS, vec![value])]].concat();
    assert_eq!(reports(&silent), Ok(ReportWish::Often));
    assert_eq!(reports(&with(0)), Ok(ReportWish::Changes));
    assert_eq!(reports(&with(1)), Ok(ReportWish::Often));
    assert_eq!(reports(&with(2)), Err(MessageError::Value { field: "reports", given: 2 }));
}

#[test]
fn the_ends_are_as_fast_as_both_have_said() {
    let mine = capabilities();
    let theirs = Capabilities {
        ranking: Ranking { nanos_per_packet: [5_000, 6_000, 2_000, 5_000] },
        expansion: Expansion::from_iter([(Codec::Zstd, 48_000), (Codec::Deflate, 1)]),
        ..capabilities()
    };
    let ends = mine.ends(&theirs, Suite::ChaCha20Poly1305);
    // Half of 4,000 and of 2,000 ns for a packet of 1,400 bytes.
    assert!((ends.here.crypto.0 - 2_000e-9 / 1_400.0).abs() < 1e-15);
    assert!((ends.there.handling.crypto.0 - 1_000e-9 / 1_400.0).abs() < 1e-15);
    // Three times as long for Zstandard; nothing to compare of the others.
    assert_eq!(ends.there.expand, [1.0, 1.0, 1.0, 3.0, 1.0]);
}

#[test]
fn a_peer_without_the_repair_field_repairs_nothing() {
    let repair = |fields: &[(u8, Vec<u8>)]| match parse_fields(fields) {
        Ok(Message::Offer(terms)) => terms.capabilities.repair,
        other => panic!("{other:?}"),
    };
    assert_eq!(repair(&fields()), LossRepair::Unpaced);
    let older: Vec<_> = fields().into_iter().filter(|(tag, _)| *tag != capabilities::REPAIR).collect();
    assert_eq!(repair(&older), LossRepair::Off);
    let with = |value: u8| [&older[..], &[(capabilities::REPAIR, vec![value])]].concat();
    assert_eq!(repair(&with(1)), LossRepair::Paced);
    assert_eq!(repair(&with(0xfe)), LossRepair::Unpaced, "bits of newer nodes");
}

fn any_capabilities() -> impl Strategy<Value = Capabilities> {
    let sets = (0..16_u8, any::<u8>(), any::<[bool; 2]>(), any::<Option<bool>>(), 0..3_usize);
    let numbers = (
        any::<[u32; Suite::COUNT]>(),
        any::<u32>(),
        any::<u16>(),
        proptest::option::of(500..1_000_000_000_u64),
    );
    let speeds = proptest::collection::vec((0..5_u8, any::<u32>()), 0..64);
    let cache = (any::<u64>(), 4..1_000_u64).prop_map(|(tag, mib)| DomainCache {
        domain: DomainTag(tag),
        capacity: CacheCapacity::new(mib << 20).unwrap(),
    });
    let caches = proptest::collection::vec(cache, 0..10);
    (sets, numbers, speeds, caches).prop_map(
        |((suites, codecs, [iv, format], told, repair), (costs, cap, mtu, down), speeds, caches)| {
            let ranking = Ranking { nanos_per_packet: costs };
            Capabilities {
                suites: SuiteSet::from_bits(suites),
                ranking: Ranking { nanos_per_packet: Suite::ALL.map(|suite| ranking.cost(suite)) },
                codecs: CodecSet::from_bits(codecs),
                block_cap: cap,
                iv: if iv { IvMode::Explicit } else { IvMode::Implicit },
                format: if format { PayloadFormat::Standard } else { PayloadFormat::Strait },
                inner_mtu: mtu,
                down: match (told, down) {
                    (Some(true), _) => LinkRate::Auto,
                    (_, down) => down.and_then(Rate::from_bits).into(),
                },
                delivery: if told.is_some() {
                    DeliveryReporting::Reported
                } else {
                    DeliveryReporting::Untold
                },
                reports: if mtu % 2 == 0 { ReportWish::Often } else { ReportWish::Changes },
                repair: [LossRepair::Unpaced, LossRepair::Paced, LossRepair::Off][repair],
                history: match mtu % 3 {
                    0 => HistoryTerms::NONE,
                    _ => HistoryTerms { contexts: mtu, epoch: cap, caches: CacheList::of(caches) },
                },
                direct: if cap % 2 == 0 { DirectEsp::Off } else { DirectEsp::Taken },
                lanes: cap % 3 == 0,
                expansion: speeds
                    .into_iter()
                    .filter_map(|(codec, nanos)| Some((Codec::from_id(codec)?, nanos)))
                    .collect(),
            }
        },
    )
}

proptest! {
    #[test]
    fn round_trip(capabilities in any_capabilities(), spi in SPIS, accept: bool) {
        let terms = SessionTerms { spi: Spi(spi), capabilities };
        let message = if accept { Message::Accept(terms) } else { Message::Offer(terms) };
        let bytes = message.emit();
        prop_assert!(bytes.len() <= MAX_LEN + 2);
        prop_assert_eq!(Message::parse(&bytes[2..]), Ok(message));
    }

    #[test]
    fn never_panics_on_any_input(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Message::parse(&bytes);
        let mut headed = vec![OFFER, VERSION];
        headed.extend_from_slice(&bytes);
        let _ = Message::parse(&headed);
    }

    #[test]
    fn message_with_one_changed_byte_is_refused_or_round_trips(at in 0..200_usize, with: u8) {
        let mut bytes = body(&offer());
        let at = at % bytes.len();
        bytes[at] = with;
        if let Ok(message) = Message::parse(&bytes) {
            prop_assert_eq!(Message::parse(&body(&message)), Ok(message));
        }
    }
}

#[test]
fn an_end_that_does_not_say_that_it_takes_esp_behind_ip_takes_none() {
    let said = |bytes: Option<Vec<u8>>| {
        let field = bytes.map(|bytes| vec![(capabilities::DIRECT, bytes)]).unwrap_or_default();
        match parse_fields(&[fields(), field].concat()) {
            Ok(Message::Offer(terms)) => Ok(terms.capabilities.direct),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error),
        }
    };
    assert_eq!([said(None), said(Some(vec![0]))], [Ok(DirectEsp::Off), Ok(DirectEsp::Off)]);
    assert_eq!(said(Some(vec![1])), Ok(DirectEsp::Taken));
    assert_eq!(said(Some(vec![2])), Err(MessageError::Value { field: "direct", given: 2 }));
    assert_eq!(said(Some(vec![1, 1])), Err(MessageError::Length { field: "direct", given: 2 }));
}

#[test]
fn an_end_that_does_not_say_that_it_takes_pieces_of_streams_takes_none() {
    let said = |bytes: Option<Vec<u8>>| {
        let mut fields = fields();
        fields.retain(|(tag, _)| *tag != capabilities::LANES);
        fields.extend(bytes.map(|bytes| (capabilities::LANES, bytes)));
        match parse_fields(&fields) {
            Ok(Message::Offer(terms)) => Ok(terms.capabilities.takes_lanes()),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error),
        }
    };
    assert_eq!([None, Some(vec![0]), Some(vec![1])].map(said), [Ok(false), Ok(false), Ok(true)]);
    assert_eq!(said(Some(vec![2])), Err(MessageError::Value { field: "lanes", given: 2 }));
    let standard = Capabilities { format: PayloadFormat::Standard, ..Capabilities::typical() };
    assert!(!standard.takes_lanes());
}

#[test]
fn what_is_kept_is_the_least_of_both_and_nothing_where_one_end_does_not_say_it() {
    let with = |history| Capabilities { history, ..capabilities() };
    let mine = with(HistoryTerms { contexts: 256, epoch: 1, ..HistoryTerms::NONE });
    let agreed = |theirs: &Capabilities| PairAgreement::of(&mine, theirs).unwrap().history;
    let fewer = with(HistoryTerms { contexts: 9, epoch: 2, ..HistoryTerms::NONE });
    let both = HistoryTerms { contexts: 9, epoch: 2, ..HistoryTerms::NONE };
    assert_eq!(agreed(&fewer), HistoryTerms { epoch: 3, ..both });
    let nothing = HistoryTerms::NONE;
    assert_eq!(agreed(&capabilities()), nothing);
    assert_eq!(agreed(&Capabilities { format: PayloadFormat::Standard, ..fewer }), nothing);
    let said = |bytes: Vec<u8>| match parse_fields(&[fields(), vec![(capabilities::HISTORY, bytes)]].concat())
    {
        Ok(Message::Offer(terms)) => Ok(terms.capabilities.history),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error),
    };
    assert_eq!(said(vec![0, 9, 0, 0, 0, 2]), Ok(both));
    assert_eq!(said(vec![0, 0, 0, 0, 0, 2]), Ok(HistoryTerms::NONE), "no contexts are no history");
    assert_eq!(said(vec![0, 9]), Err(MessageError::Length { field: "history", given: 2 }));
}
