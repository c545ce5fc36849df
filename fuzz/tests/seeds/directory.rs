//! Seeds of what a directory of keys says and is told.

use strait_keying::directory::{Answer, Certificate, CertificateTerms, HEAD_LEN, Question, RevocationList};
use strait_keying::sessionless::{
    DAILY_FILE_LEN, DailyKeys, Day, KeyCard, OwnDailyKeys, key_name, text_name,
};
use strait_keying::{PrivateKey, SIGNATURE_LEN};
use strait_wire::sessionless::Name;

use super::Seed;

pub fn directory_seeds() -> Vec<Seed> {
    let (authority, own) = (PrivateKey::generate(&[9; 32]), PrivateKey::generate(&[3; 32]));
    let card = KeyCard {
        valid: (1_767_225_600, 1_798_761_600),
        ..KeyCard::plain("north".parse().unwrap(), own.public())
    };
    let issue = |endpoint: Option<&str>, networks: &[&str]| {
        let terms = CertificateTerms {
            serial: 7,
            name: "north".parse().unwrap(),
            networks: networks.iter().map(|net| net.parse().unwrap()).collect(),
            valid: (1_767_225_600, 1_798_761_600),
            endpoint: endpoint.map(str::to_owned),
        };
        Certificate::issue(&authority, &terms, &card.sign(&own)).unwrap()
    };
    let list = |serials: &[u64]| {
        RevocationList::issue(&authority, 2, 1_767_225_600, serials.iter().copied()).unwrap()
    };
    let full = issue(Some("gate.example:51820"), &["10.77.0.2/32", "fd00:77::/64"]);
    let seed = |kind: u8, bytes: &[u8]| [&[kind], bytes].concat();
    let body = |bytes: &[u8]| bytes[..bytes.len() - SIGNATURE_LEN].to_vec();
    let certificate = body(full.as_bytes());
    let question = |question: Question| seed(3, &question.to_bytes()[HEAD_LEN..]);
    let answer = |answer: Answer| seed(4, &answer.to_bytes()[HEAD_LEN..]);
    let address = |text: &str| Name::address(text.parse().unwrap());
    let seeds = [
        ("text", seed(0, full.to_text().as_bytes())),
        ("text-cut", seed(0, &full.to_text().as_bytes()[..100])),
        ("text-card", seed(0, card.sign(&own).as_bytes())),
        ("certificate", seed(1, &certificate)),
        ("certificate-plain", seed(1, &body(issue(None, &[]).as_bytes()))),
        ("certificate-cut", seed(1, &certificate[..90])),
        ("certificate-field-twice", seed(1, &[&certificate[..], &[1, 0, 1, 7]].concat())),
        ("certificate-unknown-field", seed(1, &[&certificate[..], &[200, 0, 1, 7]].concat())),
        ("certificate-other-version", seed(1, &[2; 80])),
        ("list", seed(2, &body(list(&[3, 9]).as_bytes()))),
        ("list-empty", seed(2, &body(list(&[]).as_bytes()))),
        ("list-cut", seed(2, &body(list(&[3, 9]).as_bytes())[..30])),
        ("find-key", question(Question::Find(key_name(&own.public())))),
        ("find-name", question(Question::Find(text_name("north")))),
        ("find-v4", question(Question::Find(address("10.77.0.2")))),
        ("find-v6", question(Question::Find(address("fd00:77::1")))),
        ("ask-list", question(Question::List(3))),
        ("watch", question(Question::Watch { certificates: true })),
        ("put", question(Question::PutCertificate(full.as_bytes().into()))),
        ("put-list", question(Question::PutList(list(&[3]).as_bytes().into()))),
        ("watch-all", question(Question::WatchAll)),
        ("find-daily-keys", question(Question::FindDailyKeys(key_name(&own.public())))),
        ("put-daily-keys", question(Question::PutDailyKeys(daily_keys(&own).as_bytes().into()))),
        ("daily-keys", answer(Answer::DailyKeys(daily_keys(&own).as_bytes().into()))),
        ("found", answer(Answer::Certificate(full.as_bytes().into()))),
        ("none", answer(Answer::NotFound)),
        ("newer-list", answer(Answer::List(list(&[3]).as_bytes().into()))),
        ("no-news", answer(Answer::NoNews)),
        ("stored", answer(Answer::Stored)),
        ("refused", answer(Answer::Refused("the list is older".to_owned()))),
    ];
    seeds.into_iter().map(|(name, bytes)| ("directory", name, bytes)).collect()
}

fn daily_keys(own: &PrivateKey) -> DailyKeys {
    DailyKeys::sign(own, 1_767_225_600_000_000, Day(20_454), &[[4; 32], [5; 32]])
}

pub fn daily_keys_seeds() -> Vec<Seed> {
    let own = PrivateKey::generate(&[9; 32]);
    let keys = daily_keys(&own);
    let body = &keys.as_bytes()[..keys.as_bytes().len() - SIGNATURE_LEN];
    let mut file = vec![0; DAILY_FILE_LEN];
    for write in OwnDailyKeys::new(own.public()).roll(20_454 * 86_400, &[7; 32]) {
        let at = write.at as usize;
        file[at..at + write.bytes.len()].copy_from_slice(write.bytes.as_slice());
    }
    let mut torn = file.clone();
    torn[20_455 % 16 * 64 + 10] ^= 1;
    let seed = |kind: u8, bytes: &[u8]| [&[kind], bytes].concat();
    let kept = |day: u32, file: &[u8]| seed(1, &[&day.to_be_bytes()[..], file].concat());
    let seeds = [
        ("published", seed(0, body)),
        ("published-none", seed(0, &[&body[..45], &[0]].concat())),
        ("published-cut", seed(0, &body[..60])),
        ("published-other-version", seed(0, &[2; 46])),
        ("kept", kept(20_454, &file)),
        ("kept-torn", kept(20_455, &torn)),
        ("kept-long-ago", kept(20_800, &file)),
        ("kept-nothing", kept(20_454, &[])),
    ];
    seeds.into_iter().map(|(name, bytes)| ("daily_keys", name, bytes)).collect()
}
