//! `put`: files and folders become objects at a broker.

mod meter;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use strait_keying::PublicKey;
use strait_transfer::broker::client::{BrokerError, BrokerWelcome};
use strait_transfer::broker::journal::UploadJournal;
use strait_transfer::broker::message::{BrokerFault, MAX_RECIPIENTS};
use strait_transfer::broker::upload::{
    UploadError, UploadEvent, UploadFailure, UploadMeans, UploadObject, UploadOrder, UploadTally, upload,
};
use strait_transfer::path::{EntryPath, Printable};
use strait_transfer::sealed::AgeRecipient;
use strait_transfer::sealed::frames::SizePadding;
use strait_transfer::sealed::gather::GatheredSource;
use strait_transfer::session::patterns;

use super::link::{BrokerLink, failed};
use crate::failure::{Code, CommandResult, Failure};
use crate::flags::PutFlags;
use crate::outbox::{self, OutboxHome};
use crate::output::note;
use crate::silence::{self, SilenceWatch};
use crate::stopping::until_asked_to_end;
use crate::units::{counted, span};
use meter::PutMeter;

/// The folder in that of the outbox with what uploads need to go on.
const UPLOADS: &str = "uploads";
/// Serial numbers that are taken at once.
const SERIALS: u64 = 1000;
/// Standard input.
const PIPE: &str = "-";

/// Leaves files and folders at a broker.
pub(crate) fn put(flags: &PutFlags) -> CommandResult {
    let plan = PutPlan::of(flags)?;
    let home = OutboxHome::find(flags.tunnel.as_deref(), None)?;
    if home.config()?.is_none() {
        return Err(Failure::new("the tunnel is another user's, who alone can sign what leaves it")
            .remedy("run this as the user who started it, or use a configuration of your own"));
    }
    let broker_key = home.peer(&plan.broker)?;
    let (receivers, readers) = receivers(&home, &flags.to)?;
    let mut objects = plan.objects(flags)?;
    let link = BrokerLink::open(flags.tunnel.as_deref(), &plan.broker, flags.priority, flags.max_rate)?;
    let made = outbox::now();
    let order = UploadOrder {
        node: &home.key,
        receivers,
        readers,
        folder: plan.folder.clone(),
        padding: if flags.exact_size { SizePadding::Exact } else { SizePadding::Padme },
        made,
        expires: expires(flags, &plan.broker, &link.client.welcome())?,
    };
    let folder = home.folder.join(UPLOADS);
    let name = plan.journal_name(flags, &broker_key, &order.receivers, &order.readers);
    UploadJournal::tidy(&folder, SystemTime::now());
    let journal = UploadJournal::open(&folder, &name, &home.key).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => Failure::new("the same command runs already")
            .remedy("wait until it ends; if it is interrupted, run it again: it goes on where it stopped"),
        _ => Failure::doing("keep what the upload needs to go on")(error),
    })?;
    let rate_of_link = link.stream.link();
    let meter = PutMeter::new(flags.json, plan.shown(), silence::patience(rate_of_link));
    let (event, stream) = (|event: UploadEvent| meter.event(&event), Arc::clone(&link.stream));
    let hang_up = || stream.hang_up();
    let count = if flags.each { plan.paths.len() as u64 } else { 1 };
    let means = UploadMeans {
        random: outbox::random()?,
        serial: serials(&home, count),
        event: &event,
        hang_up: &hang_up,
        rate: rate(flags, &link),
    };
    let work = || {
        SilenceWatch::of_transfer(&plan.broker, flags.json, rate_of_link).during(
            || stream.silent().min(meter.quiet()),
            |silence| meter.show(silence),
            || upload(link.client, journal, &mut objects, &order, means),
        )
    };
    let (ended, was_asked) = until_asked_to_end(&hang_up, work)?;
    stream.hang_up();
    if was_asked && ended.is_err() {
        return Err(meter.stopped());
    }
    meter.finish(ended.as_ref().ok(), order.expires);
    outcome(&plan.broker, ended)
}

/// What a command asks for.
struct PutPlan {
    broker: String,
    /// Absolute, as they were given.
    paths: Vec<PathBuf>,
    folder: String,
    below: Vec<u8>,
}

