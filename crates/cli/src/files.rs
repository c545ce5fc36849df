//! `send`, `get`, `ls` and `sync`: files over a stream to a peer.

mod address;
mod delivery;
mod kept;
mod limit;
mod listing;
mod meter;
mod queue;
mod served_folder;
mod serving;
mod stream;

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

use strait_transfer::folder::{Folder, FolderRules, SymlinkRule};
use strait_transfer::message::{Asked, Hello, TransferOptions};
use strait_transfer::path::{EntryPath, Printable};
use strait_transfer::session::{
    DiskDestination, DiskOrigin, PipeDestination, PipeOrigin, Tally, TransferError, TransferEvent, Watch,
    patterns, pull, push,
};
use strait_transfer::source::{BareMountPoints, SourceError, Sources, WalkOptions};

use crate::failure::{Code, CommandResult, Failure};
use crate::flags::{GetFiles, SendFiles, SyncFiles, TransferFlags};
use crate::output::tell;
use crate::silence::{self, SilenceWatch};
use crate::stopping::until_asked_to_end;
use address::PeerPlace;
pub(crate) use delivery::{deliver, is_delivered};
pub(crate) use limit::Limited;
pub(crate) use listing::{day_and_time, ls};
use meter::{TransferMeter, fault_text};
use queue::WaitingTransfer;
pub(crate) use served_folder::{FoundFolder, ServedFolder};
pub(crate) use serving::{ReceivedNames, rules, run_commands, serve_one, service};
use stream::transfer_name;
pub(crate) use stream::{NoStream, PeerStream, StreamHalf, StreamTarget, node_command, random};

/// Standard input or output.
const PIPE: &str = "-";

