//! Which tickets let a client in, and as whom.

use strait_testbed::kerberos::{OTHER_REALM, shift_clock};

use super::{Desk, SECTION, SERVICE, can_run};
use crate::pair::eventually;

#[test]
fn a_right_ticket_gives_the_accounts_of_its_principal_and_no_others() {
    if !can_run() {
        return;
    }
    let desk = Desk::new(SECTION);
    let (out, _) = desk.ends(0, "alice", &[SERVICE, "site-b", "id -un; echo $STRAIT_PRINCIPAL $STRAIT_PEER"]);
    assert_eq!(out, "alice\nalice@STRAIT.TEST site-a\n");
    assert!(desk.log().contains("site-a (alice@STRAIT.TEST) logged in as alice"), "{}", desk.log());
    let (out, _) = desk.ends(0, "alice", &[SERVICE, "root@site-b", "id -un; echo $KRB5CCNAME"]);
    assert_eq!(out, "root\n\n", "nothing is passed on");
    desk.refused("alice", &[SERVICE, "bob@site-b", "true"], "alice@STRAIT.TEST may not use the account bob");
    desk.realms.log_in("harbour-master", "harbour").unwrap();
    let says = "harbour-master@STRAIT.TEST has no account here";
    desk.refused("harbour", &[SERVICE, "site-b", "true"], says);
    // A principal of the same name, elsewhere.
    desk.realms.log_in(&format!("alice@{OTHER_REALM}"), "elsewhere").unwrap();
    desk.refused("elsewhere", &[SERVICE, "site-b", "true"], "cannot prove who this is");
    let service = format!("--kerberos=strait/server.strait.test@{OTHER_REALM}");
    desk.refused("elsewhere", &[&service, "site-b", "true"], "the peer refuses");
    // Whose key is in the same file.
    let other = "--kerberos=other@server.strait.test";
    desk.refused("alice", &[other, "site-b", "true"], "the peer refuses");
}

#[test]
fn without_a_ticket_nothing_is_served() {
    if !can_run() {
        return;
    }
    let desk = Desk::new(SECTION);
    for arguments in [&["site-b", "true"][..], &["--list", "site-b"], &["alice@site-b"]] {
        desk.refused("alice", arguments, "logins here take a Kerberos ticket: use --kerberos");
    }
    desk.refused("none", &[SERVICE, "site-b", "true"], "get a ticket with `kinit`");
    desk.refused("none", &["--delegate", "site-b", "true"], "add --kerberos");
    // A name of a peer is no host that the KDC knows.
    desk.refused("alice", &["--kerberos", "site-b", "true"], "for the service strait@site-b");
    assert!(desk.place.session_processes().is_empty());
}

#[test]
fn a_peer_whose_logins_take_no_ticket_says_so() {
    if !can_run() {
        return;
    }
    let desk = Desk::new("accounts = [\"alice\"]");
    desk.ends(0, "alice", &["site-b", "true"]);
    desk.refused("alice", &[SERVICE, "site-b", "true"], "logins here take no Kerberos ticket");
}

#[test]
fn time_counts_at_both_ends() {
    if !can_run() {
        return;
    }
    let desk = Desk::new(SECTION);
    // The ticket for the service is there then.
    desk.ends(0, "alice", &[SERVICE, "site-b", "true"]);
    for (shift, says) in [
        ("+10m", "set the clocks of both hosts"),
        ("-10m", "set the clocks of both hosts"),
        ("+11h", "get a new ticket with `kinit`"),
    ] {
        let mut command = desk.command("alice", &[SERVICE, "site-b", "true"]);
        shift_clock(&mut command, shift);
        let (_, errors) = desk.ends_as(255, &mut command);
        assert!(errors.contains(says), "{shift}: {errors}\n{}", desk.log());
    }
}

#[test]
fn auth_to_local_gives_an_account_but_never_root() {
    if !can_run() {
        return;
    }
    let desk =
        Desk::new("kerberos = true\nauth_to_local = true\nprincipals = { \"alice/admin@STRAIT.TEST\" = [] }");
    let (out, _) = desk.ends(0, "alice", &[SERVICE, "site-b", "id -un"]);
    assert_eq!(out, "alice\n");
    desk.refused("alice", &[SERVICE, "root@site-b", "true"], "may not use the account root");
    desk.realms.log_in("harbour-master", "harbour").unwrap();
    desk.refused("harbour", &[SERVICE, "site-b", "true"], "there is no account harbour here");
    desk.realms.log_in("alice/admin", "admin").unwrap();
    desk.refused("admin", &[SERVICE, "site-b", "true"], "alice/admin@STRAIT.TEST has no account here");
    let rules = std::fs::read_to_string(desk.path("krb5.conf")).unwrap();
    std::fs::write(desk.path("krb5.conf"), rules.replace("s/.*/harbour/", "s/.*/root/")).unwrap();
    let says = "gets root only if the configuration names it";
    desk.refused("harbour", &[SERVICE, "site-b", "true"], says);
}

#[test]
fn a_server_without_its_key_says_no_more_than_that() {
    if !can_run() {
        return;
    }
    let desk = Desk::new(SECTION);
    std::fs::rename(desk.path("keytab"), desk.path("away")).unwrap();
    let (_, errors) = desk.ends(255, "alice", &[SERVICE, "site-b", "true"]);
    assert!(errors.contains("Kerberos is not set up at this peer"), "{errors}");
    assert!(!errors.contains("keytab"), "{errors}");
    eventually("the log has more", || desk.log().contains("keytab"));
}
