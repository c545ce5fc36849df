//! What keeps a peer out, or in bounds: modules of PAM that say no or nothing, limits, another key, a closed host.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::banned::found;
use super::place::{LoginPlace, PAM, gives_accounts};
use crate::pair::{PATIENCE, eventually, fast};

const ALICE: &str = "accounts = [\"alice\"]";

#[test]
fn modules_of_pam_that_refuse_or_lack_say_so() {
    if !gives_accounts() {
        return;
    }
    let place = LoginPlace::with_pam(fast(), ALICE, "account required pam_deny.so\n");
    let (_, errors) = place.ends(255, &["site-b", "true"], b"");
    assert!(errors.contains("the account may not log in"), "{errors}");
    fs::remove_file(place.file("pam.d/strait")).unwrap();
    let (_, errors) = place.ends(255, &["site-b", "true"], b"");
    assert!(errors.contains("there is no /etc/pam.d/strait"), "{errors}");
    // A module that asks for a password gets none.
    let ask = format!("account required pam_exec.so quiet /bin/false\n{PAM}");
    fs::write(place.file("pam.d/strait"), ask).unwrap();
    place.ends(255, &["site-b", "true"], b"");
    fs::write(place.file("pam.d/strait"), PAM).unwrap();
    place.ends(0, &["site-b", "true"], b"");
    let shadow = fs::read_to_string(place.file("shadow")).unwrap();
    fs::write(
        place.file("shadow"),
        shadow.replace("alice:*:19000:0:99999:7:::", "alice:*:19000:0:99999:7::2:"),
    )
    .unwrap();
    let (_, errors) = place.ends(255, &["site-b", "true"], b"");
    assert!(errors.contains("expired"), "{errors}");
}

#[test]
fn modules_of_pam_are_told_an_address_and_no_name_that_name_servers_are_asked_for() {
    if !gives_accounts() {
        return;
    }
    let place = LoginPlace::new(fast(), ALICE);
    let (script, told) = (place.file("told.sh"), place.file("told"));
    fs::write(&script, format!("#!/bin/sh\necho \"$PAM_RHOST\" >> '{}'\n", told.display())).unwrap();
    fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    let pam = format!("account required pam_exec.so quiet {}\n{PAM}", script.display());
    fs::write(place.file("pam.d/strait"), pam).unwrap();
    place.ends(0, &["site-b", "true"], b"");
    let told = fs::read_to_string(told).unwrap();
    assert!(!told.is_empty() && told.lines().all(|address| address == "198.18.0.1"), "{told}");
}

#[test]
fn a_module_of_pam_that_hangs_is_ended() {
    if !gives_accounts() {
        return;
    }
    let pam = format!("account required pam_exec.so quiet /bin/sleep 60\n{PAM}");
    let place = LoginPlace::with_pam(fast(), ALICE, &pam);
    let begun = Instant::now();
    let (_, errors) = place.ends(255, &["site-b", "true"], b"");
    assert!(errors.contains("(PAM) took too long"), "{errors}");
    let log = place.daemon(1).log();
    eventually("it is logged", || {
        fs::read_to_string(&log).unwrap().contains("it was killed: what the system")
    });
    assert!(found(&fs::read_to_string(&log).unwrap()).iter().any(|line| line.contains("it was killed")));
    assert!(begun.elapsed() < PATIENCE);
    fs::write(place.file("pam.d/strait"), PAM).unwrap();
    place.ends(0, &["site-b", "true"], b"");
}

#[test]
fn nologin_keeps_all_out_but_root() {
    if !gives_accounts() {
        return;
    }
    let place = LoginPlace::new(fast(), "accounts = [\"alice\", \"root\"]");
    place.ends(0, &["root@site-b", "echo closed > /run/nologin"], b"");
    let (_, errors) = place.ends(255, &["site-b", "true"], b"");
    assert!(errors.contains("closed"), "{errors}");
    place.ends(0, &["root@site-b", "rm /run/nologin"], b"");
    place.ends(0, &["site-b", "true"], b"");
}

