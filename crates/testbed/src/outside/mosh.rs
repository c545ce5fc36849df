//! Mosh's server on one of the hosts, without the ssh that starts it otherwise.

use std::net::IpAddr;
use std::process::{Command, Stdio};

use crate::{Error, Namespace};

/// The server's port: the first of those that Mosh takes.
const PORT: &str = "60001";
/// What both ends insist on.
const LOCALE: (&str, &str) = ("LC_ALL", "C.UTF-8");

/// A running server. Dropped, it is killed.
#[derive(Debug)]
pub struct MoshServer {
    address: IpAddr,
    /// Its process, which leaves its parent.
    pid: String,
    key: String,
}

impl MoshServer {
    /// Starts it on `host`, reached at `address`; it runs the command `words`.
    ///
    /// # Errors
    /// [`Error::System`] when it cannot be started, [`Error::Command`] when it tells neither its process nor a key.
    pub fn start(host: &Namespace, address: IpAddr, words: &[&str]) -> Result<MoshServer, Error> {
        let mut server = host.command("mosh-server");
        server.args(["new", "-i", &address.to_string(), "-p", PORT, "--"]).args(words);
        server.env(LOCALE.0, LOCALE.1).env("TERM", "xterm").stdin(Stdio::null());
        let output = server.output().map_err(Error::doing("start mosh-server"))?;
        let said =
            String::from_utf8_lossy(&[output.stdout, b"\n".to_vec(), output.stderr].concat()).into_owned();
        let Some((pid, key)) = process_and_key(&said) else {
            let (host, status) = (host.name().to_owned(), output.status.to_string());
            return Err(Error::Command { command: "mosh-server".to_owned(), host, status, said });
        };
        Ok(MoshServer { address, pid, key })
    }

    /// Its client on `host`, which needs a terminal.
    #[must_use]
    pub fn client(&self, host: &Namespace) -> Command {
        let mut client = host.command("mosh-client");
        client.args([&self.address.to_string(), PORT]);
        client.env("MOSH_KEY", &self.key).env(LOCALE.0, LOCALE.1);
        client
    }
}

impl Drop for MoshServer {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(&self.pid).status();
    }
}

fn process_and_key(said: &str) -> Option<(String, String)> {
    let after = |text: &str| Some(said.split_once(text)?.1.trim_start());
    let key = after(&format!("MOSH CONNECT {PORT} "))?.split_whitespace().next()?;
    let pid = after("detached, pid = ")?;
    let pid: String = pid.chars().take_while(char::is_ascii_digit).collect();
    (!pid.is_empty()).then(|| (pid, key.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_says_has_its_process_and_its_key() {
        let said = "\n\nMOSH CONNECT 60001 4NeCCgvZFe2RnPgrcU1PQw\n\nmosh-server (mosh 1.4.0)\n\n[mosh-server detached, pid = 321]\n";
        let expected = ("321".to_owned(), "4NeCCgvZFe2RnPgrcU1PQw".to_owned());
        assert_eq!(process_and_key(said), Some(expected));
        assert_eq!(process_and_key("[mosh-server detached, pid = 321]"), None);
        assert_eq!(process_and_key("MOSH CONNECT 60001 key\n[mosh-server detached, pid = ]"), None);
    }
}
