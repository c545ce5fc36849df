//! `[kerberos]`: what this host is to Kerberos; and what `[[login]]` and `[[peer]]` say of tickets.

use std::collections::BTreeMap;
use std::path::PathBuf;

use strait_kerberos::Accounts;
use toml::Spanned;
use toml::de::DeValue;

use super::beside::Beside;
use super::login::account;
use super::problem::Problem;
use super::reader::Section;

pub(super) const KEYS: &[&str] = &["service", "keytab"];

/// The acceptor's name where the file says nothing: this service of any host that the keytab has a key for.
const SERVICE: &str = "strait";
/// Bytes of a service's or a principal's name at most: a host's name has 253 (RFC 1035 section 2.3.4), and a service before it.
const NAME_MAX: usize = 320;

/// `[kerberos]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KerberosSection {
    /// The service that tickets are for: `strait`, `strait@HOST`, or a principal.
    pub service: String,
    /// The file with its key; nothing for the system's own.
    pub keytab: Option<PathBuf>,
}

impl Default for KerberosSection {
    fn default() -> KerberosSection {
        KerberosSection { service: SERVICE.to_owned(), keytab: None }
    }
}

pub(super) fn read(section: &Section<'_>, beside: &Beside<'_>) -> KerberosSection {
    let service = section.parsed("service", "a service's name in quotes, as \"host\"", service);
    let keytab =
        section.parsed("keytab", "the name of a file in quotes", |text| Ok::<_, Problem>(beside.path(text)));
    KerberosSection {
        service: service.map_or_else(|| SERVICE.to_owned(), |service| service.value),
        keytab: keytab.map(|keytab| keytab.value),
    }
}

/// Which principals may log in, and as whom; nothing where the section wants no ticket.
pub(super) fn accounts(section: &Section<'_>) -> Option<Accounts> {
    let wanted = section.boolean("kerberos").unwrap_or(false);
    if !wanted {
        for key in ["principals", "auth_to_local"] {
            if let Some(value) = section.value(key) {
                section.note(value.span(), Problem::WithoutKerberos { key });
            }
        }
        return None;
    }
    if let Some(value) = section.value("accounts") {
        section.note(value.span(), Problem::AccountsWithKerberos);
    }
    let auth_to_local = section.boolean("auth_to_local").unwrap_or(false);
    if section.value("principals").is_none() && !auth_to_local {
        section.note(section.span(), Problem::NoPrincipals);
    }
    Some(Accounts { named: principals(section), auth_to_local })
}

fn principals(section: &Section<'_>) -> BTreeMap<String, Vec<String>> {
    const WANTED: &str = "principals with their accounts, as { \"alice@EXAMPLE.ORG\" = [\"alice\"] }";
    let mut named = BTreeMap::new();
    let Some(value) = section.value("principals") else { return named };
    let Some(table) = value.get_ref().as_table() else {
        section.wrong_type("principals", WANTED, value);
        return named;
    };
    for (key, value) in table {
        match principal(key.get_ref()) {
            Ok(principal) => drop(named.insert(principal, accounts_of(section, WANTED, value))),
            Err(problem) => section.note(key.span(), problem),
        }
    }
    named
}

/// One account or a list of them, which may be empty.
fn accounts_of(section: &Section<'_>, wanted: &'static str, value: &Spanned<DeValue<'_>>) -> Vec<String> {
    let one = |value: &Spanned<DeValue<'_>>| {
        let Some(text) = value.get_ref().as_str() else {
            section.wrong_type("principals", wanted, value);
            return None;
        };
        account(text).map_err(|problem| section.note(value.span(), problem)).ok()
    };
    match value.get_ref().as_array() {
        Some(items) => items.iter().filter_map(one).collect(),
        None => one(value).into_iter().collect(),
    }
}

/// A principal with its realm: without one it would depend on another file who is meant.
fn principal(text: &str) -> Result<String, Problem> {
    let whole = text.rsplit_once('@').is_some_and(|(name, realm)| !name.is_empty() && !realm.is_empty());
    if whole && is_name(text) {
        Ok(text.to_owned())
    } else {
        Err(Problem::Principal { name: text.to_owned() })
    }
}

/// The name of a service that keys are looked for.
fn service(text: &str) -> Result<String, Problem> {
    let parts = text.split(['@', '/']).all(|part| !part.is_empty());
    if parts && is_name(text) { Ok(text.to_owned()) } else { Err(Problem::Service { name: text.to_owned() }) }
}

/// The name of a service that a ticket is asked for, which says of which host.
pub(super) fn service_of_host(text: &str) -> Result<String, Problem> {
    let name = service(text)?;
    if name.contains(['@', '/']) { Ok(name) } else { Err(Problem::Service { name }) }
}

