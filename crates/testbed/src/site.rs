//! A site: a host with a key, a configuration and, at times, a daemon.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{DaemonProcess, Error, Namespace, TwoHosts};

/// Where the numbers of the networks behind sites begin: 10.98.0.0 is behind the first.
const NETWORKS: u8 = 97;
/// The daemons' port.
pub const PORT: u16 = 51820;

/// A host with a key pair, reached at an address outside the tunnel and at two inside.
#[derive(Clone, Debug)]
pub struct Site {
    /// The host, whose name is the site's.
    pub host: Namespace,
    /// Where it is reached outside the tunnel.
    pub outside: SocketAddr,
    number: u8,
    folder: PathBuf,
    program: PathBuf,
    public_key: String,
}

/// What a configuration has besides the usual, as TOML.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extra<'a> {
    /// More lines of `[node]`.
    pub node: &'a str,
    /// More lines of each `[[peer]]`.
    pub peer: &'a str,
    /// Lines of `[link]`.
    pub link: &'a str,
    /// More sections, such as `[[compress]]`.
    pub sections: &'a str,
    /// Whether the tunnel leads to the networks behind the sites.
    pub networks: Networks,
}

/// A peer in the configuration of a node without a tunnel.
#[derive(Clone, Copy, Debug)]
pub struct KnownPeer<'a> {
    /// The peer.
    pub site: &'a Site,
    /// Where it is reached, if it is.
    pub at: Option<SocketAddr>,
    /// More lines of its section.
    pub more: &'a str,
}

/// Whether the tunnel leads to the networks behind the sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Networks {
    /// To the sites alone.
    #[default]
    Hidden,
    /// It does.
    Reached,
}

