//! What a person does on two hosts set up by hand: keys, files, `up`, and ordinary programs through the tunnel.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use strait_testbed::{Namespace, TwoHosts, Workdir};

use crate::pair::{allowed, eventually, fast, has, program};

/// One of the two hosts, with the folder of its tunnel.
struct Desk<'a> {
    host: &'a Namespace,
    folder: std::path::PathBuf,
}

impl<'a> Desk<'a> {
    fn at(host: &'a Namespace, dir: &Workdir) -> Desk<'a> {
        let folder = dir.path().join(host.name());
        fs::create_dir(&folder).unwrap();
        Desk { host, folder }
    }

    fn command(&self, program: impl AsRef<Path>, arguments: &[&str]) -> Command {
        let mut command = self.host.command(program.as_ref());
        command.args(arguments).current_dir(&self.folder).env("STRAIT_RUNTIME_DIR", self.folder.join("run"));
        command
    }

    /// What a program says, which has to succeed.
    fn says(&self, program: impl AsRef<Path>, arguments: &[&str]) -> String {
        let output = self.command(program, arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn strait(&self, arguments: &[&str]) -> String {
        self.says(program(), arguments)
    }

    /// Takes the file that `init` wrote, and fills in what a person would.
    fn fill_in(&self, number: u8, peer: &Desk<'_>, endpoint: &str) {
        let file = self.folder.join("strait.toml");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains("10.77.0.1/24"), "{text}");
        let key = peer.strait(&["pubkey", "strait.key"]);
        let other = 3 - number;
        let peer = format!(
            "\n[[peer]]\nname = \"other\"\npublic_key = \"{}\"\nendpoint = \"{endpoint}:51820\"\n\
             allowed_ips = [\"10.77.0.{other}/32\"]\n",
            key.trim()
        );
        fs::write(file, text.replace("10.77.0.1/24", &format!("10.77.0.{number}/24")) + &peer).unwrap();
    }

    fn serve(&self, program: &str, arguments: &[&str]) -> Server {
        let mut command = self.command(program, arguments);
        Server(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

/// A program that runs until the test ends.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn two_hosts_by_hand_with_ping_iperf3_and_curl() {
    if !allowed() || !["ping", "iperf3", "curl"].into_iter().all(has) {
        return;
    }
    let hosts = TwoHosts::direct(fast()).unwrap();
    let dir = Workdir::create().unwrap();
    let (a, b) = (Desk::at(&hosts.a, &dir), Desk::at(&hosts.b, &dir));
    for desk in [&a, &b] {
        desk.strait(&["init"]);
    }
    a.fill_in(1, &b, &hosts.address_of_b().0.to_string());
    b.fill_in(2, &a, &hosts.address_of_a().0.to_string());
    for desk in [&a, &b] {
        desk.strait(&["check", "strait.toml"]);
        desk.strait(&["up", "strait.toml", "--log-file", "strait.log"]);
    }

    assert!(a.says("ping", &["-c", "1", "-W", "10", "10.77.0.2"]).contains(" 0% packet loss"));
    let page = "what the other site serves\n".repeat(1000);
    fs::write(b.folder.join("page.txt"), &page).unwrap();
    let _web = b.serve("/usr/bin/python3", &["-m", "http.server", "--bind", "10.77.0.2", "8080"]);
    let fetch = ["-sS", "--fail", "--retry", "20", "--retry-connrefused", "http://10.77.0.2:8080/page.txt"];
    assert_eq!(a.says("curl", &fetch), page);
    let _iperf = b.serve("iperf3", &["-s", "-1", "-B", "10.77.0.2"]);
    eventually("iperf3 has measured", || {
        let measured = a.command("iperf3", &["-c", "10.77.0.2", "-t", "1", "--json"]).output().unwrap();
        measured.status.success()
    });

    let shown = a.strait(&["show"]);
    assert!(shown.contains("other") && shown.contains("10.77.0.2/32"), "{shown}");
    for desk in [&a, &b] {
        desk.strait(&["down"]);
        assert!(!desk.host.interfaces().unwrap().contains(&"strait0".to_owned()));
    }
}