fn is_name(text: &str) -> bool {
    text.len() <= NAME_MAX && !text.chars().any(|letter| letter.is_control() || letter.is_whitespace())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use strait_keying::PublicKey;

    use super::*;
    use crate::config::Config;

    /// A configuration with these lines in its `[[login]]`, and behind it.
    fn parse(lines: &str) -> Result<Config, String> {
        let key = PublicKey::from_bytes([7; 32]);
        let text = format!(
            "[node]\nprivate_key_file = \"k\"\naddress = \"10.0.0.1\"\n[[peer]]\nname = \"b\"\npublic_key = \"{key}\"\n\
             allowed_ips = \"10.0.0.2\"\nkerberos = \"host@b.example\"\n[[login]]\npeer = \"b\"\n{lines}"
        );
        Config::parse(&text, Path::new("dir/x.toml")).map_err(|error| error.to_string())
    }

    #[test]
    fn what_the_file_says_of_tickets_is_read() {
        let config = parse("accounts = [\"alice\"]").unwrap();
        assert_eq!((&config.logins[0].kerberos, config.kerberos), (&None, KerberosSection::default()));
        assert_eq!(config.peers[0].kerberos.as_deref(), Some("host@b.example"));
        let config = parse(
            "kerberos = true\nprincipals = { \"a@R\" = [\"alice\", \"bob\"], \"b@R\" = \"bob\", \"c@R\" = [] }\n\
             [kerberos]\nservice = \"host\"\nkeytab = \"tab\"",
        );
        let config = config.unwrap();
        let accounts = config.logins[0].kerberos.as_ref().unwrap();
        assert!(!accounts.auth_to_local);
        let named: Vec<_> = accounts.named.iter().map(|(name, all)| (name.as_str(), all.join(" "))).collect();
        let expected = [("a@R", "alice bob"), ("b@R", "bob"), ("c@R", "")];
        assert_eq!(named, expected.map(|(name, all)| (name, all.to_owned())));
        let keytab = Some("dir/tab".into());
        assert_eq!(config.kerberos, KerberosSection { service: "host".to_owned(), keytab });
        assert_eq!(config.unlisted(), 0);
        let config = parse("[[login]]\nunlisted = true\nkerberos = true\nauth_to_local = true").unwrap();
        assert!(config.logins[1].is_for_unlisted() && config.unlisted() > 0);
        let config = parse("kerberos = true\nauth_to_local = true").unwrap();
        assert!(config.logins[0].kerberos.as_ref().unwrap().auth_to_local);
    }

    #[test]
    fn what_lets_no_one_in_or_says_two_things_is_refused() {
        for (lines, said) in [
            ("kerberos = true", "lets no one in by itself"),
            ("kerberos = true\nauth_to_local = false", "lets no one in by itself"),
            ("auth_to_local = true", "`auth_to_local` counts only with `kerberos = true`"),
            ("kerberos = false\nprincipals = {}", "`principals` counts only with `kerberos = true`"),
            ("kerberos = true\nauth_to_local = true\naccounts = [\"a\"]", "write them in `principals`"),
            (
                "kerberos = true\nprincipals = { alice = [\"a\"] }",
                "`alice` is not a principal with its realm",
            ),
            ("kerberos = true\nprincipals = { \"a@R\" = [\"-x\"] }", "not the name of an account"),
            (
                "kerberos = true\nprincipals = { \"a@R\" = 1 }",
                "`principals` must be principals with their acc",
            ),
            (
                "kerberos = true\nprincipals = [\"a@R\"]",
                "`principals` must be principals with their accounts",
            ),
            ("unlisted = true\nkerberos = true\nauth_to_local = true", "is for nodes that are not peers"),
            ("[[login]]\nunlisted = true\naccounts = [\"a\"]", "takes a ticket of every node"),
            (
                "[[login]]\nunlisted = true\nkerberos = true\nauth_to_local = true\n[[login]]\nunlisted = true\n\
                 kerberos = true\nauth_to_local = true",
                "`unlisted` already has a [[login]] in line",
            ),
            ("[[peer]]\nname = \"unlisted\"", "give this peer another name"),
            ("[kerberos]\nservice = \"@x\"", "`@x` is not the name of a service"),
        ] {
            let error = parse(lines).unwrap_err();
            assert!(error.contains(said), "{lines}: {error}");
        }
    }

    #[test]
    fn names_are_whole() {
        for right in ["strait", "host@server.example.org", "strait/server.example.org@EXAMPLE.ORG"] {
            assert_eq!(service(right).unwrap(), right);
        }
        for wrong in ["", "@host", "host@", "a b", "a@b\n", "/", &"a".repeat(400)] {
            assert!(service(wrong).is_err(), "{wrong}");
            assert!(principal(wrong).is_err(), "{wrong}");
        }
        assert!(service_of_host("strait").is_err());
        assert_eq!(service_of_host("strait@a").unwrap(), "strait@a");
        assert_eq!(principal("alice/admin@EXAMPLE.ORG").unwrap(), "alice/admin@EXAMPLE.ORG");
        assert!(principal("alice").is_err());
    }
}
