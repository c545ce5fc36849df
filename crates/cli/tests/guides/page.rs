//! A guide's commands, and users' homes in which they run.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use strait_testbed::{LinkSpec, Namespace, TwoHosts, Workdir};

/// The folder of the guides.
const GUIDES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide");
/// An ordinary user: that of `nobody`, who has no home and belongs to no group with rights.
const USER: u32 = 65_534;

/// A command of the page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) host: String,
    pub(crate) command: String,
    /// What it prints, where `...` stands for anything, and as a line for any number of lines.
    pub(crate) output: Vec<String>,
    /// Its output is not compared: it stands in a block without outputs, or behind a remark that they vary.
    pub(crate) silent: bool,
}

/// The text of a guide.
pub(crate) fn guide(name: &str) -> String {
    fs::read_to_string(Path::new(GUIDES).join(name)).unwrap()
}

/// The commands of root: those behind the prompt `$` in blocks of type `console`, and each block of type `sh`.
pub(crate) fn root_steps(page: &str) -> Vec<Step> {
    let mut all = Vec::new();
    let parts: Vec<&str> = page.split("```").collect();
    for part in parts.chunks_exact(2) {
        let [before, block] = part else { continue };
        let varies = before.ends_with("varies -->\n");
        match block.split_once('\n') {
            Some(("console", _)) => {
                let steps = steps(&format!("```{block}```"), &[""]).into_iter();
                all.extend(steps.map(|step| Step { silent: varies, ..step }));
            }
            Some(("sh", commands)) => {
                let command = format!("set -e\n{commands}set +e\n");
                all.push(Step { host: String::new(), command, output: Vec::new(), silent: true });
            }
            _ => {}
        }
    }
    all
}

/// The commands in blocks of type `console`, with the prompts of these hosts.
fn steps(page: &str, hosts: &[&str]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let blocks = page.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default());
    for block in blocks {
        let mut lines = block.lines();
        while let Some(line) = lines.next() {
            let prompt =
                hosts.iter().find_map(|host| Some((host, line.strip_prefix(host)?.strip_prefix("$ ")?)));
            let Some((host, first)) = prompt else {
                steps
                    .last_mut()
                    .unwrap_or_else(|| panic!("{line}: no command before it"))
                    .output
                    .push(line.to_owned());
                continue;
            };
            let mut command = format!("{first}\n");
            if first.contains("<<END") {
                for line in lines.by_ref() {
                    command += &format!("{line}\n");
                    if line == "END" {
                        break;
                    }
                }
            }
            steps.push(Step { host: (*host).to_owned(), command, output: Vec::new(), silent: false });
        }
    }
    steps
}

/// Whether a line is what the page says.
fn matches(line: &str, told: &str) -> bool {
    let parts: Vec<&str> = told.split("...").collect();
    let [first, middle @ .., last] = &parts[..] else { return line == told };
    let Some(rest) = line.strip_prefix(first).and_then(|rest| rest.strip_suffix(last)) else { return false };
    let found = middle.iter().try_fold(rest, |rest, part| rest.find(part).map(|at| &rest[at + part.len()..]));
    found.is_some()
}

/// Whether lines are what the page says.
pub(crate) fn match_all(lines: &[&str], told: &[String]) -> bool {
    match (lines, told) {
        ([], []) => true,
        (_, [any, rest @ ..]) if any == "..." => {
            (0..=lines.len()).any(|skipped| match_all(&lines[skipped..], rest))
        }
        ([line, lines @ ..], [one, rest @ ..]) => matches(line, one) && match_all(lines, rest),
        _ => false,
    }
}

/// A line in which `#` stands for each figure: numbers with their units, keys, times, ports that the kernel gave, codecs.
pub(crate) fn skeleton(line: &str) -> String {
    let words = line.split_whitespace().map(|word| word.split('"').map(part).collect::<Vec<_>>().join("\""));
    let mut kept: Vec<String> = Vec::new();
    for word in words {
        let unit = kept.last().is_some_and(|before| before.ends_with('#')) && is_unit(&word);
        let again = word == "#" && kept.last().is_some_and(|before| before == "#");
        if !unit && !again {
            kept.push(word);
        }
    }
    kept.join(" ")
}

/// Units of figures, with what stands behind them.
fn is_unit(word: &str) -> bool {
    const UNITS: [&str; 24] = [
        "B",
        "kB",
        "MB",
        "GB",
        "B/s",
        "kB/s",
        "MB/s",
        "GB/s",
        "bit/s",
        "kbit/s",
        "Mbit/s",
        "Gbit/s",
        "ns",
        "us",
        "ms",
        "s",
        "min",
        "h",
        "bytes",
        "KBytes",
        "MBytes",
        "Kbits/sec",
        "Mbits/sec",
        "Gbits/sec",
    ];
    UNITS.contains(&word.trim_matches(|c| "(),;:".contains(c)))
}