/// Sends files and folders.
pub(crate) fn send(flags: &SendFiles) -> CommandResult {
    queue::check(flags)?;
    let (place, paths) = split(&flags.paths)?;
    let mut place = PeerPlace::parse(place)?;
    let like = flags.like.as_deref().map(|like| like_of(like, &paths)).transpose()?.unwrap_or_default();
    if paths == [OsStr::new(PIPE)] {
        let name = place.name().to_vec();
        if name.is_empty() {
            return Err(wrong("standard input has no name").remedy("write PEER:FOLDER/NAME"));
        }
        place.path.truncate(place.path.len().saturating_sub(name.len() + 1));
        if flags.between.is_some() || flags.expire.is_some() {
            return Err(wrong("standard input cannot wait in the outbox").remedy("write it to a file first"));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
        let mut input = BufReader::new(std::io::stdin());
        let first = input.fill_buf().map_err(Failure::doing("read standard input"))?;
        // A program that failed before it wrote anything: what it made the last time is worth more.
        if first.is_empty() && !flags.allow_empty {
            return Err(Failure::new("standard input is empty, and nothing was sent")
                .remedy("look whether the program before it failed; `--allow-empty` sends an empty file"));
        }
        let mut origin = PipeOrigin::new(name, now, input);
        // What is read from a pipe cannot be read again: each run is a transfer of its own.
        let (transfer, options) = (random()?, options(&flags.how));
        let stream = open(&flags.how, &place)?;
        let hello = pushing(place, transfer, options)?;
        return Ok(run(&flags.how, stream, (None, Some("standard input")), |ends, watch| {
            Ok(push(ends, hello.clone(), &mut origin, watch))
        })?);
    }
    let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
    let options = TransferOptions { like, ..options(&flags.how) };
    // What is wrong with the paths is said before anything else is done.
    origin(&paths, &options, false)?;
    let mut outbox = WaitingTransfer::new(flags, &place, &paths);
    if let Some(window) = flags.between {
        return Err(outbox.wait(&format!("goes between {window}"))?);
    }
    let transfer = transfer_name("send", &place, &paths)?;
    let sent = open(&flags.how, &place).and_then(|stream| {
        // A daemon that is lost cannot say where it is.
        outbox.find();
        push_from(&flags.how, &place, stream, &paths, transfer, options, false)
    });
    match sent {
        Ok(()) => {
            outbox.arrived();
            Ok(())
        }
        Err(none) => Err(outbox.wait_after(none)),
    }
}

/// Makes a folder of a peer like one here.
pub(crate) fn sync(flags: &SyncFiles) -> CommandResult {
    let place = PeerPlace::parse(&flags.place)?;
    if std::fs::metadata(&flags.folder).is_ok_and(|found| !found.is_dir()) {
        let [folder, place] = [&flags.folder, &flags.place].map(|it| Printable(it.as_bytes()).to_string());
        return Err(wrong(format!("{folder} is not a folder"))
            .remedy(format!("to send a file: strait send {folder} {place}")));
    }
    let mut folder = flags.folder.clone();
    folder.push("/");
    let paths = [PathBuf::from(folder)];
    let TransferOptions { patterns, xattrs, .. } = options(&flags.how);
    let (delete, dry_run) = (flags.delete, flags.dry_run);
    let options = TransferOptions { delete, dry_run, xattrs, patterns, ..TransferOptions::default() };
    // Before it waits for the peer, and with the folder that is then open once more: it may be unmounted meanwhile.
    origin(&paths, &options, flags.allow_empty)?;
    let transfer = transfer_name("sync", &place, &paths)?;
    let stream = open(&flags.how, &place)?;
    Ok(push_from(&flags.how, &place, stream, &paths, transfer, options, flags.allow_empty)?)
}

/// Gets files and folders.
pub(crate) fn get(flags: &GetFiles) -> CommandResult {
    let (to, from) = match flags.paths.as_slice() {
        [place] if place.as_bytes().contains(&b':') => (OsStr::new("."), vec![place.as_os_str()]),
        _ => split(&flags.paths)?,
    };
    let places = from.iter().map(|it| PeerPlace::parse(it)).collect::<Result<Vec<_>, _>>()?;
    let Some(first) = places.first().cloned() else { return Err(wrong("nothing to get is named")) };
    if places.iter().any(|it| (&it.peer, &it.folder) != (&first.peer, &first.folder)) {
        return Err(
            wrong("all files of one command come from one folder of one peer").remedy("run it once for each")
        );
    }
    let paths: Vec<Vec<u8>> = places.iter().map(|it| it.path.clone()).collect();
    // All that is in a folder has any name at the top.
    let tops = paths
        .iter()
        .all(|path| !path.is_empty())
        .then(|| places.iter().map(|it| it.name().to_vec()).collect());
    let options = options(&flags.how);
    let stream = open(&flags.how, &first)?;
    let local = std::path::absolute(to).map_err(Failure::doing("find the folder"))?;
    let transfer = transfer_name("get", &first, &[local])?;
    let patterns = patterns(&options.patterns).map_err(|fault| wrong(fault_text(&fault)))?;
    // Who gets files names the peer and the place; symlinks come as they are there.
    let symlinks = SymlinkRule::Any;
    let rules = FolderRules { keep_xattrs: options.xattrs, symlinks, ..FolderRules::default() };
    let hello = Hello {
        transfer,
        nonce: random()?,
        asked: Asked::Pull { folder: first.folder.clone(), paths, options },
    };
    let pipe = (to == PIPE).then_some("standard output");
    let got = run(&flags.how, stream, (Some(&first), pipe), |ends, watch| {
        let (hello, tops, patterns) = (hello.clone(), tops.clone(), patterns.clone());
        if to == PIPE {
            return Ok(pull(ends, hello, PipeDestination::new(std::io::stdout()), tops, watch));
        }
        let cannot = |error| Failure::new(format!("cannot write to {}: {error}", Path::new(to).display()));
        let folder = Folder::open(&Path::new(to).into(), rules).map_err(|error| cannot(error.to_string()))?;
        // What cannot be removed now may be the next time.
        let _ = folder.collect(&transfer, serving::unfinished_since());
        let destination = DiskDestination::open(folder, None, transfer, patterns, false);
        let destination = destination.map_err(|fault| cannot(fault_text(&fault)))?;
        Ok(pull(ends, hello, destination, tops, watch))
    });
    Ok(got?)
}

/// The name that `--like` gives, if it can be one and a single file is sent: of a pipe no length is known, and in a folder each file
/// has its own older one.
fn like_of(name: &OsStr, paths: &[&OsStr]) -> Result<Vec<u8>, Failure> {
    if !matches!(paths, [one] if *one != PIPE && Path::new(one).is_file()) {
        return Err(wrong("`--like` goes with one file, which is neither a folder nor standard input"));
    }
    EntryPath::new(name.as_bytes())
        .map(|name| name.as_bytes().to_vec())
        .map_err(|error| wrong(format!("`--like`: {error}")).remedy("name a file below the place"))
}

/// The last path, and those before it.
fn split(paths: &[OsString]) -> Result<(&OsStr, Vec<&OsStr>), Failure> {
    let (last, rest) = paths.split_last().ok_or_else(|| wrong("no path is named"))?;
    let rest: Vec<&OsStr> = rest.iter().map(OsString::as_os_str).collect();
    if rest.len() > 1 && rest.contains(&OsStr::new(PIPE)) {
        return Err(wrong("standard input goes alone"));
    }
    Ok((last, rest))
}

fn wrong(cause: impl std::fmt::Display) -> Failure {
    Failure::new(cause).code(Code::Environment)
}

fn options(flags: &TransferFlags) -> TransferOptions {
    TransferOptions { xattrs: flags.xattrs, patterns: flags.patterns.0.clone(), ..TransferOptions::default() }
}

/// Opens what is sent of these paths. To make a peer's folder empty needs `allow_empty`: most often nothing is mounted
/// where the files were.
fn origin(paths: &[PathBuf], options: &TransferOptions, allow_empty: bool) -> Result<DiskOrigin, Failure> {
    let mut sources = Sources::default();
    for path in paths {
        let shown = Printable(path.as_os_str().as_bytes()).to_string();
        sources.add_path(path).map_err(|error| {
            let failure = Failure::new(format!("cannot send {shown}: {error}"));
            let is_place = matches!(error, SourceError::Vanished) && shown.contains(':');
            if is_place {
                failure.remedy(format!("to fetch it from a peer: strait get {shown} ."))
            } else {
                failure
            }
        })?;
    }
    let patterns = patterns(&options.patterns).map_err(|fault| wrong(fault_text(&fault)))?;
    let walk = WalkOptions { patterns: patterns.clone(), xattrs: false };
    if options.delete && !allow_empty && sources.are_empty(walk) {
        let shown = paths.iter().map(|path| Printable(path.as_os_str().as_bytes()).to_string());
        let shown = shown.collect::<Vec<_>>().join(" ");
        let cause = format!(
            "there is nothing to send in {shown}, and `--delete` would remove all at the peer: nothing was done"
        );
        return Err(Failure::new(cause)
            .remedy("look whether it is mounted; `--allow-empty` makes the peer's folder empty, too"));
    }
    let origin = DiskOrigin::new(sources, patterns, options.xattrs);
    Ok(if options.delete && !allow_empty { origin.sparing(BareMountPoints::find()) } else { origin })
}

fn open(flags: &TransferFlags, place: &PeerPlace) -> Result<PeerStream, NoStream> {
    PeerStream::open(flags.tunnel.as_deref(), place.target(), flags.priority)
}

fn push_from(
    flags: &TransferFlags,
    place: &PeerPlace,
    stream: PeerStream,
    paths: &[PathBuf],
    transfer: [u8; 16],
    options: TransferOptions,
    allow_empty: bool,
) -> Result<(), NoStream> {
    let hello = pushing(place.clone(), transfer, options.clone())?;
    let node = stream.node().clone();
    run(flags, stream, (Some(place), None), |ends, watch| {
        let copies = if options.dry_run { None } else { kept::copies(&node, place) };
        let mut origin = origin(paths, &options, allow_empty)?.keeping(copies);
        let names = options.dry_run && !flags.json;
        let event = |event: TransferEvent| match &event {
            TransferEvent::Removed { path } if names => {
                tell(format_args!("would remove {}", Printable(path)));
            }
            TransferEvent::Begun { path, .. } if names => {
                tell(format_args!("would send {}", Printable(path)));
                (watch.event)(event);
            }
            _ => (watch.event)(event),
        };
        let ended = push(ends, hello.clone(), &mut origin, Watch { event: &event, ..watch });
        kept::complain(&mut origin);
        Ok(ended)
    })
}

fn pushing(place: PeerPlace, transfer: [u8; 16], options: TransferOptions) -> Result<Hello, Failure> {
    let asked = Asked::Push { folder: place.folder, place: place.path, options };
    Ok(Hello { transfer, nonce: random()?, asked })
}

/// Runs a transfer over a stream and shows it. With `again`, it is begun once more over another stream to this place, if the first
/// was closed before the peer said anything: a peer that was restarted has lost what the stream was on. One without a pipe at this end can
/// go on later, and is stopped by a signal in order.
fn run(
    flags: &TransferFlags,
    mut stream: PeerStream,
    (mut again, pipe): (Option<&PeerPlace>, Option<&'static str>),
    mut transfer: impl FnMut(stream::Ends<'_>, Watch<'_>) -> Result<Result<Tally, TransferError>, Failure>,
) -> Result<(), NoStream> {
    let patience = silence::patience(stream.link());
    let meter = TransferMeter::new(flags.json, patience, pipe);
    let tally = loop {
        let (event, hang_up, cancel) =
            (|event| meter.event(event), || stream.hang_up(), AtomicBool::new(false));
        let watch = Watch { event: &event, cancel: &cancel, hang_up: &hang_up };
        let mut work = || {
            SilenceWatch::of_transfer(stream.peer(), flags.json, stream.link()).during(
                || stream.silent().min(meter.quiet()),
                |silence| meter.show(silence),
                || transfer(stream.ends(flags.max_rate), watch),
            )
        };
        let (ended, stopped) = match pipe {
            None => until_asked_to_end(&hang_up, work)?,
            Some(_) => (work(), false),
        };
        let ended = ended?;
        stream.hang_up();
        if stopped && ended.is_err() {
            return Err(meter.stopped().into());
        }
        match ended {
            Ok(tally) => break tally,
            Err(error) => match again.take().filter(|_| stream.is_unheard(&error)) {
                Some(place) => stream = open(flags, place)?,
                None => return Err(stream.failed(error).of_pipe(pipe)),
            },
        }
    };
    meter.finish(&tally);
    match tally.failed {
        0 => Ok(()),
        1 => Err(Failure::new("1 entry was not transferred; its message says why").into()),
        failed => {
            Err(Failure::new(format!("{failed} entries were not transferred; their messages say why")).into())
        }
    }
}
