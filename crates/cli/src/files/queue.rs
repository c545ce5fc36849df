//! What `send` leaves in the outbox.

use std::fs::File;
use std::path::{Path, PathBuf};

use strait_keying::PublicKey;
use strait_transfer::TransferId;
use strait_transfer::outbox::spool::SpoolFolder;
use strait_transfer::outbox::{PathBytes, TransferLimits, TransferOrder, TransferPriority};
use strait_transfer::path::Printable;

use super::address::PeerPlace;
use super::delivery::is_delivered;
use super::wrong;
use crate::failure::{Code, Failure};
use crate::flags::{FilePriority, SendFiles};
use crate::outbox::{self, OutboxHome};

/// Bytes a day with which a transfer still comes further: it goes on at pieces of 1 MiB, which have to pass in one day.
const DAY_MIN: u64 = 4 << 20;

/// Leaves a transfer in the outbox; what is to be said of it, which begins with `why`.
pub(super) fn queued(
    flags: &SendFiles,
    place: &PeerPlace,
    paths: &[PathBuf],
    why: &str,
) -> Result<Failure, Failure> {
    let home = OutboxHome::find(flags.how.tunnel.as_deref(), None)?;
    let order = order(flags, place, paths, home.peer(&place.peer)?)?;
    let limits = limits(flags);
    let id = home.open()?.new_id();
    // A long copy keeps no other command out of the outbox.
    let held = flags.spool.then(|| spool(&home, id, &order)).transpose()?;
    home.open()?.accept(id, order, limits, outbox::now()).map_err(outbox::refused)?;
    drop(held);
    if flags.how.json {
        println!("{}", serde_json::json!({"event": "queued", "transfer": id.to_string()}));
    }
    let by = home
        .broker_of(&place.peer)
        .map_or_else(String::new, |broker| format!(", and goes by way of {broker}"));
    let queued =
        Failure::new(format!("{why}: the transfer waits in the outbox as {id}{by}")).code(Code::Queued);
    if is_delivered(&home.folder) {
        return Ok(queued);
    }
    let named = home.named();
    Ok(queued.remedy(format!("`strait outbox{named} --run` sends what waits; run it as a service")))
}

/// What is wrong with flags that count when a transfer has to wait.
pub(super) fn check(flags: &SendFiles) -> Result<(), Failure> {
    if flags.max_bytes.is_some_and(|bytes| bytes < DAY_MIN) {
        return Err(wrong("`--max-bytes` is at least 4MiB: a transfer goes on at pieces of 1 MiB"));
    }
    if flags.spool && flags.how.xattrs {
        return Err(
            wrong("a copy (`--spool`) has no extended attributes").remedy("leave out one of both flags")
        );
    }
    Ok(())
}

fn limits(flags: &SendFiles) -> TransferLimits {
    let now = outbox::now();
    TransferLimits {
        priority: match flags.how.priority {
            FilePriority::Now => TransferPriority::Now,
            FilePriority::Normal => TransferPriority::Normal,
            FilePriority::Bulk => TransferPriority::Bulk,
        },
        between: flags.between,
        expires: flags.expire.map(|span| now.saturating_add_unsigned(span.as_secs())),
        max_rate: flags.how.max_rate.map(|rate| rate.bits().div_ceil(8)),
        max_bytes: flags.max_bytes,
    }
}

/// Copies what is to be sent into the outbox. The copy stays there unless what this returns is closed before it is accepted.
fn spool(home: &OutboxHome, id: TransferId, order: &TransferOrder) -> Result<File, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::new(format!("cannot keep a copy in the outbox: {error}"))
            .remedy("without `--spool` the files are read when they are sent")
    };
    let spool = SpoolFolder::open(&home.folder).map_err(|error| failed(&error))?;
    // What a process left there that was killed before its transfer was accepted.
    spool.tidy(&home.open()?).map_err(|error| failed(&error))?;
    let held = spool.hold().map_err(|error| failed(&error))?;
    let room = spool.room().map_err(|error| failed(&error))?;
    let mut source = order.gather().map_err(|error| failed(&error))?;
    for path in source.left_out() {
        eprintln!("strait: {} is no file, folder or link, and is not sent", Printable(path));
    }
    let copied = spool.copy(id, &mut source, (order, room), &home.key, outbox::random()?);
    copied.map(|()| held).map_err(|error| failed(&error))
}

fn order(
    flags: &SendFiles,
    place: &PeerPlace,
    paths: &[PathBuf],
    peer: PublicKey,
) -> Result<TransferOrder, Failure> {
    let text = |bytes: &[u8]| {
        String::from_utf8(bytes.to_vec()).map_err(|_| Failure::new("a folder or pattern that is not UTF-8"))
    };
    let absolute = |path: &PathBuf| std::path::absolute(Path::new(path)).map(|path| PathBytes::of(&path));
    let paths: std::io::Result<Vec<PathBytes>> = paths.iter().map(absolute).collect();
    Ok(TransferOrder {
        peer,
        name: place.peer.clone(),
        folder: text(&place.folder)?,
        below: PathBytes(place.path.clone()),
        paths: paths.map_err(Failure::doing("find the current folder"))?,
        patterns: flags.how.patterns.0.iter().map(|line| text(line)).collect::<Result<_, _>>()?,
        xattrs: flags.how.xattrs,
        spooled: flags.spool,
    })
}
