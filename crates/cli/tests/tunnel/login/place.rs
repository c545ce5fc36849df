//! Two sites, the second of which gives accounts: `alice`, `bob`, and root. Its files of accounts, PAM and logins are its own, in a mount
//! namespace; the machine's stay as they are.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use strait_node::login::{Pty, PtySize};
use strait_testbed::{DaemonProcess, Extra, LinkSpec, Site, TwoHosts, Workdir, program_with_mounts};
use strait_testdata::skip::{Need, skip};

use crate::pair::{PATIENCE, allowed, eventually, program};

/// The number of `alice`; that of `bob` is one more.
pub(crate) const ALICE: u32 = 24_001;
const BOB: u32 = ALICE + 1;

/// What PAM does if nothing else is said: as packaging/pam.d/strait, without modules of systemd.
pub(crate) const PAM: &str = "auth required pam_permit.so\naccount required pam_nologin.so\naccount required pam_unix.so\n\
    session required pam_limits.so\nsession required pam_env.so conffile=/etc/pam.d/env.conf\nsession optional pam_umask.so\n";

/// Two sites with daemons.
pub(crate) struct LoginPlace {
    pub(crate) daemons: [Option<DaemonProcess>; 2],
    pub(crate) sites: [Site; 2],
    pub(crate) hosts: TwoHosts,
    pub(crate) dir: Workdir,
}

/// Whether accounts can be given here.
pub(crate) fn gives_accounts() -> bool {
    let pam = Path::new("/etc/pam.d/common-account").exists() || Path::new("/etc/pam.d/system-auth").exists();
    let programs = Path::new("/bin/bash").exists() && Path::new("/usr/bin/unshare").exists();
    allowed()
        && (strait_node::privileges::is_root() || skip(Need::Root, "gives no accounts"))
        && (pam && programs || skip(Need::Programs, "no PAM, no bash or no unshare"))
}

impl LoginPlace {
    /// Both up, with a session; `section` are lines of the second's `[[login]]`.
    pub(crate) fn new(link: LinkSpec, section: &str) -> LoginPlace {
        LoginPlace::with_pam(link, section, PAM)
    }

    /// The same with this as `/etc/pam.d/strait`.
    pub(crate) fn with_pam(link: LinkSpec, section: &str, pam: &str) -> LoginPlace {
        LoginPlace::on(TwoHosts::direct(link).unwrap(), section, pam)
    }

    /// The same on these hosts.
    pub(crate) fn on(hosts: TwoHosts, section: &str, pam: &str) -> LoginPlace {
        LoginPlace::with_environment(hosts, section, pam, &[])
    }

    /// The same with these variables for the daemon of the second.
    pub(crate) fn with_environment(
        hosts: TwoHosts,
        section: &str,
        pam: &str,
        variables: &[(&str, PathBuf)],
    ) -> LoginPlace {
        let dir = Workdir::create().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        let wrapper = system(dir.path(), pam, variables);
        let port = |address| SocketAddr::new(address, strait_testbed::PORT);
        let (a, b) = (port(hosts.address_of_a().0), port(hosts.address_of_b().0));
        let sites = [
            Site::create(program(), &hosts.a, 1, a, dir.path()).unwrap(),
            Site::create(&wrapper, &hosts.b, 2, b, dir.path()).unwrap(),
        ];
        let mut place = LoginPlace { daemons: [None, None], sites, hosts, dir };
        place.start(0, "");
        place.start(1, section);
        place.wait_for_session();
        place
    }

    /// Starts a daemon; `section` are lines of its `[[login]]`.
    pub(crate) fn start(&mut self, which: usize, section: &str) {
        let peer = &self.sites[1 - which];
        let section = if section.is_empty() {
            String::new()
        } else {
            format!("[[login]]\npeer = \"{}\"\n{section}\n", peer.name())
        };
        self.run(which, &[1 - which], &section);
    }

    /// Starts a daemon with these peers and sections.
    pub(crate) fn run(&mut self, which: usize, peers: &[usize], sections: &str) {
        let config = self.configure(which, peers, sections);
        self.daemons[which] = Some(self.sites[which].start(&config, "run").unwrap());
    }

    /// Writes the configuration of a daemon.
    pub(crate) fn configure(&self, which: usize, peers: &[usize], sections: &str) -> PathBuf {
        let peers: Vec<_> = peers.iter().map(|peer| &self.sites[*peer]).collect();
        self.sites[which].configure("strait", &peers, Extra { sections, ..Extra::default() }).unwrap()
    }

