//! What is tried.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

use strait_testbed::kerberos::{OTHER_REALM, REALM, Realms, SERVER, shift_clock};

use super::ends::EndSettings;

/// The service that the acceptor is.
const SERVICE: &str = "strait@server.strait.test";

/// A case by its name.
type Case = (&'static str, fn(&Realms));

/// All of them. They run one after the other.
pub(crate) const ALL: &[Case] = &[
    ("a_right_ticket_proves_both_ends", a_right_ticket_proves_both_ends),
    ("a_principal_gets_the_account_of_auth_to_local", a_principal_gets_the_account_of_auth_to_local),
    ("a_ticket_is_delegated_only_with_the_flag", a_ticket_is_delegated_only_with_the_flag),
    ("without_a_ticket_nothing_is_sent", without_a_ticket_nothing_is_sent),
    ("an_expired_ticket_is_refused", an_expired_ticket_is_refused),
    ("a_user_of_another_realm_gets_no_ticket", a_user_of_another_realm_gets_no_ticket),
    ("a_ticket_of_another_realm_is_refused", a_ticket_of_another_realm_is_refused),
    ("a_ticket_for_another_service_is_refused", a_ticket_for_another_service_is_refused),
    ("a_token_is_taken_once", a_token_is_taken_once),
    ("an_answer_proves_one_exchange_only", an_answer_proves_one_exchange_only),
    ("clocks_that_differ_are_refused", clocks_that_differ_are_refused),
    ("another_connection_is_refused", another_connection_is_refused),
    ("an_unbound_token_is_refused", an_unbound_token_is_refused),
    ("a_changed_token_is_refused", a_changed_token_is_refused),
];

/// An end that runs, its frames and what it says.
struct End(Child);

impl End {
    fn start(realms: &Realms, role: &str, settings: &EndSettings, clock: &str) -> End {
        let mut command = Command::new(std::env::current_exe().unwrap());
        realms.set_environment(&mut command);
        if !clock.is_empty() {
            shift_clock(&mut command, clock);
        }
        command.arg(role).args(settings.arguments());
        End(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    fn write(&mut self, bytes: &[u8]) {
        // An end that refused does not read on.
        let _ = self.0.stdin.as_mut().unwrap().write_all(bytes);
    }

    /// The next frame as it is, or what there was of it before the end ended.
    fn frame(&mut self) -> Vec<u8> {
        let out = self.0.stdout.as_mut().unwrap();
        let mut frame = vec![0; 3];
        if out.read_exact(&mut frame).is_err() {
            return Vec::new();
        }
        let len = usize::from(u16::from_be_bytes([frame[1], frame[2]]));
        frame.resize(3 + len, 0);
        out.read_exact(&mut frame[3..]).unwrap();
        frame
    }

    /// How it ended.
    fn said(mut self) -> String {
        drop(self.0.stdin.take());
        let output = self.0.wait_with_output().unwrap();
        String::from_utf8_lossy(&output.stderr).trim().to_owned()
    }
}

fn initiator(realms: &Realms, cache: &str) -> EndSettings {
    EndSettings { service: SERVICE.to_owned(), store: realms.cache(cache), binding: 1, extra: String::new() }
}

fn acceptor(realms: &Realms) -> EndSettings {
    EndSettings {
        service: SERVICE.to_owned(),
        store: realms.path("keytab").display().to_string(),
        binding: 1,
        extra: realms.cache("delegated"),
    }
}

/// The first token of an initiator's, as a frame.
fn first_token(realms: &Realms, settings: &EndSettings) -> (End, Vec<u8>) {
    let mut end = End::start(realms, "initiate", settings, "");
    let token = end.frame();
    (end, token)
}

/// What an acceptor with this clock says to the frame, and the frame that it sends.
fn answer(realms: &Realms, settings: &EndSettings, frame: &[u8], clock: &str) -> (String, Vec<u8>) {
    let mut end = End::start(realms, "accept", settings, clock);
    end.write(frame);
    let answer = end.frame();
    (end.said(), answer)
}

/// Lets both talk, and gives what each says at its end: initiator, acceptor.
fn exchange(realms: &Realms, initiator: &EndSettings, acceptor: &EndSettings) -> (String, String) {
    let mut one = End::start(realms, "initiate", initiator, "");
    let mut other = End::start(realms, "accept", acceptor, "");
    let first = one.frame();
    other.write(&first);
    let proof = other.frame();
    one.write(&proof);
    if proof.first() == Some(&0) {
        one.write(&other.frame());
    }
    (one.said(), other.said())
}

fn expect(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "no {part:?} in {said:?}");
    }
}

fn a_right_ticket_proves_both_ends(realms: &Realms) {
    let (one, other) = exchange(realms, &initiator(realms, "alice"), &acceptor(realms));
    assert_eq!(one, "done Some(Accepted)");
    assert_eq!(other, format!("done alice@{REALM} Some(\"alice\") delegated=false"));
}

fn a_principal_gets_the_account_of_auth_to_local(realms: &Realms) {
    for (user, account) in [("harbour-master", "Some(\"harbour\")"), ("alice/admin", "None")] {
        realms.log_in(user, "mapped").unwrap();
        let (_, other) = exchange(realms, &initiator(realms, "mapped"), &acceptor(realms));
        assert_eq!(other, format!("done {user}@{REALM} {account} delegated=false"));
    }
}

fn a_ticket_is_delegated_only_with_the_flag(realms: &Realms) {
    let settings = EndSettings { extra: "delegate".to_owned(), ..initiator(realms, "alice") };
    assert!(!realms.path("delegated").exists());
    let (one, other) = exchange(realms, &settings, &acceptor(realms));
    assert_eq!(one, "done Some(Accepted)");
    assert_eq!(other, format!("done alice@{REALM} Some(\"alice\") delegated=true"));
    expect(
        &realms.tickets("delegated").unwrap(),
        &[&format!("alice@{REALM}"), &format!("krbtgt/{REALM}@{REALM}")],
    );
}

fn without_a_ticket_nothing_is_sent(realms: &Realms) {
    let (end, token) = first_token(realms, &initiator(realms, "no-such-cache"));
    assert_eq!(token, [2, 0, 0]);
    expect(&end.said(), &["refused Some(NoCredentials)"]);
}

fn an_expired_ticket_is_refused(realms: &Realms) {
    // Tickets hold for ten hours at most.
    let mut end = End::start(realms, "initiate", &initiator(realms, "alice"), "+11h");
    assert_eq!(end.frame(), [2, 0, 0]);
    expect(&end.said(), &["refused Some(Expired)"]);
    // A token that was made in time, and is kept until the ticket is over.
    let (_end, token) = first_token(realms, &initiator(realms, "alice"));
    let (said, frame) = answer(realms, &acceptor(realms), &token, "+11h");
    expect(&said, &["refused"]);
    assert_eq!(frame.first(), Some(&2));
}

fn a_user_of_another_realm_gets_no_ticket(realms: &Realms) {
    let (end, token) = first_token(realms, &initiator(realms, "elsewhere"));
    assert_eq!(token.first(), Some(&2));
    expect(&end.said(), &["refused"]);
}

fn a_ticket_of_another_realm_is_refused(realms: &Realms) {
    // That realm has a service of the same name, with a key of its own.
    let service = format!("strait/{SERVER}@{OTHER_REALM}");
    let settings = EndSettings { service, ..initiator(realms, "elsewhere") };
    let (_end, token) = first_token(realms, &settings);
    assert_eq!(token.first(), Some(&0));
    let (said, frame) = answer(realms, &acceptor(realms), &token, "");
    expect(&said, &["refused"]);
    assert_eq!(frame.first(), Some(&2));
}

fn a_ticket_for_another_service_is_refused(realms: &Realms) {
    // Its key is in the same keytab.
    let settings = EndSettings { service: format!("other@{SERVER}"), ..initiator(realms, "alice") };
    let (_end, token) = first_token(realms, &settings);
    assert_eq!(token.first(), Some(&0));
    let (said, frame) = answer(realms, &acceptor(realms), &token, "");
    expect(&said, &["refused"]);
    assert_eq!(frame.first(), Some(&2));
    // And it is good for that service.
    let other = EndSettings { service: format!("other@{SERVER}"), ..acceptor(realms) };
    let (said, _) = answer(realms, &other, &first_token(realms, &settings).1, "");
    expect(&said, &["done alice"]);
}

fn a_token_is_taken_once(realms: &Realms) {
    let (_end, token) = first_token(realms, &initiator(realms, "alice"));
    let (said, frame) = answer(realms, &acceptor(realms), &token, "");
    expect(&said, &["done alice"]);
    assert_eq!(frame.first(), Some(&0));
    let (said, frame) = answer(realms, &acceptor(realms), &token, "");
    expect(&said, &["refused Some(Replayed)"]);
    assert_eq!(frame.first(), Some(&2));
}

fn an_answer_proves_one_exchange_only(realms: &Realms) {
    let (_end, token) = first_token(realms, &initiator(realms, "alice"));
    let (_, proof) = answer(realms, &acceptor(realms), &token, "");
    assert_eq!(proof.first(), Some(&0));
    let (mut end, _) = first_token(realms, &initiator(realms, "alice"));
    end.write(&proof);
    end.write(&[1, 0, 0]);
    expect(&end.said(), &["refused"]);
    // To say that it is accepted is no proof, either.
    let (mut end, _) = first_token(realms, &initiator(realms, "alice"));
    end.write(&[1, 0, 0]);
    expect(&end.said(), &["did not prove"]);
}

fn clocks_that_differ_are_refused(realms: &Realms) {
    for clock in ["+10m", "-10m"] {
        let (mut end, token) = first_token(realms, &initiator(realms, "alice"));
        let (said, frame) = answer(realms, &acceptor(realms), &token, clock);
        expect(&said, &["refused Some(ClockSkew)"]);
        // The initiator is told why.
        assert!(frame.len() > 3 && frame[0] == 2, "{frame:?}");
        end.write(&frame);
        expect(&end.said(), &["refused Some(ClockSkew)"]);
    }
}

fn another_connection_is_refused(realms: &Realms) {
    let (_end, token) = first_token(realms, &EndSettings { binding: 2, ..initiator(realms, "alice") });
    let (said, frame) = answer(realms, &acceptor(realms), &token, "");
    expect(&said, &["refused Some(BadBinding)"]);
    assert_eq!(frame.first(), Some(&2));
}

fn an_unbound_token_is_refused(realms: &Realms) {
    let settings = EndSettings { extra: "unbound".to_owned(), ..initiator(realms, "alice") };
    let (_end, token) = first_token(realms, &settings);
    assert_eq!(token.first(), Some(&0));
    let (said, frame) = answer(realms, &acceptor(realms), &token, "");
    expect(&said, &["refused"]);
    assert_eq!(frame.first(), Some(&2));
}

fn a_changed_token_is_refused(realms: &Realms) {
    let (_end, token) = first_token(realms, &initiator(realms, "alice"));
    for at in [3, 20, token.len() / 2, token.len() - 1] {
        let mut changed = token.clone();
        changed[at] ^= 1;
        let (said, frame) = answer(realms, &acceptor(realms), &changed, "");
        expect(&said, &["refused"]);
        assert_eq!(frame.first(), Some(&2), "byte {at}");
    }
    let (said, _) = answer(realms, &acceptor(realms), &[0, 0, 4, 1, 2, 3, 4], "");
    expect(&said, &["refused Some(DefectiveToken)"]);
}
