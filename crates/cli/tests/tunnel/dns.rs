//! The tunnel's name servers are set and taken back, also after a kill.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Output;

use strait_testbed::{Extra, TwoHosts};

use crate::confined::{child, has_ended, kill};
use crate::pair::{Pair, allowed, eventually, fast, program};

/// A host with a folder in which programs are looked for, and no others.
struct DnsHost {
    pair: Pair,
    folder: PathBuf,
    config: PathBuf,
}

impl DnsHost {
    fn create() -> DnsHost {
        let pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
        let node = "dns = [\"10.1.0.53\", \"fd01::53\"]\ndns_search = \"corp.example\"";
        let config =
            pair.sites[0].configure("dns", &[&pair.sites[1]], Extra { node, ..Extra::default() }).unwrap();
        let folder = pair.dir.path().join("programs");
        fs::create_dir(&folder).unwrap();
        DnsHost { pair, folder, config }
    }

    /// Puts a resolvconf there that keeps the servers of each interface in a file, as all do, and ends with `code`.
    fn with_resolvconf(self, code: u8) -> DnsHost {
        let (folder, file) = (self.folder.display(), self.folder.join("resolvconf"));
        let script = format!(
            "#!/bin/sh\n[ {code} = 0 ] || echo no leave to write >&2\ncase $1 in\n-a) /bin/cat > {folder}/$2.servers ;;\n-d) /bin/rm -f {folder}/$2.servers ;;\nesac\nexit {code}\n"
        );
        fs::write(&file, script).unwrap();
        fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
        self
    }

    fn strait(&self, arguments: &[&str]) -> Output {
        let mut command = self.pair.hosts.a.command(program());
        let command = command.args(arguments).env("PATH", &self.folder);
        let output = command.env("STRAIT_RUNTIME_DIR", self.pair.dir.path().join("run")).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        output
    }

    /// Starts a daemon in the background; gives its process.
    fn up(&self) -> String {
        let log = self.pair.dir.path().join("log");
        let said =
            self.strait(&["up", self.config.to_str().unwrap(), "--log-file", log.to_str().unwrap()]).stdout;
        let said = String::from_utf8(said).unwrap();
        let rest = said.split("process ").nth(1).unwrap();
        rest.split(',').next().unwrap().to_owned()
    }

    fn shown(&self) -> String {
        String::from_utf8(self.strait(&["show"]).stdout).unwrap()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.pair.dir.path().join("log")).unwrap()
    }

    /// What resolvconf has of the tunnel.
    fn servers(&self) -> Option<String> {
        let names = ["strait0", "tun.strait0"].map(|name| self.folder.join(format!("{name}.servers")));
        names.into_iter().find_map(|file| fs::read_to_string(file).ok())
    }
}

#[test]
fn name_servers_are_set_and_taken_back_also_after_a_kill() {
    if !allowed() {
        return;
    }
    let host = DnsHost::create().with_resolvconf(0);
    let set = Some("nameserver 10.1.0.53\nnameserver fd01::53\nsearch corp.example\n".to_owned());
    host.up();
    assert_eq!(host.servers(), set);
    host.strait(&["down"]);
    assert_eq!(host.servers(), None, "after an orderly end");
    let process = host.up().parse().unwrap();
    let starter = child(process, "strait-starter");
    kill(process);
    eventually("the starter takes them back", || host.servers().is_none());
    eventually("the starter ends", || has_ended(starter));
    let process = host.up().parse().unwrap();
    assert_eq!(host.servers(), set);
    // The packet process ends then, and may take nothing back.
    kill(child(process, "strait-starter"));
    let gone = || !host.pair.hosts.a.interfaces().unwrap().contains(&"strait0".to_owned());
    eventually("the daemon is gone", gone);
    assert_eq!(host.servers(), set, "after a kill");
    host.strait(&["down"]);
    assert_eq!(host.servers(), None, "after a kill and `strait down`");
    assert!(host.log().contains("name servers are set"), "{}", host.log());
}

#[test]
fn a_host_that_takes_no_name_servers_has_its_tunnel_and_a_word_about_it() {
    if !allowed() {
        return;
    }
    for (host, said) in [
        (DnsHost::create(), "`dns` has no effect: neither systemd-resolved nor resolvconf is here"),
        (DnsHost::create().with_resolvconf(1), "resolvconf ended with exit status: 1: no leave to write"),
    ] {
        host.up();
        assert!(host.log().contains(said), "{}", host.log());
        eventually("the report says so", || host.shown().contains(said));
        let host = host.with_resolvconf(0);
        host.strait(&["reload"]);
        eventually("it is set", || host.log().contains("name servers are set"));
        eventually("there is nothing to warn of", || !host.shown().contains(said));
        host.strait(&["down"]);
    }
    let check = DnsHost::create();
    let said = check.strait(&["check", check.config.to_str().unwrap()]).stdout;
    let said = String::from_utf8(said).unwrap();
    assert!(said.contains("WARNING: `dns` has no effect"), "{said}");
}
