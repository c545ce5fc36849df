//! `outbox`: transfers that wait for their peer.

mod home;

use std::io::IsTerminal;
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::tz::TimeZone;
use strait_keying::PrivateKey;
use strait_scheduler::calendar::day;
use strait_terminal::output::{note, print, still_read};
use strait_transfer::outbox::spool::SpoolFolder;
use strait_transfer::outbox::{
    FolderDisk, ListedTransfer, OrderPlace, Outbox, OutboxError, ProgressFile, RandomBytes, TransferProgress,
};

use crate::configuration::load;
use crate::failure::{CommandResult, Failure};
use crate::table::{Side, TextTable};
use crate::{files, flags, keys, units};
pub(crate) use home::OutboxHome;

/// Digits of a transfer that a table shows: enough to tell some thousands apart.
const SHOWN: usize = 8;
/// How often `--watch` lists: as often as the process that sends tells how far it is.
const WATCH: Duration = Duration::from_secs(1);

/// Lists the outbox, or changes it.
pub(crate) fn run(flags: &flags::OutboxFlags) -> CommandResult {
    let home = match &flags.file {
        Some(file) => OutboxHome::of(file, flags.outbox.as_deref())?,
        None => OutboxHome::find(flags.tunnel.as_deref(), flags.outbox.as_deref())?,
    };
    if flags.run {
        return files::deliver(home);
    }
    if flags.watch {
        return watch(&home);
    }
    let mut outbox = home.open()?;
    if let Some(digits) = &flags.cancel {
        let id = outbox.find(digits).map_err(refused)?;
        outbox.cancel(id, now()).map_err(refused)?;
        // Its copy is of no use any more.
        let spool = SpoolFolder::open(&home.folder).map_err(Failure::doing("open the outbox"))?;
        return spool.tidy(&outbox).map_err(refused);
    }
    for (digits, place) in [(&flags.first, OrderPlace::First), (&flags.last, OrderPlace::Last)] {
        if let Some(digits) = digits {
            let id = outbox.find(digits).map_err(refused)?;
            return outbox.reorder(id, place).map_err(refused);
        }
    }
    for name in outbox.damaged() {
        note(format_args!("strait: {name} in the outbox is damaged and was left as it is"));
    }
    let listed = list(&home, &outbox, flags.all);
    if flags.json {
        let json = serde_json::to_string_pretty(&listed)
            .map_err(|error| Failure::new(format!("cannot write the list as JSON: {error}")))?;
        return print(format!("{json}\n").as_bytes());
    }
    print(table(&listed).as_bytes())
}

/// What is in the outbox, and how far it is.
fn list(home: &OutboxHome, outbox: &Outbox<FolderDisk>, all: bool) -> Vec<ListedTransfer> {
    // What a process told that was killed says nothing.
    let running = files::is_delivered(&home.folder).then(|| ProgressFile::of(&home.folder, &home.key).read());
    let running = running.unwrap_or_default();
    let over = if all { outbox.over() } else { Vec::new() };
    let (today, _) = day(now(), &TimeZone::system());
    let lacking = match outbox.waiting().next() {
        Some(_) => home.lacking().join(" and "),
        None => String::new(),
    };
    let listed = |transfer| {
        let mut listed = ListedTransfer::of(transfer).on(transfer, today).among(&running);
        if listed.state == "waiting" && listed.note.is_empty() && !lacking.is_empty() {
            listed.note = format!("for {lacking}");
        }
        listed
    };
    outbox.waiting().chain(over).map(listed).collect()
}

/// Lists until nothing waits; on a terminal each list in the place of the one before.
fn watch(home: &OutboxHome) -> CommandResult {
    let clear = if std::io::stdout().is_terminal() { "\u{1b}[H\u{1b}[J" } else { "" };
    loop {
        let listed = list(home, &home.open()?, false);
        if !still_read(format!("{clear}{}", table(&listed)).as_bytes())? || listed.is_empty() {
            return Ok(());
        }
        thread::sleep(WATCH);
    }
}

