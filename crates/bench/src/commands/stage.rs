//! Two hosts, a daemon on the second with an sshd beside it, and commands on the first.

use std::fs::{self, File};
use std::io::{ErrorKind, Result as IoResult};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use strait_testbed::outside::{self, Sshd};
use strait_testbed::{
    DaemonProcess, EmulatedPath, Extra, KnownPeer, Namespace, PORT, Relay, Site, TwoHosts, Workdir,
    interrupt, paced, program_with_accounts,
};

use crate::age::AgeKey;
use crate::error::Error;
use crate::files::{make_durable, rsync_options, same, wait};
use crate::paths::ThinPath;
use crate::stage::BenchSetup;

/// The time that a command may take, and the time between two looks for its connection.
const COMMAND: Duration = Duration::from_secs(300);
const TICK: Duration = Duration::from_millis(1);
/// The time in which the last words of a command cross the link, too.
const ENDED: Duration = Duration::from_millis(300);

/// A program that sends a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandWay {
    /// `strait send`.
    Strait,
    /// `rsync -az --zc=zstd` through ssh.
    Rsync,
    /// `zstd -3 | age` into a TCP connection, and back at the other end.
    Age,
}

impl CommandWay {
    /// In the order of the columns and of runs.
    pub(super) const ALL: [CommandWay; 3] = [CommandWay::Strait, CommandWay::Rsync, CommandWay::Age];

    pub(super) const fn name(self) -> &'static str {
        match self {
            CommandWay::Strait => "strait send",
            CommandWay::Rsync => "rsync -az",
            CommandWay::Age => "zstd -3 | age",
        }
    }
}

/// The services of the far host besides a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FarServices {
    /// Nothing.
    Files,
    /// Logins, and a broker, which is a node of its own called `post`.
    All,
}

/// Hosts, the far daemon, and the near one's configuration. Dropped, it leaves nothing behind.
pub(super) struct CommandStage {
    // In the order in which they must go: daemons, hosts, folder.
    far: DaemonProcess,
    _post: Option<DaemonProcess>,
    sshd: Result<Sshd, String>,
    age: Result<AgeKey, String>,
    near: Site,
    _relay: Option<(Relay, EmulatedPath)>,
    pub(super) hosts: TwoHosts,
    dir: Workdir,
    /// The path between them.
    pub(super) path: ThinPath,
}

impl CommandStage {
    /// Makes all of it over a path whose rate the nodes know.
    pub(super) fn set(
        setting: &BenchSetup,
        path: ThinPath,
        services: FarServices,
    ) -> Result<CommandStage, Error> {
        setting.has_program()?;
        let (hosts, relay) = path.hosts(1)?;
        let dir = Workdir::create()?;
        for folder in ["source", "inbox"] {
            fs::create_dir(dir.path().join(folder)).map_err(Error::doing("make a folder"))?;
        }
        let all = services == FarServices::All;
        let program = &setting.program;
        let with_accounts = all.then(|| program_with_accounts(program, dir.path())).transpose()?;
        let [here, there] = [hosts.address_of_a().0, hosts.address_of_b().0];
        let near = Site::create(program, &hosts.a, 1, SocketAddr::new(here, PORT), dir.path())?;
        let site = |host: &Namespace, number: u8, port: u16, program: &Path| {
            Site::create(program, host, number, SocketAddr::new(there, port), dir.path())
        };
        let far = site(&hosts.b, 2, PORT, with_accounts.as_ref().unwrap_or(program))?;
        let post = all.then(|| site(&hosts.b.renamed("post"), 3, PORT + 1, program)).transpose()?;
        let link = path.rate().map(|rate| paced(rate, rate)).unwrap_or_default();
        let extra = Extra { link: &link, ..Extra::default() };
        let peers = [Some(reached(&far, "")), post.as_ref().map(|post| reached(post, "broker = true"))];
        let peers: Vec<_> = peers.into_iter().flatten().collect();
        near.make_home(&near.configuration_without_tunnel(&peers, extra))?;
        let broker = post.as_ref().map(|post| start_broker(post, [&near, &far], extra)).transpose()?;
        let far = start(&far, &near, (&dir.path().join("inbox"), all), extra)?;
        let sshd = setting.sshd(&hosts, &dir);
        let age = AgeKey::make(dir.path(), &["zstd", "bash"]);
        let stage = CommandStage { far, _post: broker, sshd, age, near, _relay: relay, hosts, dir, path };
        // A machine's first command measures its ciphers, and the far end has yet to hear of the near one.
        stage.ended(&mut stage.strait(&["ls", "site-b:inbox"]), "strait ls")?;
        Ok(stage)
    }

