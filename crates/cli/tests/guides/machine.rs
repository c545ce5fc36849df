//! A machine of its own for guides that are followed as root: namespaces for its network, mounts and processes.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use strait_testbed::Workdir;

use crate::page::{self, Step};

/// The programs that the guides run.
const PROGRAMS: [&str; 3] = ["strait", "strait-demo", "strait-directory"];

/// Words of commands that begin something which takes a moment, and lines that wait until it is there; a reader's next command comes later.
const AWAITED: [(&str, &str); 8] = [
    ("iperf3 -s", "until ip netns exec b ss -ltnH | grep -q :5201; do sleep 0.05; done"),
    ("8000 > http.log", "until ip netns exec a ss -ltnH | grep -q :8000; do sleep 0.05; done"),
    ("8001 > http2.log", "until ip netns exec a ss -ltnH | grep -q :8001; do sleep 0.05; done"),
    ("strait directory", "until ip netns exec b ss -ltnH | grep -q :7707; do sleep 0.05; done"),
    ("strait up a.toml", "until strait show strait-a | grep -q ^peer; do sleep 0.05; done"),
    ("tcpdump", "until grep -q listening tcpdump.log; do sleep 0.05; done"),
    ("kill -9", "while ip -n c link show strait-c; do sleep 0.05; done"),
    ("kill -HUP", "until grep -q reloaded fg.log; do sleep 0.05; done"),
];

/// Words of commands that need what an earlier command began to be over, and lines that wait until it is.
const OVER: [(&str, &str); 1] =
    [("iperf3 -s", "while ip netns exec b ss -ltnH | grep -q :5201; do sleep 0.05; done")];

/// A machine on which root follows guides, in one folder and one shell, as they have it.
pub(crate) struct Machine {
    dir: Workdir,
    steps: Vec<Step>,
}

impl Machine {
    pub(crate) fn new() -> Machine {
        let dir = Workdir::create().unwrap();
        for folder in ["bin", "said", "here"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        let built = Path::new(env!("CARGO_BIN_EXE_strait")).parent().unwrap();
        for program in PROGRAMS {
            std::os::unix::fs::symlink(built.join(program), dir.path().join("bin").join(program)).unwrap();
        }
        Machine { dir, steps: Vec::new() }
    }

    /// Adds the commands of a part of a guide, of which there are more than `least`.
    pub(crate) fn add(&mut self, part: &str, least: usize) {
        let steps = page::root_steps(part);
        assert!(steps.len() > least, "{steps:?}");
        self.steps.extend(steps);
    }

    /// Runs all commands in one shell, and compares what they say.
    pub(crate) fn follow(&self) {
        let root = self.dir.path();
        let mut script = format!(
            "mount -t tmpfs none /run && mkdir -p /run/netns && mount -t tmpfs none /var/lib && cd {root}/here || exit 1\n\
             ip link set lo up\n",
            root = root.display()
        );
        for (place, step) in self.steps.iter().enumerate() {
            let said = root.join("said").join(place.to_string());
            let over = OVER.iter().find(|(begun, _)| step.command.contains(begun));
            script.extend(over.map(|(_, wait)| format!("{wait} > /dev/null 2>&1\n")));
            // In the shell itself, as its background processes are.
            script += &format!(
                "{{ {}}} > {said} 2>&1\necho $? > {said}.status\n",
                step.command,
                said = said.display()
            );
            let awaited = AWAITED.iter().find(|(begun, _)| step.command.contains(begun) && !step.silent);
            script.extend(awaited.map(|(_, wait)| format!("{wait} > /dev/null 2>&1\n")));
        }
        let file = root.join("guides.sh");
        fs::write(&file, script).unwrap();
        let search = format!("{}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", root.join("bin").display());
        let mut shell = Command::new("timeout");
        shell.args(["--signal=KILL", "500", "unshare", "--net", "--mount", "--propagation", "private"]);
        shell.args(["--pid", "--fork", "--kill-child", "--mount-proc", "bash"]).arg(&file);
        shell.env_clear().env("PATH", search).env("HOME", root.join("here")).stdin(Stdio::null());
        let output = shell.output().unwrap();
        let wrong: Vec<String> =
            self.steps.iter().enumerate().filter_map(|(place, step)| self.compare(place, step)).collect();
        assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n\n"), String::from_utf8_lossy(&output.stderr));
    }

    /// Compares what a command said with the page; returns what is wrong.
    fn compare(&self, place: usize, step: &Step) -> Option<String> {
        let said = self.dir.path().join("said").join(place.to_string());
        let text = fs::read_to_string(&said).unwrap_or_default();
        let status = fs::read_to_string(said.with_extension("status")).unwrap_or_else(|_| "none".to_owned());
        let lines: Vec<String> = text.lines().map(page::skeleton).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let told: Vec<String> = step.output.iter().map(|line| page::skeleton(line)).collect();
        // What a page shows of a command that fails says so.
        let fails = ["strait: ", "ping: "]
            .iter()
            .any(|name| step.output.first().is_some_and(|line| line.starts_with(name)));
        let good = (status.trim() != "0") == fails && (step.silent || page::match_all(&lines, &told));
        let page = step.output.join("\n");
        (!good)
            .then(|| format!("$ {}status {}\nsaid:\n{text}\nthe page:\n{page}", step.command, status.trim()))
    }
}