    /// Ends a daemon in order.
    pub(crate) fn stop(&mut self, which: usize) {
        self.daemons[which].take().unwrap().stop().unwrap();
    }

    /// Ends a daemon without giving it time.
    pub(crate) fn kill(&mut self, which: usize) {
        let mut daemon = self.daemons[which].take().unwrap();
        daemon.signal(9).unwrap();
        eventually("the end of the daemon", || daemon.ended().unwrap().is_some());
    }

    pub(crate) fn wait_for_session(&self) {
        self.daemon(0).wait_for_session("site-b", PATIENCE).unwrap();
        self.daemon(1).wait_for_session("site-a", PATIENCE).unwrap();
    }

    pub(crate) fn daemon(&self, which: usize) -> &DaemonProcess {
        self.daemons[which].as_ref().unwrap()
    }

    pub(crate) fn logs(&self) -> String {
        self.daemons.iter().flatten().map(DaemonProcess::last_words).collect::<Vec<_>>().join("\n----\n")
    }

    /// Has the router between the hosts drop everything, or forward again; neither host is told.
    pub(crate) fn forward(&self, forwards: bool) {
        let router = &self.hosts.router.as_ref().unwrap().host;
        let file = "/proc/sys/net/ipv4/ip_forward";
        router.run("switch forwarding", || fs::write(file, if forwards { "1" } else { "0" })).unwrap();
    }

    /// Where a file of the second site's system is.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join("system").join(name)
    }

    /// A command at the first site.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.daemon(0).command(arguments);
        command.current_dir(self.dir.path()).env("LANG", "C.UTF-8").env("TERM", "xterm-256color");
        command
    }

    /// Runs `login` with these arguments and this input.
    pub(crate) fn login(&self, arguments: &[&str], input: &[u8]) -> Output {
        let mut command = self.command(&["login"]);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_vec());
        // A command that does not read all of it is none of its business.
        let writer = thread::spawn(move || drop(stdin.write_all(&input)));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        output
    }

    /// The same, which has to end with this code: what it wrote.
    pub(crate) fn ends(&self, code: i32, arguments: &[&str], input: &[u8]) -> (String, String) {
        let output = self.login(arguments, input);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, errors) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {out}{errors}\n{}", self.logs());
        (out, errors)
    }

    /// `login` at a terminal of this size.
    pub(crate) fn terminal(&self, arguments: &[&str], columns: u16, rows: u16) -> Screen {
        let mut command = self.command(&["login"]);
        command.args(arguments);
        self.terminal_of(command, columns, rows)
    }

    /// A command at a terminal of this size.
    pub(crate) fn terminal_of(&self, mut command: Command, columns: u16, rows: u16) -> Screen {
        let size = PtySize { columns, rows, width: 0, height: 0 };
        let (pty, terminal) = Pty::open(size, &[]).unwrap();
        let end = |terminal: &OwnedFd| Stdio::from(terminal.try_clone().unwrap());
        command.stdin(end(&terminal)).stdout(end(&terminal)).stderr(end(&terminal));
        let child = command.spawn().unwrap();
        Screen { child, pty, _terminal: terminal, text: String::new() }
    }
}

impl LoginPlace {
    /// Monitors and keepers that run at the second site.
    pub(crate) fn session_processes(&self) -> Vec<u32> {
        let folder = self.dir.path().display().to_string();
        let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let ours = |number: &u32| {
            let line = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
            let name = fs::read_to_string(format!("/proc/{number}/comm")).unwrap_or_default();
            ["strait-keeper", "strait-session"].contains(&name.trim())
                && String::from_utf8_lossy(&line).contains(&folder)
        };
        numbers.filter(ours).collect()
    }
}

impl Drop for LoginPlace {
    /// Sessions outlive daemons; not the test.
    fn drop(&mut self) {
        for number in self.session_processes() {
            let _ = Command::new("kill").args(["-KILL", &number.to_string()]).stderr(Stdio::null()).status();
        }
    }
}

/// A client at a terminal.
pub(crate) struct Screen {
    pub(crate) child: Child,
    pub(crate) pty: Pty,
    /// Held, so that the terminal can be looked at when the client has ended.
    _terminal: OwnedFd,
    /// All that it wrote and that was not asked for yet.
    pub(crate) text: String,
}

impl Screen {
    /// Gives its shell a short prompt, has it run `first`, and waits until it has.
    pub(crate) fn ready(&mut self, first: &str) {
        // What is typed is echoed, and must not be taken for the answer.
        self.types(&format!("PS1='> '; {first}echo re''ady\r"));
        self.sees("ready");
    }

