//! A host with a full tunnel, and what leaves it in the clear.

use std::fs;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use strait_testbed::{ClearWatch, Extra, TwoHosts};

use crate::host::ip;
use crate::pair::{Pair, eventually, fast, program};

/// Addresses beyond the second site that only the tunnel leads to (RFC 5737, RFC 3849).
pub(super) const BEYOND: [&str; 2] = ["203.0.113.7", "2001:db8::7"];

/// A host whose default routes lead to the other site in the clear, with a full tunnel there, and what it sends.
pub(super) struct FullTunnel {
    pub(super) pair: Pair,
    pub(super) config: PathBuf,
    pub(super) watch: ClearWatch,
    run: &'static str,
}

impl FullTunnel {
    pub(super) fn up(node: &str, allowed: &str) -> FullTunnel {
        let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
        pair.start(1, Extra { node: "forward = [\"0.0.0.0/0\", \"::/0\"]", ..Extra::default() });
        for (to, prefix) in BEYOND.into_iter().zip([32, 128]) {
            pair.hosts.b.add_address("lo", to.parse().unwrap(), prefix).unwrap();
        }
        let router = &pair.hosts.link.b;
        ip(&pair.hosts.a, &["route", "add", "default", "via", &router.v4.to_string()]);
        ip(&pair.hosts.a, &["-6", "route", "add", "default", "via", &router.v6.to_string()]);
        let text = pair.sites[0].configuration(&[&pair.sites[1]], Extra { node, ..Extra::default() });
        let text = text.replace("\"10.77.0.2/32\", \"fd77::2/128\"", allowed);
        let config = pair.sites[0].folder().join("full.toml");
        fs::write(&config, text).unwrap();
        let watch = ClearWatch::start(&pair.hosts.link.b).unwrap();
        let mut full = FullTunnel { pair, config, watch, run: "run" };
        full.start();
        full.watch.take().unwrap();
        full
    }

    pub(super) fn start(&mut self) {
        self.pair.daemons[0] = Some(self.pair.sites[0].start(&self.config, self.run).unwrap());
        self.pair.wait_for_session();
    }

    /// Sends a few datagrams to each address; those that cannot be sent are what is wanted at times.
    pub(super) fn send(&self) {
        for to in BEYOND {
            let to: IpAddr = to.parse().unwrap();
            let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            let sent = self.pair.hosts.a.run("send", || {
                let socket = UdpSocket::bind(any)?;
                for _ in 0..4 {
                    let _ = socket.send_to(b"secret", SocketAddr::new(to, 9));
                }
                Ok(())
            });
            sent.unwrap();
        }
    }

    /// Fails if anything left in the clear since the last time, or leaves now.
    pub(super) fn assert_closed(&self, what: &str) {
        self.send();
        std::thread::sleep(Duration::from_millis(50));
        let clear = self.watch.take().unwrap();
        assert!(clear.is_empty(), "{what}: {clear:?} in the clear\n{}", self.pair.logs());
    }

    /// Fails unless the addresses are reached, through the tunnel.
    pub(super) fn assert_through(&self, what: &str) {
        for to in BEYOND {
            eventually(&format!("{what}: {to} answers through the tunnel"), || self.answers(to));
        }
        self.assert_closed(what);
    }

    pub(super) fn answers(&self, to: &str) -> bool {
        let mut ping = self.pair.hosts.a.command("ping");
        ping.args(["-c", "1", "-W", "1", to]).output().unwrap().status.success()
    }

    /// `strait down strait0` at the first site.
    pub(super) fn down(&self) -> Output {
        self.strait().arg("down").output().unwrap()
    }

    /// `strait` at the first site.
    pub(super) fn strait(&self) -> Command {
        let run = self.pair.sites[0].folder().join(self.run);
        let mut command = self.pair.hosts.a.command(program());
        command.env("STRAIT_STATE_DIR", run.join("state")).env("STRAIT_RUNTIME_DIR", run);
        command
    }

    /// Starts the daemon anew, in the background.
    pub(super) fn in_the_background(&mut self) {
        self.pair.stop(0);
        let mut up = self.strait();
        up.arg("up").arg(&self.config).arg("--log-file").arg(self.config.with_extension("log"));
        let up = up.output().unwrap();
        assert!(up.status.success(), "{up:?}");
        self.watch.take().unwrap();
    }

    /// Fails unless the host is as without a tunnel.
    pub(super) fn assert_open(&self, before: &[String]) {
        assert_eq!(routing(&self.pair), before);
        self.send();
        let mut seen = 0;
        eventually("packets leave in the clear again", || {
            seen += self.watch.count().unwrap();
            seen >= 8
        });
    }
}

pub(super) const BOTH: &str = "\"0.0.0.0/0\", \"::/0\"";

/// Routes and rules of the first site, as `ip` shows them, but for those of the tunnel's interface, and of link-local
/// addresses, which the kernel makes of random numbers and in its own time.
pub(super) fn routing(pair: &Pair) -> Vec<String> {
    let shown = ["-4", "-6"].into_iter().flat_map(|family| {
        let routes = ip(&pair.hosts.a, &[family, "route", "show", "table", "all"]);
        let rules = ip(&pair.hosts.a, &[family, "rule", "show"]);
        routes.lines().chain(rules.lines()).map(str::to_owned).collect::<Vec<_>>()
    });
    shown.filter(|line| !line.contains("strait0") && !line.contains("fe80:")).collect()
}

/// How a host without the tunnel looks.
pub(super) fn clean() -> Vec<String> {
    let pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    let router = &pair.hosts.link.b;
    ip(&pair.hosts.a, &["route", "add", "default", "via", &router.v4.to_string()]);
    ip(&pair.hosts.a, &["-6", "route", "add", "default", "via", &router.v6.to_string()]);
    let mut before = Vec::new();
    eventually("the kernel has added its routes", || {
        let now = routing(&pair);
        let settled = now == before;
        before = now;
        settled
    });
    before
}
