//! `fetch`: transfers from this node's inbox at a broker.

mod later;
mod told;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;

use strait_keying::PublicKey;
use strait_node::config::Config;
use strait_transfer::broker::download::{FetchEvent, FetchTally};
use strait_transfer::broker::message::{Letter, LetterKind};

use super::inbox::VisitPlan;
use super::link::BrokerLink;
use super::places::{ArrivalPlaces, Elsewhere};
use crate::failure::{Code, CommandResult, Failure};
use crate::files::{NoStream, PeerStream};
use crate::flags::FetchFlags;
use crate::outbox::OutboxHome;
use crate::output::note;
use crate::silence::SilenceWatch;
use crate::stopping::{stopped, until_asked_to_end};
use crate::units::counted;
pub(crate) use later::LettersLater;
pub(crate) use told::FetchTold;

/// The number of the keyboard's signal (signal(7), SIGINT).
const KEYBOARD: i32 = 2;
/// Digits of a transfer's whole name.
const DIGITS: usize = 32;

/// Fetches what is there, or what comes.
pub(crate) fn fetch(flags: &FetchFlags) -> CommandResult {
    let home = OutboxHome::find(flags.tunnel.as_deref(), None)?;
    let Some(config) = home.config()? else {
        return Err(Failure::new("the tunnel is another user's, who alone can open what comes for it")
            .remedy("run this as the user who started it"));
    };
    let (broker, ids) = named(&config, &flags.named)?;
    let from = flags.from.as_deref().map(|name| home.peer(name)).transpose()?;
    let elsewhere = elsewhere(flags)?;
    let places = ArrivalPlaces::new(&config, elsewhere);
    let fetching =
        Fetching { flags, home: &home, broker: &broker, ids: &ids, from, stream: Mutex::default() };
    let Some(pause) = flags.wait else { return fetching.once(&places) };
    let later = RefCell::new(LettersLater::default());
    let mut complaint = String::new();
    loop {
        later.borrow_mut().visit();
        if let Err(failure) = fetching.visit(&places, Some(&later)) {
            // The broker may be away for a while: once is enough.
            let words = failure.to_string();
            if words != complaint {
                note(format_args!("strait: {words}"));
                complaint = words;
            }
        } else {
            complaint.clear();
        }
        thread::sleep(pause);
    }
}

/// What a command asks for.
struct Fetching<'a> {
    flags: &'a FetchFlags,
    home: &'a OutboxHome,
    broker: &'a str,
    ids: &'a [String],
    from: Option<PublicKey>,
    /// The stream of the visit that is under way, if it has one.
    stream: Mutex<Weak<PeerStream>>,
}

impl Fetching<'_> {
    /// Fetches what is there.
    fn once(&self, places: &ArrivalPlaces) -> CommandResult {
        let hang_up = || match self.stream() {
            Some(stream) => stream.hang_up(),
            // The broker is not reached yet: there is nothing to end in order.
            None => std::process::exit(Code::Signal(KEYBOARD).number().into()),
        };
        let (visited, was_asked) = until_asked_to_end(&hang_up, || self.visit(places, None))?;
        if was_asked && visited.as_ref().is_ok_and(|(tally, _)| tally.failed == 0) {
            return Ok(());
        }
        if was_asked {
            return Err(stopped(None));
        }
        let (tally, missing) = visited?;
        if let Some(missing) = missing {
            let words =
                format!("no transfer to this node at {} has a name that begins with {missing}", self.broker);
            return Err(Failure::new(words).remedy("`strait ls BROKER:` lists them"));
        }
        let FetchTally { left, failed, failed_entries, lacking, .. } = tally;
        let wrong = [
            (failed, "could not be fetched"),
            (left, if left == 1 { "stays at the broker" } else { "stay at the broker" }),
            (lacking, "did not arrive whole"),
        ];
        let mut wrong: Vec<String> = wrong
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, words)| format!("{} {words}", counted(*count, "transfer")))
            .collect();
        if failed_entries > 0 {
            wrong.push(format!("{failed_entries} of the files were not written"));
        }
        if wrong.is_empty() { Ok(()) } else { Err(Failure::new(wrong.join(", "))) }
    }

    fn stream(&self) -> Option<Arc<PeerStream>> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    /// One visit: what it came to, and the first name that is none in the inbox.
    fn visit(
        &self,
        places: &ArrivalPlaces,
        later: Option<&RefCell<LettersLater>>,
    ) -> Result<(FetchTally, Option<String>), Failure> {
        let told = FetchTold::new(self.flags.json, places);
        let found = RefCell::new(BTreeSet::new());
        let wanted = |letter: &Letter| {
            if letter.kind == LetterKind::Receipt {
                return true;
            }
            let id = letter.object.id.to_string();
            let named = self.ids.iter().find(|digits| id.starts_with(digits.as_str()));
            found.borrow_mut().extend(named.cloned());
            (self.ids.is_empty() || named.is_some())
                && self.from.is_none_or(|from| from == letter.object.sender)
                && later.is_none_or(|later| later.borrow().is_due(&letter.object))
        };
        let stays = Mutex::new(Vec::new());
        let event = |event: &FetchEvent<'_>| {
            if let FetchEvent::Left { object, .. } | FetchEvent::Failed { object, .. } = event
                && let Ok(mut stays) = stays.lock()
            {
                stays.push(*object);
            }
            told.event(event);
        };
        let plan = VisitPlan {
            home: self.home,
            broker: self.broker,
            places,
            wanted: &wanted,
            dry_run: self.flags.dry_run,
            event: &event,
        };
        let FetchFlags { tunnel, priority, max_rate, .. } = self.flags;
        // What is opened says itself what it waits for.
        let open = || -> Result<BrokerLink, NoStream> {
            let link = BrokerLink::open(tunnel.as_deref(), self.broker, *priority, *max_rate)?;
            *self.stream.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&link.stream);
            Ok(link)
        };
        let silent = || self.stream().map(|stream| stream.silent().min(told.quiet())).unwrap_or_default();
        let show = |silence: Option<&str>| {
            if self.stream().is_some() {
                told.show(silence);
            }
        };
        let watch = SilenceWatch::of_transfer(self.broker, self.flags.json, None);
        let ended = watch.during(silent, show, || plan.run(&open));
        if let (Some(later), Ok(stays)) = (later, stays.into_inner()) {
            stays.into_iter().for_each(|object| later.borrow_mut().put_off(object));
        }
        told.finish(ended.as_ref().ok(), later.is_some() || self.flags.dry_run && !self.flags.json);
        let missing = self.ids.iter().find(|id| !found.borrow().contains(*id)).cloned();
        ended.map(|tally| (tally, missing))
    }
}