    pub(super) fn address(&self) -> IpAddr {
        self.hosts.address_of_b().0
    }

    /// The path of a file that is sent.
    pub(super) fn source(&self, name: &str) -> PathBuf {
        self.dir.path().join("source").join(name)
    }

    fn inbox(&self, name: &str) -> PathBuf {
        self.dir.path().join("inbox").join(name)
    }

    /// The reason for which a way cannot be measured here.
    pub(super) fn missing(&self, way: CommandWay) -> Option<String> {
        let no_rsync = || (!outside::has("rsync")).then(|| "there is no rsync".to_owned());
        let why = match way {
            CommandWay::Strait => None,
            CommandWay::Rsync => self.sshd.as_ref().err().cloned().or_else(no_rsync),
            CommandWay::Age => self.age.as_ref().err().cloned(),
        };
        Some(format!("{} is left out: {}", way.name(), why?))
    }

    /// A command of Strait's on the first host.
    pub(super) fn strait(&self, arguments: &[&str]) -> Command {
        self.near.command(arguments)
    }

    /// The command that sends a file.
    pub(super) fn send(&self, name: &str) -> Command {
        let mut command = self.strait(&["send"]);
        command.arg(self.source(name)).arg("site-b:inbox");
        command
    }

    /// Sends a file one way and compares; the seconds until it is durable at the other end, and the bytes on the wire.
    pub(super) fn transfer(&self, way: CommandWay, name: &str) -> Result<(f64, u64), Error> {
        let crossed = self.hosts.link.traffic()?;
        let begin = Instant::now();
        match (way, &self.sshd, &self.age) {
            (CommandWay::Age, _, Ok(age)) => self.pipe(age, name)?,
            (CommandWay::Rsync, Ok(sshd), _) => {
                let mut command = self.hosts.a.command("rsync");
                let place = format!("{}@{}:{}", sshd.user(), self.address(), self.inbox("").display());
                command.args(rsync_options(&sshd.options())).arg(self.source(name)).arg(place);
                self.ended(&mut command, way.name())?;
            }
            _ => self.ended(&mut self.send(name), way.name())?,
        }
        make_durable(&self.inbox(name)).map_err(Error::doing("make a file durable"))?;
        let seconds = begin.elapsed().as_secs_f64();
        interrupt::pause(ENDED)?;
        let wire = self.hosts.link.traffic()?.since(crossed).bytes();
        if !same(&self.source(name), &self.inbox(name)).map_err(Error::doing("compare files"))? {
            return Err(Error::Silent { what: "a file whose bytes are right", way: way.name().to_owned() });
        }
        fs::remove_file(self.inbox(name)).map_err(Error::doing("remove what arrived"))?;
        Ok((seconds, wire))
    }

    /// A pipe at either end of a TCP connection, until the last process has ended.
    fn pipe(&self, age: &AgeKey, name: &str) -> Result<(), Error> {
        let bind = || TcpListener::bind(SocketAddr::new(self.address(), 0));
        let listener = self.hosts.b.run("listen for a pipe", bind)?;
        let doing = || Error::doing("take a connection");
        let port = listener.local_addr().map_err(doing())?.port().to_string();
        listener.set_nonblocking(true).map_err(doing())?;
        let mut near = self.hosts.a.command("bash");
        let pipe = "zstd -3 -q -c \"$0\" | age -r \"$1\" > \"/dev/tcp/$2/$3\"";
        near.args(["-o", "pipefail", "-c", pipe]).arg(self.source(name)).stdin(Stdio::null());
        near.args([&age.recipient, &self.address().to_string(), &port]);
        let mut sender = self.spawn(&mut near)?;
        let stream = match accepted(&listener, &mut sender) {
            Ok(stream) => stream,
            Err(error) => {
                let _ = sender.kill();
                let _ = sender.wait();
                return Err(doing()(error));
            }
        };
        let mut far = self.hosts.b.command("bash");
        let pipe = "age -d -i \"$0\" | zstd -d -q -c > \"$1\"";
        far.args(["-o", "pipefail", "-c", pipe]).arg(&age.file).arg(self.inbox(name));
        far.stdin(Stdio::from(OwnedFd::from(stream)));
        let receiver = self.spawn(&mut far);
        // Or its end would stay open here.
        drop(far);
        for mut child in [sender, receiver?] {
            self.check(wait(&mut child, COMMAND)?, CommandWay::Age.name())?;
        }
        Ok(())
    }

