//! Mosh as it is installed: its server on one host, and its client on the other in a terminal that `script` makes.

use std::io::{self, Write};
use std::process::{Child, ChildStdin, Stdio};

use strait_testbed::TwoHosts;
use strait_testbed::outside::{self, MoshServer};

use super::LoginSession;
use crate::error::Error;

/// A terminal on the other host in which `cat` runs.
struct MoshSession {
    keys: ChildStdin,
    client: Child,
    _server: MoshServer,
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
        let _ = self.client.kill();
        let _ = self.client.wait();
    }
}

/// Starts both ends; nothing where a program is missing.
pub(super) fn start(hosts: &TwoHosts) -> Result<Option<Box<dyn LoginSession>>, Error> {
    if ["mosh-server", "mosh-client", "script", "kill"].iter().any(|it| !outside::has(it)) {
        return Ok(None);
    }
    let server = MoshServer::start(&hosts.b, hosts.address_of_b().0, &["cat"])?;
    let mut client = outside::at_terminal(&hosts.a, &server.client(&hosts.a));
    client.stdout(Stdio::null());
    let mut client = client.spawn().map_err(Error::doing("start mosh-client"))?;
    let Some(keys) = client.stdin.take() else { return Ok(None) };
    Ok(Some(Box::new(MoshSession { keys, client, _server: server })))
}
