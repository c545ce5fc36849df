use strait_keying::directory::{Answer, Question};

use strait_testbed::outside::Etcd;

use crate::place::{self, Directory, answer, certificate, find, folder, list, until};

fn section(etcd: &Etcd) -> String {
    format!("[etcd]\nurls = [\"{}\"]\n", etcd.url())
}

fn put_when_it_can(directory: &Directory, serial: u64, number: u32) {
    until("etcd takes it", || directory.put(&certificate(serial, number)).ok());
}

#[test]
fn what_one_directory_is_given_all_over_the_same_etcd_have() {
    let dir = folder();
    let Some(mut etcd) = place::etcd(dir.path(), None) else { return };
    let [one, other] = ["one", "other"].map(|name| Directory::start(dir.path(), name, &section(&etcd)));
    put_when_it_can(&one, 1, 1);
    assert!(matches!(one.ask(&find(1)), Answer::Certificate(_)));
    until("the other has it", || matches!(other.ask(&find(1)), Answer::Certificate(_)).then_some(()));

    // Who watches at one hears what the other is given.
    let mut watch = one.open();
    watch.say(&Question::Watch { certificates: true }).unwrap();
    while watch.hear().unwrap() != Answer::NoNews {}
    let revoked = list(1, &[1]);
    assert_eq!(other.put_list(&revoked), Ok(Answer::Stored));
    let heard = std::iter::repeat_with(|| watch.hear().unwrap()).find(|answer| *answer != Answer::NoNews);
    assert_eq!(heard, Some(Answer::List(revoked.as_bytes().into())));
    until("it is gone", || (one.ask(&find(1)) == Answer::NotFound).then_some(()));

    // A directory that begins later reads all, in pages.
    for number in 2..=300 {
        one.put(&certificate(number.into(), number)).unwrap();
    }
    let third = Directory::start(dir.path(), "third", &section(&etcd));
    for number in 2..=300 {
        until("the third has all", || {
            matches!(third.ask(&find(number)), Answer::Certificate(_)).then_some(())
        });
    }

    // Without etcd all that is known is served, and nothing is taken.
    etcd.kill();
    assert!(one.put(&certificate(400, 400)).unwrap_err().contains("etcd does not answer"));
    assert!(matches!(third.ask(&find(2)), Answer::Certificate(_)));
    etcd.run().unwrap();
    put_when_it_can(&one, 500, 500);
    for directory in [&other, &third] {
        until("the watch goes on", || {
            matches!(directory.ask(&find(500)), Answer::Certificate(_)).then_some(())
        });
    }
}

#[test]
fn what_others_write_to_etcd_is_taken_only_if_it_is_signed_and_newer() {
    let dir = folder();
    let Some(etcd) = place::etcd(dir.path(), None) else { return };
    let [one, other] = ["one", "other"].map(|name| Directory::start(dir.path(), name, &section(&etcd)));
    put_when_it_can(&one, 2, 1);
    until("the other has it", || matches!(other.ask(&find(1)), Answer::Certificate(_)).then_some(()));
    one.put_list(&list(5, &[])).unwrap();
    // Straight into etcd: an older list, an older certificate, and bytes.
    let put = |key: &str, value: &[u8]| {
        let body = format!("{{\"key\":\"{}\",\"value\":\"{}\"}}", base64(key.as_bytes()), base64(value));
        let url = format!("{}/v3/kv/put", etcd.url());
        let done = std::process::Command::new("curl")
            .args(["-sf", "-o", "/dev/null", "-d", &body, &url])
            .status()
            .unwrap();
        assert!(done.success());
    };
    put("/strait/list", list(4, &[2]).as_bytes());
    put("/strait/certificates/00000000000000000000000000000000", certificate(1, 1).as_bytes());
    put("/strait/certificates/00000000000000000000000000000001", b"nonsense");
    put("/strait/elsewhere", b"nonsense");
    put_when_it_can(&one, 3, 3);
    until("the other has what came after", || {
        matches!(other.ask(&find(3)), Answer::Certificate(_)).then_some(())
    });
    for directory in [&one, &other] {
        let Answer::Certificate(kept) = directory.ask(&find(1)) else { panic!("it was set back") };
        let authority = crate::place::authority().public();
        let kept = strait_keying::directory::Certificate::from_bytes(&kept, &authority).unwrap();
        assert_eq!(kept.serial(), 2);
        let Answer::List(bytes) = directory.ask(&Question::List(0)) else { panic!() };
        assert_eq!(
            strait_keying::directory::RevocationList::from_bytes(&bytes, &authority).unwrap().number(),
            5
        );
    }
    assert_ne!(answer(&certificate(1, 1)), one.ask(&find(1)));
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
