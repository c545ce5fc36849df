//! Tests that this machine cannot run: the one place that decides whether they may be skipped, and that keeps account.
//!
//! A test that lacks something calls [`skip`] and returns. Where the environment has `CI`, the test fails instead, unless
//! [`ALLOWED`] names what is lacking. What was skipped is added to the file that [`RECORD`] names; `scripts/test` prints it.

use std::env;
use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

/// Names what tests may lack in spite of `CI`, such as `corpora,kernels`: names of [`Need`]s, with commas between them.
pub const ALLOWED: &str = "STRAIT_SKIP";

/// Names the file to which a line is added for each test that is skipped.
pub const RECORD: &str = "STRAIT_SKIPPED";

/// What a test needs that a machine may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Leave to make network namespaces.
    Namespaces,
    /// `/dev/net/tun`.
    Tun,
    /// Drivers that cut and join packets.
    Offload,
    /// To run as root.
    Root,
    /// A program that distributions have, such as `ping`.
    Programs,
    /// scapy, and what it encrypts with.
    Scapy,
    /// Wireshark's programs for a terminal.
    Tshark,
    /// Python.
    Python,
    /// A Linux kernel that runs as a process.
    Kernels,
    /// One of those that has IP-TFS.
    Iptfs,
    /// wireguard-go.
    Wireguard,
    /// A kernel with a packet filter (nf_tables).
    Nftables,
    /// Corpora, captures and vectors that are not part of the project.
    Corpora,
}

impl Need {
    /// Every need.
    pub const ALL: [Need; 13] = [
        Need::Namespaces,
        Need::Tun,
        Need::Offload,
        Need::Root,
        Need::Programs,
        Need::Scapy,
        Need::Tshark,
        Need::Python,
        Need::Kernels,
        Need::Iptfs,
        Need::Wireguard,
        Need::Nftables,
        Need::Corpora,
    ];

    /// What [`ALLOWED`] calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Need::Namespaces => "namespaces",
            Need::Tun => "tun",
            Need::Offload => "offload",
            Need::Root => "root",
            Need::Programs => "programs",
            Need::Scapy => "scapy",
            Need::Tshark => "tshark",
            Need::Python => "python",
            Need::Kernels => "kernels",
            Need::Iptfs => "iptfs",
            Need::Wireguard => "wireguard",
            Need::Nftables => "nftables",
            Need::Corpora => "corpora",
        }
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Skips the test that calls this, which lacks `need` for the reason `why`. Answers false, so that a condition can end in it:
/// `found || skip(Need::Scapy, "no scapy")`.
///
/// # Panics
/// Where the environment has `CI` and [`ALLOWED`] does not name `need`; when [`ALLOWED`] has a name that is not known, or the
/// file that [`RECORD`] names cannot be written.
#[must_use]
pub fn skip(need: Need, why: &str) -> bool {
    let allowed = env::var(ALLOWED).unwrap_or_default();
    let ci = env::var_os("CI").is_some_and(|value| !value.is_empty());
    if let Err(refusal) = verdict(need, ci, &allowed) {
        panic!("{refusal}: {why}");
    }
    let line = format!("{}: {why} [{need}]", caller());
    eprintln!("skipped {line}");
    note(RECORD, &line);
    false
}

/// Whether a test may lack `need`; if not, why not.
fn verdict(need: Need, ci: bool, allowed: &str) -> Result<(), String> {
    let allowed = needs(allowed)?;
    if ci && !allowed.contains(&need) {
        return Err(format!("with CI set, a test that lacks `{need}` fails unless {ALLOWED} names it"));
    }
    Ok(())
}

/// The needs that a list names.
fn needs(list: &str) -> Result<Vec<Need>, String> {
    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
    names
        .map(|name| {
            Need::ALL.into_iter().find(|need| need.name() == name).ok_or_else(|| {
                let known = Need::ALL.map(Need::name).join(", ");
                format!("{ALLOWED} names `{name}`, which is none of {known}")
            })
        })
        .collect()
}

/// The test that runs, behind the name of its program without the number that cargo adds. The harness names each
/// thread after its test; a thread that the test started has no name.
pub(crate) fn caller() -> String {
    let program = env::current_exe().ok();
    let program =
        program.as_deref().and_then(Path::file_stem).map(|stem| stem.to_string_lossy().into_owned());
    let program = program.unwrap_or_default();
    let program = program.rsplit_once('-').map_or(program.as_str(), |(name, _)| name);
    let thread = std::thread::current();
    format!("{program}::{}", thread.name().unwrap_or("?"))
}

/// Adds a line to the file that `variable` names, if it names one.
///
/// # Panics
/// When that file cannot be written.
pub(crate) fn note(variable: &str, line: &str) {
    if let Some(path) = env::var_os(variable).filter(|value| !value.is_empty()) {
        let path = Path::new(&path);
        record(path, line).unwrap_or_else(|error| panic!("{variable}={}: {error}", path.display()));
    }
}

/// Adds a line; in one call, so that lines of several processes stay whole (write(2), `O_APPEND`).
fn record(path: &Path, line: &str) -> io::Result<()> {
    OpenOptions::new().append(true).create(true).open(path)?.write_all(format!("{line}\n").as_bytes())
}

#[cfg(test)]
mod tests;
