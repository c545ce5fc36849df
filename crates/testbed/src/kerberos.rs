//! Two realms of Kerberos that do not know each other, each with a KDC of its own (`krb5kdc` of MIT Kerberos), and users with tickets.

use std::fs;
use std::io::{self, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::directory::free_port;
use crate::{Error, Namespace};

/// The realm of the server and of most users.
pub const REALM: &str = "STRAIT.TEST";
/// The other one.
pub const OTHER_REALM: &str = "ELSEWHERE.TEST";
/// The host that both have services for.
pub const SERVER: &str = "server.strait.test";

const PASSWORD: &str = "a password of this test";
/// How long a KDC may take to answer, on a machine that does other things.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is asked.
const PAUSE: Duration = Duration::from_millis(50);

/// A folder with all that is needed, and the KDCs, which end with this.
#[derive(Debug)]
pub struct Realms {
    folder: PathBuf,
    /// Where the KDCs and programs run; none for this process's own network.
    host: Option<Namespace>,
    kdcs: Vec<Child>,
}

/// The first program or library that is not there.
#[must_use]
pub fn missing() -> Option<&'static str> {
    let lacks = |name: &&str| {
        Command::new(administrators(name))
            .arg("-?")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_err()
    };
    if strait_kerberos::available().is_err() {
        return Some("GSSAPI library");
    }
    let programs = ["krb5kdc", "kdb5_util", "kadmin.local", "kinit", "klist"];
    programs.into_iter().find(lacks).or_else(|| faketime().is_none().then_some("libfaketime"))
}

/// The library that gives a process another clock.
#[must_use]
pub fn faketime() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").ok()?;
    let beside = |entry: fs::DirEntry| entry.path().join("faketime/libfaketime.so.1");
    folders.flatten().map(beside).find(|path| path.exists())
}

/// Gives a process the clock of `shift`, such as `+10m`; spans of time stay.
pub fn shift_clock(command: &mut Command, shift: &str) {
    if let Some(library) = faketime() {
        command.env("LD_PRELOAD", library).env("FAKETIME", shift).env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    }
}

/// Where distributions have programs for administrators, which is not on every PATH.
fn administrators(name: &str) -> PathBuf {
    let beside = Path::new("/usr/sbin").join(name);
    if beside.exists() { beside } else { name.into() }
}

impl Realms {
    /// Makes both in a folder that is there, and starts their KDCs on the loopback of `host`, or of this process's network.
    ///
    /// # Errors
    /// [`Error`] when a program fails or a KDC does not answer.
    pub fn start(folder: &Path, host: Option<&Namespace>) -> Result<Realms, Error> {
        let made = |what: &str| Error::doing(format!("make {what} for the KDCs"));
        fs::create_dir(folder.join("replay")).map_err(made("a folder"))?;
        let mut realms = Realms { folder: folder.to_owned(), host: host.cloned(), kdcs: Vec::new() };
        let port = || realms.here("find a free port", free_port);
        let ports = [port()?, port()?];
        let defaults = folder.join("included");
        let configuration = client_configuration(&defaults, ports);
        fs::create_dir(&defaults)
            .and_then(|()| fs::write(defaults.join("defaults"), DEFAULTS))
            .and_then(|()| fs::write(folder.join("krb5.conf"), configuration))
            .map_err(made("a configuration"))?;
        for (realm, port) in [REALM, OTHER_REALM].into_iter().zip(ports) {
            realms.begin(realm, port)?;
        }
        realms.add_principals()?;
        Ok(realms)
    }

    /// Where a file of these realms is, such as `keytab`, which has the keys of the services `strait` and `other`.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A cache of tickets, as `KRB5CCNAME` has it.
    #[must_use]
    pub fn cache(&self, name: &str) -> String {
        format!("FILE:{}", self.path(name).display())
    }

