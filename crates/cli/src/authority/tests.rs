use std::os::unix::fs::MetadataExt;

use strait_keying::PrivateKey;
use strait_testbed::Workdir;

use super::*;

const NOW: u64 = 1_800_000_000;

fn card(seed: u8) -> String {
    let own = PrivateKey::generate(&[seed; 32]);
    let card = KeyCard::plain(format!("node-{seed}").parse().unwrap(), own.public());
    card.sign(&own)
}

fn flags(networks: &[&str]) -> AuthoritySign {
    AuthoritySign {
        dir: "x".into(),
        card: "x".into(),
        name: None,
        allowed_ips: networks.iter().map(|net| net.parse().unwrap()).collect(),
        endpoint: Some("gate.example:51820".to_owned()),
        days: 10,
        json: false,
    }
}

#[test]
fn an_authority_is_made_once_with_a_key_for_its_owner_only() {
    let dir = Workdir::create().unwrap();
    let path = dir.path().join("ca");
    let folder = AuthorityFolder::make(&path, NOW).unwrap();
    assert_eq!(std::fs::metadata(path.join(folder::KEY)).unwrap().mode() & 0o777, 0o600);
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
    let public = folder.public();
    assert_eq!(std::fs::read_to_string(path.join("authority.pub")).unwrap(), format!("{public}\n"));
    drop(folder);
    assert!(AuthorityFolder::make(&path, NOW).unwrap_err().to_string().contains("nothing is overwritten"));
    assert_eq!(AuthorityFolder::open(&path).unwrap().public(), public);
    let none = AuthorityFolder::open(dir.path()).unwrap_err().to_string();
    assert!(none.contains("authority.key"), "{none}");
}

#[test]
fn certificates_are_numbered_and_kept() {
    let dir = Workdir::create().unwrap();
    let folder = AuthorityFolder::make(&dir.path().join("ca"), NOW).unwrap();
    let one = issue(&folder, &flags(&["10.0.0.2/32", "10.0.0.1/32"]), &card(1), NOW).unwrap();
    let other = issue(&folder, &flags(&["10.0.0.3/32"]), &card(2), NOW).unwrap();
    assert_eq!((one.serial(), other.serial()), (1, 2));
    assert_eq!(one.terms().name.as_str(), "node-1");
    assert_eq!(one.valid(), (NOW - EARLIER, NOW + 10 * DAY));
    assert_eq!(folder.certificates().unwrap(), [one, other]);
    assert_eq!(day(NOW), "2027-01-15");
}

#[test]
fn what_another_node_has_is_not_given_away_until_it_is_revoked() {
    let dir = Workdir::create().unwrap();
    let folder = AuthorityFolder::make(&dir.path().join("ca"), NOW).unwrap();
    issue(&folder, &flags(&["10.0.0.1/32"]), &card(1), NOW).unwrap();
    let again = |seed, networks: &[&str], name: Option<&str>, now| {
        let flags = AuthoritySign { name: name.map(str::to_owned), ..flags(networks) };
        issue(&folder, &flags, &card(seed), now).map(|it| it.serial()).map_err(|failure| failure.to_string())
    };
    assert!(again(2, &["10.0.0.1/32"], None, NOW).unwrap_err().contains("another node has 10.0.0.1/32"));
    assert!(again(2, &["10.0.0.2/32"], Some("node-1"), NOW).unwrap_err().contains("is called node-1"));
    assert!(again(2, &["10.0.0.1/24"], None, NOW).unwrap_err().contains("write 10.0.0.0/24, or 10.0.0.1/32"));
    assert!(again(2, &["10.0.0.2/32"], Some("a b"), NOW).unwrap_err().contains("the name has to have"));
    assert_eq!(again(1, &["10.0.0.1/32"], None, NOW), Ok(2), "the same node is renewed");
    assert_eq!(add_revoked(&folder, &["node-1".to_owned()], NOW).unwrap(), (2, vec![1, 2]));
    assert_eq!(again(2, &["10.0.0.1/32"], Some("node-1"), NOW), Ok(3));
}

#[test]
fn lists_count_up_and_forget_what_has_expired() {
    let dir = Workdir::create().unwrap();
    let folder = AuthorityFolder::make(&dir.path().join("ca"), NOW).unwrap();
    assert_eq!((folder.list().unwrap().number(), folder.list().unwrap().serials().len()), (1, 0));
    issue(&folder, &flags(&["10.0.0.1/32"]), &card(1), NOW).unwrap();
    let revoke = |which: &str, now| add_revoked(&folder, &[which.to_owned()], now);
    assert_eq!(revoke("1", NOW).unwrap(), (2, vec![1]));
    assert!(revoke("1", NOW).unwrap_err().to_string().contains("revoked already"));
    assert!(revoke("south", NOW).unwrap_err().to_string().contains("no certificate is called south"));
    assert_eq!(folder.renew(&[], NOW + DAY).unwrap(), 3);
    let list = folder.list().unwrap();
    assert_eq!((list.serials(), list.issued()), (&[1][..], NOW + DAY));
    assert_eq!(folder.renew(&[], NOW + 11 * DAY).unwrap(), 4);
    assert_eq!(folder.list().unwrap().serials(), &[] as &[u64]);
}

#[test]
fn a_changed_certificate_or_list_in_the_folder_is_found() {
    let dir = Workdir::create().unwrap();
    let folder = AuthorityFolder::make(&dir.path().join("ca"), NOW).unwrap();
    let one = issue(&folder, &flags(&["10.0.0.1/32"]), &card(1), NOW).unwrap();
    let mut text = one.to_text();
    text.replace_range(100..101, if &text[100..101] == "A" { "B" } else { "A" });
    std::fs::write(folder.certificate_file(1), text).unwrap();
    assert!(folder.certificates().unwrap_err().to_string().contains("did not sign"));
    std::fs::write(dir.path().join("ca/revocations"), [1; 90]).unwrap();
    assert!(folder.list().unwrap_err().to_string().contains("did not sign"));
}