impl PutPlan {
    fn of(flags: &PutFlags) -> Result<PutPlan, Failure> {
        let (broker, paths) = flags.paths.split_last().ok_or_else(|| wrong("no path is named"))?;
        let broker = broker.to_str().map(|name| name.strip_suffix(':').unwrap_or(name));
        let broker =
            broker.filter(|name| !name.is_empty()).ok_or_else(|| wrong("the last word names no broker"))?;
        if paths.iter().any(|path| path == PIPE) {
            return Err(wrong("standard input cannot be read again where an upload stopped")
                .remedy("write it to a file first, and put that"));
        }
        let (folder, below) = flags.folder.split_once('/').unwrap_or((&flags.folder, ""));
        let below = below.trim_end_matches('/');
        if folder.is_empty() || folder.len() > usize::from(u8::MAX) || folder.chars().any(char::is_control) {
            return Err(wrong(format!("`{}` is no folder", flags.folder.escape_debug())));
        }
        if !below.is_empty() {
            EntryPath::new(below.as_bytes()).map_err(|error| wrong(format!("`--folder`: {error}")))?;
        }
        patterns(&flags.patterns.0).map_err(|fault| wrong(fault.reason.says()))?;
        Ok(PutPlan {
            broker: broker.to_owned(),
            paths: paths.iter().map(absolute).collect::<Result<_, _>>()?,
            folder: folder.to_owned(),
            below: below.as_bytes().to_vec(),
        })
    }

    /// What is put, in words.
    fn shown(&self) -> String {
        let first = self.paths.first().map(|path| Printable(path.as_os_str().as_bytes()).to_string());
        match self.paths.len() - 1 {
            0 => first.unwrap_or_default(),
            more => format!("{} and {more} more", first.unwrap_or_default()),
        }
    }

    /// The same for the same command, so that it finds what it needs to go on.
    fn journal_name(
        &self,
        flags: &PutFlags,
        broker: &PublicKey,
        receivers: &[PublicKey],
        readers: &[AgeRecipient],
    ) -> String {
        let mut hasher = blake3::Hasher::new_derive_key("strait 2026-11 name of an upload to a broker");
        let mut part = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_be_bytes()).update(bytes);
        };
        part(broker.as_bytes());
        part(&(receivers.len() as u64).to_be_bytes());
        receivers.iter().for_each(|key| part(key.as_bytes()));
        readers.iter().for_each(|reader| part(reader.to_string().as_bytes()));
        part(self.folder.as_bytes());
        part(&self.below);
        part(&[u8::from(flags.each), u8::from(flags.exact_size)]);
        part(&flags.expire.map_or(0, |span| span.as_secs()).to_be_bytes());
        part(&(flags.patterns.0.len() as u64).to_be_bytes());
        flags.patterns.0.iter().for_each(|line| part(line));
        self.paths.iter().for_each(|path| part(path.as_os_str().as_bytes()));
        hasher.finalize().as_bytes()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The objects, each gathered when its turn comes.
    fn objects(
        &self,
        flags: &PutFlags,
    ) -> Result<impl Iterator<Item = UploadObject> + Send + use<>, Failure> {
        let groups: Vec<Vec<PathBuf>> = match flags.each {
            true => self.paths.iter().map(|path| vec![path.clone()]).collect(),
            false => vec![self.paths.clone()],
        };
        // A path that is not there is told before anything is sent.
        for path in self.paths.iter().take(if flags.each { 0 } else { usize::MAX }) {
            path.symlink_metadata().map_err(Failure::doing(format!("read {}", path.display())))?;
        }
        let (below, rules) = (self.below.clone(), flags.patterns.0.clone());
        Ok(groups.into_iter().map(move |paths| {
            let place = match paths.as_slice() {
                [one] => one.as_os_str().as_bytes().to_vec(),
                several => format!("{} paths", several.len()).into_bytes(),
            };
            let rules = rules.clone();
            let gather = move || {
                let rules = patterns(&rules).map_err(|fault| std::io::Error::other(fault.reason.says()))?;
                let found = GatheredSource::gather(paths.iter().map(PathBuf::as_path), rules)?;
                for path in found.left_out() {
                    note(format_args!(
                        "strait: {} is no file, folder or link, and is not sent",
                        Printable(path)
                    ));
                }
                Ok(found)
            };
            UploadObject { place, id: None, serial: None, below: below.clone(), source: Box::new(gather) }
        }))
    }
}

/// The absolute path, with the slash behind it that stands for what is in a folder.
fn absolute(path: &OsString) -> Result<PathBuf, Failure> {
    let mut whole = std::path::absolute(path).map_err(Failure::doing("find the current folder"))?;
    if path.as_bytes().ends_with(b"/") && !whole.as_os_str().as_bytes().ends_with(b"/") {
        whole.push("");
    }
    Ok(whole)
}

