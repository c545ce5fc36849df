//! How soon nodes that watch a directory have a new revocation list.

use std::ops::RangeInclusive;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use strait_keying::directory::{Answer, Question, RevocationList};
use strait_keying::{PrivateKey, PublicKey};
use strait_lab::measure::{RunValues, settle};
use strait_node::directory::DirectoryConnection;
use strait_testbed::interrupt;

use super::fleet::{Fleet, FleetStore, certificates, failed, open, unix};
use crate::error::Error;
use crate::report::{BenchSection, progress};
use crate::stage::BenchSetup;
use crate::target::Target;

/// Seconds until the last one has it.
const SEEN: Target = Target::AtMost(1.0);
const WATCHERS: usize = 100;
/// How long a list may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two rounds: daemons have nothing left to do.
const CALM: Duration = Duration::from_millis(200);

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let rounds = setting.effort.pick(20, 3);
    let title = format!(
        "a certificate is revoked, the list signed and put; until the last of {WATCHERS} clients that watch has read and verified it, \
         {rounds} rounds, median (min-max)"
    );
    let mut section =
        BenchSection::new("sessionless: watchers", title, &FleetStore::ALL.map(FleetStore::name));
    section
        .notes
        .push("over etcd, the list is put at another directory than the one that is watched".to_owned());
    let mut values: [RunValues; 2] = Default::default();
    for (store, values) in FleetStore::ALL.into_iter().zip(&mut values) {
        if let Some(why) = store.missing() {
            section.notes.push(why);
            continue;
        }
        section.before.push(settle()?);
        *values = Fleet::with(setting, store, |fleet| measure(fleet, rounds))?;
        for (run, seconds) in values.values().iter().enumerate() {
            progress(section.name, run + 1, store.name(), seconds * 1000.0, "ms");
        }
    }
    for (store, values) in FleetStore::ALL.into_iter().zip(&values) {
        let worst = values.spread().map(|spread| spread.max);
        section.judge(format!("the worst round, {}, s", store.name()), worst.into_iter().collect(), SEEN);
    }
    section.row("until the last has it, ms", values.map(|values| values.map(|seconds| seconds * 1000.0)));
    Ok(section)
}

/// What a client has heard: the number of a list, and when.
pub(crate) type Heard = Result<(u64, Instant), Error>;

fn measure(fleet: &Fleet, rounds: u64) -> Result<RunValues, Error> {
    let all = certificates(WATCHERS as u32)?;
    fleet.put(&all)?;
    for one in &all {
        fleet.wait_for(one)?;
    }
    let (say, hear) = mpsc::channel();
    let (server, authority) = (fleet.asked().server(), fleet.authority.public());
    std::thread::scope(|scope| {
        let mut sockets = Vec::new();
        for _ in 0..WATCHERS {
            let mut connection = open(server)?;
            sockets.push(connection.socket().map_err(Error::doing("watch a directory"))?);
            connection
                .say(&Question::Watch { certificates: true })
                .map_err(Error::doing("watch a directory"))?;
            // All that is there is told.
            while connection.hear().map_err(failed)? != Answer::NoNews {}
            let say = say.clone();
            scope.spawn(move || watch(connection, &authority, &say));
        }
        drop(say);
        let measured = (1..=rounds).map(|round| {
            interrupt::pause(CALM)?;
            let given = || fleet.given().open().map_err(Error::from);
            publish((&fleet.authority, round, 1..=round), given, (WATCHERS, &hear))
        });
        let measured = measured.collect();
        // Threads end with their connections.
        sockets.iter().for_each(|socket| drop(socket.shutdown(std::net::Shutdown::Both)));
        measured
    })
}

/// Tells of each list that comes, once it is verified, until the connection ends.
pub(crate) fn watch(mut connection: DirectoryConnection, authority: &PublicKey, say: &Sender<Heard>) {
    loop {
        let heard = match connection.hear() {
            Ok(Answer::List(bytes)) => RevocationList::from_bytes(&bytes, authority)
                .map(|list| (list.number(), Instant::now()))
                .map_err(|error| failed(std::io::Error::other(error).into())),
            Ok(_) => continue,
            Err(error) => Err(failed(error)),
        };
        let ended = heard.is_err();
        if say.send(heard).is_err() || ended {
            return;
        }
    }
}

/// Seconds from the revocation of certificates by the authority's list of this number until so many watchers have it; over a
/// connection that is made for it.
pub(crate) fn publish(
    (authority, number, revoked): (&PrivateKey, u64, RangeInclusive<u64>),
    open: impl FnOnce() -> Result<DirectoryConnection, Error>,
    (watchers, hear): (usize, &Receiver<Heard>),
) -> Result<f64, Error> {
    let begun = Instant::now();
    let list = RevocationList::issue(authority, number, unix(), revoked);
    let list = list.map_err(|error| failed(std::io::Error::other(error).into()))?;
    open()?.ask(&Question::PutList(list.as_bytes().into())).map_err(failed)?;
    let mut last = begun;
    for _ in 0..watchers {
        let heard = hear.recv_timeout(PATIENCE);
        let silent = |_| Error::Silent { what: "a revocation list", way: "a directory".to_owned() };
        let (heard, at) = heard.map_err(silent)??;
        if heard != number {
            return Err(Error::Silent { what: "the newest list alone", way: "a directory".to_owned() });
        }
        last = last.max(at);
    }
    Ok(last.duration_since(begun).as_secs_f64())
}
