use std::os::unix::fs::MetadataExt;

use strait_testbed::Workdir;

use super::*;

const NOW: u64 = 1_790_000_000;

fn flags(file: &Path) -> flags::KeysCard {
    flags::KeysCard {
        file: file.to_string_lossy().into_owned(),
        days: 30,
        name: None,
        without_ml_kem: false,
        show: false,
        json: false,
    }
}

#[test]
fn a_card_of_a_key_file_says_whose_it_is_and_the_second_key_is_made_once() {
    let dir = Workdir::create().unwrap();
    let file = dir.path().join("site-a.key");
    let public = super::super::make(&file).unwrap();
    let line = make(&flags(&file), NOW).unwrap();
    assert_eq!(line.lines().count(), 1);
    let card = parse(&line).unwrap();
    assert_eq!((card.name.as_str(), card.key), ("site-a", public));
    assert_eq!(card.valid, (NOW - DAY, NOW + 30 * DAY));
    let second = kem_key_file(&file);
    assert_eq!(second.file_name().unwrap(), "site-a.key.ml-kem");
    assert_eq!(second.metadata().unwrap().mode() & 0o777, 0o600);
    let again = parse(&make(&flags(&file), NOW).unwrap()).unwrap();
    assert_eq!(again.kem, card.kem, "the same key");
    assert_eq!(read_kem(&second).unwrap().map(|key| key.public().clone()), card.kem);
    std::fs::write(&second, "precious").unwrap();
    let failure = make(&flags(&file), NOW).unwrap_err().to_string();
    assert!(failure.contains("is not an ML-KEM-768 key"), "{failure}");
    assert_eq!(std::fs::read_to_string(&second).unwrap(), "precious", "nothing is overwritten");
    let without = flags::KeysCard { without_ml_kem: true, name: Some("b".to_owned()), ..flags(&file) };
    // The file is of no use, and is told of also then.
    assert!(make(&without, NOW).is_err());
    std::fs::remove_file(&second).unwrap();
    let card = parse(&make(&without, NOW).unwrap()).unwrap();
    assert_eq!((card.name.as_str(), card.kem), ("b", None));
    assert!(!second.exists());
}

#[test]
fn a_card_of_a_configuration_says_what_it_sets() {
    let dir = Workdir::create().unwrap();
    let key = dir.path().join("k.key");
    let public = super::super::make(&key).unwrap();
    let file = dir.path().join("office.toml");
    let text = "[node]\nprivate_key_file = \"k.key\"\naddress = \"10.77.0.1\"\nmtu = 1300\nblock = 4096\n\
                suites = [\"aes-256-gcm\"]\n[link]\ndown = \"2Mbit\"\n";
    std::fs::write(&file, text).unwrap();
    let card = parse(&make(&flags(&file), NOW).unwrap()).unwrap();
    assert_eq!((card.name.as_str(), card.key), ("office", public));
    assert!(kem_key_file(&key).exists(), "beside the private key");
    let shown = as_json(&card, NOW);
    assert_eq!((&shown["inner_mtu"], &shown["block_bytes"]), (&json!(1300), &json!(4096)));
    assert_eq!(shown["suites"].as_array().unwrap().len(), 1);
    assert_eq!(shown["down_bits_per_second"], json!(2_000_000));
    assert_eq!(shown["validity"], "valid");
    let text = as_text(&card, NOW + 31 * DAY).unwrap();
    for words in ["office", &public.to_string(), "expired", "2026", "ML-KEM-768", "AES-256-GCM"] {
        assert!(text.to_lowercase().contains(&words.to_lowercase()), "{words}: {text}");
    }
    assert_eq!(validity(&card, NOW - 2 * DAY), "not yet valid");
}

#[test]
fn what_is_no_card_is_explained() {
    let dir = Workdir::create().unwrap();
    let file = dir.path().join("a.key");
    super::super::make(&file).unwrap();
    let line = make(&flags(&file), NOW).unwrap();
    let said = |given: &str| parse(given).unwrap_err().to_string();
    assert!(said("/nowhere").contains("No such file"), "{}", said("/nowhere"));
    let torn = line.replace('A', "B");
    assert!(said(&torn).contains("the line is a key card"), "{}", said(&torn));
    let place = dir.path().join("card");
    std::fs::write(&place, format!("{line}\n")).unwrap();
    assert!(parse(&place.to_string_lossy()).is_ok(), "a file with the line");
    std::fs::write(&place, "a letter").unwrap();
    assert!(said(&place.to_string_lossy()).contains("is not a key card"));
    let bad = flags::KeysCard { name: Some("two words".to_owned()), ..flags(&file) };
    let failure = make(&bad, NOW).unwrap_err().to_string();
    assert!(failure.contains("1 to 63 letters"), "{failure}");
    assert!(make(&flags(&place), NOW).is_err(), "neither a key nor a configuration");
}
