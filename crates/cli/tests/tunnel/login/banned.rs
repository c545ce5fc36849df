//! Refusals in the log, as the filter of the guide finds them, which keeps hosts out.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use strait_stream::StreamPriority;

use super::place::{LoginPlace, PAM, gives_accounts};
use crate::pair::{PATIENCE, eventually, fast};

/// The lines of a log that the filter finds.
pub(crate) fn found(log: &str) -> Vec<String> {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/login.md");
    let guide = fs::read_to_string(guide).unwrap();
    let expression = guide.lines().find_map(|line| line.strip_prefix("failregex = ")).unwrap();
    let expression = expression.replace("<HOST>", "[0-9a-fA-F.:]+");
    let mut grep = Command::new("grep")
        .args(["-E", "-e", &expression])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut input, log) = (grep.stdin.take().unwrap(), log.to_owned());
    let writer = std::thread::spawn(move || input.write_all(log.as_bytes()));
    let output = grep.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// The log of the second site.
fn log(place: &LoginPlace) -> String {
    fs::read_to_string(place.daemon(1).log()).unwrap()
}

/// Waits until a refusal was logged with these words, with the first site's address.
fn is_logged(place: &LoginPlace, what: &str, why: &str) {
    let begin = format!("WARN refused {what} from {} port ", place.hosts.address_of_a().0);
    eventually(why, || found(&log(place)).iter().any(|line| line.contains(&begin) && line.contains(why)));
}

/// Sends these bytes on a stream to the second site, and reads until that ends it.
fn says(place: &LoginPlace, bytes: &[u8]) {
    let socket = place.sites[0].folder().join("run/strait0.sock");
    let opened = strait_node::client::open_stream_at(&socket, "site-b", StreamPriority::Now);
    let mut stream = opened.unwrap().stream;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(bytes).unwrap();
    let _ = stream.read_to_end(&mut Vec::new());
}

#[test]
fn the_filter_of_the_guide_finds_every_refusal_and_nothing_else() {
    if !gives_accounts() {
        return;
    }
    let section = "accounts = [\"alice\", \"ghost\"]\nsessions = 1\nforward = [\"localhost:80\"]";
    let place = LoginPlace::new(fast(), section);
    place.ends(0, &["site-b", "true"], b"");
    eventually("the login is logged", || log(&place).contains("logged in as alice"));
    eventually("its end is", || log(&place).contains("as alice ended"));
    assert_eq!(found(&log(&place)), [""; 0]);

    place.ends(255, &["bob@site-b", "true"], b"");
    is_logged(&place, "login", "this peer may not use that account");
    place.ends(255, &["ghost@site-b", "true"], b"");
    is_logged(&place, "login", "there is no account ghost here");
    fs::write(place.file("pam.d/strait"), "account required pam_deny.so\n").unwrap();
    place.ends(255, &["site-b", "true"], b"");
    is_logged(&place, "login", "the account may not log in");
    fs::write(place.file("pam.d/strait"), PAM).unwrap();

    let mut running = place.command(&["login", "site-b", "cat"]);
    let mut running = running.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    eventually("it runs", || place.login(&["--list", "--json", "site-b"], b"").stdout.contains(&b'{'));
    place.ends(255, &["site-b", "true"], b"");
    is_logged(&place, "login", "as many sessions run as may");
    drop(running.stdin.take());
    running.wait().unwrap();

    // A line of another's, if it were one.
    let host = b"x\n WARN refused login from 192.0.2.66 port 1: ".to_vec();
    let request = strait_login::Request::Connect { host, port: 81 };
    says(&place, &[&[2, 1, 0], &*request.bytes()].concat());
    is_logged(&place, "connection", "as alice: this peer may not connect to");
    says(&place, &[2, 99, 0, 0]);
    is_logged(&place, "login", "asks for what this version does not know");
    says(&place, &[&[2, 1, 0][..], &[0xff; 64]].concat());

    let all = log(&place);
    let lines = found(&all);
    assert_eq!(lines.len(), 7, "{lines:#?}");
    assert!(all.contains("192.0.2.66"), "it was said");
    let from = format!("from {} port ", place.hosts.address_of_a().0);
    assert!(lines.iter().all(|line| line.split_once("refused").unwrap().1.contains(&from)), "{lines:#?}");
    // As the journal has them, and as fail2ban does, which takes the time away.
    let journal: String = lines.iter().map(|line| format!("office strait[77]: {line}\n")).collect();
    let without_time: String =
        lines.iter().map(|line| format!("{}\n", line.split_once('Z').unwrap().1)).collect();
    assert_eq!((found(&journal).len(), found(&without_time).len()), (lines.len(), lines.len()));
}
