//! Mosh as it is installed: its server on one host, and its client on the other in a terminal that `script` makes.

use std::io::{self, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

use strait_testbed::{TwoHosts, outside};

use super::LoginSession;
use crate::error::Error;

/// The server's port: the first of those that Mosh takes.
const PORT: &str = "60001";
/// What both ends insist on.
const LOCALE: (&str, &str) = ("LC_ALL", "C.UTF-8");

/// A terminal on the other host in which `cat` runs.
struct MoshSession {
    keys: ChildStdin,
    client: Child,
    /// The server's process, which leaves its parent.
    server: String,
}

impl LoginSession for MoshSession {
    /// Its screen is not looked at: what crosses the line tells when a keystroke is over.
    fn press(&mut self) -> io::Result<()> {
        self.keys.write_all(b"x")?;
        self.keys.flush()
    }
}

impl Drop for MoshSession {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(&self.server).status();
        let _ = self.client.kill();
        let _ = self.client.wait();
    }
}

/// Starts both ends; nothing where a program is missing.
pub(super) fn start(hosts: &TwoHosts) -> Result<Option<Box<dyn LoginSession>>, Error> {
    if ["mosh-server", "mosh-client", "script", "kill"].iter().any(|it| !outside::has(it)) {
        return Ok(None);
    }
    let address = hosts.address_of_b().0.to_string();
    let mut server = hosts.b.command("mosh-server");
    server
        .args(["new", "-i", &address, "-p", PORT, "--", "cat"])
        .env(LOCALE.0, LOCALE.1)
        .stdin(Stdio::null());
    let said = server.output().map_err(Error::doing("start mosh-server"))?;
    let words =
        [said.stdout, said.stderr].map(|words| String::from_utf8_lossy(&words).into_owned()).join("\n");
    let key = words
        .split_once(&format!("MOSH CONNECT {PORT} "))
        .and_then(|(_, rest)| rest.split_whitespace().next());
    let pid = words.split_once("detached, pid = ").map(|(_, rest)| rest.trim_start());
    let pid: String = pid.unwrap_or_default().chars().take_while(char::is_ascii_digit).collect();
    let Some(key) = key.filter(|_| !pid.is_empty()) else {
        return Err(Error::doing("start mosh-server")(io::Error::other(words)));
    };
    let mut client = hosts.a.command("script");
    client.args(["-qfec", &format!("stty rows 24 cols 80; exec mosh-client {address} {PORT}"), "/dev/null"]);
    client.env("MOSH_KEY", key).env("TERM", "xterm").env(LOCALE.0, LOCALE.1);
    client.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut client = client.spawn().map_err(Error::doing("start mosh-client"))?;
    let Some(keys) = client.stdin.take() else { return Ok(None) };
    Ok(Some(Box::new(MoshSession { keys, client, server: pid })))
}