    /// Types.
    pub(crate) fn types(&self, text: &str) {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            match (&self.pty).write(rest) {
                Ok(length) => rest = &rest[length..],
                Err(_) => thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    /// Takes what is on its way.
    pub(crate) fn look(&mut self) {
        let mut bytes = [0; 4096];
        while let Ok(length @ 1..) = (&self.pty).read(&mut bytes) {
            self.text.push_str(&String::from_utf8_lossy(&bytes[..length]));
        }
    }

    /// Waits until this was written, and gives all before it.
    pub(crate) fn sees(&mut self, what: &str) -> String {
        let begun = Instant::now();
        loop {
            self.look();
            if let Some(at) = self.text.find(what) {
                let rest = self.text.split_off(at + what.len());
                return std::mem::replace(&mut self.text, rest);
            }
            assert!(begun.elapsed() < PATIENCE, "never `{what}` in:\n{}", self.text);
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Whether this was written so far; it stays there to be asked for.
    pub(crate) fn sees_now(&mut self, what: &str) -> bool {
        self.look();
        self.text.contains(what)
    }

    /// Waits for its end; the exit code.
    pub(crate) fn ends(&mut self) -> Option<i32> {
        let begun = Instant::now();
        loop {
            // It may wait for its terminal.
            self.look();
            if let Some(status) = self.child.try_wait().unwrap() {
                self.look();
                return status.code();
            }
            assert!(begun.elapsed() < PATIENCE, "it does not end:\n{}", self.text);
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Closes the terminal, as one that vanishes; the client.
    pub(crate) fn close(self) -> Child {
        let Screen { child, pty, _terminal: terminal, .. } = self;
        drop((pty, terminal));
        child
    }

    /// Whether the terminal is as it was before.
    pub(crate) fn is_sane(&self) -> bool {
        self.pty.echo_and_canonical().unwrap() == (true, true)
    }
}

/// Makes the files of the second site's system, and the program that runs a daemon with them.
fn system(dir: &Path, pam: &str, variables: &[(&str, PathBuf)]) -> PathBuf {
    let system = dir.join("system");
    let write = |name: &str, text: &str| {
        let path = system.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let mut passwd = "root:x:0:0:root:/root:/bin/bash\n".to_owned();
    let mut group = "root:x:0:\ntty:x:5:\n".to_owned();
    let mut shadow = "root:*:19000:0:99999:7:::\n".to_owned();
    for (name, number) in [("alice", ALICE), ("bob", BOB)] {
        let home = system.join("home").join(name);
        fs::create_dir_all(&home).unwrap();
        chown(&home, Some(number), Some(number)).unwrap();
        passwd += &format!("{name}:x:{number}:{number}::{}:/bin/bash\n", home.display());
        group += &format!("{name}:x:{number}:\n");
        shadow += &format!("{name}:*:19000:0:99999:7:::\n");
    }
    group += "helpers:x:24500:alice\n";
    write("passwd", &passwd);
    write("group", &group);
    write("shadow", &shadow);
    fs::set_permissions(system.join("shadow"), Permissions::from_mode(0o600)).unwrap();
    write("wtmp", "");
    write("pam.d/strait", pam);
    write(
        "pam.d/sudo",
        "auth required pam_unix.so\naccount required pam_unix.so\nsession required pam_limits.so\n",
    );
    write("sudoers", "Defaults use_pty\nalice ALL=(ALL) ALL\n");
    fs::set_permissions(system.join("sudoers"), Permissions::from_mode(0o440)).unwrap();
    write("hosts", "127.0.0.1 localhost inward.test\n192.0.2.7 outward.test\n");
    write("pam.d/env.conf", "FROM_PAM DEFAULT=of-pam\n");
    let wrapper = dir.join("strait-b");
    let at = system.display();
    let export = |(name, value): &(&str, PathBuf)| format!("export {name}='{}'\n", value.display());
    let exports: String = variables.iter().map(export).collect();
    let setup = format!(
        "export STRAIT_PAM_SECONDS=3 STRAIT_UNHEARD_SECONDS=5\n{exports}\
         for name in passwd group shadow hosts pam.d; do mount --bind {at}/$name /etc/$name; done\n\
         test ! -e /etc/sudoers || mount --bind {at}/sudoers /etc/sudoers\n\
         mount -t tmpfs -o mode=755 tmpfs /run\ntouch /run/utmp\n\
         test ! -e /var/log/wtmp || mount --bind {at}/wtmp /var/log/wtmp"
    );
    program_with_mounts(program(), &wrapper, &setup).unwrap();
    wrapper
}