impl Site {
    /// Makes the site's folder in `parent`, and its key with `program keygen`. Inside the tunnel the site is
    /// 10.77.0.`number` and fd77::`number`.
    ///
    /// # Errors
    /// [`Error::System`] when the folder cannot be made, [`Error::Command`] when there is no key.
    pub fn create(
        program: &Path,
        host: &Namespace,
        number: u8,
        outside: SocketAddr,
        parent: &Path,
    ) -> Result<Site, Error> {
        let folder = parent.join(host.name());
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&folder)
            .map_err(Error::doing(format!("make the folder {}", folder.display())))?;
        let mut site = Site {
            host: host.clone(),
            outside,
            number,
            folder,
            program: program.to_owned(),
            public_key: String::new(),
        };
        let key = site.key_file();
        let key = key.to_string_lossy();
        site.run(&["keygen", "--out", &key])?;
        site.public_key = site.run(&["pubkey", &key])?.trim().to_owned();
        Ok(site)
    }

    /// Both sites of two hosts, reached over IPv4 outside.
    ///
    /// # Errors
    /// As [`Site::create`].
    pub fn pair(program: &Path, hosts: &TwoHosts, parent: &Path) -> Result<[Site; 2], Error> {
        let outside = |address: IpAddr| SocketAddr::new(address, PORT);
        Ok([
            Site::create(program, &hosts.a, 1, outside(hosts.address_of_a().0), parent)?,
            Site::create(program, &hosts.b, 2, outside(hosts.address_of_b().0), parent)?,
        ])
    }

    /// The host's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.host.name()
    }

    /// Its IPv4 address inside the tunnel.
    #[must_use]
    pub const fn inside(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, 0, self.number)
    }

    /// Its IPv6 address inside the tunnel.
    #[must_use]
    pub const fn inside_v6(&self) -> Ipv6Addr {
        // The number is below 256, so its cast loses nothing.
        Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, self.number as u16)
    }

    /// The IPv4 network behind it, 16 bits long, of which nothing exists by itself.
    #[must_use]
    pub const fn network(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, NETWORKS + self.number, 0, 0)
    }

    /// Its public key, as text.
    #[must_use]
    pub fn public_key(&self) -> &str {
        &self.public_key
    }

    /// The file with its private key.
    #[must_use]
    pub fn key_file(&self) -> PathBuf {
        self.folder.join(format!("{}.key", self.name()))
    }

    /// The program that made its key.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The site's folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a configuration under `name` and says where it is.
    ///
    /// # Errors
    /// [`Error::System`] when it cannot be written.
    pub fn configure(&self, name: &str, peers: &[&Site], extra: Extra<'_>) -> Result<PathBuf, Error> {
        let path = self.folder.join(format!("{name}.toml"));
        fs::write(&path, self.configuration(peers, extra))
            .map_err(Error::doing(format!("write {}", path.display())))?;
        Ok(path)
    }

    /// The text of a configuration that reaches `peers`.
    #[must_use]
    pub fn configuration(&self, peers: &[&Site], extra: Extra<'_>) -> String {
        let (node, peer, sections) = (lines(extra.node), lines(extra.peer), lines(extra.sections));
        let link = lines(extra.link);
        let forward = match extra.networks {
            Networks::Hidden => String::new(),
            Networks::Reached => format!("forward = [\"{}/16\"]\n", self.network()),
        };
        let mut text = format!(
            "[node]\nprivate_key_file = \"{}.key\"\naddress = [\"{}/24\", \"{}/64\"]\nlisten = {}\n{forward}{node}",
            self.name(),
            self.inside(),
            self.inside_v6(),
            self.outside.port(),
        );
        if !link.is_empty() {
            text.push_str(&format!("\n[link]\n{link}"));
        }
        for other in peers {
            let network = match extra.networks {
                Networks::Hidden => String::new(),
                Networks::Reached => format!(", \"{}/16\"", other.network()),
            };
            text.push_str(&format!(
                "\n[[peer]]\nname = \"{}\"\npublic_key = \"{}\"\nendpoint = \"{}\"\n\
                 allowed_ips = [\"{}/32\", \"{}/128\"{network}]\n{peer}",
                other.name(),
                other.public_key,
                other.outside,
                other.inside(),
                other.inside_v6(),
            ));
        }
        format!("{text}\n{sections}")
    }

    /// The text of a configuration of a node without a tunnel that knows `peers`, each with more lines of its section, and reaches
    /// those that are said to be reached.
    #[must_use]
    pub fn configuration_without_tunnel(&self, peers: &[KnownPeer<'_>], extra: Extra<'_>) -> String {
        let mut text = format!(
            "[node]\nprivate_key_file = \"{}.key\"\ntunnel = false\nlisten = {}\n{}",
            self.name(),
            self.outside.port(),
            lines(extra.node),
        );
        if !extra.link.is_empty() {
            text.push_str(&format!("\n[link]\n{}", lines(extra.link)));
        }
        for KnownPeer { site, at, more } in peers {
            let endpoint = at.map(|at| format!("endpoint = \"{at}\"\n")).unwrap_or_default();
            text.push_str(&format!(
                "\n[[peer]]\nname = \"{}\"\npublic_key = \"{}\"\n{endpoint}{}{}",
                site.name(),
                site.public_key,
                lines(extra.peer),
                lines(more),
            ));
        }
        format!("{text}\n{}", lines(extra.sections))
    }

    /// Makes the site's folder the home of a user with this configuration, of which commands have a node for their time.
    ///
    /// # Errors
    /// [`Error::System`] when it cannot be written.
    pub fn make_home(&self, configuration: &str) -> Result<(), Error> {
        let home = self.folder.join("strait");
        fs::create_dir(&home)
            .and_then(|()| fs::rename(self.key_file(), home.join(format!("{}.key", self.name()))))
            .and_then(|()| fs::write(home.join("strait.toml"), configuration))
            .map_err(Error::doing(format!("make a home of {}", self.folder.display())))
    }

    /// A command in that home, without a daemon.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.host.command(&self.program);
        command.args(arguments).env("XDG_CONFIG_HOME", &self.folder).env("HOME", &self.folder);
        command.env("STRAIT_RUNTIME_DIR", self.folder.join("run"));
        command.env("STRAIT_STATE_DIR", self.folder.join("state")).env("NO_COLOR", "1");
        command.env_remove("NOTIFY_SOCKET").stdin(Stdio::null());
        command
    }

    /// Starts a broker from a configuration, as [`Site::start`] does a daemon.
    ///
    /// # Errors
    /// As [`DaemonProcess::start`].
    pub fn start_broker(&self, config: &Path, name: &str) -> Result<DaemonProcess, Error> {
        DaemonProcess::start_broker(&self.host, &self.program, config, &self.folder.join(name))
    }

    /// Starts a daemon from a configuration; its socket and log are in the folder `name` of the site's folder.
    ///
    /// # Errors
    /// As [`DaemonProcess::start`].
    pub fn start(&self, config: &Path, name: &str) -> Result<DaemonProcess, Error> {
        DaemonProcess::start(&self.host, &self.program, config, &self.folder.join(name))
    }

    fn run(&self, arguments: &[&str]) -> Result<String, Error> {
        let command = format!("strait {}", arguments.join(" "));
        let output = self
            .host
            .command(&self.program)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .map_err(Error::doing(format!("run {command}")))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(Error::Command { command, host: self.name().to_owned(), status: output.status.to_string(), said })
    }
}

/// The text with a line end, unless it is empty.
fn lines(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() { String::new() } else { format!("{text}\n") }
}
