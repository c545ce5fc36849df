//! Two realms that do not know each other, each with a KDC on a port of its own, and users with tickets.

use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The realm of the server and of most users.
pub(crate) const REALM: &str = "STRAIT.TEST";
/// The other one.
pub(crate) const OTHER_REALM: &str = "ELSEWHERE.TEST";
/// The host that both have services for.
pub(crate) const HOST: &str = "server.strait.test";
/// The service that the acceptor is.
pub(crate) const SERVICE: &str = "strait@server.strait.test";

const PASSWORD: &str = "a password of this test";

/// A folder with all that is needed, and the KDCs: both go with it.
pub(crate) struct Realms {
    pub(crate) folder: PathBuf,
    kdcs: Vec<Child>,
}

/// Where distributions have programs for administrators, which is not on every PATH.
fn program(name: &str) -> Command {
    let beside = Path::new("/usr/sbin").join(name);
    if beside.exists() { Command::new(beside) } else { Command::new(name) }
}

/// The first program or library that is not there.
pub(crate) fn missing() -> Option<&'static str> {
    let lacks =
        |name: &&str| program(name).arg("-?").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err();
    if strait_kerberos::available().is_err() {
        return Some("GSSAPI library");
    }
    let programs = ["krb5kdc", "kdb5_util", "kadmin.local", "kinit", "klist"];
    programs.into_iter().find(lacks).or_else(|| faketime().is_none().then_some("libfaketime"))
}

/// The library that gives a process another clock.
pub(crate) fn faketime() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").ok()?;
    let beside = |entry: fs::DirEntry| entry.path().join("faketime/libfaketime.so.1");
    folders.flatten().map(beside).find(|path| path.exists())
}

impl Realms {
    pub(crate) fn start() -> Realms {
        let folder = std::env::temp_dir().join(format!("strait-kerberos-{}", std::process::id()));
        fs::create_dir_all(folder.join("replay")).unwrap();
        let mut realms = Realms { folder, kdcs: Vec::new() };
        let ports = [free_port(), free_port()];
        realms.write_client_configuration(ports);
        for (realm, port) in [REALM, OTHER_REALM].into_iter().zip(ports) {
            realms.begin(realm, port);
        }
        realms.add_principals();
        realms
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.join(name).to_str().unwrap().to_owned()
    }

    /// A cache of tickets.
    pub(crate) fn cache(&self, name: &str) -> String {
        format!("FILE:{}", self.path(name))
    }

    fn write_client_configuration(&self, ports: [u16; 2]) {
        let text = format!(
            "[libdefaults]\n default_realm = {REALM}\n dns_lookup_realm = false\n dns_lookup_kdc = false\n\
             dns_canonicalize_hostname = false\n rdns = false\n udp_preference_limit = 1\n forwardable = true\n\
             [realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{}\n\
             auth_to_local = RULE:[1:$1@$0](^harbour-.*@STRAIT\\.TEST$)s/.*/harbour/\n  auth_to_local = DEFAULT\n }}\n\
             {OTHER_REALM} = {{\n  kdc = 127.0.0.1:{}\n }}\n[domain_realm]\n .strait.test = {REALM}\n",
            ports[0], ports[1]
        );
        fs::write(self.folder.join("krb5.conf"), text).unwrap();
    }

    /// Makes a realm's database and starts its KDC.
    fn begin(&mut self, realm: &str, port: u16) {
        let base = self.path(realm);
        let text = format!(
            "[kdcdefaults]\n kdc_listen = \"\"\n kdc_tcp_listen = 127.0.0.1:{port}\n[realms]\n {realm} = {{\n\
             database_name = {base}.db\n key_stash_file = {base}.stash\n acl_file = {base}.acl\n max_life = 10h\n }}\n\
             [logging]\n kdc = FILE:{base}.log\n"
        );
        fs::write(format!("{base}.kdc.conf"), text).unwrap();
        self.run(self.administer("kdb5_util", realm).args(["create", "-s", "-P", PASSWORD]));
        let kdc = self
            .administer("krb5kdc", realm)
            .arg("-n")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.kdcs.push(kdc);
        for _ in 0..1200 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("the KDC does not answer: {}", fs::read_to_string(format!("{base}.log")).unwrap_or_default());
    }

    fn add_principals(&self) {
        for (realm, users) in
            [(REALM, &["alice", "harbour-master", "alice/admin"][..]), (OTHER_REALM, &["alice"])]
        {
            for user in users {
                self.query(realm, &format!("addprinc -pw \"{PASSWORD}\" {user}"));
            }
            for service in ["strait", "other"] {
                self.query(realm, &format!("addprinc -randkey {service}/{HOST}"));
            }
        }
        let keytab = self.path("keytab");
        for service in ["strait", "other"] {
            self.query(REALM, &format!("ktadd -k {keytab} {service}/{HOST}"));
        }
    }

    fn query(&self, realm: &str, query: &str) {
        self.run(self.administer("kadmin.local", realm).args(["-q", query]));
    }

    fn administer(&self, name: &str, realm: &str) -> Command {
        let mut command = program(name);
        self.set_environment(&mut command);
        command.env("KRB5_KDC_PROFILE", format!("{}.kdc.conf", self.path(realm))).args(["-r", realm]);
        command
    }

    /// Lets a program use these realms and nothing of the system's.
    pub(crate) fn set_environment(&self, command: &mut Command) {
        command.env("KRB5_CONFIG", self.path("krb5.conf")).env("KRB5RCACHEDIR", self.path("replay"));
        command.env_remove("KRB5CCNAME").env_remove("KRB5_KTNAME");
    }

    /// Gets `user` a ticket, kept in the cache of this name.
    pub(crate) fn log_in(&self, user: &str, cache: &str) {
        let mut command = Command::new("kinit");
        self.set_environment(&mut command);
        command.args(["-c", &self.cache(cache), user]).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut kinit = command.spawn().unwrap();
        writeln!(kinit.stdin.take().unwrap(), "{PASSWORD}").unwrap();
        assert!(kinit.wait().unwrap().success(), "kinit {user}");
    }

    /// What a cache holds.
    pub(crate) fn tickets(&self, cache: &str) -> String {
        let mut command = Command::new("klist");
        self.set_environment(&mut command);
        String::from_utf8(command.args(["-c", &self.cache(cache)]).output().unwrap().stdout).unwrap()
    }

    fn run(&self, command: &mut Command) {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for Realms {
    fn drop(&mut self) {
        for kdc in &mut self.kdcs {
            let _ = kdc.kill();
            let _ = kdc.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}
