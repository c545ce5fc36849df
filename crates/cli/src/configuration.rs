//! `init` and `check`.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use strait_node::config::{Config, template};
use strait_node::login::lacking_for_logins;
use strait_node::network::{DefaultPath, Forecast, forecast};
use strait_node::privileges::{ServiceUser, UserError, find_group, is_root};
use strait_node::report::{FolderReport, ManualReport};

use crate::failure::{CommandResult, Failure};
use crate::files::ServedFolder;
use crate::output::{line, print, tell};
use crate::show::text::manual;
use crate::units::counted;
use crate::{flags, keys};

/// Writes a configuration to fill in, and a key beside it if there is none.
pub(crate) fn init(flags: &flags::Init) -> CommandResult {
    let file = &flags.file;
    let key = file.with_extension("key");
    // Named relative to the configuration, so that both can be moved together.
    let name = key.file_name().map(Path::new).ok_or_else(|| {
        Failure::new(format!("{} does not name a file", file.display()))
            .remedy("for example: strait init site-a.toml")
    })?;
    // It may come to hold keys.
    let mut out = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(file) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(Failure::new(format!("{} already exists and is not overwritten", file.display()))
                .remedy("name another file, or move this one first"));
        }
        result => result.map_err(Failure::doing(format!("make {}", file.display())))?,
    };
    out.write_all(template(name).as_bytes())
        .and_then(|()| out.sync_all())
        .map_err(Failure::doing(format!("write {}", file.display())))?;
    tell(format_args!(
        "configuration: {0} (fill in the addresses and the peer, then `strait check {0}` and `strait up {0}`)",
        file.display()
    ));
    let (public, made) = match keys::make_or_read(&key)? {
        keys::Found::Made(public) => (public, "created, readable by you only"),
        keys::Found::There(public) => (public, "already existed"),
    };
    line(format_args!("private key:   {} ({made})", key.display()))?;
    line(format_args!("public key:    {public} (give this one to your peers)"))?;
    Ok(())
}

/// Reads a configuration and its key, and says what it would start.
pub(crate) fn check(flags: &flags::Check) -> CommandResult {
    let config = load(&flags.file)?;
    let key = config.private_key().map_err(Failure::new)?;
    let user = user(&config)?;
    find_group(config.node.group.as_deref()).map_err(Failure::new)?;
    line(format_args!(
        "{}: valid. Interface {}, {}, {}",
        flags.file.display(),
        config.node.interface,
        counted(config.peers.len() as u64, "peer"),
        counted(config.rules.rules().len() as u64, "compression rule"),
    ))?;
    if let Some(key) = key {
        line(format_args!("public key: {}", key.public()))?;
    }
    for peer in &config.peers {
        if let Some(manual) = peer.manual() {
            let shown = ManualReport::of(manual);
            line(format_args!("{}: {}: {}", peer.name, manual::mode(&shown), manual::protocols(&shown)))?;
        }
    }
    for warning in config.warnings(&flags.file) {
        line(format_args!("WARNING: {warning}"))?;
    }
    for loss in config.quiet_losses() {
        line(format_args!("quiet: {loss}"))?;
    }
    folders(&config)?;
    if is_root() {
        for lacking in lacking_for_logins(&config.logins) {
            line(format_args!("WARNING: {lacking}"))?;
        }
    }
    print(user.as_bytes())?;
    print(host(&config, &forecast(&config)).as_bytes())?;
    if config.peers.is_empty() && config.directory.is_none() {
        line("note: there is no [[peer]] section, so the tunnel has no peer")?;
    }
    Ok(())
}

/// Says what peers may do in folders. Fails if one that is there would not be served, and warns of those that are not there.
fn folders(config: &Config) -> CommandResult {
    for folder in &config.folders {
        line(format_args!("[[folder]] {}: {}", folder.name, FolderReport::of(folder).rights()))?;
        let Err(error) = ServedFolder::find(folder.clone()).found().map(drop) else { continue };
        if folder.path.exists() {
            return Err(Failure::new(format!("[[folder]] {}: {error}", folder.name)));
        }
        line(format_args!("WARNING: [[folder]] {}: {error}", folder.name))?;
    }
    Ok(())
}

