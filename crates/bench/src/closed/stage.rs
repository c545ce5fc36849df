//! A host with a full tunnel, whose other routes lead to the same neighbour in the clear.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use strait_testbed::{ClearWatch, DaemonProcess, Extra, LinkSpec, Namespace, Site, TwoHosts, Workdir};

use crate::error::Error;

/// Addresses that only the tunnel should lead to (RFC 5737, RFC 3849).
pub(super) const BEYOND: [&str; 2] = ["203.0.113.7", "2001:db8::7"];
/// How long a session may take, and how far apart packets of one family are.
const PATIENCE: Duration = Duration::from_secs(30);
const EACH: Duration = Duration::from_millis(1);
/// Until what was sent last has crossed the wire.
const CROSSED: Duration = Duration::from_millis(50);

/// `SIGKILL`, `SIGABRT`, `SIGCONT` and `SIGSTOP` (signal(7), all but a few architectures).
pub(super) const KILL: i32 = 9;
pub(super) const ABORT: i32 = 6;
const CONTINUE: i32 = 18;
const STOP: i32 = 19;

/// The hosts, with a tunnel that is up.
pub(super) struct ClosedStage {
    // In the order in which they must go: daemons, hosts, folder.
    own: Option<DaemonProcess>,
    _other: DaemonProcess,
    watch: ClearWatch,
    sites: [Site; 2],
    config: PathBuf,
    hosts: TwoHosts,
    _dir: Workdir,
}

impl ClosedStage {
    /// With these lines in the host's `[node]`, and these networks in the tunnel.
    pub(super) fn up(program: &Path, node: &str, listed: &str) -> Result<ClosedStage, Error> {
        let dir = Workdir::create()?;
        let hosts = TwoHosts::direct(LinkSpec::unshaped())?;
        let sites = Site::pair(program, &hosts, dir.path())?;
        let [a, b] = &sites;
        let exit = Extra { node: "forward = [\"0.0.0.0/0\", \"::/0\"]", ..Extra::default() };
        let other = b.start(&b.configure("exit", &[a], exit)?, "run")?;
        let text = a.configuration(&[b], Extra { node, ..Extra::default() });
        let config = a.folder().join("full.toml");
        write(&config, &text.replace("\"10.77.0.2/32\", \"fd77::2/128\"", listed))?;
        let watch = ClearWatch::start(&hosts.link.b)?;
        let mut stage = ClosedStage { own: None, _other: other, watch, sites, config, hosts, _dir: dir };
        for (to, prefix) in BEYOND.into_iter().zip([32, 128]) {
            stage.hosts.b.add_address("lo", address(to), prefix)?;
        }
        stage.rogue_routes(&["0.0.0.0/0", "::/0"])?;
        stage.start()?;
        stage.watch.take()?;
        Ok(stage)
    }

    /// Starts the host's daemon.
    pub(super) fn start(&mut self) -> Result<(), Error> {
        let [a, b] = &self.sites;
        let own = a.start(&self.config, "run")?;
        own.wait_for_session(b.name(), PATIENCE)?;
        self.own = Some(own);
        Ok(())
    }

    /// Ends it with a signal that it cannot handle.
    pub(super) fn kill(&mut self, signal: i32) -> Result<(), Error> {
        self.end(|own| own.signal(signal))
    }

    /// Ends its process with privileges, and by that all of it.
    pub(super) fn kill_starter(&mut self) -> Result<(), Error> {
        self.end(|own| own.signal_starter(KILL))
    }

    fn end(
        &mut self,
        by: impl FnOnce(&DaemonProcess) -> Result<(), strait_testbed::Error>,
    ) -> Result<(), Error> {
        if let Some(mut own) = self.own.take() {
            by(&own)?;
            while own.ended()?.is_none() {
                thread::sleep(EACH);
            }
        }
        Ok(())
    }

    /// Ends it in order and starts it again; what leaves between is not counted.
    pub(super) fn down_and_up(&mut self) -> Result<(), Error> {
        if let Some(own) = self.own.take() {
            own.stop()?;
        }
        self.start()?;
        self.watch.take()?;
        Ok(())
    }

