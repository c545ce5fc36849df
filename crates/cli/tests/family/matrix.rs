//! The cases that are tried.

use std::collections::BTreeSet;

use strait_crypto::{Cipher, Integrity, Suite};
use strait_testdata::thorough::all_or;

use crate::case::{Ah, Case, Esp, Mode, Version};
use crate::tried::kind;

/// What ESP is tried with: the suites, AES-CBC with each HMAC of RFC 4868, and what old peers have.
const ESP: [Esp; 9] = [
    Esp::Combined(Suite::Aes128Gcm),
    Esp::Combined(Suite::Aes256Gcm),
    Esp::Combined(Suite::ChaCha20Poly1305),
    Esp::Combined(Suite::Aes128Gcm12),
    Esp::Separate(Cipher::Aes128Cbc, Some(Integrity::HmacSha256_128)),
    Esp::Separate(Cipher::Aes192Cbc, Some(Integrity::HmacSha384_192)),
    Esp::Separate(Cipher::Aes256Cbc, Some(Integrity::HmacSha512_256)),
    Esp::Separate(Cipher::TripleDesCbc, Some(Integrity::HmacSha1_96)),
    Esp::Separate(Cipher::Null, Some(Integrity::HmacMd5_96)),
];

/// Bundles of this size make fragments of full packets; of the other one they hold several.
const BUNDLES: [u16; 2] = [400, 1400];

/// Names words that a case's name must have to be tried, such as `tunnel esn`.
const CHOICE: &str = "STRAIT_TEST_CASES";

/// The cases to try, each with its number among all of them: those that [`CHOICE`] names, or else all, of which `make test` takes
/// those that [`every_value`] gives.
pub(crate) fn chosen() -> Vec<(u16, Case)> {
    let numbered = (0..).zip(matrix());
    if let Ok(choice) = std::env::var(CHOICE) {
        let is_chosen =
            |name: String| choice.split_whitespace().all(|word| name.split(' ').any(|it| it == word));
        return numbered.filter(|(_, case)| is_chosen(case.to_string())).collect();
    }
    let (all, few) = (matrix(), every_value());
    if all_or(&format!("{} of {} cases of IPsec", all.len() - few.len(), all.len())) {
        return numbered.collect();
    }
    numbered.filter(|(_, case)| few.contains(case)).collect()
}

/// So many cases that each algorithm, mode, size, version of IP, length of numbers and carrier is in one of them, with each kind of
/// protocols that a case can have.
fn every_value() -> Vec<Case> {
    let mut seen = BTreeSet::new();
    let mut few: Vec<Case> = Vec::new();
    // From both ends in turn: neighbours differ in one value only.
    let all = matrix();
    for (one, other) in all.iter().zip(all.iter().rev()).take(all.len().div_ceil(2)) {
        for case in [one, other] {
            let news = values(*case).into_iter().filter(|value| seen.insert(value.clone())).count();
            if news > 0 {
                few.push(*case);
            }
        }
    }
    few
}

/// The values of a case, one in each dimension.
fn values(case: Case) -> [String; 7] {
    [
        format!("{:?}", case.esp),
        format!("{:?}", case.ah),
        format!("{:?}", case.mode),
        format!("{:?}", case.outer),
        format!("esn {}", case.esn),
        format!("udp {}", case.udp),
        kind(case),
    ]
}

/// Every case, in a steady order.
pub(crate) fn matrix() -> Vec<Case> {
    let mut cases = Vec::new();
    for esp in ESP {
        let case = Case::EMPTY.esp(esp);
        cases.extend([case, Case { udp: true, ..case }].into_iter().flat_map(numbers).flat_map(modes));
    }
    for integrity in [Integrity::HmacSha1_96, Integrity::HmacSha256_128] {
        cases.extend(numbers(Case::EMPTY.ah(integrity)).into_iter().flat_map(modes));
    }
    let padded = Some(Ah { integrity: Integrity::HmacSha256_128, padded: true });
    cases.extend([Mode::Transport, Mode::Tunnel].map(|mode| Case { ah: padded, mode, ..Case::EMPTY }));
    for (esp, ah) in [
        (Esp::Combined(Suite::Aes128Gcm), Integrity::HmacSha256_128),
        (Esp::Separate(Cipher::Aes128Cbc, None), Integrity::HmacSha256_128),
        (Esp::Separate(Cipher::TripleDesCbc, Some(Integrity::HmacSha1_96)), Integrity::HmacSha1_96),
    ] {
        cases.extend(numbers(Case::EMPTY.esp(esp).ah(ah)).into_iter().flat_map(modes));
    }
    cases.extend(compressed().into_iter().flat_map(modes));
    cases.extend(BUNDLES.into_iter().flat_map(bundled));
    cases
}

/// IPComp alone and inside each of the others.
fn compressed() -> [Case; 6] {
    let aes = Esp::Separate(Cipher::Aes128Cbc, Some(Integrity::HmacSha256_128));
    let gcm = Esp::Combined(Suite::Aes128Gcm);
    let case = Case::EMPTY.ipcomp();
    [
        case,
        case.esp(gcm),
        case.esp(aes),
        Case { udp: true, ..case.esp(gcm) },
        case.ah(Integrity::HmacSha1_96),
        case.esp(gcm).ah(Integrity::HmacSha256_128),
    ]
}

/// Bundles with both lengths of sequence numbers and both carriers, over both versions.
fn bundled(size: u16) -> Vec<Case> {
    let case = Case { mode: Mode::Aggfrag(size), ..Case::EMPTY.esp(Esp::Combined(Suite::Aes128Gcm)) };
    let cases = [case, Case { udp: true, ..case }].into_iter().flat_map(numbers);
    cases.flat_map(|case| [Version::V4, Version::V6].map(|outer| Case { outer, ..case })).collect()
}

/// A case with both lengths of sequence numbers.
fn numbers(case: Case) -> [Case; 2] {
    [false, true].map(|esn| Case { esn, ..case })
}

/// A case in both modes, over both versions of IP.
fn modes(case: Case) -> [Case; 4] {
    let all = [
        (Mode::Transport, Version::V4),
        (Mode::Transport, Version::V6),
        (Mode::Tunnel, Version::V4),
        (Mode::Tunnel, Version::V6),
    ];
    all.map(|(mode, outer)| Case { mode, outer, ..case })
}

#[test]
fn every_case_has_a_name_of_its_own() {
    let names: BTreeSet<String> = matrix().iter().map(ToString::to_string).collect();
    assert_eq!(names.len(), matrix().len());
    // Nine kinds of ESP over both carriers, two of AH, two padded ones, three of both, each with two lengths of numbers in
    // two modes over two versions; six with IPComp; two sizes of bundles.
    assert_eq!(names.len(), 9 * 2 * 8 + 2 * 8 + 2 + 3 * 8 + 6 * 4 + 2 * 8);
    assert!(names.contains("ah hmac-sha-256-128 esp aes-128-gcm ipcomp transport ipv6"), "{names:#?}");
    assert!(names.contains("esp 3des-cbc hmac-sha-1-96 tunnel ipv4 esn udp"), "{names:#?}");
}

#[test]
fn the_few_cases_have_every_value_of_all_cases() {
    let of = |cases: Vec<Case>| -> BTreeSet<String> { cases.into_iter().flat_map(values).collect() };
    assert_eq!(of(every_value()), of(matrix()));
    assert!(every_value().len() * 3 < matrix().len(), "{}", every_value().len());
}
