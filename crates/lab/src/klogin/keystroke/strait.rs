//! `strait login` between two daemons, in a terminal that `script` makes.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout};
use std::time::Duration;

use strait_testbed::{DaemonProcess, Extra, PORT, Site, TwoHosts, Workdir, outside, program_with_accounts};

use super::LoginSession;
use crate::error::Error;
use crate::klogin::KloginLab;

/// How long a session may take over a line on which its handshake takes some five seconds.
const SESSION: Duration = Duration::from_secs(60);
/// The lines of `[link]` for daemons: 14 of the line's 14.4 kbit/s, as they do not know of its framing.
fn link(line: u64) -> String {
    let rate = line * 35 / 36;
    format!("up = \"{rate}bit\"\ndown = \"{rate}bit\"\n")
}

/// Options of both daemons that are not as usual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoginOptions {
    /// Nothing.
    Usual,
    /// Shorter small packets: tags of 12 bytes, and ESP directly behind IP.
    Short,
}

impl LoginOptions {
    /// More lines of `[node]`, and of each `[[peer]]`.
    const fn lines(self) -> [&'static str; 2] {
        match self {
            LoginOptions::Usual => ["", ""],
            LoginOptions::Short => ["suites = [\"aes-128-gcm-12\"]\n", "carrier = \"ip\"\n"],
        }
    }
}

/// A terminal on the other host in which `cat` runs.
struct StraitSession {
    keys: ChildStdin,
    screen: ChildStdout,
    client: Child,
    // In the order in which they must go.
    _daemons: [DaemonProcess; 2],
    _folder: Workdir,
}

impl LoginSession for StraitSession {
    fn press(&mut self) -> io::Result<()> {
        self.keys.write_all(b"x")?;
        self.keys.flush()?;
        let mut byte = [0];
        while byte != *b"x" {
            self.screen.read_exact(&mut byte)?;
        }
        Ok(())
    }
}

impl Drop for StraitSession {
    fn drop(&mut self) {
        let _ = self.client.kill();
        let _ = self.client.wait();
    }
}

/// Starts both ends; nothing where `script` is missing, or no account can be given.
pub(super) fn start(
    hosts: &TwoHosts,
    lab: &KloginLab,
    options: LoginOptions,
) -> Result<Option<Box<dyn LoginSession>>, Error> {
    let Some(program) = lab.strait.as_deref() else { return Ok(None) };
    if !outside::has("script") || !Path::new("/etc/pam.d").is_dir() {
        return Ok(None);
    }
    let (link, [node, peer]) = (link(lab.own.settings().line), options.lines());
    let folder = Workdir::create()?;
    let far = program_with_accounts(program, folder.path())?;
    let port = |address| SocketAddr::new(address, PORT);
    let sites = [
        Site::create(program, &hosts.a, 1, port(hosts.address_of_a().0), folder.path())?,
        Site::create(&far, &hosts.b, 2, port(hosts.address_of_b().0), folder.path())?,
    ];
    let [a, b] = &sites;
    let accounts = format!("[[login]]\npeer = \"{}\"\naccounts = [\"root\"]\n", a.name());
    let one = |site: &Site, other: &Site, sections: &str| {
        let extra = Extra { link: &link, node, peer, sections, ..Extra::default() };
        site.start(&site.configure("login", &[other], extra)?, "run")
    };
    let daemons = [one(a, b, "")?, one(b, a, &accounts)?];
    for (daemon, peer) in daemons.iter().zip([b, a]) {
        daemon.wait_for_session(peer.name(), SESSION)?;
    }
    // What is typed is to come back from the other end, and not from here.
    let login = daemons[0].command(&["login", "--predict", "never", "-t", b.name(), "echo ready; exec cat"]);
    let mut client = outside::at_terminal(&hosts.a, &login);
    let mut client = client.spawn().map_err(Error::doing("start strait login"))?;
    let (keys, screen) = (client.stdin.take(), client.stdout.take());
    let (Some(keys), Some(screen)) = (keys, screen) else { return Ok(None) };
    let mut session = StraitSession { keys, screen, client, _daemons: daemons, _folder: folder };
    let (mut said, mut byte) = (Vec::new(), [0]);
    while !said.ends_with(b"ready\r\n") {
        session.screen.read_exact(&mut byte).map_err(Error::doing("log in with strait login"))?;
        said.extend(byte);
    }
    Ok(Some(Box::new(session)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_daemons_are_told_of_the_line_is_keys_without_a_section() {
        assert_eq!(link(14_400), "up = \"14000bit\"\ndown = \"14000bit\"\n");
    }
}