/// As whom packets will be handled, where that is not a user of the daemon's own.
fn user(config: &Config) -> Result<String, Failure> {
    match ServiceUser::find(config.node.user.as_deref()) {
        Ok(user) if user.is_nobody() => Ok(format!(
            "note: there is no user `strait`, so packets are handled as {user}, which other programs may use too; \
             make it with `useradd --system --no-create-home strait`\n"
        )),
        // Root may start it.
        Ok(_) | Err(UserError::Forbidden { .. }) => Ok(String::new()),
        Err(error) => Err(Failure::new(error)),
    }
}

/// What peers reach, and what a start touches on this host for it.
fn host(config: &Config, forecast: &Forecast) -> String {
    let forward = &config.node.forward;
    let mut text = match forward.networks.is_empty() {
        _ if config.node.address.is_empty() => String::new(),
        false => format!("forwarding: {forward}\n"),
        true => format!(
            "forwarding: {forward}; networks behind this node are reached by peers only if `forward` names them\n"
        ),
    };
    if !forecast.switches.is_empty() {
        text += &format!("kernel settings while it runs: {} = 1\n", forecast.switches.join(", "));
    }
    if forecast.ipv6_on_all {
        text += "note: this kernel (before Linux 6.17) forwards IPv6 on all interfaces or none; interfaces that take \
                 router advertisements stop to, unless their `accept_ra` is 2\n";
    }
    text.extend(forecast.hidden.iter().map(|hidden| format!("WARNING: {hidden}\n")));
    text.extend(forecast.taken.iter().map(|taken| format!("WARNING: {taken}\n")));
    text += &outside(config, forecast);
    text += &names(forecast);
    text += &filter(forecast);
    text
}

/// The packet filter's part.
fn filter(forecast: &Forecast) -> String {
    match (&forecast.unguarded, forecast.answers) {
        (None, None) => String::new(),
        (None, Some(mark)) => format!(
            "nftables while it runs: what comes to the node's UDP port has mark {mark:#x}, so that a strict `rp_filter` takes it\n"
        ),
        (Some(error), _) if error.kind() == io::ErrorKind::PermissionDenied => {
            "note: whether nftables guards the inner addresses is only told to root\n".to_owned()
        }
        (Some(error), answers) => {
            let filter = match answers {
                None => "; `sysctl -w net.ipv4.conf.all.rp_filter=1` refuses a part of them",
                Some(_) => {
                    ", and a strict `rp_filter` (1) drops what peers of this full tunnel send; if nothing arrives, `sysctl -w \
                     net.ipv4.conf.all.rp_filter=2`"
                }
            };
            format!(
                "note: no nftables here ({error}), so packets in the clear to the inner addresses are not refused \
                 (CVE-2019-14899){filter}\n"
            )
        }
    }
}

/// What leaves outside the tunnel, where it is a full one or in lockdown.
fn outside(config: &Config, forecast: &Forecast) -> String {
    let mut text = String::new();
    for (family, path) in &forecast.defaults {
        let everything = if family.to_string() == "IPv4" { "0.0.0.0/0" } else { "::/0" };
        text += &match path {
            DefaultPath::Tunnel => format!("{family}: through the tunnel; without the tunnel, refused\n"),
            DefaultPath::Closed => format!(
                "{family}: closed, as no peer has {everything}; `allow_outside = [\"{everything}\"]` leaves it as it is\n"
            ),
            DefaultPath::Outside => format!("{family}: outside the tunnel, in the clear\n"),
        };
    }
    if forecast.rules_of_others {
        text += "note: the routes of this full tunnel are not in a table of its own (`table`), so it closes nothing when it \
                 fails\n";
    }
    let node = &config.node;
    if !node.lockdown {
        if !forecast.defaults.is_empty() {
            text += "note: a more specific route of another program or DHCP server goes past the tunnel (CVE-2024-3661); \
                     `lockdown = true` drops what takes it\n";
        }
        return text;
    }
    let allowed = node.allow_outside.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let allowed = if allowed.is_empty() { "nothing".to_owned() } else { allowed };
    text += &format!("lockdown: outside the tunnel only {allowed}, DHCP and neighbour discovery\n");
    if let Some(error) = &forecast.unguarded
        && error.kind() != io::ErrorKind::PermissionDenied
    {
        text += "note: no nftables here, so lockdown is by rules and routes alone\n";
    }
    if config.peers.iter().any(|peer| peer.endpoint.as_ref().is_some_and(|it| it.ip().is_none())) {
        text += "note: a peer's endpoint is a name; `allow_outside` must have the DNS server, or write an address\n";
    }
    text
}

