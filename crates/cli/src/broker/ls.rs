//! `ls BROKER:`: what a broker holds for this node, or from it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

use serde_json::json;
use strait_keying::PrivateKey;
use strait_node::config::Config;
use strait_terminal::output::{note, print};
use strait_transfer::broker::client::{BrokerError, WantedPart};
use strait_transfer::broker::message::{
    FaultKind, Letter, LetterBox, LetterKind, MAX_MANIFEST, ObjectName, ObjectPart,
};
use strait_transfer::broker::names::{NameCache, TransferNames};
use strait_transfer::path::Printable;

use super::letters::{PeerNames, digits, letters};
use super::link::{BrokerLink, failed};
use crate::failure::{Code, CommandResult, Failure};
use crate::files::day_and_time;
use crate::flags::{FilePriority, ListFiles};
use crate::outbox::{self, OutboxHome};
use crate::silence::AnswerLine;
use crate::table::{Side, TextTable};
use crate::units::{bytes, counted};

/// Manifests that are asked for before the first of them has come: it saves round trips.
const AHEAD: usize = 128;
/// Threads that open manifests.
const OPENERS: usize = 2;

/// Lists a broker; nothing where a peer's folders are meant. `top` says whether no folder is named.
pub(crate) fn ls(flags: &ListFiles, peer: &str, top: bool) -> Option<CommandResult> {
    let asked = flags.sent || flags.names;
    if !top {
        return asked.then(|| {
            Err(Failure::new("`--sent` and `--names` go with a broker")
                .remedy("write BROKER:")
                .code(Code::Environment))
        });
    }
    // Where no configuration of this user's is found, no peer can be marked in it.
    let found = OutboxHome::find(flags.tunnel.as_deref(), None).and_then(|home| Ok((home.config()?, home)));
    match found {
        Err(failure) => asked.then_some(Err(failure)),
        Ok((None, _)) => asked.then(|| {
            Err(Failure::new("the tunnel is another user's, who alone can open what comes for it")
                .remedy("run this as the user who started it"))
        }),
        Ok((Some(config), home)) => {
            let marked = config.peers.iter().any(|other| other.name == peer && other.broker);
            (marked || asked).then(|| list(flags, peer, &home, &config))
        }
    }
}

fn list(flags: &ListFiles, broker: &str, home: &OutboxHome, config: &Config) -> CommandResult {
    let mut link = BrokerLink::open(flags.tunnel.as_deref(), broker, FilePriority::Now, None)?;
    let which = if flags.sent { LetterBox::Sent } else { LetterBox::Inbox };
    let letters = link.awaiting(|client| letters(client, which)).map_err(|error| failed(broker, &error))?;
    let mut opened = BTreeMap::new();
    if flags.names {
        opened = names(&mut link, (broker, &home.peer(broker)?), home, &letters)?;
    }
    link.stream.hang_up();
    let peers = PeerNames::of(config);
    let text = if flags.json {
        as_json(&letters, &opened, &peers)
    } else if letters.is_empty() {
        format!("{broker} holds nothing {} this node\n", if flags.sent { "from" } else { "for" })
    } else {
        as_text(&letters, &opened, &peers, flags.sent)
    };
    print(text.as_bytes())?;
    let wrong = opened.values().filter(|names| names.is_err()).count() as u64;
    if wrong == 0 {
        Ok(())
    } else {
        Err(Failure::new(format!("{} cannot be opened", counted(wrong, "transfer"))))
    }
}

/// What is in a transfer, or why that cannot be told.
type Inside = Result<TransferNames, String>;
/// The same of all transfers.
type Opened = BTreeMap<ObjectName, Inside>;

/// The names in all transfers: those that were opened before from the disk, others from the broker.
fn names(
    link: &mut BrokerLink,
    (broker, key): (&str, &strait_keying::PublicKey),
    home: &OutboxHome,
    letters: &[Letter],
) -> Result<Opened, Failure> {
    let transfers = || letters.iter().filter(|letter| letter.kind == LetterKind::Transfer);
    let hex: String = key.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let mut cache = NameCache::open(&home.folder, &hex, &home.key);
    let new: Vec<&Letter> = transfers().filter(|letter| cache.get(&letter.object).is_none()).collect();
    let stream = Arc::clone(&link.stream);
    let read = stream.awaiting(&AnswerLine::new(), || read(link, &home.key, &new));
    let read = read.map_err(|error| failed(broker, &error))?;
    let mut opened = Opened::new();
    for (object, names) in read {
        match names {
            Ok(names) => cache.insert(object, names),
            Err(why) => drop(opened.insert(object, Err(why))),
        }
    }
    for letter in transfers() {
        if let Some(names) = cache.get(&letter.object) {
            opened.insert(letter.object, Ok(names.clone()));
        }
    }
    let there: BTreeSet<ObjectName> = transfers().map(|letter| letter.object).collect();
    let saved = cache.save(|object| there.contains(object), outbox::random()?());
    if let Err(error) = saved {
        note(format_args!("strait: cannot keep the names for the next time: {error}"));
    }
    Ok(opened)
}

