//! Many clients at once, of which half are killed: what was acknowledged is there, whole.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::process::Stdio;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use strait_clock::Random;
use strait_lab::measure::RunValues;
use strait_testbed::{Extra, LinkSpec, Post, PostClient, Site, TwoHosts, Workdir};

use super::stage::TRANSFER;
use crate::error::Error;
use crate::files::{forget_peaks, processor, same, wait, watched};
use crate::report::BenchSection;
use crate::stage::BenchSetup;
use crate::target::Target;

/// Bits a second of each client.
const RATE: usize = 100_000;
/// MiB.
const MEMORY: Target = Target::AtMost(64.0);
const NONE: Target = Target::AtMost(0.0);

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let (count, seconds) = setting.effort.pick((200, 30), (20, 8));
    let size = RATE / 8 * seconds;
    let title = format!(
        "{count} clients at {} kbit/s each, a random file of {:.2} MB each, half of the clients killed at random",
        RATE / 1000,
        size as f64 / 1e6
    );
    let mut section = BenchSection::new("broker: clients", title, &["Strait"]);
    setting.has_program()?;
    let dir = Workdir::create()?;
    let post = Post::beside(TwoHosts::direct(LinkSpec::unshaped())?, &setting.program, dir.path())?;
    let mut clients = clients(&post, &dir, (count, size, seconds as u64))?;
    let sites: Vec<&Site> = clients.iter().map(PostClient::site).chain([&post.receiver]).collect();
    let broker = post.start_broker(&post.configure_broker_for(&sites, &post.local_store(), "")?)?;
    forget_peaks(broker.pid());
    let (before, begin) = (processor(broker.pid()), Instant::now());
    let roots = [BTreeSet::from([broker.pid()])].map(Mutex::new);
    let (done, [peaks]) = watched(&roots, || PostClient::put_all(&post, &mut clients, true, TRANSFER));
    done?;
    let acknowledged = clients.iter().filter(|client| client.is_acknowledged()).count();
    section.row("s until the last has ended", [one(begin.elapsed().as_secs_f64())]);
    section.row("acknowledged", [one(acknowledged as f64)]);
    section.row("killed before that", [one((clients.len() - acknowledged) as f64)]);
    let lost = lost(&post, &dir, &clients)?;
    section.row("acknowledged, and not there or not whole", [one(lost as f64)]);
    section.judge("acknowledged objects that are lost", one(lost as f64), NONE);
    // Those that were killed go on.
    let mut again: Vec<PostClient> = clients.into_iter().filter(|client| !client.is_acknowledged()).collect();
    PostClient::put_all(&post, &mut again, false, TRANSFER)?;
    let mut reasons = BTreeMap::<String, usize>::new();
    for client in again.iter().filter(|client| !client.is_acknowledged()) {
        *reasons.entry(client.said().lines().next_back().unwrap_or_default().to_owned()).or_default() += 1;
    }
    let reasons = reasons.iter().map(|(said, count)| format!("{count} that did not go on: {said}"));
    section.notes.extend(reasons);
    let unfinished = again.iter().filter(|client| !client.is_acknowledged()).count();
    section.judge("killed clients that do not go on", one(unfinished as f64), NONE);
    section.row("broker, processor s", [one(processor(broker.pid()) - before)]);
    section.row("  largest process, MiB", [one(peaks.largest())]);
    section.row("  all processes at once, MiB", [one(peaks.together())]);
    section.judge("the broker's largest process, MiB", one(peaks.largest()), MEMORY);
    Ok(section)
}

fn one(value: f64) -> RunValues {
    [value].into_iter().collect()
}

/// Clients with random files, each second of which is to be killed.
fn clients(
    post: &Post,
    dir: &Workdir,
    (count, size, seconds): (u16, usize, u64),
) -> Result<Vec<PostClient>, Error> {
    let mut random = Random::new(3);
    let link = format!("up = \"{0}kbit\"\ndown = \"{0}kbit\"\n", RATE / 1000);
    let mut client = |number: u16| {
        let words = std::iter::repeat_with(|| random.next_u64().to_le_bytes());
        let content: Vec<u8> = words.take(size.div_ceil(8)).flatten().take(size).collect();
        let at = Duration::from_millis(random.below(seconds * 1000));
        let client = PostClient::create(post, dir.path(), number, &content, &link)?;
        Ok(client.killed_at(number.is_multiple_of(2).then_some(at)))
    };
    (1..=count).map(&mut client).collect()
}

/// How many of the acknowledged files the receiver does not get, whole.
fn lost(post: &Post, dir: &Workdir, clients: &[PostClient]) -> Result<usize, Error> {
    let inbox = dir.path().join("inbox");
    fs::create_dir(&inbox).map_err(Error::doing("make a folder"))?;
    let senders: Vec<&Site> = clients.iter().map(PostClient::site).collect();
    let config = post.configure_receiver_of(&senders, Extra::default())?;
    let daemon = post.receiver.start(&config, "run")?;
    let log = File::create(dir.path().join("fetch.log")).map_err(Error::doing("make a log"))?;
    let mut fetch = daemon.command(&["fetch", post.broker.name(), "--into"]);
    fetch.arg(&inbox).stdout(Stdio::null()).stderr(log);
    let mut child = fetch.spawn().map_err(Error::doing("start strait"))?;
    // What it does not get is seen by what is missing.
    wait(&mut child, TRANSFER)?;
    let whole = |client: &PostClient| {
        let name = client.file().file_name().unwrap_or_default();
        same(client.file(), &inbox.join(name)).unwrap_or(false)
    };
    Ok(clients.iter().filter(|client| client.is_acknowledged() && !whole(client)).count())
}
