//! What `send` leaves in the outbox.

use std::fs::File;
use std::path::{Path, PathBuf};

use strait_transfer::TransferId;
use strait_transfer::outbox::spool::SpoolFolder;
use strait_transfer::outbox::{
    FolderDisk, Outbox, PathBytes, QueuedTransfer, TransferLimits, TransferOrder, TransferPriority,
};
use strait_transfer::path::Printable;

use super::address::PeerPlace;
use super::stream::NoStream;
use super::wrong;
use crate::failure::{Code, Failure};
use crate::flags::{FilePriority, SendFiles};
use crate::outbox::{self, OutboxHome};
use crate::output::{note, tell};

/// Bytes a day with which a transfer still comes further: it goes on at pieces of 1 MiB, which have to pass in one day.
const DAY_MIN: u64 = 4 << 20;

/// A transfer of `send` that may have to wait in the outbox.
pub(super) struct WaitingTransfer<'a> {
    flags: &'a SendFiles,
    place: &'a PeerPlace,
    paths: &'a [PathBuf],
    /// The time at which the command began, in seconds since 1970.
    began: i64,
    /// The outbox, and the transfer as it has it, once they were looked for.
    found: Option<(OutboxHome, TransferOrder)>,
}

impl<'a> WaitingTransfer<'a> {
    pub(super) fn new(
        flags: &'a SendFiles,
        place: &'a PeerPlace,
        paths: &'a [PathBuf],
    ) -> WaitingTransfer<'a> {
        WaitingTransfer { flags, place, paths, began: outbox::now(), found: None }
    }

    /// Looks for the outbox while the daemon is there that knows which it is.
    pub(super) fn find(&mut self) {
        self.found = self.look().ok();
    }

    fn look(&self) -> Result<(OutboxHome, TransferOrder), Failure> {
        let home = OutboxHome::find(self.flags.how.tunnel.as_deref(), None)?;
        let order = self.order(&home)?;
        Ok((home, order))
    }

    /// Leaves it in the outbox; returns what is to be said of it, which begins with `why`.
    pub(super) fn wait(&mut self, why: &str) -> Result<Failure, Failure> {
        let (home, order) = match self.found.take() {
            Some(found) => found,
            None => self.look()?,
        };
        let limits = limits(self.flags);
        // A copy is of another time.
        let is_same = |it: &QueuedTransfer| it.order == order && it.limits == limits && !order.spooled;
        let waiting = home.open()?.waiting().find(|it| is_same(it)).map(|it| it.id);
        let id = match waiting {
            Some(id) => id,
            None => self.accept(&home, order)?,
        };
        if self.flags.how.json {
            tell(serde_json::json!({"event": "queued", "transfer": id.to_string()}));
        }
        let by = home
            .broker_of(&self.place.peer)
            .map_or_else(String::new, |broker| format!(", and goes by way of {broker}"));
        let queued =
            Failure::new(format!("{why}: the transfer waits in the outbox as {id}{by}")).code(Code::Queued);
        let lacking = home.lacking().join(" and ");
        Ok(match &*lacking {
            "" => queued,
            _ => queued.remedy(format!("to send queued transfers, run {lacking}")),
        })
    }

    /// Leaves it in the outbox if its peer is away or was lost; returns what is to be said of it.
    pub(super) fn wait_after(mut self, none: NoStream) -> Failure {
        if none.is_busy
            && let Some(id) = self.with_earlier_runs(|_, ids| Ok(ids.first().copied())).ok().flatten()
        {
            let why = format!("another run sends it: the transfer is in the outbox as {id}");
            return Failure::new(why).code(Code::Queued);
        }
        let Some(why) = none.unreached else { return none.into() };
        let why = format!("{} {why}", self.place.peer);
        let cannot =
            |failure| Failure::from(none).also(format!("the transfer cannot wait in the outbox: {failure}"));
        self.wait(&why).unwrap_or_else(cannot)
    }

    /// Takes what earlier runs left of it out of the outbox: all of it has arrived.
    pub(super) fn arrived(self) {
        let taken_out = self.with_earlier_runs(|outbox, ids| {
            let now = outbox::now();
            ids.iter().try_for_each(|id| outbox.cancel(*id, now)).map_err(outbox::refused)
        });
        if let Err(failure) = taken_out {
            note(format_args!("strait: all has arrived, and it may still wait in the outbox: {failure}"));
        }
    }

    /// Calls `then` with the outbox and the transfers of the same files to the same place, or of copies of them, that earlier runs left in
    /// it and that wait for nothing but their peer; without an outbox there is nothing to call it with.
    fn with_earlier_runs<T: Default>(
        &self,
        then: impl FnOnce(&mut Outbox<FolderDisk>, &[TransferId]) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let Some((home, order)) = self.found.as_ref().filter(|(home, _)| home.folder.is_dir()) else {
            return Ok(T::default());
        };
        let is_same = |it: &&QueuedTransfer| {
            let order = TransferOrder { spooled: it.order.spooled, ..order.clone() };
            let limits = &it.limits;
            it.order == order
                && it.accepted <= self.began
                && limits.between.is_none()
                && limits.expires.is_none()
        };
        let mut outbox = home.open()?;
        let ids: Vec<TransferId> = outbox.waiting().filter(is_same).map(|it| it.id).collect();
        then(&mut outbox, &ids)
    }

    fn accept(&self, home: &OutboxHome, order: TransferOrder) -> Result<TransferId, Failure> {
        let id = home.open()?.new_id();
        // A long copy keeps no other command out of the outbox.
        let held = self.flags.spool.then(|| spool(home, id, &order)).transpose()?;
        home.open()?.accept(id, order, limits(self.flags), outbox::now()).map_err(outbox::refused)?;
        drop(held);
        Ok(id)
    }

    fn order(&self, home: &OutboxHome) -> Result<TransferOrder, Failure> {
        let WaitingTransfer { flags, place, paths, .. } = self;
        let peer = home.peer(&place.peer)?;
        let text = |bytes: &[u8]| {
            String::from_utf8(bytes.to_vec())
                .map_err(|_| Failure::new("a folder or pattern that is not UTF-8"))
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
        note(format_args!("strait: {} is no file, folder or link, and is not sent", Printable(path)));
    }
    let copied = spool.copy(id, &mut source, (order, room), &home.key, outbox::random()?);
    copied.map(|()| held).map_err(|error| failed(&error))
}