#[test]
fn logins_are_recorded_and_a_full_record_hinders_none() {
    if !gives_accounts() {
        return;
    }
    let place = LoginPlace::new(fast(), "accounts = [\"alice\", \"root\"]");
    let mut screen = place.terminal(&["site-b"], 80, 24);
    screen.ready("");
    let who = || place.ends(0, &["root@site-b", "who"], b"").0;
    let said = who();
    assert!(said.contains("alice") && said.contains("pts/") && said.contains("(site-a)"), "{said}");
    screen.types("exit\r");
    screen.ends();
    eventually("the end is recorded", || !who().contains("alice"));
    if fs::metadata("/var/log/wtmp").is_ok() {
        assert!(fs::metadata(place.file("wtmp")).unwrap().len() > 0);
    }
    // Full, and not there.
    place.ends(0, &["root@site-b", "mount --bind /dev/full /run/utmp; test -c /run/utmp"], b"");
    let (out, _) = place.ends(0, &["-t", "site-b", "echo still"], b"");
    assert!(out.contains("still"));
    place.ends(0, &["root@site-b", "umount --lazy /run/utmp; rm /run/utmp"], b"");
    place.ends(0, &["-t", "site-b", "true"], b"");
}

#[test]
fn a_peer_has_as_many_sessions_as_it_may_and_those_of_another_are_not_told() {
    if !gives_accounts() {
        return;
    }
    let place = LoginPlace::new(fast(), "accounts = [\"alice\", \"bob\"]\nsessions = 2");
    let mut running = Vec::new();
    for who in ["site-b", "bob@site-b"] {
        let mut command = place.command(&["login", who, "cat"]);
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        running.push(command.spawn().unwrap());
    }
    // Each account tells of its own.
    let count = |who: &str| place.ends(0, &["--list", "--json", who], b"").0.matches("\"session\"").count();
    eventually("both are there", || (count("site-b"), count("bob@site-b")) == (1, 1));
    let (_, errors) = place.ends(255, &["site-b", "true"], b"");
    assert!(errors.contains("as many sessions run as may"), "{errors}");
    for mut child in running {
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    }
    eventually("there is room again", || place.login(&["site-b", "true"], b"").status.success());
}

/// The answer of the second site to a client that wants a connection to a port, where nothing listens.
fn connection(place: &LoginPlace, host: &str, port: u16) -> String {
    let socket = place.sites[0].folder().join("run/strait0.sock");
    let mut stream =
        strait_node::client::open_stream_at(&socket, "site-b", strait_stream::StreamPriority::Now)
            .unwrap()
            .stream;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = strait_login::Request::Connect { host: host.as_bytes().to_vec(), port };
    std::io::Write::write_all(&mut stream, &[&[2, 1, 0], &*request.bytes()].concat()).unwrap();
    let mut said = Vec::new();
    std::io::Read::read_to_end(&mut stream, &mut said).unwrap();
    String::from_utf8_lossy(&said).into_owned()
}

#[test]
fn connections_are_made_only_where_they_may_be_and_the_account_may_log_in() {
    if !gives_accounts() {
        return;
    }
    let listed = format!("{ALICE}\nforward = [\"127.0.0.1:1\", \"inward.test:2\"]");
    let mut place = LoginPlace::new(fast(), &listed);
    let log = |place: &LoginPlace| fs::read_to_string(place.daemon(1).log()).unwrap();
    let said = connection(&place, "127.0.0.1", 1);
    assert!(said.contains("Connection refused"), "nothing listens there: {said}");
    eventually("it is logged", || log(&place).contains("no connection to 127.0.0.1:1 as alice"));
    // Another port, the same host by its name, and a listed name that means this host.
    for (host, port, entry) in [
        ("127.0.0.1", 2, "127.0.0.1:2"),
        ("outward.test", 1, "192.0.2.7:1"),
        ("inward.test", 2, "127.0.0.1:2"),
    ] {
        let said = connection(&place, host, port);
        assert!(said.contains(&format!("forward = [\"{entry}\"]")), "{host}:{port}: {said}");
        let line = format!("to {host}:{port} as alice");
        eventually("it is logged", || found(&log(&place)).iter().any(|it| it.contains(&line)));
    }
    fs::write(place.file("pam.d/strait"), "account required pam_deny.so\n").unwrap();
    let said = connection(&place, "127.0.0.1", 1);
    assert!(said.contains("the account may not log in"), "{said}");
    let denied = "to 127.0.0.1:1 as alice: the account may not log in";
    eventually("it is logged", || found(&log(&place)).iter().any(|line| line.contains(denied)));
    fs::write(place.file("pam.d/strait"), PAM).unwrap();

    let passwd = fs::read_to_string(place.file("passwd")).unwrap();
    let alice = passwd.lines().find(|line| line.starts_with("alice:")).unwrap();
    let kept_out = alice.replace("/bin/bash", "/usr/sbin/nologin");
    fs::write(place.file("passwd"), passwd.replace(alice, &kept_out)).unwrap();
    let said = connection(&place, "127.0.0.1", 1);
    assert!(said.contains("/etc/shells") && said.contains("/usr/sbin/nologin"), "{said}");
    fs::write(place.file("passwd"), passwd).unwrap();

    place.stop(1);
    place.start(1, ALICE);
    place.wait_for_session();
    let said = connection(&place, "127.0.0.1", 1);
    assert!(said.contains("may not connect to 127.0.0.1:1 here"), "{said}");
    place.ends(0, &["site-b", "true"], b"");
}

