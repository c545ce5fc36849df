//! Another configuration for a running node: only the difference is made.

use std::sync::Arc;

use crate::config::{Config, ConfigError, Node, Peer};
use crate::local::Changes;
use crate::network::{NetworkError, Plan};

use super::Daemon;

/// Why a running node keeps its configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum ReloadError {
    #[error("nothing was changed: {0}")]
    Config(#[from] ConfigError),
    #[error("peers were changed, but not all addresses and routes: {0}")]
    Routes(#[from] RerouteError),
}

/// Why addresses and routes are not all what they should be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum RerouteError {
    #[error("the tunnel's own packets cannot be marked for policy routing: {0}")]
    Mark(#[source] std::io::Error),
    #[error(transparent)]
    Network(#[from] NetworkError),
}

impl Daemon {
    /// Reads the file again and makes what is new in it so; says what that was.
    pub(super) fn reload(&mut self) -> Result<Changes, ReloadError> {
        // The privilege to read other users' files is gone, and the key is known.
        let mut config =
            Config::reload(&self.path, &self.config.node.private_key_file, self.control.public())?;
        let need_restart = keep_fixed(&self.config, &mut config);
        let before = core::mem::replace(&mut self.config, config);
        if self.rules.rules() != self.config.rules.rules() {
            self.rules = Arc::new(self.config.rules.clone());
        }
        let changes = Changes { need_restart, ..self.change_peers(&before) };
        self.act();
        self.announce_policies();
        self.reroute()?;
        Ok(changes)
    }

    /// Makes addresses and routes what the configuration asks for, given where peers are.
    pub(super) fn reroute(&mut self) -> Result<(), RerouteError> {
        let plan = Plan::around(&self.config, &self.outer);
        // Before the routes that would lead unmarked packets into the tunnel.
        if plan.mark != self.plan.mark {
            self.socket.set_mark(plan.mark).map_err(RerouteError::Mark)?;
        }
        self.network.change(&plan)?;
        self.plan = plan;
        Ok(())
    }

    /// New peers in, gone ones out, the others told what is new.
    fn change_peers(&mut self, before: &Config) -> Changes {
        let now = self.clock.now();
        let mut changes = Changes::default();
        // Gone ones first: a key or an address may come back with another peer.
        for peer in &before.peers {
            if self.config.peers.iter().any(|stays| stays.public_key == peer.public_key) {
                continue;
            }
            if let Some(id) = self.roster.strike(&peer.public_key) {
                changes.removed.push(peer.name.clone());
                self.control.remove_peer(id, now);
            }
        }
        for peer in &self.config.peers {
            let old = before.peers.iter().find(|old| old.public_key == peer.public_key);
            let entry = self.roster.enter(peer);
            match old {
                None => {
                    changes.added.push(peer.name.clone());
                    self.control.add_peer(entry, now);
                }
                Some(old) if *old != (Peer { line: old.line, ..peer.clone() }) => {
                    changes.changed.push(peer.name.clone());
                    self.control.update_peer(entry, now);
                }
                Some(_) => {}
            }
        }
        changes
    }
}

/// Puts back what is used only when a node starts; says what of it differs.
fn keep_fixed(old: &Config, new: &mut Config) -> Vec<String> {
    let (a, b) = (&old.node, &new.node);
    let different = [
        ("interface", a.interface != b.interface),
        ("private_key_file", a.private_key_file != b.private_key_file),
        ("listen", a.listen != b.listen),
        ("mtu", a.mtu != b.mtu),
        ("forward", a.forward != b.forward),
        ("iv", a.iv != b.iv),
        ("suites", a.suites != b.suites),
        ("metrics", a.metrics != b.metrics),
        ("danger_export_keys", a.danger_export_keys != b.danger_export_keys),
        ("[link]", old.link != new.link),
        ("[session]", old.session != new.session),
    ];
    // The interface's addresses, the table of its routes and the mark follow the file; the rest stays.
    new.node = Node { address: b.address.clone(), table: b.table, fwmark: b.fwmark, ..old.node.clone() };
    new.link = old.link;
    new.session = old.session;
    different.iter().filter(|(_, differs)| *differs).map(|(name, _)| (*name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn config(node: &str, rest: &str) -> Config {
        let text = format!("[node]\nprivate_key_file = \"k\"\naddress = \"10.0.0.1\"\n{node}{rest}");
        Config::parse(&text, Path::new("x.toml")).unwrap()
    }

    #[test]
    fn what_only_a_start_can_change_is_kept_and_named() {
        let old = config("listen = 7\n", "");
        let mut new = config(
            "listen = 8\nmtu = 1300\nforward = true\niv = \"explicit\"\nfwmark = 5\ntable = 9\n",
            "[link]\nup = \"1Mbit\"\n[session]\nlifetime = \"2h\"\n",
        );
        let named = keep_fixed(&old, &mut new);
        assert_eq!(named, ["listen", "mtu", "forward", "iv", "[link]", "[session]"]);
        assert_eq!(
            (new.node.fwmark, new.node.table),
            (Some(5), crate::config::Table::Number(9)),
            "taken over"
        );
        assert_eq!(Node { fwmark: None, table: old.node.table, ..new.node.clone() }, old.node);
        assert_eq!((new.link, new.session), (old.link, old.session));
        assert!(keep_fixed(&old, &mut new).is_empty(), "told against what runs");
    }
}
