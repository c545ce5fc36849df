//! The name servers of the tunnel: given to systemd-resolved (resolvectl(1)) or resolvconf(8), whichever is there.
//!
//! Both are programs, which need root or the rights of a user of theirs, and are run at the start and at the end, and between them only
//! after a failure.
//! systemd-resolved forgets what it was told with the interface, however the daemon ends. What resolvconf is told outlives a
//! killed daemon: the next start or `strait down` takes it back.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::default_path::is_full;
use super::{Network, report};
use crate::config::Config;
use crate::process::memory_file;

/// Where systemd-resolved keeps its files while it runs.
const RESOLVED: &str = "/run/systemd/resolve";
/// Where Debian's resolvconf has names of interfaces in order; those of tunnels begin with `tun`.
const INTERFACE_ORDER: &str = "/etc/resolvconf/interface-order";
/// How long a program may take, and how often that is looked at. resolvectl waits longer for a service that does not answer.
const PATIENCE: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(5);
/// The time after a failure until it is tried again: as a person may have mended it, and no sooner, as it may take all of the patience.
pub(super) const RETRY: Duration = Duration::from_secs(60);
/// Most of what a program says that is repeated: a line of a terminal or two.
const SAID_MAX: u64 = 200;

/// What tells the host its name servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DnsProgram {
    /// systemd-resolved.
    Resolved,
    /// resolvconf, of openresolv or Debian.
    Resolvconf,
}

impl DnsProgram {
    /// The one that is there.
    #[must_use]
    pub fn find() -> Option<DnsProgram> {
        match Path::new(RESOLVED).is_dir() {
            true if on_path(DnsProgram::Resolved.name()).is_some() => Some(DnsProgram::Resolved),
            _ => on_path(DnsProgram::Resolvconf.name()).map(|_| DnsProgram::Resolvconf),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            DnsProgram::Resolved => "resolvectl",
            DnsProgram::Resolvconf => "resolvconf",
        }
    }

    /// Runs it.
    fn run(self, call: &DnsCall) -> io::Result<()> {
        let program = on_path(self.name()).ok_or(io::ErrorKind::NotFound)?;
        let mut command = Command::new(program);
        // No pipe: what it starts may keep that open, and fill it.
        let mut said = memory_file(c"said")?;
        command.args(&call.arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(said.try_clone()?);
        let mut child = command.spawn()?;
        if let Some(mut input) = child.stdin.take() {
            input.write_all(call.input.as_bytes())?;
        }
        let start = Instant::now();
        loop {
            match child.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => {
                    let words = first_line(&mut said).map_or_else(String::new, |line| format!(": {line}"));
                    return Err(io::Error::other(format!("{} ended with {status}{words}", self.name())));
                }
                None if start.elapsed() > PATIENCE => break,
                None => thread::sleep(TICK),
            }
        }
        child.kill()?;
        child.wait()?;
        let words = format!("{} did not end within {} s", self.name(), PATIENCE.as_secs());
        Err(io::Error::new(io::ErrorKind::TimedOut, words))
    }
}

impl fmt::Display for DnsProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DnsProgram::Resolved => "systemd-resolved",
            DnsProgram::Resolvconf => "resolvconf",
        })
    }
}

/// How a program is called.
#[derive(Clone, Debug, PartialEq, Eq)]
struct DnsCall {
    arguments: Vec<String>,
    input: String,
}

/// Which servers are asked for which names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DnsSettings {
    /// The servers.
    pub servers: Vec<IpAddr>,
    /// Domains that are appended to names without dots.
    pub search: Vec<String>,
    /// Whether they are asked for all names, and no other server is.
    pub all: bool,
}

impl DnsSettings {
    /// What `config` asks for. The servers of a split tunnel are asked only for names in its domains, if it has any.
    #[must_use]
    pub fn of(config: &Config) -> DnsSettings {
        let node = &config.node;
        let all = node.lockdown || node.dns_search.is_empty() || is_full(config);
        DnsSettings { servers: node.dns.clone(), search: node.dns_search.clone(), all }
    }

    /// The calls that tell a program.
    fn calls(&self, program: DnsProgram, interface: &str) -> Vec<DnsCall> {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<String>>();
        match program {
            DnsProgram::Resolved => {
                let servers = self.servers.iter().map(ToString::to_string);
                // "~.": all names go to this interface's servers, and to no others.
                let domains =
                    self.all.then(|| "~.".to_owned()).into_iter().chain(self.search.iter().cloned());
                let calls = [
                    words(&["dns", interface]).into_iter().chain(servers).collect(),
                    words(&["domain", interface]).into_iter().chain(domains).collect(),
                ];
                calls.map(|arguments| DnsCall { arguments, input: String::new() }).into()
            }
            DnsProgram::Resolvconf => {
                // As wg-quick(8) does; "-x": no other servers; "-p": for names in the domains only, where that is possible.
                let arguments = if self.all {
                    ["-a", interface, "-m", "0", "-x"]
                } else {
                    ["-a", interface, "-m", "0", "-p"]
                };
                let servers = self.servers.iter().map(|server| format!("nameserver {server}\n"));
                let search = (!self.search.is_empty()).then(|| format!("search {}\n", self.search.join(" ")));
                vec![DnsCall { arguments: words(&arguments), input: servers.chain(search).collect() }]
            }
        }
    }
}