#[test]
fn a_peer_that_is_refused_without_end_fills_no_log() {
    if !gives_accounts() {
        return;
    }
    let place = LoginPlace::new(fast(), ALICE);
    let socket = place.sites[0].folder().join("run/strait0.sock");
    for _ in 0..120 {
        let opened =
            strait_node::client::open_stream_at(&socket, "site-b", strait_stream::StreamPriority::Now);
        let mut stream = opened.unwrap().stream;
        // With the first byte of a request, before which no process hears of it.
        std::io::Write::write_all(&mut stream, &[&[2, 1, 3][..], b"bob\0"].concat()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let _ = std::io::Read::read(&mut stream, &mut [0; 512]);
    }
    let log = || fs::read_to_string(place.daemon(1).log()).unwrap();
    // The budget comes back, and with it how many were left out.
    eventually("what was left out is said", || {
        place.ends(255, &["bob@site-b", "true"], b"");
        log().contains("such lines left out")
    });
    let lines = found(&log()).len();
    assert!((1..100).contains(&lines), "{lines} lines");
}

#[test]
fn a_stream_that_says_nothing_is_ended() {
    if !gives_accounts() {
        return;
    }
    let place = LoginPlace::new(fast(), ALICE);
    let opened = strait_node::client::open_stream_at(
        &place.sites[0].folder().join("run/strait0.sock"),
        "site-b",
        strait_stream::StreamPriority::Now,
    );
    let mut stream = opened.unwrap().stream;
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // The service, its version, no name, and half a request.
    std::io::Write::write_all(&mut stream, &[2, 1, 0, 1]).unwrap();
    let begun = Instant::now();
    assert_eq!(std::io::Read::read(&mut stream, &mut [0; 16]).unwrap_or(0), 0);
    assert!(begun.elapsed() < PATIENCE);
    let log = || fs::read_to_string(place.daemon(1).log()).unwrap();
    eventually("it is logged", || found(&log()).iter().any(|line| line.contains("has not said within")));
    // Nonsense gets a refusal, and harms nothing.
    for nonsense in [&[0xff_u8; 4096][..], &[0; 4096], b"GET / HTTP/1.1\r\n\r\n"] {
        let opened = strait_node::client::open_stream_at(
            &place.sites[0].folder().join("run/strait0.sock"),
            "site-b",
            strait_stream::StreamPriority::Now,
        );
        let mut stream = opened.unwrap().stream;
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        std::io::Write::write_all(&mut stream, &[&[2, 1, 0], nonsense].concat()).unwrap();
        let _ = std::io::Read::read(&mut stream, &mut [0; 512]);
    }
    place.ends(0, &["site-b", "true"], b"");
}

#[test]
fn a_client_with_another_key_gets_no_session_and_is_told() {
    if !gives_accounts() {
        return;
    }
    let mut place = LoginPlace::new(fast(), ALICE);
    place.ends(0, &["site-b", "true"], b"");
    place.stop(0);
    let key = place.sites[0].key_file();
    fs::remove_file(&key).unwrap();
    let made =
        place.sites[0].host.command(crate::pair::program()).args(["keygen", "--out"]).arg(&key).output();
    assert!(made.unwrap().status.success());
    place.start(0, "");
    let (_, errors) = place.ends(255, &["site-b", "true"], b"");
    assert!(!errors.is_empty(), "no reason given");
    println!("{errors}");
}