    /// Reads the configuration again with one more line in `[node]`.
    pub(super) fn reload(&mut self, line: &str) -> Result<(), Error> {
        let text = fs::read_to_string(&self.config).map_err(Error::doing("read the configuration"))?;
        write(&self.config, &text.replacen("[node]\n", &format!("[node]\n{line}\n"), 1))?;
        if let Some(own) = &self.own {
            own.reload()?;
        }
        Ok(())
    }

    /// Has the daemon put back nothing, if `stops`.
    pub(super) fn stop_repairs(&self, stops: bool) -> Result<(), Error> {
        match &self.own {
            Some(own) if stops => Ok(own.signal_starter(STOP)?),
            _ => Ok(()),
        }
    }

    /// Removes what keeps the host closed without its daemon.
    pub(super) fn remove_unreachable(&self) -> Result<(), Error> {
        for (family, all) in [("-4", "0.0.0.0/0"), ("-6", "::/0")] {
            self.ip(&[family, "route", "del", "unreachable", all, "table", "21332", "metric", "4294967295"])?;
        }
        Ok(())
    }

    /// As another program that does not know the rules.
    pub(super) fn flush_rules(&self) -> Result<(), Error> {
        for family in ["-4", "-6"] {
            self.ip(&[family, "rule", "del", "table", "21332"])?;
        }
        Ok(())
    }

    /// Routes in the clear, as a DHCP server hands them out.
    pub(super) fn rogue_routes(&self, networks: &[&str]) -> Result<(), Error> {
        let router = &self.hosts.link.b;
        for network in networks {
            let via = if network.contains(':') { router.v6.to_string() } else { router.v4.to_string() };
            self.ip(&["route", "add", network, "via", &via])?;
        }
        Ok(())
    }

    /// Runs `ip` on the host.
    pub(super) fn ip(&self, arguments: &[&str]) -> Result<(), Error> {
        let status = self.hosts.a.command("ip").args(arguments).status();
        let status = status.map_err(Error::doing("run ip"))?;
        let failed = || std::io::Error::other(format!("ip {} ended with {status}", arguments.join(" ")));
        status.success().then_some(()).ok_or_else(|| Error::doing("change the host's network")(failed()))
    }

    /// Sends to both addresses while `work` is done, which may pause, and for `window` after it; says how much was sent.
    pub(super) fn while_sending(
        &mut self,
        window: Duration,
        work: impl FnOnce(&mut ClosedStage, &dyn Fn()) -> Result<(), Error>,
    ) -> Result<u64, Error> {
        let ends = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&ends);
        let sender = self.hosts.a.spawn(move || send_until(&told))?;
        let done = work(self, &|| thread::sleep(window / 5));
        thread::sleep(window);
        ends.store(true, Ordering::Relaxed);
        let sent = Namespace::join(sender, "send in both families")?;
        done.map(|()| sent)
    }

    /// Packets in the clear since the tunnel was up.
    pub(super) fn in_the_clear(&self) -> Result<u64, Error> {
        thread::sleep(CROSSED);
        Ok(self.watch.count()?)
    }
}

impl Drop for ClosedStage {
    fn drop(&mut self) {
        // A stopped process does not end in order.
        if let Some(own) = &self.own {
            let _ = own.signal_starter(CONTINUE);
        }
    }
}

/// Sends a datagram to each address every millisecond until it is told to end; those that are refused count, too.
fn send_until(ends: &AtomicBool) -> std::io::Result<u64> {
    let sockets =
        [UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?, UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))?];
    let mut sent = 0;
    while !ends.load(Ordering::Relaxed) {
        for (socket, to) in sockets.iter().zip(BEYOND) {
            let _ = socket.send_to(b"secret", (address(to), 9));
            sent += 1;
        }
        thread::sleep(EACH);
    }
    Ok(sent)
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(Error::doing(format!("write {}", path.display())))
}
