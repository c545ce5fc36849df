//! The tunnel as people run it against a Linux kernel: echoes asked for by either side, and TCP that carries the same
//! in both directions, through every case.

use std::fmt::Write;
use std::fs::{self, Permissions};
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use strait_testbed::{DaemonProcess, EchoService, Namespace};
use strait_testdata::Kernel;

use crate::agreement::{Agreement, Direction, INSIDE, Layer, PORT};
use crate::case::{Case, Esp, Mode, Version};
use crate::guests::{Place, kernel_here, knows};
use crate::kernel;
use crate::matrix::chosen;
use crate::tried::Tried;

/// A guest on a busy machine can miss a wake-up, which costs one attempt.
const ATTEMPTS: u32 = 4;
/// How long a transfer may stand still.
const PATIENCE: Duration = Duration::from_secs(20);
/// The least that a path may take (RFC 791 section 3.1).
const LEAST_MTU: u16 = 576;
/// Bytes of a transfer each way: some hundred packets, and more than a window.
const TRANSFER: usize = 200_000;

#[test]
fn the_tunnel_and_debians_kernel_understand_each_other() {
    kernel_here(false).iter().for_each(understand);
}

#[test]
fn the_tunnel_and_a_newer_kernel_understand_each_other() {
    kernel_here(true).iter().for_each(understand);
}

fn understand(kernel: &Kernel) {
    let mut place = Place::boot(kernel, &[]);
    let content: Vec<u8> = b"what is sent to the other end ".iter().copied().cycle().take(TRANSFER).collect();
    let mut tried = Tried::default();
    let outside = [&place.hosts.link.a, &place.hosts.link.b].map(|end| (end.v4, end.v6));
    let start = Instant::now();
    for (number, case) in chosen().into_iter().filter(|(_, case)| knows(kernel, *case)) {
        let agreement = Agreement { case, number, outside };
        tried.note(case, through(&mut place, &agreement, &content));
    }
    let peer = format!("Linux {}", place.guest.release());
    eprintln!("{peer}: all cases in {:.0?}", start.elapsed());
    tried.conclude(&peer);
}

/// Echoes and TCP both ways, with a daemon of this case alone.
fn through(place: &mut Place, agreement: &Agreement, content: &[u8]) -> Result<(), String> {
    let said = |error: strait_testbed::Error| error.to_string();
    place.guest.run(&kernel::configuration(agreement)).map_err(said)?;
    let near = place.hosts.link.a.host.clone();
    let folder = place.dir.path().join(agreement.number.to_string());
    fs::create_dir(&folder).map_err(|error| error.to_string())?;
    let path = folder.join("manual.toml");
    fs::write(&path, configuration(agreement)).map_err(|error| error.to_string())?;
    fs::set_permissions(&path, Permissions::from_mode(0o600)).map_err(|error| error.to_string())?;
    let program = Path::new(env!("CARGO_BIN_EXE_strait"));
    let daemon = DaemonProcess::start(&near, program, &path, &folder.join("run")).map_err(said)?;
    let result = exchange(place, agreement, content).and_then(|()| bundled(place, &daemon, agreement));
    result.map_err(|why| format!("{why}\n{}\n{}", shown(&daemon), kernel::statistics(&mut place.guest)))
}

fn exchange(place: &mut Place, agreement: &Agreement, content: &[u8]) -> Result<(), String> {
    let near = place.hosts.link.a.host.clone();
    for (own, guest) in agreement.protected(Direction::ToGuest) {
        let once = ["-n", "-q", "-c", "1", "-W", "2", "-s", "900"];
        attempt(|| ping(&near, guest, &once))?;
        let command = format!("ping {} {own}", once.join(" "));
        attempt(|| place.guest.run(&command).map(|_| ()).map_err(|error| error.to_string()))?;
        EchoService::call(&near, guest, content, PATIENCE).map_err(|error| format!("to {guest}: {error}"))?;
    }
    Ok(())
}

/// Sees to it that packets left in bundles, where that was agreed: many small ones at once wait for the link together.
fn bundled(place: &Place, daemon: &DaemonProcess, agreement: &Agreement) -> Result<(), String> {
    if !matches!(agreement.case.mode, Mode::Aggfrag(_)) {
        return Ok(());
    }
    let many = ["-n", "-q", "-c", "20", "-l", "20", "-W", "2", "-s", "20"];
    attempt(|| {
        for (_, guest) in agreement.protected(Direction::ToGuest) {
            ping(&place.hosts.link.a.host, guest, &many)?;
        }
        let shown = daemon.show().map_err(|error| error.to_string())?;
        let bundles = shown["peers"][0]["bundles"].as_u64();
        if bundles > Some(0) { Ok(()) } else { Err(format!("no bundles: {shown}")) }
    })
}

fn ping(near: &Namespace, guest: IpAddr, arguments: &[&str]) -> Result<(), String> {
    let output = near.command("ping").args(arguments).arg(guest.to_string()).output();
    let output = output.map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() { Ok(()) } else { Err(format!("no echo from {guest}: {said}")) }
}

/// Tries again what a guest may have slept through.
fn attempt(mut what: impl FnMut() -> Result<(), String>) -> Result<(), String> {
    let mut result = what();
    for _ in 1..ATTEMPTS {
        if result.is_ok() {
            break;
        }
        result = what();
    }
    result
}