/// Where names are asked for.
fn names(forecast: &Forecast) -> String {
    let (settings, program) = &forecast.dns;
    let join = |all: Vec<String>| all.join(", ");
    if settings.servers.is_empty() {
        return match forecast.defaults.is_empty() {
            true => String::new(),
            false => "note: names are asked for where this host asks now, which may be outside the tunnel; `dns` names \
                      servers behind it\n"
                .to_owned(),
        };
    }
    let Some(program) = program else {
        return "WARNING: `dns` has no effect: neither systemd-resolved nor resolvconf is here\n".to_owned();
    };
    let servers = join(settings.servers.iter().map(ToString::to_string).collect());
    match settings.all {
        true => format!("DNS: {servers} for all names, by {program}\n"),
        false => format!("DNS: {servers} for names in {}, by {program}\n", join(settings.search.clone())),
    }
}

/// The configuration of a tunnel that is named by its file, and not by its interface or not at all.
pub(crate) fn named(tunnel: Option<&str>) -> Result<Option<Config>, Failure> {
    tunnel.map(Path::new).filter(|file| file.is_file()).map(load).transpose()
}

/// Reads a configuration.
pub(crate) fn load(file: &Path) -> Result<Config, Failure> {
    Config::load(file).map_err(Failure::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use strait_testbed::Workdir;

    #[test]
    fn what_init_writes_passes_check() {
        let dir = Workdir::create().unwrap();
        let file = dir.path().join("site-a.toml");
        init(&flags::Init { file: file.clone() }).unwrap();
        check(&flags::Check { file: file.clone() }).unwrap();
        assert!(dir.path().join("site-a.key").exists());
    }

    #[test]
    fn init_leaves_files_and_keys_alone() {
        let dir = Workdir::create().unwrap();
        let file = dir.path().join("a.toml");
        let public = keys::make(&dir.path().join("a.key")).unwrap();
        init(&flags::Init { file: file.clone() }).unwrap();
        assert_eq!(load(&file).unwrap().private_key().unwrap().unwrap().public(), public);
        let before = std::fs::read(&file).unwrap();
        assert!(
            init(&flags::Init { file: file.clone() }).unwrap_err().to_string().contains("already exists")
        );
        assert_eq!(std::fs::read(&file).unwrap(), before);
    }

    #[test]
    fn check_says_what_peers_reach_and_what_is_touched_for_it() {
        let config = |forward: &str| {
            let text = format!(
                "[node]\nprivate_key_file = \"k\"\naddress = \"10.77.0.1/24\"\nforward = {forward}\n"
            );
            Config::parse(&text, Path::new("x.toml")).unwrap()
        };
        let nothing = Forecast {
            switches: Vec::new(),
            unguarded: None,
            ipv6_on_all: false,
            ..forecast(&config("false"))
        };
        let text = host(&config("false"), &nothing);
        assert!(text.starts_with("forwarding: off; networks behind this node"), "{text}");
        assert_eq!(host(&config("[\"10.1.0.0/16\"]"), &nothing), "forwarding: to 10.1.0.0/16\n");
        let all = Forecast {
            switches: vec!["net.ipv4.conf.eth1.forwarding".to_owned()],
            ipv6_on_all: true,
            unguarded: Some(io::ErrorKind::Unsupported.into()),
            ..forecast(&config("false"))
        };
        // A strict filter would cut a full tunnel off.
        let full = |unguarded| Forecast { unguarded, answers: Some(7), ..forecast(&config("false")) };
        let text = filter(&full(Some(io::ErrorKind::Unsupported.into())));
        assert!(text.contains("rp_filter=2") && !text.contains("rp_filter=1"), "{text}");
        assert!(filter(&full(None)).contains("UDP port has mark 0x7"));
        let text = host(&config("[\"peers\", \"10.1.0.0/16\"]"), &all);
        for part in
            ["between peers (hub), and to 10.1.0.0/16", "eth1.forwarding = 1", "accept_ra", "rp_filter"]
        {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert!(
            forecast(&config("true")).switches.iter().any(|name| name == "net.ipv4.conf.strait0.forwarding")
        );
    }

    #[test]
    fn check_says_of_each_family_whether_it_leaves_in_the_clear() {
        let said = |node: &str, allowed: &str| {
            let text = format!(
                "[node]\nprivate_key_file = \"k\"\naddress = \"10.77.0.1/24\"\n{node}[[peer]]\nendpoint = \
                 \"vpn.example.net:1\"\npublic_key = \"wXKeEeD2sUcsfgwA2rO7tClR0yGv6Ro0Hk4mVF2RQhI=\"\nallowed_ips = [{allowed}]\n"
            );
            let config = Config::parse(&text, Path::new("x.toml")).unwrap();
            let forecast = Forecast { unguarded: None, ..forecast(&config) };
            outside(&config, &forecast) + &names(&forecast)
        };
        assert_eq!(said("", "\"10.2.0.0/16\""), "", "no full tunnel");
        for (node, allowed, parts) in [
            (
                "",
                "\"0.0.0.0/0\"",
                &["IPv4: through the tunnel", "IPv6: closed, as no peer has ::/0", "CVE-2024-3661"][..],
            ),
            (
                "",
                "\"::/1\", \"8000::/1\"",
                &["IPv4: closed, as no peer has 0.0.0.0/0", "IPv6: through the tunnel"],
            ),
            ("allow_outside = \"::/0\"\n", "\"0.0.0.0/0\"", &["IPv6: outside the tunnel, in the clear"]),
            ("table = 9\n", "\"0.0.0.0/0\"", &["it closes nothing when it fails"]),
            ("", "\"0.0.0.0/0\", \"::/0\"", &["IPv4: through the tunnel", "IPv6: through the tunnel"]),
            (
                "lockdown = true\n",
                "\"10.2.0.0/16\"",
                &["IPv4: closed", "IPv6: closed", "only nothing", "is a name"],
            ),
            (
                "lockdown = true\nallow_outside = [\"192.168.1.0/24\"]\n",
                "\"0.0.0.0/0\"",
                &["outside the tunnel only 192.168.1.0/24"],
            ),
        ] {
            let said = said(node, allowed);
            for part in parts {
                assert!(said.contains(part), "{part} is not in {said}");
            }
        }
    }

    #[test]
    fn check_refuses_a_user_that_is_not_there() {
        let text =
            "[node]\nprivate_key_file = \"k\"\naddress = \"10.77.0.1/24\"\nuser = \"no-such-user-here\"\n";
        let config = Config::parse(text, Path::new("x.toml")).unwrap();
        assert!(user(&config).unwrap_err().to_string().contains("useradd --system"));
    }

    #[test]
    fn check_shows_the_place_of_a_mistake() {
        let dir = Workdir::create().unwrap();
        let file = dir.path().join("a.toml");
        std::fs::write(&file, "[node]\nprivate_key_fil = \"x\"\n").unwrap();
        let failure = check(&flags::Check { file }).unwrap_err().to_string();
        assert!(failure.contains("a.toml:2:1:") && failure.contains("private_key_file"), "{failure}");
    }
}
