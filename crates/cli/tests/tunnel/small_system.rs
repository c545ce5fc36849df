//! Hosts that have little: no IPv6 on any interface, 128 MB of memory.

use std::fs;

use strait_testbed::{Extra, Namespace, TwoHosts};

use crate::pair::{Family, Pair, allowed, fast};

const RULE: &str = "[[compress]]\nfrom = \"0.0.0.0/0\"\nto = \"0.0.0.0/0\"\ndomain = \"all\"\n";
/// Bytes that processes of a daemon may have had at most, all together; what they share counts for each of them.
const MEMORY: u64 = 128_000_000;

fn run(host: &Namespace, program: &str, arguments: &[&str]) {
    let output = host.command(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The most memory that a process had, in bytes, and its children.
fn peak(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let own = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    let own: u64 = own.map_or(0, |kilobytes| kilobytes.trim().parse().unwrap());
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    own * 1024 + children.split_whitespace().map(|child| peak(child.parse().unwrap())).sum::<u64>()
}

#[test]
fn a_host_without_ipv6_and_with_little_memory_has_a_tunnel() {
    if !allowed() {
        return;
    }
    let hosts = TwoHosts::direct(fast()).unwrap();
    for host in [&hosts.a, &hosts.b] {
        run(host, "sysctl", &["-q", "-w", "net.ipv6.conf.all.disable_ipv6=1"]);
        run(host, "sysctl", &["-q", "-w", "net.ipv6.conf.default.disable_ipv6=1"]);
    }
    let mut pair = Pair::idle(hosts);
    let extra = Extra { sections: RULE, link: "up = \"20Mbit\"", ..Extra::default() };
    let refused = pair.sites[0].configure("both", &[&pair.sites[1]], extra).unwrap();
    let refused = pair.sites[0].start(&refused, "refused").map(drop).unwrap_err().to_string();
    assert!(refused.contains("IPv6 is off on this system: leave IPv6 out of `address`"), "{refused}");
    for which in [0, 1] {
        let (site, peer) = (&pair.sites[which], &pair.sites[1 - which]);
        let mut text = site.configuration(&[peer], extra);
        for address in [format!(", \"{}/64\"", site.inside_v6()), format!(", \"{}/128\"", peer.inside_v6())] {
            assert!(text.contains(&address), "{text}");
            text = text.replace(&address, "");
        }
        let path = site.folder().join("v4.toml");
        fs::write(&path, text).unwrap();
        pair.daemons[which] = Some(site.start(&path, "run").unwrap());
    }
    pair.wait_for_session();
    for to in [1, 0] {
        pair.tcp(to, Family::V4, 8_000_000);
    }
    for which in [0, 1] {
        let peak = peak(pair.daemon(which).pid());
        assert!((1..=MEMORY).contains(&peak), "{peak} bytes\n{}", pair.logs());
        let sent = &pair.peer(which)["sent"];
        assert!(sent["ratio"].as_f64().unwrap() > 2.0, "{sent:#}");
    }
}