/// What the daemon knows.
fn shown(daemon: &DaemonProcess) -> String {
    let said = daemon.command(&["show"]).output();
    let shown =
        said.map_or_else(|error| error.to_string(), |it| String::from_utf8_lossy(&it.stdout).into_owned());
    format!("{shown}\n{}", daemon.last_words())
}

/// The near end's file.
fn configuration(agreement: &Agreement) -> String {
    let Agreement { case, .. } = *agreement;
    let (local, remote) = agreement.outer(Direction::ToGuest);
    let mut text = format!("[node]\nlisten = {PORT}\n");
    if case.mode != Mode::Transport {
        let (v4, v6) = INSIDE[0];
        writeln!(text, "address = [\"{v4}/32\", \"{v6}/128\"]").unwrap();
    }
    let endpoint = match (case.udp, case.outer) {
        (false, _) => remote.to_string(),
        (true, Version::V4) => format!("{remote}:{PORT}"),
        (true, Version::V6) => format!("[{remote}]:{PORT}"),
    };
    writeln!(text, "[[peer]]\nname = \"guest\"\nendpoint = \"{endpoint}\"").unwrap();
    if case.mode != Mode::Transport {
        let (v4, v6) = INSIDE[1];
        writeln!(text, "allowed_ips = [\"{v4}/32\", \"{v6}/128\"]").unwrap();
    }
    if let Mode::Aggfrag(size) = case.mode {
        // What is sent is cut, too, and what waits for the link goes in bundles.
        writeln!(text, "mtu = {}", size.max(LEAST_MTU)).unwrap();
    }
    let mode = if case.mode == Mode::Transport { "transport" } else { "tunnel" };
    let carrier = if case.udp { "udp" } else { "ip" };
    writeln!(text, "[peer.manual]\nmode = \"{mode}\"\ncarrier = \"{carrier}\"").unwrap();
    if case.esn {
        text.push_str("esn = true\n");
    }
    if !case.udp || case.mode == Mode::Transport {
        writeln!(text, "local = \"{local}\"").unwrap();
    }
    if matches!(case.mode, Mode::Aggfrag(_)) {
        text.push_str("aggfrag = true\n");
    }
    protocols(agreement, &mut text);
    if matches!(case.mode, Mode::Aggfrag(_)) {
        text.push_str("[link]\nup = \"20Mbit\"\n");
    }
    if case.ipcomp {
        for all in ["0.0.0.0/0", "::/0"] {
            writeln!(
                text,
                "[[compress]]\nfrom = \"{all}\"\nto = \"{all}\"\ndomain = \"test\"\ncodec = \"deflate-6\""
            )
            .unwrap();
        }
    }
    text
}

/// The protocols of an agreement, as `[peer.manual]` has them.
fn protocols(agreement: &Agreement, text: &mut String) {
    let case: Case = agreement.case;
    if case.ipcomp {
        text.push_str("ipcomp = \"deflate\"\n");
    }
    if is_legacy(case) {
        text.push_str("danger_legacy = true\n");
    }
    if case.esp.is_none() && case.ah.is_none() {
        text.push_str("danger_plain = true\n");
    } else {
        text.push_str("counter_file = \"guest.counter\"\n");
    }
    let ways = [("in", Direction::FromGuest), ("out", Direction::ToGuest)];
    if let Some(esp) = case.esp {
        text.push_str("[peer.manual.esp]\n");
        match esp {
            Esp::Combined(suite) => writeln!(text, "suite = \"{suite}\"").unwrap(),
            Esp::Separate(cipher, integrity) => {
                writeln!(text, "cipher = \"{cipher}\"").unwrap();
                integrity.iter().for_each(|it| writeln!(text, "integrity = \"{it}\"").unwrap());
            }
        }
        for (way, direction) in ways {
            writeln!(text, "spi_{way} = {:#010x}", agreement.spi(direction, Layer::Esp)).unwrap();
            let key = agreement.cipher_key(direction, esp);
            if !key.is_empty() {
                writeln!(text, "key_{way} = \"0x{key}\"").unwrap();
            }
            if let Esp::Separate(_, Some(integrity)) = esp {
                let key = agreement.integrity_key(direction, Layer::Esp, integrity);
                writeln!(text, "integrity_key_{way} = \"0x{key}\"").unwrap();
            }
        }
    }
    if let Some(ah) = case.ah {
        writeln!(text, "[peer.manual.ah]\nintegrity = \"{}\"", ah.integrity).unwrap();
        // Over IPv6 there is no choice.
        if case.outer == Version::V4 {
            writeln!(text, "align4 = {}", !ah.padded).unwrap();
        }
        for (way, direction) in ways {
            let (spi, key) = (
                agreement.spi(direction, Layer::Ah),
                agreement.integrity_key(direction, Layer::Ah, ah.integrity),
            );
            writeln!(text, "spi_{way} = {spi:#010x}\nkey_{way} = \"0x{key}\"").unwrap();
        }
    }
}

fn is_legacy(case: Case) -> bool {
    let of_esp = |esp| match esp {
        Esp::Combined(_) => false,
        Esp::Separate(cipher, integrity) => {
            cipher.is_legacy() || integrity.is_some_and(|it: strait_crypto::Integrity| it.is_legacy())
        }
    };
    case.esp.is_some_and(of_esp) || case.ah.is_some_and(|ah| ah.integrity.is_legacy())
}
