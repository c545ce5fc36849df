//! Programs that are not ours, which tests hold the tunnel against: whether they are here, and how they are started.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use strait_testdata::skip::{Need, skip};

use crate::Error;
pub use etcd::{Etcd, EtcdTls};
pub use listening::ListeningProgram;
pub use mosh::MoshServer;
pub use packages::unpack;
pub use sshd::{Sshd, SshdProgram};
pub use terminal::{at_terminal, quoted};

/// Debian's python, which has scapy; another may come first in the path.
pub const PYTHON: &str = "/usr/bin/python3";

/// Programs of Wireshark's.
const WIRESHARK: [&str; 2] = ["tshark", "capinfos"];

/// For tests: whether a program that one needs is here; where not, see [`skip()`].
///
/// # Panics
/// As [`skip()`] does.
#[must_use]
pub fn has(program: &str) -> bool {
    let mut asked = Command::new(program);
    let found = asked.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let need = if WIRESHARK.contains(&program) { Need::Tshark } else { Need::Programs };
    found.is_ok() || skip(need, &format!("no {program} (scripts/setup test)"))
}

/// For tests: whether scapy and what it encrypts with are here; where not, see [`skip()`].
///
/// # Panics
/// As [`skip()`] does.
#[must_use]
pub fn has_scapy() -> bool {
    let found = Command::new(PYTHON).args(["-c", "import scapy.layers.ipsec, cryptography"]).output();
    found.is_ok_and(|it| it.status.success()) || skip(Need::Scapy, "no scapy (scripts/setup test)")
}

/// What programs call themselves, each that is here: of each pair a program, and the flag that makes it say so.
#[must_use]
pub fn versions(programs: &[(&str, &str)]) -> String {
    let first = |(program, flag): &(&str, &str)| {
        let output = Command::new(program).arg(flag).stdin(Stdio::null()).output().ok()?;
        let said = [output.stdout, output.stderr].concat();
        Some(String::from_utf8_lossy(&said).lines().next()?.trim().to_owned())
    };
    programs.iter().filter_map(first).collect::<Vec<_>>().join("; ")
}

/// Where the project's file `name` for programs that are not its own is, in `tests/outside`.
#[must_use]
pub fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/outside").join(name)
}

mod etcd;
mod listening;
mod mosh;
mod packages;
mod sshd;
mod terminal;

/// Fields of each frame of a capture, as tshark names and prints them. `options` are tshark's own, such as `-o NAME:VALUE`.
///
/// # Errors
/// [`Error::System`] when tshark cannot be started, [`Error::Command`] with what it says when it fails.
pub fn dissect(capture: &Path, options: &[String], fields: &[&str]) -> Result<Vec<Vec<String>>, Error> {
    let mut command = Command::new("tshark");
    // A folder without settings for its home: a person's would change what it says.
    command.env("HOME", capture.parent().unwrap_or(Path::new("/"))).stdin(Stdio::null());
    command.args(["-n", "-r"]).arg(capture).args(options).args(["-T", "fields"]);
    command.args(fields.iter().flat_map(|field| ["-e", field]));
    let output = command.output().map_err(Error::doing("start tshark (scripts/setup test)"))?;
    if output.status.success() {
        let lines = String::from_utf8_lossy(&output.stdout);
        return Ok(lines.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect());
    }
    Err(Error::Command {
        command: "tshark".to_owned(),
        host: "this machine".to_owned(),
        status: output.status.to_string(),
        said: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}
