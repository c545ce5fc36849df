//! Another configuration for a running node: only the difference is made.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use strait_ipsec::outbound;
use strait_wire::Spi;

use crate::config::{BrokerSection, Config, ConfigError, NodeSection, PeerSection};
use crate::counter_file::{CounterFile, CounterFileError};
use crate::direct::DirectError;
use crate::local::Changes;
use crate::network::Plan;

use super::manual::{self, CounterSource, ManualEntry};
use super::roster::is_same;
use super::start::number;
use super::{Daemon, StarterError, roster};

/// Why a running node keeps its configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum ReloadError {
    #[error("nothing was changed: {0}")]
    Config(#[from] ConfigError),
    #[error("nothing was changed: {0}")]
    Counter(#[from] CounterFileError),
    #[error("nothing was changed: {0}")]
    Direct(#[from] DirectError),
    #[error("nothing was changed: SPI {spi} is used by a session; choose another, or try again in an hour")]
    SpiTaken { spi: Spi },
    #[error(
        "nothing was changed: the first peer with `carrier = \"ip\"` needs a restart: `strait down`, \
         then `strait up`"
    )]
    NoSockets,
    #[error("nothing was changed: the system has no random numbers: {0}")]
    Random(#[source] io::Error),
    #[error("nothing was changed: {0}")]
    Starter(#[from] StarterError),
    #[error("the peers are changed, but not all addresses and routes: {0}")]
    Routes(#[source] StarterError),
}

impl Daemon {
    /// Reads the file again and makes what is new in it so; says what that was.
    pub(super) fn reload(&mut self) -> Result<Changes, ReloadError> {
        let known = self.config.node.private_key_file.clone();
        let handed = self.starter.read_again()?;
        let kem = known.as_deref().and_then(|file| handed.kem_key(file));
        let known = known.map(|file| (file, self.control.public()));
        let mut config = handed.config(&self.path, known)?;
        let new = self.prepare(&config)?;
        self.take_kem_key(kem);
        self.begin_sessionless(&config)?;
        let mut need_restart = keep_fixed(&self.config, &mut config);
        if self.direct.is_none() && config.peers.iter().any(PeerSection::wants_direct) {
            need_restart.push("carrier".to_owned());
        }
        let own = self.own_key();
        if let Some(directory) = &mut self.directory {
            directory.add_to(&mut config, own);
        }
        let beside_peers = Changes { need_restart, ..changes(&self.config, &config) };
        let before = core::mem::replace(&mut self.config, config);
        if before.rules.rules() != self.config.rules.rules() {
            self.rules = Arc::new(self.config.rules.clone());
        }
        if beside_peers.link {
            self.change_link();
        }
        let changes = self.change_peers(&before, new, beside_peers);
        self.control.take_unlisted(self.config.unlisted(), self.clock.now());
        self.act();
        self.announce_policies();
        self.follow_saved();
        self.forget_meters();
        self.reroute(true).map_err(ReloadError::Routes)?;
        Ok(changes)
    }

    /// The link's rates, which peers are paced by, and how packets wait for it.
    fn change_link(&mut self) {
        let link = self.config.link.clone();
        self.order_out(outbound::Order::Link(link.up.given(), link.overhead));
        self.order_out(outbound::Order::Queueing(link.queueing));
        self.control.set_link(link.up, link.down, self.clock.now());
        self.be_quiet(link.metered.quiet);
        self.manual.set_rate(link.up.given()).into_iter().for_each(|order| self.order_out(order));
    }

    /// Has addresses and routes made what the configuration asks for, which may be the one that was just read, given where
    /// peers are.
    pub(super) fn reroute(&mut self, take_over: bool) -> Result<(), StarterError> {
        let others = self.outer();
        let plan = Plan::around(&self.config, &others);
        self.starter.route(take_over, others)?;
        self.plan = plan;
        Ok(())
    }

    /// Everything that can fail about the peers of `config` with manual keys that are new or not what they were.
    fn prepare(&mut self, config: &Config) -> Result<New, ReloadError> {
        let watched = manual::watched(&config.peers);
        if self.direct.is_none() && !watched.flows.is_empty() {
            return Err(ReloadError::NoSockets);
        }
        let mut new = New::new();
        for peer in &config.peers {
            let Some(manual) = peer.manual() else { continue };
            if self.config.peers.iter().any(|old| is_same(old, peer) && goes_on(old, peer)) {
                continue;
            }
            let source = match manual.counter_file.as_deref() {
                None => CounterSource::Path,
                Some(path) => match self.manual.counter_at(path) {
                    Some(held) => CounterSource::Held(held),
                    None => CounterSource::Opened(self.starter.counter(path)?),
                },
            };
            let seed = number().map_err(ReloadError::Random)?;
            new.insert(peer.name.clone(), (manual::counter(manual, source)?, seed));
        }
        if let Some(spi) = self.control.set_aside(manual::spis(&config.peers)) {
            return Err(ReloadError::SpiTaken { spi });
        }
        if let Some(direct) = &self.direct {
            direct.watch(&watched)?;
        }
        Ok(new)
    }

    /// New peers in, gone ones out, the others told what is new; adds all that to `changes`.
    pub(super) fn change_peers(&mut self, before: &Config, mut new: New, mut changes: Changes) -> Changes {
        let peers = self.config.peers.clone();
        // Gone ones first: a key or an address may come back with another peer.
        for peer in &before.peers {
            if !peers.iter().any(|stays| is_same(stays, peer)) {
                changes.removed.push(peer.name.clone());
                self.remove(peer);
            }
        }
        for (index, peer) in peers.iter().enumerate() {
            let old = before.peers.iter().find(|old| is_same(old, peer));
            match old {
                None => changes.added.push(peer.name.clone()),
                Some(old) if *old != (PeerSection { line: old.line, ..peer.clone() }) => {
                    changes.changed.push(peer.name.clone());
                }
                Some(_) => continue,
            }
            match new.remove(&peer.name).filter(|_| peer.manual().is_some()) {
                Some((counter, seed)) => {
                    // Its associations are made anew, so it has another number.
                    self.remove(peer);
                    let spec = self.roster.enter(peer);
                    self.add_manual(ManualEntry { spec, peer: peer.clone(), counter, seed });
                }
                None => self.tell_again(peer),
            }
            self.look_at_source_of(index);
        }
        changes
    }

    fn remove(&mut self, peer: &PeerSection) {
        let Some(id) = self.roster.strike(peer) else { return };
        self.names.forget(id);
        self.watch.sources.forget(id);
        match peer.manual() {
            Some(_) => self.remove_manual(id),
            None => {
                self.streams.remove_peer(id, self.clock.now());
                self.control.remove_peer(id, self.clock.now());
            }
        }
    }

    /// What may change without new associations.
    fn tell_again(&mut self, peer: &PeerSection) {
        let spec = self.roster.enter(peer);
        let id = spec.id;
        if let Some(section) = &peer.sessionless {
            self.streams.remove_peer(id, self.clock.now());
            return self.enter_sessionless(peer, section);
        }
        match roster::session(peer, spec) {
            Some(entry) => {
                self.streams.add_peer(id, peer, Arc::clone(&entry.spec.counters));
                self.control.update_peer(entry, self.clock.now());
            }
            None => self.manual.set_keepalive(id, peer.keepalive),
        }
    }
}

/// The counters of peers with manual keys, and randomness for each, by the peers' names.
type New = BTreeMap<String, (Option<CounterFile>, u64)>;

/// Whether the associations of a peer with manual keys stay.
fn goes_on(old: &PeerSection, new: &PeerSection) -> bool {
    (&old.keys, &old.endpoint, old.mtu) == (&new.keys, &new.endpoint, new.mtu)
}

/// What differs that a running node takes over, but for peers.
fn changes(old: &Config, new: &Config) -> Changes {
    let (a, b) = (&old.node, &new.node);
    let different = [
        ("address", a.address != b.address),
        ("table", a.table != b.table),
        ("fwmark", a.fwmark != b.fwmark),
        ("lockdown", a.lockdown != b.lockdown),
        ("allow_outside", a.allow_outside != b.allow_outside),
        ("mss", a.mss != b.mss),
        ("keep_sent", a.keep_sent != b.keep_sent),
    ];
    Changes {
        rules: (old.rules.rules(), &old.domains) != (new.rules.rules(), &new.domains),
        link: old.link != new.link,
        folders: old.folders != new.folders,
        logins: (&old.logins, &old.kerberos) != (&new.logins, &new.kerberos),
        broker: old.broker != new.broker,
        node: names(&different),
        ..Changes::default()
    }
}

/// The names of what differs.
fn names(different: &[(&str, bool)]) -> Vec<String> {
    different.iter().filter(|(_, differs)| *differs).map(|(name, _)| (*name).to_owned()).collect()
}

/// Puts back what is used only when a node starts; says what of it differs.
pub(super) fn keep_fixed(old: &Config, new: &mut Config) -> Vec<String> {
    let (a, b) = (&old.node, &new.node);
    let different = [
        ("interface", a.interface != b.interface),
        ("tunnel", a.tunnel != b.tunnel),
        ("private_key_file", a.private_key_file != b.private_key_file),
        ("token_file", a.token_file != b.token_file),
        ("listen", a.listen != b.listen),
        ("mtu", a.mtu != b.mtu),
        ("block", a.block != b.block),
        ("engines", a.engines != b.engines),
        ("forward", a.forward != b.forward),
        ("iv", a.iv != b.iv),
        ("suites", a.suites != b.suites),
        ("metrics", a.metrics != b.metrics),
        ("web", a.web != b.web),
        ("web_token_file", a.web_token_file != b.web_token_file),
        ("dns", a.dns != b.dns),
        ("dns_search", a.dns_search != b.dns_search),
        ("memory", a.memory != b.memory),
        ("cache_dir", a.cache_dir != b.cache_dir),
        ("danger_export_keys", a.danger_export_keys != b.danger_export_keys),
        ("user", a.user != b.user),
        ("group", a.group != b.group),
        ("[session]", old.session != new.session),
        ("[directory]", old.directory != new.directory),
        // The processes that serve files and logins are made by a start.
        ("[[folder]]", old.folders.is_empty() && !new.folders.is_empty()),
        ("[[login]]", old.logins.is_empty() && !new.logins.is_empty()),
        ("[broker]", old.broker.is_some() != new.broker.is_some()),
        ("store, spool or audit of [broker]", changes_files(old, new)),
    ];
    // The link, the interface's addresses, the table of its routes, the mark and what may leave outside follow the file;
    // the rest stays.
    new.node = NodeSection {
        address: b.address.clone(),
        table: b.table,
        fwmark: b.fwmark,
        lockdown: b.lockdown,
        allow_outside: b.allow_outside.clone(),
        mss: b.mss,
        keep_sent: b.keep_sent,
        ..old.node.clone()
    };
    new.session = old.session;
    new.directory.clone_from(&old.directory);
    new.broker = match (&old.broker, new.broker.take()) {
        (Some(old), Some(new)) => Some(BrokerSection {
            store: old.store.clone(),
            spool: old.spool.clone(),
            audit: old.audit.clone(),
            ..new
        }),
        (old, _) => old.clone(),
    };
    if old.folders.is_empty() {
        new.folders.clear();
    }
    if old.logins.is_empty() {
        new.logins.clear();
    }
    names(&different)
}

/// True if a broker keeps what it has elsewhere.
fn changes_files(old: &Config, new: &Config) -> bool {
    let (Some(old), Some(new)) = (&old.broker, &new.broker) else { return false };
    (&old.store, &old.spool, &old.audit) != (&new.store, &new.spool, &new.audit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::template;
    use std::path::Path;

    /// The template with all that it suggests behind `mark`, but for what other suggestions exclude.
    fn suggested(mark: &str, others: &[&str]) -> String {
        let template = template(Path::new("k"));
        let suggestion = |line: &str| {
            let line = line.strip_prefix(mark)?;
            let word = line.split(' ').next()?;
            let is_one = line.starts_with('[') || (line.contains(" = ") && !word.contains('.'));
            (is_one && !others.contains(&word)).then(|| line.to_owned())
        };
        let lines = template.lines().map(|line| suggestion(line).unwrap_or_else(|| line.to_owned()));
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn whatever_is_taken_out_of_the_fullest_file_is_said() {
        let site = suggested("# ", &["quiet"]);
        let peer = |name: &str, letter: &str| {
            format!("[[peer]]\nname = \"{name}\"\npublic_key = \"{}A=\"\n", letter.repeat(42))
        };
        let broker = suggested("## ", &["endpoint"]);
        let broker = &broker[broker.find("\n[broker]").unwrap()..broker.find("\n[directory]").unwrap()];
        let peers = peer("site-b", "B") + &peer("site-c", "C");
        let broker = format!("[node]\nprivate_key_file = \"k\"\n{peers}{broker}");
        let files = [site, broker];
        let (mut said, mut unsaid) = (0, Vec::new());
        for text in &files {
            let parse = |text: &str| Config::parse(text, Path::new("x.toml"));
            let old = parse(text).unwrap();
            for line in text.lines() {
                // Lines after it stay where they are.
                let Ok(mut new) = parse(&text.replacen(line, "", 1)) else { continue };
                let (differs, peers_differ) = (new != old, new.peers != old.peers);
                let need_restart = keep_fixed(&old, &mut new);
                let changes = Changes { need_restart, ..changes(&old, &new) };
                match differs && !peers_differ && changes == Changes::default() {
                    true => unsaid.push(line),
                    false => said += usize::from(differs),
                }
            }
        }
        assert!(unsaid.is_empty(), "no changes without {unsaid:#?}");
        assert!(said > 40, "only {said} lines could be taken out");
    }

    fn config(node: &str, rest: &str) -> Config {
        let text = format!("[node]\nprivate_key_file = \"k\"\naddress = \"10.0.0.1\"\n{node}{rest}");
        Config::parse(&text, Path::new("x.toml")).unwrap()
    }

    #[test]
    fn what_a_running_node_takes_over_is_named() {
        let rule = "[[compress]]\nfrom = \"10.1.0.0/16\"\nto = \"10.2.0.0/16\"\ndomain = \"logs\"\n";
        let old = config("", rule);
        assert_eq!(changes(&old, &config("", rule)).to_string(), "no changes");
        for (node, rest, said) in [
            ("", "", "compression rules changed"),
            ("", &*rule.repeat(2), "compression rules changed"),
            ("", &rule.replace("10.2.0.0", "10.3.0.0"), "compression rules changed"),
            ("", &rule.replace("logs", "text"), "compression rules changed"),
            ("", &format!("{rule}[link]\nup = \"1Mbit\"\n"), "link changed"),
            ("", &format!("{rule}[link]\nprice = \"8/GB\"\n"), "link changed"),
            ("", "[link]\naqm = \"off\"\n", "compression rules changed; link changed"),
            ("table = 9\nfwmark = 5\n", rule, "changed in [node]: table, fwmark"),
            ("mss = \"off\"\n", rule, "changed in [node]: mss"),
        ] {
            let mut new = config(node, rest);
            assert_eq!(changes(&old, &new).to_string(), said, "{node}{rest}");
            assert!(keep_fixed(&old, &mut new).is_empty());
            assert_eq!(changes(&old, &new).to_string(), said, "it is taken over: {node}{rest}");
        }
        let mut other = config("listen = 8\n", rule);
        let need_restart = keep_fixed(&old, &mut other);
        let all = Changes { need_restart, ..changes(&old, &other) };
        assert_eq!(all.to_string(), "restart needed for listen");
    }

    #[test]
    fn what_only_a_start_can_change_is_kept_and_named() {
        let old = config("listen = 7\n", "");
        let mut new = config(
            "listen = 8\nmtu = 1300\nblock = 4096\nengines = 3\nforward = true\niv = \"explicit\"\nweb = \"127.0.0.1:9478\"\nfwmark = 5\ntable = 9\n",
            "[link]\nup = \"1Mbit\"\n[session]\nlifetime = \"2h\"\n[[folder]]\nname = \"x\"\npath = \"x\"\n",
        );
        let named = keep_fixed(&old, &mut new);
        let all = ["listen", "mtu", "block", "engines", "forward", "iv", "web", "[session]", "[[folder]]"];
        assert_eq!(named, all);
        assert_eq!(
            (new.node.fwmark, new.node.table),
            (Some(5), crate::config::RouteTable::Number(9)),
            "taken over"
        );
        assert_eq!(NodeSection { fwmark: None, table: old.node.table, ..new.node.clone() }, old.node);
        assert_eq!(new.session, old.session);
        assert_ne!(new.link, old.link, "taken over");
        assert!(keep_fixed(&old, &mut new).is_empty(), "told against what runs");
    }
}
