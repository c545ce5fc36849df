//! Exchanges with tickets of real KDCs (`krb5kdc` of MIT Kerberos), which this test starts on loopback with realms of its own.
//!
//! Each end is a process of its own, because the library reads its configuration from the environment: this program again,
//! as `kdc initiate …` and `kdc accept …` ([`ends`]). `strait_testbed::kerberos` has the KDCs, [`cases`] what is tried.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod cases;
mod ends;

use strait_testbed::Workdir;
use strait_testbed::kerberos::{self, OTHER_REALM, Realms};
use strait_testdata::skip::{Need, skip};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [role, rest @ ..] = &arguments[..]
        && (role == "initiate" || role == "accept")
    {
        return ends::run(role, rest);
    }
    let wanted: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let chosen = cases::ALL
        .iter()
        .filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|part| name.contains(*part)));
    // None is left to `make test-all`.
    if arguments.iter().any(|argument| argument == "--ignored") {
        return;
    }
    if arguments.iter().any(|argument| argument == "--list") {
        return chosen.for_each(|(name, _)| println!("{name}: test"));
    }
    let missing = kerberos::missing();
    if let Some(missing) = missing
        && skip(Need::Programs, &format!("no {missing}"))
    {
        return;
    }
    let folder = Workdir::create().unwrap();
    let realms = Realms::start(folder.path(), None).unwrap();
    realms.log_in("alice", "alice").unwrap();
    realms.log_in(&format!("alice@{OTHER_REALM}"), "elsewhere").unwrap();
    for (name, case) in chosen {
        case(&realms);
        println!("test {name} ... ok");
    }
}
