//! What the starter does.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use strait_clock::Time;
use strait_keying::PublicKey;
use zeroize::Zeroizing;

use super::kept_text::KeptText;
use super::marks::MarkKeeper;
use super::message::{self, StarterAnswer, StarterRequest};
use super::on_cap;
use super::resolver_files::ResolverFiles;
use super::watch::TunnelWatch;
use crate::clock::{BootTimer, Clock};
use crate::config::{Config, HandedConfig};
use crate::counter_file::CounterFile;
use crate::daemon::reload::keep_fixed;
use crate::daemon::{manual, start};
use crate::daily_file;
use crate::network::{self, Network, NetworkChange, NetworkEvents, Plan};
use crate::path_memory::{PathFile, PathMemory, unix_time};
use crate::process::{ProcessChannel, watched};
use crate::wake::Wake;
use crate::{privileges, runtime, udp};

/// How long the packet process may take to read the configuration.
const PATIENCE: Duration = Duration::from_secs(10);

/// Serves the packet process until that ends; says how this process ends.
pub(super) fn run(
    (channel, warned): (ProcessChannel, ProcessChannel),
    outside: &Wake,
    path: PathBuf,
    (config, text): (Config, &str),
) -> i32 {
    // The packet process tells the same of itself.
    let _ = privileges::lock_memory();
    let plan = Plan::of(&config);
    let starter = StarterProcess {
        path,
        paths: PathFile::of(&config.node.interface),
        config,
        text: KeptText::of(text),
        read: None,
        known: None,
        plan,
        network: None,
        marked: Vec::new(),
        watch: TunnelWatch::new(),
        marks: None,
        warned,
        warnings: Vec::new(),
    };
    let served = privileges::drop_all_but_network()
        .map_err(io::Error::other)
        .and_then(|()| tokio::runtime::Builder::new_current_thread().enable_all().build())
        .and_then(|runtime| runtime.block_on(starter.serve(channel, outside)));
    match served {
        Ok(()) => 0,
        Err(error) => {
            tracing::error!("the privileged process failed: {error}");
            1
        }
    }
}

/// The state of the starter.
struct StarterProcess {
    path: PathBuf,
    /// Where what was found on paths is kept; nothing where there is no folder for it.
    paths: Option<PathFile>,
    /// What is in force.
    config: Config,
    /// Its text.
    text: KeptText,
    /// The configuration that was read last and is not in force yet, with its text.
    read: Option<(Config, Zeroizing<String>)>,
    /// The private key's file and public half.
    known: Option<(PathBuf, PublicKey)>,
    plan: Plan,
    /// Nothing before it is asked for.
    network: Option<Network>,
    /// The sockets whose packets carry the mark, that for UDP first.
    marked: Vec<OwnedFd>,
    watch: TunnelWatch,
    /// Nothing until they are asked for.
    marks: Option<MarkKeeper>,
    /// The way to the packet process for warnings about the network, and those that it has.
    warned: ProcessChannel,
    warnings: Vec<String>,
}

/// What an answer brings along.
enum Enclosed {
    Nothing,
    File(std::fs::File),
    Config(HandedConfig),
    Marks(std::fs::File, ProcessChannel),
}

/// Why something is not done, as people read it.
type Refusal = String;

impl StarterProcess {
    async fn serve(mut self, channel: ProcessChannel, outside: &Wake) -> io::Result<()> {
        let served = self.answer_all(&channel, outside).await;
        // An end that was asked for has removed the network.
        self.abandon();
        served
    }

