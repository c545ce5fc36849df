//! Transfers whose command, serving process or daemon is killed at random moments: they go on where they stopped, and no name has
//! a part of a file at any time.

mod content;
mod watcher;

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use strait_clock::Random;
use strait_scheduler::Rate;
use strait_testbed::{Extra, LinkSpec, TwoHosts};
use strait_testdata::thorough::all_or;

use crate::pair::{PATIENCE, Pair, allowed, eventually};
use content::Content;
pub(crate) use content::noise;
use watcher::{Permitted, Watcher, files, permit};

/// Bits a second.
const LINK: u64 = 1_500_000;
/// What daemons know of it: a little less, so that the queue is theirs.
const KNOWN: &str = "[link]\nup = \"1.48Mbit\"\ndown = \"1.48Mbit\"\noverhead = 14\n";
/// Kills of each transfer, and of those that `make test` carries out.
const KILLS: usize = 10;
const FEW_KILLS: usize = 4;
/// The latest moment of a kill after the command began: the mean is half of it, so that all take some 50 s.
const LATEST: u64 = 10_000;
/// What a kill may cost on the link, in bytes: of 2 s between two records or groups, 2 s to make the one before and this one durable
/// beside other tests, and 2 s in which a session begins; and two handshakes. What was sent and makes no whole piece or unit of
/// 1 MiB comes to it.
const LOST: u64 = 6 * LINK / 8 + 40_000;
/// The same in bytes of content; a window of a patch is 4 MiB, and three are under way.
const PIECES: u64 = 1 << 20;
const WINDOWS: u64 = 12 << 20;

/// What is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Command,
    Worker,
    NearDaemon,
    FarDaemon,
}

const EACH: [Victim; FEW_KILLS] = [Victim::Command, Victim::Worker, Victim::NearDaemon, Victim::FarDaemon];

/// One of the transfers.
#[derive(Clone, Copy, Debug)]
struct Case {
    get: bool,
    content: Content,
    seed: u64,
    kills: usize,
    /// Its number among them.
    number: usize,
}

/// What one run of the command came to.
struct Run {
    status: ExitStatus,
    /// Bytes that crossed the link.
    wire: u64,
    /// Bytes of content that were there when it began, if it came so far.
    held: Option<u64>,
}

/// Two sites with a thin link, what is sent, and where it goes.
struct Scene {
    case: Case,
    pair: Pair,
    random: Random,
    source: PathBuf,
    target: PathBuf,
    sections: String,
    runs: usize,
}

impl Scene {
    fn new(case: Case) -> Scene {
        let hosts = TwoHosts::direct(LinkSpec::thin(Rate::from_bits(LINK).unwrap())).unwrap();
        let pair = Pair::idle(hosts);
        let folder = |name: &str| {
            let folder = pair.dir.path().join(name);
            fs::create_dir(&folder).unwrap();
            folder
        };
        let (inbox, here) = (folder("inbox"), folder("here"));
        let sections = format!(
            "{KNOWN}[[folder]]\nname = \"inbox\"\npath = \"{}\"\nread = [\"site-a\"]\nwrite = [\"site-a\"]\nowner = \"root\"\n",
            inbox.display()
        );
        let (source, target) = if case.get { (inbox, here) } else { (here, inbox) };
        let mut random = Random::new(case.seed);
        case.content.make(&source, &target, &mut random);
        let mut scene = Scene { case, pair, random, source, target, sections, runs: 0 };
        scene.start(0);
        scene.start(1);
        scene.pair.wait_for_session();
        scene
    }

    fn start(&mut self, which: usize) {
        let sections = if which == 0 { KNOWN } else { &self.sections };
        self.pair.start(which, Extra { sections, ..Extra::default() });
    }

    /// The file that a run's events go to.
    fn events(&self) -> PathBuf {
        self.pair.dir.path().join(format!("events-{}", self.runs))
    }

    fn command(&mut self) -> Child {
        self.runs += 1;
        let arguments: &[&str] = match self.case.get {
            false => &["send", "it", "site-b", "--json"],
            true => &["get", "site-b:inbox/it", ".", "--json"],
        };
        let mut command = self.pair.daemon(0).command(arguments);
        let folder = if self.case.get { &self.target } else { &self.source };
        let errors = File::create(self.pair.dir.path().join(format!("errors-{}", self.runs))).unwrap();
        let events = File::create(self.events()).unwrap();
        command.current_dir(folder).stdout(events).stderr(errors).spawn().unwrap()
    }