/// The list for people, in the order in which transfers of one priority go.
fn table(listed: &[ListedTransfer]) -> String {
    if listed.is_empty() {
        return "nothing waits\n".to_owned();
    }
    let head = ["transfer", "peer", "to", "priority", "state", "what", "note"];
    let mut table =
        (1..head.len()).fold(TextTable::new(head), |table, column| table.side(column, Side::Left));
    for one in listed {
        let first = one.what.first().cloned().unwrap_or_default();
        let more = one.what.len().saturating_sub(1);
        let what = if more == 0 { first } else { format!("{first} and {more} more") };
        let id = one.id.get(..SHOWN).unwrap_or(&one.id).to_owned();
        let words = [one.priority, one.state].map(str::to_owned);
        let [priority, state] = words;
        // Before anything is announced, there is nothing to say of it.
        let progress = one.progress.as_ref().filter(|it| it.announced_bytes > 0 || it.moved_bytes > 0);
        let note = progress.map_or_else(|| one.note.clone(), far);
        table.row([id, one.peer.clone(), one.to.clone(), priority, state, what, note]);
    }
    table.render(0)
}

/// How far a transfer is, in words.
fn far(progress: &TransferProgress) -> String {
    let TransferProgress { moved_bytes, held_bytes, announced_bytes, bytes_per_second, seconds_left, .. } =
        *progress;
    let left = seconds_left
        .map_or_else(String::new, |left| format!(", {} left", units::span(Duration::from_secs(left))));
    format!(
        "{} of {}, {}{left}",
        units::bytes(moved_bytes.saturating_add(held_bytes)),
        units::bytes(announced_bytes),
        units::per_second(bytes_per_second, Duration::from_secs(1)),
    )
}

/// This node's key, which the configuration names.
pub(crate) fn node(file: &Path) -> Result<PrivateKey, Failure> {
    let key = load(file)?.private_key().map_err(Failure::new)?;
    key.ok_or_else(|| {
        Failure::new(format!("{} names no private key", file.display()))
            .remedy("add `private_key_file` to its section [node]; `strait keygen` makes one")
    })
}

/// The outbox in a folder, which this key encrypts.
pub(crate) fn open(folder: &Path, node: &PrivateKey) -> Result<Outbox<FolderDisk>, Failure> {
    let disk = FolderDisk::open(folder).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => Failure::new(format!("{} is in use", folder.display()))
            .remedy("another `strait` has it open; try again when that has ended"),
        _ => Failure::doing(format!("open the outbox {}", folder.display()))(error),
    })?;
    Outbox::open(disk, node, random()?).map_err(refused)
}

/// Secret random bytes, 32 at each call.
pub(crate) fn random() -> Result<RandomBytes, Failure> {
    // Once here, so that a system without them is an error and no panic.
    keys::seed().map_err(Failure::doing("read random numbers from the system"))?;
    Ok(Box::new(|| *keys::seed().expect("the system gave random numbers before")))
}

pub(crate) fn refused(error: OutboxError) -> Failure {
    Failure::new(error)
}

/// Seconds since 1970.
pub(crate) fn now() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_names_what_waits_in_a_line_each() {
        assert_eq!(table(&[]), "nothing waits\n");
        let one = ListedTransfer {
            id: "00112233445566778899aabbccddeeff".to_owned(),
            peer: "site-b".to_owned(),
            to: "inbox/logs".to_owned(),
            what: vec!["/a".to_owned(), "/b".to_owned(), "/c".to_owned()],
            priority: "bulk",
            state: "waiting",
            note: "01:00-06:00".to_owned(),
            broker: None,
            accepted: 0,
            expires: None,
            spooled: false,
            progress: None,
        };
        let expected = "\
transfer  peer    to          priority  state    what           note
00112233  site-b  inbox/logs  bulk      waiting  /a and 2 more  01:00-06:00
";
        assert_eq!(table(std::slice::from_ref(&one)), expected);
        let progress = TransferProgress {
            moved_bytes: 1_000_000,
            held_bytes: 500_000,
            announced_bytes: 4_000_000,
            bytes_per_second: 250_000,
            seconds_left: Some(10),
            ..TransferProgress::default()
        };
        let going = table(&[ListedTransfer { progress: Some(progress), state: "sending", ..one }]);
        assert!(going.contains("sending  /a and 2 more  1.50 MB of 4.00 MB, 250 kB/s, 10 s left"), "{going}");
    }
}