    /// Until the packet process asks for the end, or is gone.
    async fn answer_all(&mut self, channel: &ProcessChannel, outside: &Wake) -> io::Result<()> {
        let clock = Clock::start();
        let mut timer = BootTimer::new(clock)?;
        let events = NetworkEvents::open()?;
        // Where the system has no inotify instance left, pauses end by themselves.
        let mut files = ResolverFiles::open().ok();
        let requests = watched(channel.as_fd().try_clone_to_owned()?)?;
        loop {
            self.warn();
            let watches = self.network.is_some() || !self.config.node.tunnel;
            let watch = if watches { self.watch.poll_timeout() } else { Time::MAX };
            let deadline = watch.min(self.marks.as_ref().map_or(Time::MAX, MarkKeeper::poll_timeout));
            tokio::select! {
                ready = requests.readable() => match channel.receive_now() {
                    Ok(received) => {
                        if self.answer(channel, received)? {
                            return Ok(());
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready?.clear_ready(),
                    Err(_) => return Ok(()),
                },
                due = timer.until(deadline) => {
                    due?;
                    if let Some(marks) = &mut self.marks {
                        marks.timeout(clock.now());
                    }
                    let (network, interface) = (self.network.as_mut(), &self.config.node.interface);
                    if watches && self.watch.look(network, &self.plan, interface, clock.now()) {
                        // The flag of this process says nothing of what the other has taken.
                        outside.clear();
                        outside.raise();
                    }
                }
                () = MarkKeeper::ready(self.marks.as_ref()) => {
                    // The packet process is done with them when its end of the channel is gone.
                    if self.marks.as_mut().is_some_and(|marks| marks.serve(clock.now()).is_err()) {
                        self.marks = None;
                    }
                }
                () = events.ready(), if watches => {
                    self.watch.changed(events.read(self.network.as_ref()), clock.now());
                }
                () = ResolverFiles::ready(files.as_ref()), if watches => {
                    if files.as_mut().is_some_and(ResolverFiles::changed) {
                        self.watch.changed(NetworkChange { tunnel: false, outside: true }, clock.now());
                    }
                }
            }
        }
    }

    /// Tells the packet process what is wrong with the network, if that is not what it has. Where it does not take that for now, this
    /// is tried again with each look.
    fn warn(&mut self) {
        let warnings = self.network.as_ref().map(Network::warnings).unwrap_or_default();
        if warnings != self.warnings && message::send(&self.warned, &warnings, &[]).is_ok() {
            self.warnings = warnings;
        }
    }

    /// The packet process is gone without a word: it was killed, or it panicked. What went through a full tunnel does not go
    /// another way; the next start takes that over, and `strait down` opens the host.
    fn abandon(&mut self) {
        // The next start takes their ports.
        self.marked.clear();
        if let Some(mut network) = self.network.take() {
            tracing::error!(
                interface = self.config.node.interface,
                "the process that carries packets ended; a full tunnel stays closed until the next start or `strait down`"
            );
            network.stay_closed(true);
        }
    }

    /// Does what is asked and says so; whether that was to end.
    fn answer(&mut self, channel: &ProcessChannel, received: (Vec<u8>, Vec<OwnedFd>)) -> io::Result<bool> {
        let (request, descriptors) = match message::read(received) {
            Ok(read) => read,
            Err(error) => {
                let answer = StarterAnswer::Refused { message: format!("not a request: {error}") };
                return message::send(channel, &answer, &[]).map(|()| false);
            }
        };
        let ends = matches!(request, StarterRequest::End { .. });
        match self.handle(request, descriptors) {
            Ok(Enclosed::Nothing) => message::send(channel, &StarterAnswer::Done, &[])?,
            Ok(Enclosed::File(file)) => message::send(channel, &StarterAnswer::Done, &[file.as_fd()])?,
            Ok(Enclosed::Config(config)) => {
                let (mut ours, theirs) = UnixStream::pair()?;
                ours.set_write_timeout(Some(PATIENCE))?;
                message::send(channel, &StarterAnswer::Done, &[theirs.as_fd()])?;
                drop(theirs);
                if let Err(error) = config.write_to(&mut ours) {
                    tracing::warn!(%error, "the packet process did not read the configuration");
                }
            }
            Ok(Enclosed::Marks(file, theirs)) => {
                message::send(channel, &StarterAnswer::Done, &[file.as_fd(), theirs.as_fd()])?;
            }
            Err(message) => message::send(channel, &StarterAnswer::Refused { message }, &[])?,
        }
        Ok(ends)
    }

    fn handle(&mut self, request: StarterRequest, descriptors: Vec<OwnedFd>) -> Result<Enclosed, Refusal> {
        match request {
            StarterRequest::SetUp { public_key } => self.set_up(public_key.as_deref(), descriptors)?,
            StarterRequest::Read => return self.read_again().map(Enclosed::Config),
            StarterRequest::Counter { path } => return self.counter(&path).map(Enclosed::File),
            StarterRequest::Marks { node } => return self.open_marks(&node),
            StarterRequest::DailySecrets { node } => return self.open_daily_secrets(&node),
            StarterRequest::Remember { text } => self.remember(&text)?,
            StarterRequest::OnCap(event) => on_cap::run(&self.config.link.metered.on_cap, &event)?,
            StarterRequest::Route { take_over, others } => self.route(take_over, &others)?,
            StarterRequest::End { stays_closed } => self.end(stays_closed),
        }
        Ok(Enclosed::Nothing)
    }

    fn set_up(&mut self, public_key: Option<&str>, marked: Vec<OwnedFd>) -> Result<(), Refusal> {
        if self.network.is_some() {
            return Err("the network is set up already".to_owned());
        }
        let key =
            public_key.map(str::parse).transpose().map_err(|error| format!("the public key {error}"))?;
        self.known = self.config.node.private_key_file.clone().zip(key);
        self.marked = marked;
        if !self.config.node.tunnel {
            return Ok(());
        }
        let interface = &self.config.node.interface;
        let undo = network::undo_file(interface).map_err(text)?;
        let mut network = Network::set_up(interface, &self.plan, Some(undo)).map_err(text)?;
        if let Some(socket) = self.marked.first() {
            network.take_answers(udp::port(socket).map_err(text)?);
        }
        network.set_dns(&self.config);
        self.network = Some(network);
        start::say_scope(&self.config);
        Ok(())
    }

    fn read_again(&mut self) -> Result<HandedConfig, Refusal> {
        let (mut handed, mut config) = HandedConfig::read(&self.path, self.known.clone()).map_err(text)?;
        let _ = keep_fixed(&self.config, &mut config);
        handed.add_kem_key(&config).map_err(text)?;
        self.read = Some((config, Zeroizing::new(handed.text().to_owned())));
        Ok(handed)
    }

    /// Opens a counter file of the configuration read last, and no other file.
    fn counter(&self, path: &Path) -> Result<std::fs::File, Refusal> {
        let config = self.read.as_ref().map_or(&self.config, |(config, _)| config);
        let mut manuals = config.peers.iter().filter_map(crate::config::PeerSection::manual);
        let named = manuals.find(|manual| manual.counter_file.as_deref() == Some(path));
        let named = named.ok_or("the configuration names no such counter file")?;
        CounterFile::file(path, manual::identity(named), named.sequence).map_err(text)
    }

    /// Opens the file of this node's marks, and no other's.
    fn open_marks(&mut self, node: &str) -> Result<Enclosed, Refusal> {
        let node = node.parse::<PublicKey>().map_err(|error| format!("the public key {error}"))?;
        let other = |known: PublicKey| known != node;
        if self.known.as_ref().is_some_and(|(_, known)| other(*known))
            || self.marks.as_ref().is_some_and(|marks| other(marks.node()))
        {
            return Err("these are the marks of another node".to_owned());
        }
        // A lock of this process would refuse it the file.
        self.marks = None;
        let folder = self.paths.as_ref().and_then(|paths| paths.path().parent());
        let (keeper, file, channel) = MarkKeeper::open(folder, node).map_err(text)?;
        self.marks = Some(keeper);
        Ok(Enclosed::Marks(file, channel))
    }

    /// Opens the file of this node's daily secrets, which the lock of its marks covers, and no other's.
    fn open_daily_secrets(&mut self, node: &str) -> Result<Enclosed, Refusal> {
        let node = node.parse::<PublicKey>().map_err(|error| format!("the public key {error}"))?;
        if self.marks.as_ref().is_none_or(|marks| marks.node() != node) {
            return Err("the daily keys of this node are not in use".to_owned());
        }
        let folder = self.paths.as_ref().and_then(|paths| paths.path().parent());
        let folder = folder.ok_or("there is no folder for daily keys: set STRAIT_STATE_DIR")?;
        daily_file::open(&daily_file::path(folder, &node)).map(Enclosed::File).map_err(text)
    }

    /// Writes the one file of this tunnel's paths, and nothing into it but what can be read again.
    fn remember(&self, text: &str) -> Result<(), Refusal> {
        let paths = PathMemory::parse(text.as_bytes(), unix_time())
            .map_err(|error| format!("not what was found on paths: {error}"))?;
        let file = self.paths.as_ref().ok_or("there is no folder for it: set STRAIT_STATE_DIR")?;
        file.write(&paths).map_err(|error| format!("cannot write {}: {error}", file.path().display()))
    }

    fn route(&mut self, take_over: bool, others: &[std::net::IpAddr]) -> Result<(), Refusal> {
        if take_over && let Some((config, text)) = self.read.take() {
            self.config = config;
            self.text = KeptText::of(&text);
            manual::say_missing(&self.config.peers);
        }
        if !self.config.node.tunnel {
            return Ok(());
        }
        let network = self.network.as_mut().ok_or("there is no network yet")?;
        let plan = Plan::around(&self.config, others);
        // Before the routes that would lead unmarked packets into the tunnel.
        if plan.mark != self.plan.mark {
            let mut marked = self.marked.iter();
            marked.try_for_each(|socket| udp::set_mark(socket, plan.mark)).map_err(|error| {
                format!("cannot set the mark of outer packets for policy routing: {error}")
            })?;
        }
        network.change(&plan).map_err(text)?;
        self.plan = plan;
        if take_over {
            network.mend_dns();
        }
        Ok(())
    }

    /// Removes all that was made, the local sockets last, by which others see that this is done.
    fn end(&mut self, stays_closed: Option<bool>) {
        let Some(mut network) = self.network.take() else { return };
        if let Some(stays) = stays_closed {
            network.stay_closed(stays);
        }
        drop(network);
        for folder in [Ok(runtime::shared_folder()), runtime::folder()].into_iter().flatten() {
            // They are gone where the packet process may remove them itself, or were never there.
            let _ = std::fs::remove_file(runtime::socket(&folder, &self.config.node.interface));
        }
    }
}

fn text(error: impl std::fmt::Display) -> Refusal {
    error.to_string()
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(in crate::daemon) use tests::served;