/// The broker that is meant, and the transfers.
fn named(config: &Config, named: &[String]) -> Result<(String, Vec<String>), Failure> {
    let wrong = |words: String| Failure::new(words).code(Code::Environment);
    let mut rest = named;
    let broker = match named.split_first() {
        Some((first, behind)) if config.peers.iter().any(|peer| peer.name == *first) => {
            rest = behind;
            first.clone()
        }
        _ => {
            let brokers: Vec<_> = config.peers.iter().filter(|peer| peer.broker).collect();
            match brokers.as_slice() {
                [only] => only.name.clone(),
                [] => {
                    return Err(wrong("no peer of the configuration is a broker".to_owned())
                        .remedy("write `broker = true` into the [[peer]] of the broker, or name the peer"));
                }
                _ => {
                    return Err(wrong("several peers of the configuration are brokers".to_owned())
                        .remedy("name the one that is meant: strait fetch BROKER"));
                }
            }
        }
    };
    let digits = |id: &String| {
        let is_name = (1..=DIGITS).contains(&id.len()) && id.bytes().all(|digit| digit.is_ascii_hexdigit());
        if is_name {
            Ok(id.to_ascii_lowercase())
        } else {
            Err(wrong(format!("`{}` is neither a peer nor the name of a transfer", id.escape_debug()))
                .remedy("a transfer has 32 hexadecimal digits, of which the first are enough"))
        }
    };
    Ok((broker, rest.iter().map(digits).collect::<Result<_, _>>()?))
}

/// Where files go that no `[[folder]]` takes.
fn elsewhere(flags: &FetchFlags) -> Result<Elsewhere, Failure> {
    let here = std::env::current_dir().map_err(Failure::doing("find the current folder"))?;
    let into = match &flags.into {
        Some(folder) if folder.is_dir() => {
            Some(std::path::absolute(folder).unwrap_or_else(|_| folder.clone()))
        }
        Some(folder) => {
            return Err(Failure::new(format!("{} is not a folder", folder.display()))
                .remedy("make it first")
                .code(Code::Environment));
        }
        None => None,
    };
    Ok(Elsewhere { into, rest: Some(here), overwrite: flags.overwrite })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn config(brokers: &[&str]) -> Config {
        let mut text = "[node]\nprivate_key_file = \"a.key\"\ntunnel = false\n\n".to_owned();
        for (number, name) in (10_u8..).zip(["site-b", "store", "abc"]) {
            let key = strait_keying::PrivateKey::generate(&[number; 32]).public();
            let broker = brokers.contains(&name);
            text += &format!("[[peer]]\nname = \"{name}\"\npublic_key = \"{key}\"\nbroker = {broker}\n\n");
        }
        Config::parse(&text, Path::new("a.toml")).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_broker_may_be_left_out_if_there_is_one_and_names_of_transfers_follow() {
        let one = config(&["store"]);
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let store = |ids: &[&str]| ("store".to_owned(), words(ids));
        assert_eq!(named(&one, &[]).ok(), Some(store(&[])));
        assert_eq!(named(&one, &words(&["store"])).ok(), Some(store(&[])));
        assert_eq!(named(&one, &words(&["0A1"])).ok(), Some(store(&["0a1"])));
        assert_eq!(named(&one, &words(&["store", "0a", "1b"])).ok(), Some(store(&["0a", "1b"])));
        // A peer's name goes before the digits of a transfer.
        assert_eq!(named(&one, &words(&["abc"])).ok(), Some(("abc".to_owned(), words(&[]))));
        assert!(named(&one, &words(&["nowhere"])).is_err());
        for brokers in [&[][..], &["store", "abc"]] {
            assert!(named(&config(brokers), &[]).is_err());
        }
    }
}