    /// Runs the command; with a victim, that is killed at a random moment.
    fn run(&mut self, victim: Option<Victim>) -> Run {
        let before = self.pair.hosts.link.traffic().unwrap();
        let there = self.there();
        let mut command = self.command();
        if let Some(victim) = victim {
            thread::sleep(Duration::from_millis(200 + self.random.below(LATEST)));
            assert!(command.try_wait().unwrap().is_none(), "ended before {victim:?}: {}", self.evidence());
            let waits = self.held().is_none();
            self.kill(victim, &mut command);
            if victim != Victim::Command && waits {
                // Nothing was heard that could break off, so it may go on with the daemon that came after: then it is killed as well.
                thread::sleep(Duration::from_millis(self.random.below(LATEST)));
                command.kill().unwrap();
            }
        }
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = command.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < 2 * PATIENCE, "{victim:?}: it does not end\n{}", self.evidence());
            thread::sleep(Duration::from_millis(20));
        };
        if victim.is_some() {
            println!("{:?} {victim:?}: ended after {:?}", self.case, begun.elapsed());
        }
        let wire = self.pair.hosts.link.traffic().unwrap().since(before).bytes();
        // Files that are there are told one after the other: a run that is killed meanwhile did not tell all that it had.
        let held = self.held().filter(|held| victim.is_none() || *held >= there);
        Run { status, wire, held }
    }

    fn kill(&mut self, victim: Victim, command: &mut Child) {
        match victim {
            Victim::Command => command.kill().unwrap(),
            // One that is about to end, of the run before, may be there and that of this run not yet.
            Victim::Worker => eventually("a killed worker ends the command", || {
                self.pair.file_workers(1).into_iter().for_each(kill);
                command.try_wait().unwrap().is_some()
            }),
            Victim::NearDaemon | Victim::FarDaemon => {
                let which = usize::from(victim == Victim::FarDaemon);
                self.pair.kill(which);
                self.start(which);
            }
        }
    }

    /// The bytes of the whole files of a tree that are there.
    fn there(&self) -> u64 {
        if self.case.content != Content::Tree {
            return 0;
        }
        // One may be put in place of another meanwhile.
        let sizes = files(&self.target, Path::new("")).unwrap().into_iter();
        sizes.map(|path| fs::metadata(self.target.join(path)).map_or(0, |it| it.len())).sum()
    }

    /// What the run found to be there: the bytes of a file's pieces, or of whole files.
    fn held(&self) -> Option<u64> {
        let text = fs::read_to_string(self.events()).unwrap();
        let events: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let of = |kind: &str, field: &str| -> Vec<u64> {
            let all = events.iter().filter(|event| event["event"] == kind);
            all.map(|event| event[field].as_u64().unwrap()).collect()
        };
        let begun = of("begun", "held_bytes");
        (!begun.is_empty()).then(|| begun.iter().sum::<u64>() + of("skipped", "bytes").iter().sum::<u64>())
    }

    fn evidence(&self) -> String {
        let errors = |run| fs::read_to_string(self.pair.dir.path().join(format!("errors-{run}")));
        let errors: String = (1..=self.runs).filter_map(|run| errors(run).ok()).collect();
        format!("{:?}: {errors}\n{}", self.case, self.pair.logs())
    }

    /// Kills it as often as the case says and lets it come to its end: how many bytes crossed the link.
    fn carry_out(mut self) -> (u64, u64) {
        let mut permitted = Permitted::new();
        permit(&self.source, &mut permitted);
        let expected = permitted.clone();
        permit(&self.target, &mut permitted);
        let watcher = Watcher::start(self.target.clone(), permitted);
        let mut runs = Vec::new();
        for at in 0..self.case.kills {
            let drawn = match self.random.below(8) {
                0..3 => Victim::Command,
                3..6 => Victim::Worker,
                6 => Victim::NearDaemon,
                _ => Victim::FarDaemon,
            };
            // Each once, beginning with another in each transfer; then by chance.
            let victim = if at < EACH.len() { EACH[(at + self.case.number) % EACH.len()] } else { drawn };
            let run = self.run(Some(victim));
            let killed = run.status.signal() == Some(9);
            // What `send` could not end waits in the outbox, unless nothing was heard of the peer.
            let interrupted =
                run.status.code() == Some(3) || (!self.case.get && run.status.code() == Some(4));
            let fine = match victim {
                Victim::Command => killed,
                Victim::NearDaemon | Victim::FarDaemon => killed || interrupted,
                Victim::Worker => interrupted,
            };
            assert!(fine, "{victim:?}: {}\n{}", run.status, self.evidence());
            runs.push(run);
        }
        let last = self.run(None);
        assert!(last.status.success(), "{}\n{}", last.status, self.evidence());
        runs.push(last);
        let (looks, seen) = watcher.finish();
        let mut arrived = Permitted::new();
        permit(&self.target, &mut arrived);
        assert!(arrived == expected, "{}", self.evidence());
        assert!(!self.target.join(".strait-partial").exists(), "nothing unfinished is left");
        assert!(seen >= expected.len() && looks > 100, "{seen} files in {looks} looks");
        (self.check_resumes(&runs), looks)
    }

    /// Each run has to begin about where the one before was killed: how many bytes crossed the link in all.
    fn check_resumes(&self, runs: &[Run]) -> u64 {
        let told: Vec<_> = runs.iter().map(|run| (run.wire, run.held)).collect();
        println!("{:?}: wire and held bytes: {told:?}", self.case);
        let (total, per_byte) = (self.case.content.bytes(), self.case.content.wire_per_byte());
        let wire = |content: u64| (content as f64 * per_byte * 1.3) as u64;
        let lost = LOST + wire(if self.case.content == Content::WordsOverOlder { WINDOWS } else { PIECES });
        let (mut sent, mut kills, mut held, mut most) = (0, 0, 0, wire(total));
        for run in runs {
            if let Some(now) = run.held {
                assert!(now >= held, "what was there is gone: {told:?}");
                assert!(sent <= wire(now - held) + kills * lost, "{sent} bytes for {}: {told:?}", now - held);
                (sent, kills, held) = (0, 0, now);
            }
            (sent, kills) = (sent + run.wire, kills + 1);
            most += run.wire.min(lost);
        }
        // What is left, and what the daemon still had of the run before.
        assert!(sent <= wire(total - held) + lost, "{sent} bytes for {}: {told:?}", total - held);
        let all = runs.iter().map(|run| run.wire).sum();
        assert!(all <= most, "{all} bytes of {most}: {told:?}");
        all
    }
}

