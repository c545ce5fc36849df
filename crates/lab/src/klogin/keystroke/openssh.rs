//! OpenSSH as it is installed, with keys and a configuration of its own in a folder that vanishes; nothing of the user's is read.

use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use strait_testbed::outside::{self, Sshd, SshdProgram};
use strait_testbed::{TwoHosts, Workdir};

use super::LoginSession;
use crate::error::Error;
use crate::klogin::KloginLab;

/// A terminal of ours on the other host, in which `cat` runs: its echo is that of the terminal.
struct SshSession {
    keys: ChildStdin,
    screen: ChildStdout,
    /// Dropped, they are killed; then the folder goes.
    _client: KilledChild,
    _server: Sshd,
    _folder: Workdir,
}

struct KilledChild(Child);

impl Drop for KilledChild {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl LoginSession for SshSession {
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

/// Starts both ends and logs in; nothing where a program is missing.
pub(super) fn start(hosts: &TwoHosts, lab: &KloginLab) -> Result<Option<Box<dyn LoginSession>>, Error> {
    let program = lab.sshd.as_deref().map_or_else(SshdProgram::installed, SshdProgram::at);
    let Some(program) =
        program.filter(|_| ["ssh", "ssh-keygen", "unshare"].iter().all(|it| outside::has(it)))
    else {
        return Ok(None);
    };
    let folder = Workdir::create()?;
    let address = hosts.address_of_b().0;
    let server = Sshd::start(&program, &hosts.b, address, &folder.path().join("sshd"))?;
    server.trusted_at(address)?;
    let mut client = hosts.a.command("ssh");
    client.args(server.options()).arg("-tt").arg(format!("{}@{address}", server.user()));
    client.arg("echo ready; exec cat").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut client = client.spawn().map_err(Error::doing("start ssh"))?;
    let (keys, screen) = (client.stdin.take(), client.stdout.take());
    let client = KilledChild(client);
    let (Some(keys), Some(mut screen)) = (keys, screen) else { return Ok(None) };
    let mut said = Vec::new();
    let mut byte = [0];
    while !said.ends_with(b"ready\r\n") {
        screen.read_exact(&mut byte).map_err(Error::doing("log in with ssh"))?;
        said.extend(byte);
    }
    Ok(Some(Box::new(SshSession { keys, screen, _client: client, _server: server, _folder: folder })))
}