impl Network {
    /// Gives the tunnel's name servers to the host, if `config` has any; what does not work is logged, and tried again.
    pub fn set_dns(&mut self, config: &Config) {
        self.dns = DnsSettings::of(config);
        if !self.dns.servers.is_empty() {
            self.give_dns();
        }
    }

    /// The same where it did not work.
    pub fn mend_dns(&mut self) {
        if self.dns_trouble.is_some() {
            self.give_dns();
        }
    }

    /// The same, unless it was a moment ago.
    pub(super) fn try_dns_again(&mut self) {
        if self.dns_tried.elapsed() >= RETRY {
            self.mend_dns();
        }
    }

    fn give_dns(&mut self) {
        let trouble = match DnsProgram::find() {
            None => Err("`dns` has no effect: neither systemd-resolved nor resolvconf is here".to_owned()),
            Some(program) => self
                .tell(program)
                .map_err(|error| format!("cannot set name servers, so the host asks others: {error}")),
        };
        self.dns_tried = Instant::now();
        let trouble = trouble.err();
        if trouble != self.dns_trouble
            && let Some(trouble) = &trouble
        {
            tracing::warn!(interface = self.interface, "{trouble}");
        }
        self.dns_trouble = trouble;
    }

    /// Tells a program.
    fn tell(&mut self, program: DnsProgram) -> io::Result<()> {
        let name = match program {
            DnsProgram::Resolved => self.name.clone(),
            DnsProgram::Resolvconf => name(&self.interface),
        };
        if program == DnsProgram::Resolvconf {
            self.left.resolvconf = Some(name.clone());
            self.write_down();
            self.resolvconf = Some(name.clone());
        }
        self.dns.calls(program, &name).iter().try_for_each(|call| program.run(call))?;
        tracing::info!(interface = self.interface, %program, "name servers are set");
        Ok(())
    }

    /// Takes back what resolvconf was told.
    pub(super) fn unset_dns(&mut self) {
        if let Some(name) = self.resolvconf.take() {
            report("name server", unset(&name));
        }
    }
}

/// Takes back what resolvconf was told of an interface, whose name is as [`Leftovers`](super::undo::Leftovers) has it.
///
/// # Errors
/// When the program is gone or fails.
pub(super) fn unset(name: &str) -> io::Result<()> {
    // "-f": whether or not there is anything.
    let arguments = ["-d", name, "-f"].map(str::to_owned).into();
    DnsProgram::Resolvconf.run(&DnsCall { arguments, input: String::new() })
}

/// What resolvconf calls the interface.
fn name(interface: &str) -> String {
    if Path::new(INTERFACE_ORDER).exists() { format!("tun.{interface}") } else { interface.to_owned() }
}

/// The first line that a program wrote, if it is text.
fn first_line(said: &mut File) -> Option<String> {
    said.rewind().ok()?;
    let mut bytes = Vec::new();
    said.take(SAID_MAX).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let line: String = text.lines().next()?.chars().filter(|letter| !letter.is_control()).collect();
    (!line.is_empty()).then_some(line)
}

/// Where a program is.
fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(search: &[&str], all: bool) -> DnsSettings {
        let servers = ["10.1.0.53", "fd01::53"].map(|server| server.parse().unwrap()).into();
        DnsSettings { servers, search: search.iter().map(|&domain| domain.to_owned()).collect(), all }
    }

    fn told(settings: &DnsSettings, program: DnsProgram) -> Vec<String> {
        let calls = settings.calls(program, "strait0");
        calls.iter().map(|call| format!("{}|{}", call.arguments.join(" "), call.input)).collect()
    }

    #[test]
    fn a_full_tunnel_asks_its_servers_for_all_names_and_no_others() {
        let full = settings(&["corp.example"], true);
        let resolved = ["dns strait0 10.1.0.53 fd01::53|", "domain strait0 ~. corp.example|"];
        assert_eq!(told(&full, DnsProgram::Resolved), resolved);
        let resolvconf =
            "-a strait0 -m 0 -x|nameserver 10.1.0.53\nnameserver fd01::53\nsearch corp.example\n";
        assert_eq!(told(&full, DnsProgram::Resolvconf), [resolvconf]);
    }

    #[test]
    fn a_split_tunnel_asks_its_servers_for_names_in_its_domains() {
        let split = settings(&["corp.example", "10.in-addr.arpa"], false);
        assert_eq!(told(&split, DnsProgram::Resolved)[1], "domain strait0 corp.example 10.in-addr.arpa|");
        assert!(told(&split, DnsProgram::Resolvconf)[0].starts_with("-a strait0 -m 0 -p|"));
        let config = |node: &str, allowed: &str| {
            let text = format!(
                "[node]\nprivate_key_file = \"k\"\naddress = \"10.77.0.1/24\"\ndns = \"10.1.0.53\"\n{node}[[peer]]\n\
                 public_key = \"wXKeEeD2sUcsfgwA2rO7tClR0yGv6Ro0Hk4mVF2RQhI=\"\nallowed_ips = [{allowed}]\n"
            );
            DnsSettings::of(&Config::parse(&text, Path::new("x.toml")).unwrap())
        };
        let search = "dns_search = \"corp.example\"\n";
        for (node, allowed, all) in [
            ("", "\"10.2.0.0/16\"", true),
            (search, "\"10.2.0.0/16\"", false),
            (search, "\"0.0.0.0/0\"", true),
            ("lockdown = true\ndns_search = \"corp.example\"\n", "\"10.2.0.0/16\"", true),
        ] {
            assert_eq!(config(node, allowed).all, all, "{node}{allowed}");
        }
    }
}
