//! Two hosts with a daemon each, an sshd beside them, and logins from the first to the second.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use strait_testbed::outside::{MoshServer, Sshd};
use strait_testbed::{
    DaemonProcess, EmulatedPath, Extra, PORT, Relay, Site, TwoHosts, Workdir, paced, program_with_accounts,
};

use super::terminal::PersonTerminal;
use super::way::LoginWay;
use crate::error::Error;
use crate::paths::ThinPath;
use crate::stage::{BenchSetup, MTU};

/// How long a session of the tunnel may take, and how long a login.
const SESSION: Duration = Duration::from_secs(30);
const LOGIN: Duration = Duration::from_secs(60);
/// What the shell says when it is ready, which no echo of a command has in it.
pub(crate) const PROMPT: &str = "ready>";
/// The shell. Its prompt is not typed as it is shown.
pub(crate) const SHELL: &str = "PS1=ready'>' exec sh -i";

/// Hosts, daemons and sshd. Dropped, it leaves nothing behind.
pub(super) struct LoginStage {
    // In the order in which they must go: daemons, hosts, folder.
    pub(super) daemons: [DaemonProcess; 2],
    sshd: Result<Sshd, String>,
    _relay: Option<(Relay, EmulatedPath)>,
    pub(super) hosts: TwoHosts,
    pub(super) dir: Workdir,
    program: PathBuf,
}

/// A terminal that is logged in, and what must end with it.
pub(super) struct Login {
    // In the order in which they must go.
    _server: Option<MoshServer>,
    pub(super) terminal: PersonTerminal,
}

impl LoginStage {
    /// Over a path; daemons are told its rate.
    pub(super) fn set(setting: &BenchSetup, path: ThinPath) -> Result<LoginStage, Error> {
        setting.has_program()?;
        let (hosts, relay) = path.hosts(1)?;
        let dir = Workdir::create()?;
        let far = program_with_accounts(&setting.program, dir.path())?;
        let port = |address| SocketAddr::new(address, PORT);
        let sites = [
            Site::create(&setting.program, &hosts.a, 1, port(hosts.address_of_a().0), dir.path())?,
            Site::create(&far, &hosts.b, 2, port(hosts.address_of_b().0), dir.path())?,
        ];
        let daemons = start(&sites, path)?;
        let sshd = setting.sshd(&hosts, &dir);
        Ok(LoginStage { daemons, sshd, _relay: relay, hosts, dir, program: setting.program.clone() })
    }

    fn address(&self) -> IpAddr {
        self.hosts.address_of_b().0
    }

    /// A file or folder that both hosts see.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Why a way cannot be measured here.
    pub(super) fn missing(&self, way: LoginWay) -> Option<String> {
        let uses_ssh = matches!(way, LoginWay::Ssh | LoginWay::Compressed);
        let no_sshd = self.sshd.as_ref().err().filter(|_| uses_ssh);
        way.missing().or_else(|| Some(format!("{} is left out: {}", way.name(), no_sshd?)))
    }

    /// Logs in and runs `program` there.
    pub(super) fn login(&self, way: LoginWay, program: &str) -> Result<Login, Error> {
        let mut server = None;
        let command = match way {
            LoginWay::Strait => self.daemons[0].command(&["login", "-t", "site-b", program]),
            LoginWay::Ssh | LoginWay::Compressed => {
                let mut command = self.hosts.a.command("ssh");
                command.args(self.ssh_options(way)).args(["-tt", &self.host(), program]);
                command
            }
            LoginWay::Mosh => {
                let words = ["sh", "-c", program];
                let started = MoshServer::start(&self.hosts.b, self.address(), &words)?;
                let client = started.client(&self.hosts.a);
                server = Some(started);
                client
            }
        };
        let terminal = PersonTerminal::start(way.name(), &self.hosts.a, &command)?;
        Ok(Login { _server: server, terminal })
    }

    /// Logs in to a shell, and waits until it is ready.
    pub(super) fn shell(&self, way: LoginWay) -> Result<Login, Error> {
        let mut login = self.login(way, SHELL)?;
        login.terminal.wait_for(PROMPT, LOGIN)?;
        Ok(login)
    }

    /// The options of ssh, scp and what else runs ssh, for a way.
    pub(super) fn ssh_options(&self, way: LoginWay) -> Vec<String> {
        if way == LoginWay::Strait {
            return self.proxied();
        }
        let mut options = self.sshd.as_ref().map(Sshd::options).unwrap_or_default();
        options.extend((way == LoginWay::Compressed).then(|| "-C".to_owned()));
        options
    }

    /// The options with which ssh goes through the tunnel's daemon.
    fn proxied(&self) -> Vec<String> {
        let strait = self.program.display();
        let mut options = vec!["-q".to_owned(), "-F".into(), "none".into()];
        for option in [
            format!("ProxyCommand={strait} ssh %h"),
            format!("KnownHostsCommand={strait} ssh --known-hosts %H"),
            "UserKnownHostsFile=none".to_owned(),
            "GlobalKnownHostsFile=none".to_owned(),
            "StrictHostKeyChecking=yes".to_owned(),
            "BatchMode=yes".to_owned(),
        ] {
            options.extend(["-o".to_owned(), option]);
        }
        options
    }

    /// What programs that use ssh call the second host.
    pub(super) fn host(&self) -> String {
        let user = self.sshd.as_ref().map_or("root", |sshd| sshd.user());
        format!("{user}@{}", self.address())
    }

    /// The same for a way.
    pub(super) fn host_of(&self, way: LoginWay) -> String {
        if way == LoginWay::Strait { "site-b".to_owned() } else { self.host() }
    }

    /// A command on the first host that finds the tunnel's daemon.
    pub(super) fn near(&self, program: &str) -> Command {
        let surroundings = self.daemons[0].command(&[]);
        let mut command = self.hosts.a.command(program);
        for (key, value) in surroundings.get_envs() {
            match value {
                Some(value) => command.env(key, value),
                None => command.env_remove(key),
            };
        }
        command.stdin(Stdio::null());
        command
    }

    /// The end of what the daemons said.
    pub(super) fn said(&self) -> String {
        self.daemons.iter().map(DaemonProcess::last_words).collect::<Vec<_>>().join("\n----\n")
    }
}

/// The daemons of both sites; the first may log in at the second.
fn start(sites: &[Site; 2], path: ThinPath) -> Result<[DaemonProcess; 2], Error> {
    let link = path.rate().map(|rate| paced(rate, rate)).unwrap_or_default();
    let node = format!("mtu = {MTU}\n");
    let [a, b] = sites;
    let accounts = "[[login]]\npeer = \"site-a\"\naccounts = [\"root\"]\n";
    let one = |site: &Site, peer: &Site, sections: &str| {
        let extra = Extra { node: &node, link: &link, sections, ..Extra::default() };
        site.start(&site.configure("login", &[peer], extra)?, "run")
    };
    let daemons = [one(a, b, "")?, one(b, a, accounts)?];
    for (daemon, peer) in daemons.iter().zip([b, a]) {
        daemon.wait_for_session(peer.name(), SESSION)?;
    }
    Ok(daemons)
}

/// Whether two files have the same bytes.
pub(super) fn same(one: &Path, other: &Path) -> Result<bool, Error> {
    let read = |path: &Path| std::fs::read(path).map_err(Error::doing(format!("read {}", path.display())));
    Ok(read(one)? == read(other)?)
}