/// Ends a process of ours at once.
fn kill(number: u32) {
    // It may just have ended.
    let _ = Command::new("kill").args(["-9", &number.to_string()]).status();
}

#[test]
fn ten_transfers_that_are_killed_ten_times_each_end_whole() {
    if !allowed() {
        return;
    }
    let begun = Instant::now();
    let all = all_or("eight of ten transfers, six of the ten kills of each, and other seeds than one");
    let seed = std::env::var("STRAIT_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or_else(|| if all { u64::from(std::process::id()) } else { 1 });
    println!("STRAIT_SEED={seed}");
    let (count, kills) = if all { (10, KILLS) } else { (2, FEW_KILLS) };
    let (send, get) = (false, true);
    let kinds = [
        (send, Content::Words),
        (get, Content::Tree),
        (send, Content::WordsOverOlder),
        (get, Content::Words),
        (send, Content::Tree),
    ];
    let cases = kinds.into_iter().cycle().take(count).zip(0..);
    let cases = cases.map(|((get, content), at)| Case {
        get,
        content,
        seed: seed * 100 + at as u64,
        kills,
        number: at,
    });
    thread::scope(|scope| {
        let all: Vec<_> =
            cases.map(|case| (case, scope.spawn(move || Scene::new(case).carry_out()))).collect();
        for (case, thread) in all {
            let (wire, looks) = thread.join().unwrap();
            println!("{case:?}: {wire} bytes on the wire, {looks} looks");
        }
    });
    println!("{kills} kills of each in {:?}", begun.elapsed());
}
