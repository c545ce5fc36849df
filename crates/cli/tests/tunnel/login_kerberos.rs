//! Logins that take a Kerberos ticket, of a real KDC that runs beside the client.

mod delegation;
mod reader;
mod relayed;
mod sessions;
mod tickets;
mod unlisted;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use strait_testbed::kerberos::{self, Realms};
use strait_testbed::{TwoHosts, Workdir};
use strait_testdata::skip::{Need, skip};

use crate::login::place::{LoginPlace, PAM, Screen, gives_accounts};
use crate::pair::fast;

/// What the client asks a ticket for.
const SERVICE: &str = "--kerberos=strait@server.strait.test";
/// Who may log in as whom.
const SECTION: &str = "kerberos = true\n\
    principals = { \"alice@STRAIT.TEST\" = [\"alice\", \"root\"], \"alice/admin@STRAIT.TEST\" = [\"alice\"] }";

/// Who may log in from nodes that are not listed.
const UNLISTED: &str = "[[login]]\nunlisted = true\nsessions = 1\nkerberos = true\n\
    principals = { \"alice@STRAIT.TEST\" = [\"alice\"] }";

/// Two sites and a KDC. Fields are dropped in this order.
struct Desk {
    place: LoginPlace,
    realms: Realms,
    folder: Workdir,
}

fn keytab(realms: &Realms) -> String {
    format!("[kerberos]\nkeytab = \"{}\"\n", realms.path("keytab").display())
}

fn can_run() -> bool {
    gives_accounts() && kerberos::missing().is_none_or(|it| !skip(Need::Programs, &format!("no {it}")))
}

impl Desk {
    /// With this in the `[[login]]` of the second site; `alice` has a ticket in the cache of that name.
    fn new(section: &str) -> Desk {
        let (hosts, folder) = (TwoHosts::direct(fast()).unwrap(), Workdir::create().unwrap());
        // Accounts read krb5.conf; keys and tickets are their owners' alone.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let realms = Realms::start(folder.path(), Some(&hosts.a)).unwrap();
        realms.log_in("alice", "alice").unwrap();
        let section = format!("{section}\n{}", keytab(&realms));
        let place = LoginPlace::with_environment(hosts, &section, PAM, &realms.environment());
        Desk { place, realms, folder }
    }

    /// The second site lists no peer from here on; it has these sections.
    fn list_no_peers(&mut self, sections: &str) {
        if self.place.daemons[1].is_some() {
            self.place.stop(1);
        }
        self.place.run(1, &[], &format!("{sections}\n{}", keytab(&self.realms)));
    }

    /// `login` with the tickets of this cache.
    fn command(&self, cache: &str, arguments: &[&str]) -> Command {
        let mut command = self.place.command(&["login"]);
        self.realms.set_environment(&mut command);
        command.env("KRB5CCNAME", self.realms.cache(cache)).args(arguments).stdin(Stdio::null());
        command
    }

    /// It has to end with this code: what it wrote.
    fn ends(&self, code: i32, cache: &str, arguments: &[&str]) -> (String, String) {
        self.ends_as(code, &mut self.command(cache, arguments))
    }

    fn ends_as(&self, code: i32, command: &mut Command) -> (String, String) {
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, errors) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{command:?}: {out}{errors}\n{}", self.place.logs());
        (out, errors)
    }

    /// It has to be refused, and say this.
    fn refused(&self, cache: &str, arguments: &[&str], says: &str) {
        let (_, errors) = self.ends(255, cache, arguments);
        assert!(errors.contains(says), "no {says:?} in {errors}\n{}", self.place.logs());
    }

    /// `login` at a terminal.
    fn terminal(&self, cache: &str, arguments: &[&str]) -> Screen {
        self.place.terminal_of(self.command(cache, arguments), 80, 24)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.place.daemon(1).log()).unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}