/// A part of a word in which figures are `#`. An address is none: guides have theirs on purpose.
fn part(word: &str) -> String {
    let bare = word.trim_matches(|c| "(),;:".contains(c));
    let codec = ["zstd-", "deflate-", "lz4", "none"].iter().any(|name| bare.starts_with(name));
    if codec || bare.len() == 44 && bare.ends_with('=') || bare.starts_with("0x") {
        return word.replace(bare, "#");
    }
    let address = word.matches('.').count() == 3 || word.contains("::");
    if address {
        // The port of a client is the kernel's.
        return match word.rsplit_once(':') {
            Some((host, port)) if port.parse().is_ok_and(|port: u16| port >= 32_768 && port != 51_820) => {
                format!("{host}:#")
            }
            _ => word.to_owned(),
        };
    }
    let mut out = String::new();
    for c in word.chars() {
        let figure = c.is_ascii_digit() || out.ends_with('#') && ".,".contains(c);
        match (figure, out.ends_with('#')) {
            (true, true) => {}
            (true, false) => out.push('#'),
            (false, _) => out.push(c),
        }
    }
    out
}

/// A user's home on a host.
pub(crate) struct Home {
    name: String,
    pub(crate) folder: PathBuf,
    host: Namespace,
    /// Not where the user of the tests may not become another.
    user: Option<u32>,
    /// The system's file of accounts in place of its own, for the user to have a shell.
    accounts: Option<PathBuf>,
}

/// Ends what runs of a user, if the page did not come so far.
struct Cleanup<'a>(&'a Home);

impl Drop for Cleanup<'_> {
    fn drop(&mut self) {
        let _ = self.0.run("strait down; for it in *.pid; do test ! -e $it || kill $(cat $it); done");
    }
}

/// Two hosts, and users on them; to a page, each user is on a host of their own.
pub(crate) struct Homes {
    homes: Vec<Home>,
    pub(crate) dir: Workdir,
    _hosts: TwoHosts,
}

impl Homes {
    /// A user for each name; the last has the second host, whose address is 198.18.0.2.
    pub(crate) fn new(names: &[&str]) -> Homes {
        let dir = Workdir::create().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        let bin = dir.path().join("bin");
        fs::create_dir(&bin).unwrap();
        // Where the user may run them; the folder of the repository may be closed to that user.
        let built = Path::new(env!("CARGO_BIN_EXE_strait")).parent().unwrap();
        for program in ["strait", "strait-broker", "strait-directory"] {
            let (from, to) = (built.join(program), bin.join(program));
            fs::hard_link(&from, &to).or_else(|_| fs::copy(&from, &to).map(drop)).unwrap();
        }
        let hosts = TwoHosts::direct(LinkSpec::unshaped()).unwrap();
        let (last, first) = names.split_last().unwrap();
        let mut homes: Vec<Home> = first.iter().map(|name| Home::new(dir.path(), name, &hosts.a)).collect();
        homes.push(Home::new(dir.path(), last, &hosts.b));
        Homes { homes, dir, _hosts: hosts }
    }

    pub(crate) fn of(&self, host: &str) -> &Home {
        self.homes.iter().find(|home| home.name == host).unwrap()
    }

    /// All users have accounts.
    pub(crate) fn with_accounts(mut self) -> Homes {
        self.homes.iter_mut().for_each(Home::with_account);
        self
    }

    /// Runs the commands of a page, of which there are more than `least`.
    pub(crate) fn follow(&self, page: &str, least: usize) {
        let _cleanup: Vec<Cleanup<'_>> = self.homes.iter().map(Cleanup).collect();
        let names: Vec<&str> = self.homes.iter().map(|home| &*home.name).collect();
        let steps = steps(page, &names);
        assert!(steps.len() > least, "{steps:?}");
        for Step { host, command, output, .. } in steps {
            let here = self.of(&host);
            let (good, said) = here.run(&command);
            let lines: Vec<&str> = said.lines().collect();
            assert!(
                good && match_all(&lines, &output),
                "{host}$ {command}said:\n{said}\nthe page:\n{}",
                output.join("\n")
            );
            let public = format!("{host}.pub");
            // What the page asks for in words.
            for there in
                self.homes.iter().filter(|there| there.name != host && here.folder.join(&public).exists())
            {
                fs::copy(here.folder.join(&public), there.folder.join(&public)).unwrap();
            }
        }
    }
}

