//! OpenSSH's own programs over `strait ssh`, between the daemons of two hosts.

mod forwards;
mod outages;
mod programs;

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

use strait_testbed::LinkSpec;
use strait_testdata::skip::{Need, skip};

use crate::files::noise;
use crate::login::place::{LoginPlace, gives_accounts};
use crate::pair::{eventually, fast, has, program};

/// Two sites; the second lets the first log in as root, who runs the tests, and as another.
struct Desk {
    place: LoginPlace,
    /// The file that `ssh -F` gets.
    config: PathBuf,
    /// Variables by which a program finds the daemon of the first site.
    surroundings: Vec<(OsString, OsString)>,
}

/// Where distributions have the server of sftp.
const SFTP_SERVERS: [&str; 3] =
    ["/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/lib/ssh/sftp-server"];

/// Whether the tests can run here.
fn can_run() -> bool {
    let sftp = SFTP_SERVERS.iter().any(|path| Path::new(path).exists());
    gives_accounts()
        && ["rsync", "git", "script"].into_iter().all(has)
        && (sftp || skip(Need::Programs, "no sftp-server (scripts/setup test)"))
}

impl Desk {
    fn new() -> Desk {
        Desk::with("forward = [\"localhost:*\"]\nagent = true")
    }

    /// The same with these lines in the section of the second.
    fn with(lines: &str) -> Desk {
        Desk::over(fast(), lines)
    }

    /// The same over this link.
    fn over(link: LinkSpec, lines: &str) -> Desk {
        let section =
            format!("accounts = [\"root\", \"alice\"]\nenvironment = [\"LANG\", \"STRAIT_*\"]\n{lines}");
        let place = LoginPlace::new(link, &section);
        let lines = place.command(&["ssh", "--config", "root@site-b"]).output().unwrap();
        assert!(lines.status.success(), "{}", String::from_utf8_lossy(&lines.stderr));
        let config = place.dir.path().join("ssh_config");
        fs::write(&config, lines.stdout).unwrap();
        let given = place.daemon(0).command(&[]);
        let given = given.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
        let surroundings = given.collect();
        Desk { place, config, surroundings }
    }

    /// Kills the daemon of the first site as hard as can be.
    fn kill_near(&mut self) {
        let mut daemon = self.place.daemons[0].take().unwrap();
        daemon.signal(9).unwrap();
        eventually("the end of the daemon", || daemon.ended().unwrap().is_some());
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.dir.path().join(name)
    }

    /// A program at the first site, which finds its daemon.
    fn command(&self, program: &str) -> Command {
        let mut command = self.place.sites[0].host.command(program);
        command.envs(self.surroundings.iter().map(|(name, value)| (name, value)));
        command
            .env("HOME", self.place.dir.path())
            .env_remove("SSH_AUTH_SOCK")
            .current_dir(self.place.dir.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// `ssh` with these arguments.
    fn ssh(&self, arguments: &[&str]) -> Command {
        let mut command = self.command("ssh");
        command.arg("-F").arg(&self.config).args(arguments);
        command
    }

    /// How others call `ssh`.
    fn ssh_words(&self) -> String {
        format!("ssh -F {}", self.config.display())
    }

    /// Runs a command that gets `input`.
    fn run(&self, command: &mut Command, input: &[u8]) -> Output {
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_vec());
        let writer = thread::spawn(move || {
            // The command may end without reading all of it.
            let _ = stdin.write_all(&input);
        });
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        output
    }

    /// Runs a command that has to end well: what it said.
    fn good(&self, command: &mut Command) -> String {
        let output = self.run(command, b"");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?}: {}: {error}\n{}", output.status, self.place.logs());
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// Whether a process runs.
pub(crate) fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.trim()).join("stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn a_command_has_its_bytes_and_its_status() {
    if !can_run() {
        return;
    }
    let desk = Desk::new();
    let input = noise(5_000_000, 3);
    let output = desk.run(&mut desk.ssh(&["site-b", "cat; echo to the side >&2; exit 7"]), &input);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "to the side\n", "{}", desk.place.logs());
    assert_eq!(output.status.code(), Some(7));
    assert!(output.stdout == input);
    let output = desk.run(&mut desk.ssh(&["site-b", "exec >&- 2>&-; sleep 1; exit 9"]), b"");
    assert_eq!(output.status.code(), Some(9), "a status that comes after all output");
    assert_eq!(desk.good(&mut desk.ssh(&["alice@site-b", "id -un; pwd"])).lines().next(), Some("alice"));
    let output = desk.run(&mut desk.ssh(&["site-b", "kill -TERM $$"]), b"");
    assert_eq!(output.status.code(), Some(255), "as ssh says that a signal has ended it");
    let told = desk.good(&mut desk.ssh(&[
        "-o",
        "SetEnv=STRAIT_WORD=yes OTHER=no",
        "site-b",
        "echo $STRAIT_WORD$OTHER",
    ]));
    assert_eq!(told, "yes\n");
}

#[test]
fn a_shell_and_what_runs_in_it_end_with_their_input() {
    if !can_run() {
        return;
    }
    let desk = Desk::new();
    for round in 0..40 {
        let output =
            desk.run(&mut desk.ssh(&["site-b"]), format!("echo {round}; cat\nthe rest\n").as_bytes());
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{round}\nthe rest\n"));
        assert!(output.status.success());
    }
}

#[test]
fn a_shell_has_a_terminal_if_it_is_asked_for() {
    if !can_run() {
        return;
    }
    let desk = Desk::new();
    let mut command = desk.ssh(&["-tt", "site-b"]);
    let output = desk.run(command.env("TERM", "xterm-256color"), b"test -t 0 && echo is-$TERM; exit 4\n");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("is-xterm-256color\r\n"), "{text}");
    assert_eq!(output.status.code(), Some(4));
}

#[test]
fn a_program_ends_with_the_ssh_that_started_it() {
    if !can_run() {
        return;
    }
    let desk = Desk::new();
    let file = desk.path("pid");
    let mut child =
        desk.ssh(&["site-b", &format!("echo $$ > {}; exec sleep 1000", file.display())]).spawn().unwrap();
    eventually("a process's number", || fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n')));
    let pid = fs::read_to_string(&file).unwrap();
    assert!(runs(&pid));
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("the end of the program", || !runs(&pid));
}

#[test]
fn a_program_whose_output_is_not_read_ends() {
    if !can_run() {
        return;
    }
    let desk = Desk::new();
    let line = format!("{} site-b yes | head -n 1", desk.ssh_words());
    assert_eq!(desk.good(desk.command("sh").args(["-c", &line])), "y\n");
}

#[test]
fn another_host_key_and_another_name_are_refused() {
    if !can_run() {
        return;
    }
    let desk = Desk::new();
    let of_another = format!(
        "KnownHostsCommand=/usr/bin/env STRAIT_STATE_DIR={} {} ssh --known-hosts %H",
        desk.path("other").display(),
        program().display()
    );
    let output = desk.run(&mut desk.ssh(&["-o", &of_another, "site-b", "true"]), b"");
    assert_eq!(output.status.code(), Some(255));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("Host key verification failed"), "{error}");

    let refused = desk.place.daemon(0).command(&["ssh", "--known-hosts", "site-c"]).output().unwrap();
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && error.contains("site-b"), "{error}");

    let output = desk.run(&mut desk.ssh(&["-l", "no-such-account", "site-b", "true"]), b"");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(255));
    assert!(error.contains("the peer refuses"), "{error}");
}