/// Reads manifests and opens them.
fn read(
    link: &mut BrokerLink,
    node: &PrivateKey,
    letters: &[&Letter],
) -> Result<Vec<(ObjectName, Inside)>, BrokerError> {
    let (to, from) = mpsc::sync_channel::<(ObjectName, Vec<u8>)>(AHEAD);
    let (from, opened) = (Mutex::new(from), Mutex::new(Vec::new()));
    let keep = |object, names| opened.lock().unwrap_or_else(PoisonError::into_inner).push((object, names));
    thread::scope(|scope| {
        for _ in 0..OPENERS {
            scope.spawn(|| {
                loop {
                    let next = from.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((object, manifest)) = next else { return };
                    let names = TransferNames::open(&manifest, &object, node);
                    keep(object, names.map_err(|error| error.to_string()));
                }
            });
        }
        let mut ask = |letter: &&Letter| {
            let (object, kind, part) = (letter.object, letter.kind, ObjectPart::Manifest);
            link.client.ask(&WantedPart { object, kind, part, at: 0 })
        };
        letters.iter().take(AHEAD).try_for_each(&mut ask)?;
        for (number, letter) in letters.iter().enumerate() {
            match link.client.take_small(letter.manifest.min(MAX_MANIFEST)) {
                Ok(manifest) => drop(to.send((letter.object, manifest))),
                // It was fetched or removed meanwhile.
                Err(BrokerError::Refused { id: Some(_), fault }) if fault.kind == FaultKind::NotFound => {}
                Err(BrokerError::Refused { id: Some(_), fault }) => {
                    keep(letter.object, Err(fault.to_string()))
                }
                Err(error) => {
                    drop(to);
                    return Err(error);
                }
            }
            if let Some(next) = letters.get(number + AHEAD) {
                let (object, kind, part) = (next.object, next.kind, ObjectPart::Manifest);
                link.client.ask(&WantedPart { object, kind, part, at: 0 })?;
            }
        }
        drop(to);
        Ok(())
    })?;
    Ok(opened.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn time(seconds: i64) -> String {
    day_and_time(seconds.saturating_mul(1_000_000_000))
}

fn kind(letter: &Letter) -> &'static str {
    match letter.kind {
        LetterKind::Transfer => "transfer",
        LetterKind::Receipt => "receipt",
    }
}

fn as_text(letters: &[Letter], opened: &Opened, peers: &PeerNames, sent: bool) -> String {
    let digits = digits(letters.iter().map(|letter| letter.object.id));
    let head = ["id", "kind", if sent { "to" } else { "from" }, "size", "made", "expires"];
    let sides = [Side::Left, Side::Left, Side::Left, Side::Right, Side::Left, Side::Left];
    let mut table =
        (0_usize..).zip(sides).fold(TextTable::new(head), |table, (at, side)| table.side(at, side));
    for letter in letters {
        let mut id = letter.object.id.to_string();
        id.truncate(digits);
        let peer = peers.name(if sent { &letter.receiver } else { &letter.object.sender });
        let size = bytes(letter.manifest.saturating_add(letter.contents));
        table.row([id, kind(letter).to_owned(), peer, size, time(letter.made), time(letter.expires)]);
    }
    let rendered = table.render(0);
    if opened.is_empty() {
        return rendered;
    }
    // Behind the line of each transfer what is in it.
    let mut lines = rendered.lines();
    let mut text = lines.next().map(|head| format!("{head}\n")).unwrap_or_default();
    for (line, letter) in lines.zip(letters) {
        text += line;
        text.push('\n');
        if letter.kind == LetterKind::Transfer {
            text += &inside(opened.get(&letter.object));
        }
    }
    text
}

/// The lines with what is in a transfer.
fn inside(names: Option<&Inside>) -> String {
    let mut text = String::new();
    match names {
        // It was fetched or removed meanwhile.
        None => {}
        Some(Err(why)) => drop(writeln!(text, "    cannot be opened: {}", why.escape_debug())),
        Some(Ok(names)) => {
            for name in &names.names {
                let _ = writeln!(text, "    {}/{}", place(names), Printable(&name.0));
            }
            let more = names.entries.saturating_sub(names.names.len() as u64);
            if more > 0 {
                let _ = writeln!(text, "    and {more} more");
            }
        }
    }
    text
}

/// Where a transfer goes.
fn place(names: &TransferNames) -> String {
    let folder = names.folder.escape_debug();
    if names.below.0.is_empty() {
        folder.to_string()
    } else {
        format!("{folder}/{}", Printable(&names.below.0))
    }
}

fn as_json(letters: &[Letter], opened: &Opened, peers: &PeerNames) -> String {
    let mut text = String::new();
    for letter in letters {
        let mut value = json!({
            "transfer": letter.object.id.to_string(),
            "kind": kind(letter),
            "sender": letter.object.sender.to_string(),
            "from": peers.name(&letter.object.sender),
            "receiver": letter.receiver.to_string(),
            "to": peers.name(&letter.receiver),
            "made": letter.made,
            "expires": letter.expires,
            "manifest_bytes": letter.manifest,
            "contents_bytes": letter.contents,
        });
        match opened.get(&letter.object).filter(|_| letter.kind == LetterKind::Transfer) {
            None => {}
            Some(Err(why)) => value["problem"] = why.as_str().into(),
            Some(Ok(names)) => {
                value["place"] = place(names).into();
                value["entries"] = names.entries.into();
                value["bytes"] = names.bytes.into();
                value["names"] = names.names.iter().map(|name| Printable(&name.0).to_string()).collect();
            }
        }
        let _ = writeln!(text, "{value}");
    }
    text
}
