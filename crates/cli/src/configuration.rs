//! `init` and `check`.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use strait_node::config::{Config, template};
use strait_node::network::{Forecast, forecast};
use strait_node::privileges::{ServiceUser, UserError};
use strait_node::report::ManualReport;

use crate::failure::{CommandResult, Failure};
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
    println!("configuration: {} (fill in the addresses and the peer, then `strait check`)", file.display());
    let (public, made) = match keys::make_or_read(&key)? {
        keys::Found::Made(public) => (public, "created, readable by you only"),
        keys::Found::There(public) => (public, "already existed"),
    };
    println!("private key:   {} ({made})", key.display());
    println!("public key:    {public} (give this one to your peers)");
    Ok(())
}

/// Reads a configuration and its key, and says what it would start.
pub(crate) fn check(flags: &flags::Check) -> CommandResult {
    let config = load(&flags.file)?;
    let key = config.private_key().map_err(Failure::new)?;
    println!(
        "{}: valid. Interface {}, {}, {}",
        flags.file.display(),
        config.node.interface,
        counted(config.peers.len() as u64, "peer"),
        counted(config.rules.rules().len() as u64, "compression rule"),
    );
    if let Some(key) = key {
        println!("public key: {}", key.public());
    }
    for peer in &config.peers {
        if let Some(manual) = peer.manual() {
            let shown = ManualReport::of(manual);
            println!("{}: {}: {}", peer.name, manual::mode(&shown), manual::protocols(&shown));
        }
    }
    for warning in config.warnings(&flags.file) {
        println!("WARNING: {warning}");
    }
    print!("{}", user(&config)?);
    print!("{}", host(&config, &forecast(&config)));
    if config.peers.is_empty() {
        println!("note: there is no [[peer]] section, so the tunnel has no peer");
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
    match &forecast.unguarded {
        None => {}
        Some(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            text += "note: whether nftables guards the inner addresses is only told to root\n";
        }
        Some(error) => {
            text += &format!(
                "note: no nftables here ({error}), so packets in the clear to the inner addresses are not refused \
                 (CVE-2019-14899); `sysctl -w net.ipv4.conf.all.rp_filter=1` refuses a part of them\n"
            );
        }
    }
    text
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
        let nothing = Forecast { switches: Vec::new(), ipv6_on_all: false, unguarded: None };
        let text = host(&config("false"), &nothing);
        assert!(text.starts_with("forwarding: off; networks behind this node"), "{text}");
        assert_eq!(host(&config("[\"10.1.0.0/16\"]"), &nothing), "forwarding: to 10.1.0.0/16\n");
        let all = Forecast {
            switches: vec!["net.ipv4.conf.eth1.forwarding".to_owned()],
            ipv6_on_all: true,
            unguarded: Some(io::ErrorKind::Unsupported.into()),
        };
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