    /// Runs a command to its end, which has to be good.
    pub(super) fn ended(&self, command: &mut Command, name: &str) -> Result<(), Error> {
        let mut child = self.spawn(command.stdin(Stdio::null()))?;
        self.check(wait(&mut child, COMMAND)?, name)
    }

    fn spawn(&self, command: &mut Command) -> Result<Child, Error> {
        let log = File::options().create(true).append(true).open(self.log());
        let log = log.map_err(Error::doing("make a log"))?;
        command.stdout(Stdio::null()).stderr(log).spawn().map_err(Error::doing("start a command"))
    }

    fn log(&self) -> PathBuf {
        self.dir.path().join("command.log")
    }

    /// Fails unless a command ended well.
    fn check(&self, status: ExitStatus, name: &str) -> Result<(), Error> {
        if status.success() {
            return Ok(());
        }
        let said = fs::read_to_string(self.log()).unwrap_or_default() + "\n----\n" + &self.far.last_words();
        let (command, host) = (name.to_owned(), self.hosts.a.name().to_owned());
        Err(strait_testbed::Error::Command { command, host, status: status.to_string(), said }.into())
    }
}

/// The connection of a process that is to make one.
fn accepted(listener: &TcpListener, process: &mut Child) -> IoResult<TcpStream> {
    loop {
        match listener.accept() {
            Ok((stream, _)) => return stream.set_nonblocking(false).map(|()| stream),
            Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
            Err(error) if process.try_wait()?.is_some() => return Err(error),
            Err(_) => thread::sleep(TICK),
        }
    }
}

/// A peer that the near end reaches.
const fn reached<'a>(site: &'a Site, more: &'a str) -> KnownPeer<'a> {
    KnownPeer { site, at: Some(site.outside), more }
}

/// The far daemon, with a folder, and with logins if they are wanted.
fn start(
    far: &Site,
    near: &Site,
    (inbox, logins): (&Path, bool),
    extra: Extra<'_>,
) -> Result<DaemonProcess, Error> {
    let mut sections = format!(
        "[[folder]]\nname = \"inbox\"\npath = \"{}\"\nread = [\"site-a\"]\nwrite = [\"site-a\"]\nowner = \"root\"\n",
        inbox.display()
    );
    if logins {
        sections.push_str("[[login]]\npeer = \"site-a\"\naccounts = [\"root\"]\n");
    }
    let peers = [KnownPeer { site: near, at: None, more: "" }];
    let config = configure(far, &peers, Extra { sections: &sections, ..extra })?;
    Ok(far.start(&config, "run")?)
}

/// A broker for a sender and a receiver.
fn start_broker(post: &Site, known: [&Site; 2], extra: Extra<'_>) -> Result<DaemonProcess, Error> {
    let folder = post.folder().display();
    let sections = format!(
        "[broker]\nstore = \"{folder}/store\"\nspool = \"{folder}/spool\"\n[[broker.access]]\npeer = \"*\"\nput = true\nfetch = true\n"
    );
    let peers = known.map(|site| KnownPeer { site, at: None, more: "" });
    let config = configure(post, &peers, Extra { sections: &sections, ..extra })?;
    Ok(post.start_broker(&config, "run")?)
}

fn configure(site: &Site, peers: &[KnownPeer<'_>], extra: Extra<'_>) -> Result<PathBuf, Error> {
    let config = site.folder().join("strait.toml");
    let text = site.configuration_without_tunnel(peers, extra);
    fs::write(&config, text).map_err(Error::doing("write a configuration"))?;
    Ok(config)
}