/// Who gets a letter, and who can open it besides.
fn receivers(home: &OutboxHome, names: &[String]) -> Result<(Vec<PublicKey>, Vec<AgeRecipient>), Failure> {
    let (mut peers, mut readers) = (Vec::new(), Vec::new());
    for name in names {
        if name.starts_with("age1") {
            let reader = name.parse().map_err(|error| wrong(format!("`{}` {error}", name.escape_debug())))?;
            if !readers.contains(&reader) {
                readers.push(reader);
            }
        } else {
            peers.push(home.peer(name).map_err(|failure| failure.code(Code::Environment))?);
        }
    }
    peers.sort_unstable();
    peers.dedup();
    match peers.len() {
        0 => Err(wrong("no peer is named that can fetch it")
            .remedy("add `--to PEER`; recipients of age only open what others fetched")),
        1..=MAX_RECIPIENTS => Ok((peers, readers)),
        _ => Err(wrong(format!("one transfer has at most {MAX_RECIPIENTS} receivers"))),
    }
}

/// When the broker removes it at the latest, by the broker's clock.
fn expires(flags: &PutFlags, broker: &str, welcome: &BrokerWelcome) -> Result<i64, Failure> {
    match flags.expire {
        Some(wanted) if wanted.as_secs() > welcome.keep => {
            let keep = span(std::time::Duration::from_secs(welcome.keep));
            Err(wrong(format!("{broker} keeps a transfer for {keep} at most"))
                .remedy("give a shorter `--expire`"))
        }
        Some(wanted) => Ok(welcome.now.saturating_add_unsigned(wanted.as_secs())),
        None => Ok(welcome.now.saturating_add_unsigned(welcome.keep)),
    }
}

/// Bytes a second of the link, if that is known or limited.
fn rate(flags: &PutFlags, link: &BrokerLink) -> Option<f64> {
    let known = link.stream.link().map(|rate| rate.as_bits() / 8.0);
    let limit = flags.max_rate.map(|rate| rate.bits() as f64 / 8.0);
    [known, limit].into_iter().flatten().reduce(f64::min)
}

/// Serial numbers of the outbox's counter for about `count` objects.
fn serials(home: &OutboxHome, count: u64) -> Box<dyn FnMut() -> std::io::Result<u64> + Send + '_> {
    use strait_transfer::broker::download::OutboxAccess;
    let home = Mutex::new(home);
    let (mut next, mut end) = (0, 0);
    Box::new(move || {
        if next == end {
            let home = home.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let count = count.clamp(1, SERIALS);
            let taken =
                OutboxAccess::open(*home).and_then(|mut outbox| outbox.take_serials(count, outbox::now()));
            next = taken.map_err(std::io::Error::other)?;
            end = next + count;
        }
        next += 1;
        Ok(next - 1)
    })
}

/// How the command ends.
fn outcome(broker: &str, ended: Result<UploadTally, UploadError>) -> CommandResult {
    let tally = ended.map_err(|error| match error {
        UploadError::Broker(error) => failed(broker, &error),
        UploadError::TooMany => wrong(error),
        error => Failure::new(error).code(Code::Interrupted),
    })?;
    match (tally.failed, tally.first) {
        (0, _) => Ok(()),
        (1, Some(UploadFailure::Refused(fault))) if tally.stored == 0 => Err(refused(broker, fault)),
        (1, Some(why)) if tally.stored == 0 => Err(Failure::new(why)),
        (count, first) => {
            let failure =
                Failure::new(format!("{} not stored; messages say why", counted(count, "transfer")));
            let later = matches!(&first, Some(UploadFailure::Refused(fault)) if fault.kind.is_transient());
            Err(if later { failure.code(Code::Interrupted) } else { failure })
        }
    }
}

fn refused(broker: &str, fault: BrokerFault) -> Failure {
    failed(broker, &BrokerError::Refused { id: None, fault })
}

fn wrong(cause: impl std::fmt::Display) -> Failure {
    Failure::new(cause).code(Code::Environment)
}

/// The last name of a path.
fn name(path: &[u8]) -> String {
    let last = Path::new(OsStr::from_bytes(path)).file_name().unwrap_or_default();
    Printable(last.as_bytes()).to_string()
}