impl Home {
    fn new(dir: &Path, name: &str, host: &Namespace) -> Home {
        let folder = dir.join(name);
        let runtime = folder.join(".runtime");
        fs::create_dir_all(&runtime).unwrap();
        fs::set_permissions(&runtime, Permissions::from_mode(0o700)).unwrap();
        let all = [&folder, &runtime];
        let other = all.iter().all(|it| chown(it, Some(USER), Some(USER)).is_ok());
        Home {
            name: name.to_owned(),
            folder,
            host: host.clone(),
            user: other.then_some(USER),
            accounts: None,
        }
    }

    /// The user has an account with a shell, and this home.
    fn with_account(&mut self) {
        let Some(user) = self.user else { return };
        let file = self.folder.with_extension("passwd");
        fs::write(&file, format!("alice:x:{user}:{user}::{}:/bin/sh\n", self.folder.display())).unwrap();
        self.accounts = Some(file);
    }

    /// Runs lines of a shell as the user, for 3 minutes at most: whether they ended well, and what they said. Standard error comes with the output.
    pub(crate) fn run(&self, lines: &str) -> (bool, String) {
        let mut command = Command::new("timeout");
        let lines = format!("exec 2>&1\n{lines}");
        match (&self.accounts, self.user) {
            (Some(accounts), Some(user)) => {
                let become_user = format!(
                    "mount --bind {} /etc/passwd && exec setpriv --reuid {user} --regid {user} --clear-groups sh -c \"$0\"",
                    accounts.display()
                );
                let apart = ["180", "unshare", "--mount", "--propagation", "private", "sh", "-c"];
                command.args(apart).args([&*become_user, &*lines]);
            }
            _ => drop(command.args(["180", "sh", "-c", &*lines])),
        }
        command.current_dir(&self.folder).env_clear();
        let program = self.folder.join("../bin").canonicalize().unwrap();
        command
            .env("PATH", format!("{}:/usr/bin:/bin:/usr/sbin:/sbin", program.display()))
            .env("HOME", &self.folder);
        command.env("XDG_RUNTIME_DIR", self.folder.join(".runtime")).stdin(Stdio::null());
        if let Some(user) = self.user.filter(|_| self.accounts.is_none()) {
            command.uid(user).gid(user);
        }
        let output = self.host.run("run a command", || command.output()).unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Makes a file or folder the user's, with what is in it.
    pub(crate) fn give(&self, path: &Path) {
        let Some(user) = self.user else { return };
        chown(path, Some(user), Some(user)).unwrap();
        if path.is_dir() {
            fs::read_dir(path).unwrap().for_each(|entry| self.give(&entry.unwrap().path()));
        }
    }
}

#[test]
fn figures_do_not_count_and_words_do() {
    let same = [
        ("rtt min/avg = 0.628/304.436 ms", "rtt min/avg = 1/2 s"),
        ("uptime  2 s (PID 22451, version 0.1.0)", "uptime 1 min 3 s (PID 3, version 0.1.0)"),
        ("choice zstd-9 since 1 s", "choice deflate-6 since 648 ms"),
        ("tcp 10.77.0.1:8000 -> 10.77.0.2:58016", "tcp 10.77.0.1:8000 -> 10.77.0.2:41000"),
    ];
    for (one, other) in same {
        assert_eq!(skeleton(one), skeleton(other));
    }
    let different = [
        ("3 packets", "3 bundles"),
        ("tcp 10.77.0.1:8000", "tcp 10.77.0.2:8000"),
        ("peer site-b: up", "peer site-b: connecting"),
    ];
    for (one, other) in different {
        assert_ne!(skeleton(one), skeleton(other));
    }
}

#[test]
fn commands_are_found_and_their_output_is_compared() {
    let page = "text\n```console\na$ one <<END\nx\nEND\nb$ two\nline\n```\n```sh\na$ no\n```\n";
    let step = |host: &str, command: &str, output: &[&str]| Step {
        host: host.to_owned(),
        command: command.to_owned(),
        output: output.iter().map(|line| (*line).to_owned()).collect(),
        silent: false,
    };
    assert_eq!(
        steps(page, &["a", "b"]),
        [step("a", "one <<END\nx\nEND\n", &[]), step("b", "two\n", &["line"])]
    );
    assert!(matches("a 12 b", "a ... b") && matches("a 12 b", "a ...") && matches("a", "a"));
    assert!(!matches("a 12 b", "a ... c") && !matches("ab", "a") && !matches("a 12 bc", "a ... b"));
    let told = ["...".to_owned(), "end".to_owned()];
    assert!(match_all(&["x", "y", "end"], &told) && match_all(&["end"], &told));
    assert!(!match_all(&["end", "x"], &told) && !match_all(&[], &told));
}
