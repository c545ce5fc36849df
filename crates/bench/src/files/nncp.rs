//! Two nodes of NNCP beside the tunnel, with keys, queue and configuration in a folder of the benchmark: the daemon of the second
//! waits for calls of the first.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

use strait_testbed::TwoHosts;
use strait_testbed::outside::{ListeningProgram, unpack};

use crate::error::Error;

/// Its port (nncp-daemon's own).
const PORT: u16 = 5400;
/// What Debian calls the package.
const PACKAGE: &str = "nncp";
/// What each node calls the other.
const PEER: &str = "peer";
/// What `nncp-cfgnew` writes for the folder of the queue.
const SPOOL: &str = "/var/spool/nncp";
/// Public keys of a node, which its neighbour's configuration has.
const PUBLIC: [&str; 4] = ["id", "exchpub", "signpub", "noisepub"];
/// Queues a file, calls, and hangs up once it is there: a call goes on for a while after what was to be sent.
const SEND: &str = "set -e; \"$0/nncp-file\" -cfg \"$1\" -quiet \"$2\" peer:; \"$0/nncp-call\" -cfg \"$1\" -quiet peer & \
                    while ! [ -e \"$3\" ]; do kill -0 $!; sleep 0.01; done; kill $!; wait $! || true";

/// Where its programs are.
#[derive(Clone, Debug)]
pub(super) struct NncpPrograms(PathBuf);

impl NncpPrograms {
    /// Looks where systems install them, then in `cache`, where Debian's package is unpacked if it is not there; or says why there
    /// are none.
    pub(super) fn find(cache: &Path) -> Result<NncpPrograms, String> {
        let places = [PathBuf::from("/usr/bin"), cache.join("usr/bin")];
        let found = || places.iter().find(|place| place.join("nncp-daemon").is_file()).cloned();
        if let Some(place) = found() {
            return Ok(NncpPrograms(place));
        }
        unpack(&[PACKAGE], cache).map_err(|error| format!("nncp is not installed, and {error}"))?;
        found()
            .map(NncpPrograms)
            .ok_or_else(|| "nncp is not installed, and its package has no programs".to_owned())
    }

    /// The configuration of a new node, with keys of its own.
    fn new_node(&self) -> io::Result<String> {
        let output = Command::new(self.0.join("nncp-cfgnew")).arg("-nocomments").output()?;
        let said = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        if output.status.success() {
            Ok(said(output.stdout))
        } else {
            Err(io::Error::other(said(output.stderr)))
        }
    }
}

/// Both nodes. Dropped, the daemon is killed.
#[derive(Debug)]
pub(super) struct Nncp {
    daemon: ListeningProgram,
    programs: NncpPrograms,
    /// The first node's configuration.
    caller: PathBuf,
}

impl Nncp {
    /// Makes them in the new folder `folder` and starts the second on host B, at `address`; files arrive in `inbox`.
    pub(super) fn start(
        programs: NncpPrograms,
        hosts: &TwoHosts,
        address: IpAddr,
        (folder, inbox): (&Path, &Path),
    ) -> Result<Nncp, Error> {
        let address = SocketAddr::new(address, PORT);
        let [caller, called] =
            write_both(&programs, folder, inbox, address).map_err(Error::doing("make two nodes of NNCP"))?;
        let mut command = hosts.b.command(programs.0.join("nncp-daemon"));
        command.arg("-cfg").arg(called).args(["-bind", &address.to_string(), "-autotoss", "-quiet"]);
        let daemon = ListeningProgram::start(command, &hosts.b, address, &folder.join("daemon.log"))?;
        Ok(Nncp { daemon, programs, caller })
    }

    /// The number of the daemon's process.
    pub(super) fn pid(&self) -> u32 {
        self.daemon.pid()
    }

    /// Has `command`, a shell of the first host, send `source`, which becomes `arrives`.
    pub(super) fn send<'c>(
        &self,
        command: &'c mut Command,
        source: &Path,
        arrives: &Path,
    ) -> &'c mut Command {
        command.args(["-c", SEND]).arg(&self.programs.0).arg(&self.caller).args([source, arrives])
    }
}

/// Configurations of both, each with the other as its neighbour.
fn write_both(
    programs: &NncpPrograms,
    folder: &Path,
    inbox: &Path,
    address: SocketAddr,
) -> io::Result<[PathBuf; 2]> {
    let nodes = [programs.new_node()?, programs.new_node()?];
    let mut files = [folder.join("caller"), folder.join("called")];
    for (at, file) in files.iter_mut().enumerate() {
        fs::create_dir_all(&*file)?;
        let spool = file.join("spool");
        fs::create_dir(&spool)?;
        let text = with_neighbour(&nodes[at], &nodes[1 - at], inbox, address);
        let text =
            text.ok_or_else(|| io::Error::other("nncp-cfgnew wrote a configuration of another form"))?;
        file.push("nncp.hjson");
        fs::write(&*file, text.replace(SPOOL, &spool.display().to_string()))?;
    }
    Ok(files)
}

/// `own` with a neighbour that has the keys of `other`.
fn with_neighbour(own: &str, other: &str, inbox: &Path, address: SocketAddr) -> Option<String> {
    let (head, tail) = own.split_once("neigh: {")?;
    let mut keys = String::new();
    for name in PUBLIC {
        let line = other.lines().find(|line| line.trim_start().starts_with(&format!("{name}: ")))?;
        keys += &format!("      {}\n", line.trim());
    }
    let inbox = inbox.display();
    Some(format!(
        "{head}neigh: {{\n    {PEER}: {{\n{keys}      incoming: \"{inbox}\"\n      addrs: {{main: \"{address}\"}}\n    }}{tail}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_has_the_public_keys_and_no_other() {
        let node = "{\n  self: {\n    id: A\n    exchpub: B\n    exchprv: C\n    signpub: D\n    noisepub: E\n  }\n\n  neigh: {\n    self: {\n    }\n  }\n}";
        let text = with_neighbour(
            node,
            &node.replace("id: A", "id: F"),
            Path::new("/inbox"),
            ([10, 0, 0, 2], PORT).into(),
        );
        let text = text.unwrap();
        let (_, neighbours) = text.split_once("neigh").unwrap();
        assert!(
            neighbours.contains("id: F")
                && neighbours.contains("noisepub: E")
                && !neighbours.contains("exchprv"),
            "{text}"
        );
        assert!(neighbours.contains("addrs: {main: \"10.0.0.2:5400\"}"), "{text}");
        assert_eq!(with_neighbour("{}", node, Path::new("/inbox"), ([10, 0, 0, 2], PORT).into()), None);
    }
}
