//! Peers that open streams all the time and ask by halves, while another lists, sends a file and logs in.

use std::collections::VecDeque;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use strait_lab::measure::{RunValues, settle};
use strait_node::client::{StreamOptions, open_stream_at};
use strait_testbed::{DaemonProcess, Extra, LinkSpec, Workdir, program_with_accounts};

use super::attackers::Attackers;
use super::star::{HubStar, Spoke};
use crate::content::generated;
use crate::error::Error;
use crate::random::rate;
use crate::report::{BenchSection, progress};
use crate::stage::BenchSetup;
use crate::target::Target;

/// Time of a command over its time alone.
const SLOWER: Target = Target::AtMost(2.0);
/// Of each link, in Mbit/s.
const LINK: f64 = 10.0;
/// Bytes of the file that is sent.
const FILE: usize = 100_000;
/// Streams that a hostile peer keeps open: as many as it may have.
const STREAMS: usize = 64;
/// The words that it says on each: the head of a request for files in `inbox`, and a byte of the request.
const HALF: &[u8] = b"\x01\x01\x05inbox\x00";
/// Until it has opened as many as it can, and its pause where it may open none.
const BEGIN: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(10);
const COLUMNS: [&str; 3] = ["alone, ms", "beside, ms", "times"];
const HOSTILE: [&str; 4] = ["hostile-1", "hostile-2", "hostile-3", "hostile-4"];
/// The commands of the honest peer, with the file's name in its folder.
const COMMANDS: [(&str, &[&str]); 3] = [
    ("list a folder", &["ls", "hub:inbox"]),
    ("send 100 kB of text", &["send", "it", "hub:inbox"]),
    ("login, run true", &["login", "hub", "true"]),
];

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let runs = setting.effort.pick(9, 2);
    let title = format!(
        "commands of a peer at {LINK} Mbit/s, alone and beside four peers, of which two may use the folder, that keep {STREAMS} \
         streams open each and ask by halves; {runs} runs, median (min-max)"
    );
    let mut section = BenchSection::new("hostile: services", title, &COLUMNS);
    let dir = Workdir::create()?;
    let [here, inbox] = ["here", "inbox"].map(|name| dir.path().join(name));
    for folder in [&here, &inbox] {
        fs::create_dir(folder).map_err(Error::doing("make a folder"))?;
    }
    let file = here.join("it");
    let program = program_with_accounts(&setting.program, dir.path())?;
    let sections = format!(
        "[[folder]]\nname = \"inbox\"\npath = \"{}\"\nowner = \"root\"\nread = [\"site\", \"hostile-1\", \"hostile-2\"]\n\
         write = [\"site\"]\n[[login]]\npeer = \"site\"\naccounts = [\"root\"]\n",
        inbox.display()
    );
    let spokes: Vec<Spoke<'_>> = ["site"].iter().chain(&HOSTILE).map(|name| spoke(name)).collect();
    let star = HubStar::up(&program, &spokes, Extra { sections: &sections, ..Extra::default() })?;
    let mut measured: [[RunValues; 2]; COMMANDS.len()] = Default::default();
    let text = generated(1).bytes;
    let mut number = 0;
    let mut time = |daemon: &DaemonProcess, words: &[&str]| {
        // Never the same content twice.
        number += FILE;
        let content = text.get(number..number + FILE).unwrap_or(&text);
        fs::write(&file, content).map_err(Error::doing("write a file"))?;
        timed(daemon, words, &here)
    };
    for run in 1..=runs {
        section.before.push(settle()?);
        let honest = &star.daemons[0];
        for ((_, words), [alone, _]) in COMMANDS.iter().zip(&mut measured) {
            alone.push(time(honest, words)?);
        }
        let attack = attack(&star.daemons[1..]);
        for ((name, words), [_, beside]) in COMMANDS.iter().zip(&mut measured) {
            let millis = time(honest, words)?;
            beside.push(millis);
            progress("hostile", run, name, millis, "ms beside four hostile peers");
        }
        drop(attack);
    }
    for ((name, _), [alone, beside]) in COMMANDS.iter().zip(measured) {
        let times = beside.over(&alone);
        section.judge(format!("{name}: times that alone"), times.clone(), SLOWER);
        section.row(*name, [alone, beside, times]);
    }
    Ok(section)
}

fn spoke(name: &'static str) -> Spoke<'static> {
    Spoke { name, spec: LinkSpec::thin(rate(LINK)), extra: Extra::default() }
}

/// Runs a command to its end; how many milliseconds that took.
fn timed(daemon: &DaemonProcess, words: &[&str], folder: &Path) -> Result<f64, Error> {
    let mut command = daemon.command(words);
    command.current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
    let begun = Instant::now();
    let status = command.status().map_err(Error::doing("run a command"))?;
    let took = begun.elapsed().as_secs_f64() * 1e3;
    // One that fails took for ever.
    Ok(if status.success() { took } else { f64::INFINITY })
}

/// Has hostile peers begin.
fn attack(daemons: &[DaemonProcess]) -> Attackers {
    let open = |daemon: &DaemonProcess| {
        let socket = daemon.log().with_file_name("strait0.sock");
        move |ended: &AtomicBool| open_all_the_time(&socket, ended)
    };
    let attackers = Attackers::start(daemons.iter().map(open));
    thread::sleep(BEGIN);
    attackers
}

/// Opens streams to the hub one after another, and gives up the oldest where there are too many.
fn open_all_the_time(socket: &Path, ended: &AtomicBool) {
    let mut open = VecDeque::new();
    while !ended.load(Ordering::Relaxed) {
        match open_stream_at(socket, "hub", StreamOptions::default()) {
            Ok(mut opened) => {
                let _ = opened.stream.write_all(HALF);
                open.push_back(opened);
                open.drain(..open.len().saturating_sub(STREAMS));
            }
            Err(_) => thread::sleep(PAUSE),
        }
    }
}