    /// What a process needs in its environment to use these realms and nothing of the system's.
    #[must_use]
    pub fn environment(&self) -> [(&'static str, PathBuf); 2] {
        [("KRB5_CONFIG", self.path("krb5.conf")), ("KRB5RCACHEDIR", self.path("replay"))]
    }

    /// Gives a command that environment, and no tickets.
    pub fn set_environment(&self, command: &mut Command) {
        command.envs(self.environment()).env_remove("KRB5CCNAME").env_remove("KRB5_KTNAME");
    }

    /// Gets `user` a ticket, kept in the cache of this name.
    ///
    /// # Errors
    /// [`Error`] when there is none.
    pub fn log_in(&self, user: &str, cache: &str) -> Result<(), Error> {
        let mut command = self.program("kinit");
        command.args(["-c", &self.cache(cache), user]).stdin(Stdio::piped()).stdout(Stdio::null());
        let asked = command.spawn().and_then(|mut kinit| {
            if let Some(mut input) = kinit.stdin.take() {
                writeln!(input, "{PASSWORD}")?;
            }
            kinit.wait()
        });
        match asked.map_err(Error::doing(format!("run kinit for {user}")))? {
            status if status.success() => Ok(()),
            status => Err(self.failed(&command, &status.to_string(), "")),
        }
    }

    /// What a cache holds, as `klist` prints it.
    ///
    /// # Errors
    /// [`Error`] when the program does not run.
    pub fn tickets(&self, cache: &str) -> Result<String, Error> {
        let output = self.program("klist").args(["-c", &self.cache(cache)]).output();
        Ok(String::from_utf8_lossy(&output.map_err(Error::doing("run klist"))?.stdout).into_owned())
    }

    fn begin(&mut self, realm: &str, port: u16) -> Result<(), Error> {
        let base = self.path(realm).display().to_string();
        let text = format!(
            "[kdcdefaults]\n kdc_listen = \"\"\n kdc_tcp_listen = 127.0.0.1:{port}\n[realms]\n {realm} = {{\n\
             database_name = {base}.db\n key_stash_file = {base}.stash\n acl_file = {base}.acl\n max_life = 10h\n }}\n\
             [logging]\n kdc = FILE:{base}.log\n"
        );
        fs::write(format!("{base}.kdc.conf"), text).map_err(Error::doing("configure a KDC"))?;
        self.run(self.administer("kdb5_util", realm).args(["create", "-s", "-P", PASSWORD]))?;
        let mut kdc = self.administer("krb5kdc", realm);
        let kdc = kdc.arg("-n").stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        self.kdcs.push(kdc.map_err(Error::doing("start a KDC"))?);
        let mut waited = Duration::ZERO;
        while self.here("ask a KDC", || Ok(TcpStream::connect(("127.0.0.1", port)).is_err()))? {
            if waited > PATIENCE {
                let said = fs::read_to_string(format!("{base}.log")).unwrap_or_default();
                return Err(Error::TooSlow { what: "the KDC does not answer".to_owned(), waited, said });
            }
            std::thread::sleep(PAUSE);
            waited += PAUSE;
        }
        Ok(())
    }

    fn add_principals(&self) -> Result<(), Error> {
        let users = [(REALM, &["alice", "harbour-master", "alice/admin"][..]), (OTHER_REALM, &["alice"])];
        for (realm, users) in users {
            for user in users {
                self.query(realm, &format!("addprinc -pw \"{PASSWORD}\" {user}"))?;
            }
            for service in ["strait", "other"] {
                self.query(realm, &format!("addprinc -randkey {service}/{SERVER}"))?;
            }
        }
        let keytab = self.path("keytab");
        ["strait", "other"].into_iter().try_for_each(|service| {
            self.query(REALM, &format!("ktadd -k {} {service}/{SERVER}", keytab.display()))
        })
    }

    fn query(&self, realm: &str, query: &str) -> Result<(), Error> {
        self.run(self.administer("kadmin.local", realm).args(["-q", query]))
    }

    fn administer(&self, name: &str, realm: &str) -> Command {
        let mut command = self.program(name);
        command.env("KRB5_KDC_PROFILE", self.path(&format!("{realm}.kdc.conf"))).args(["-r", realm]);
        command
    }

    /// A program at the host, with these realms.
    fn program(&self, name: &str) -> Command {
        let name = administrators(name);
        let mut command = match &self.host {
            Some(host) => host.command(name),
            None => Command::new(name),
        };
        self.set_environment(&mut command);
        command
    }

    fn run(&self, command: &mut Command) -> Result<(), Error> {
        let output = command.output().map_err(Error::doing(format!("run {command:?}")))?;
        if output.status.success() {
            return Ok(());
        }
        Err(self.failed(command, &output.status.to_string(), &String::from_utf8_lossy(&output.stderr)))
    }

    fn failed(&self, command: &Command, status: &str, said: &str) -> Error {
        Error::Command {
            command: format!("{command:?}"),
            host: self.host.as_ref().map_or("this host", Namespace::name).to_owned(),
            status: status.to_owned(),
            said: said.to_owned(),
        }
    }

    /// Does that in the network of the KDCs.
    fn here<T: Send>(&self, doing: &str, work: impl FnOnce() -> io::Result<T> + Send) -> Result<T, Error> {
        match &self.host {
            Some(host) => host.run(doing, work),
            None => work().map_err(Error::doing(doing)),
        }
    }
}

/// Settings that are included, as distributions have it.
const DEFAULTS: &str = "[libdefaults]\n dns_lookup_realm = false\n dns_lookup_kdc = false\n\
    dns_canonicalize_hostname = false\n rdns = false\n udp_preference_limit = 1\n forwardable = true\n";

fn client_configuration(included: &Path, ports: [u16; 2]) -> String {
    format!(
        "includedir {}\n[libdefaults]\n default_realm = {REALM}\n[realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{}\n\
         auth_to_local = RULE:[1:$1@$0](^harbour-.*@STRAIT\\.TEST$)s/.*/harbour/\n  auth_to_local = DEFAULT\n }}\n\
         {OTHER_REALM} = {{\n  kdc = 127.0.0.1:{}\n }}\n[domain_realm]\n .strait.test = {REALM}\n",
        included.display(),
        ports[0],
        ports[1]
    )
}

impl Drop for Realms {
    fn drop(&mut self) {
        for kdc in &mut self.kdcs {
            let _ = kdc.kill();
            let _ = kdc.wait();
        }
    }
}
