//! rsync, scp and git over `strait ssh`, beside the same programs over ssh.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use strait_lab::measure::{RunValues, settle};
use strait_sim::LossModel;
use strait_testbed::outside::{self, quoted};

use super::stage::{LoginStage, same};
use super::way::{LoginWay, versions};
use crate::error::Error;
use crate::files::{FileContent, wait};
use crate::paths::ThinPath;
use crate::report::{BenchSection, progress};
use crate::stage::BenchSetup;
use crate::target::Target;

/// The thin link: time of ssh -C over that of Strait; of git less, as its packs are compressed already.
const THIN: f64 = 1.54;
const AS_FAST: Target = Target::AtLeast(1.0);
const CLONE: Target = Target::AtLeast(0.98);
/// The fast link: rate over that of ssh.
const FAST: f64 = 100.0;
const NEARLY: Target = Target::AtLeast(0.9);
/// Bytes of a file: 30 s of the thin link as it is, and 4 s of the fast one.
const SIZES: [(f64, u64); 2] = [(THIN, 5_775_000), (FAST, 50_000_000)];
const QUICK: u64 = 10;
/// Commits of the repository that is cloned.
const COMMITS: usize = 40;
const PATIENCE: Duration = Duration::from_secs(600);
const WAYS: [LoginWay; 3] = [LoginWay::Strait, LoginWay::Ssh, LoginWay::Compressed];

/// A program that runs ssh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Copying {
    Rsync,
    Scp,
    Clone,
}

impl Copying {
    const fn name(self) -> &'static str {
        match self {
            Copying::Rsync => "rsync -a",
            Copying::Scp => "scp",
            Copying::Clone => "git clone",
        }
    }

    const fn program(self) -> &'static str {
        match self {
            Copying::Rsync => "rsync",
            Copying::Scp => "scp",
            Copying::Clone => "git",
        }
    }
}

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let (runs, smaller) = setting.effort.pick((3, 1), (1, QUICK));
    let title = format!(
        "files and a repository through ssh, daemons told the rate, {runs} runs, s, median (min-max)"
    );
    let mut section = BenchSection::new("login: copies", title, &WAYS.map(LoginWay::name));
    section.notes.push(versions());
    for (megabits, size) in SIZES {
        let path = ThinPath { megabits: Some(megabits), rtt: None, loss: LossModel::None };
        let stage = LoginStage::set(setting, path)?;
        let contents: &[FileContent] =
            if megabits == THIN { &[FileContent::Text] } else { &[FileContent::Text, FileContent::Random] };
        for content in contents {
            content.write(&stage.file(content.name()), size / smaller)?;
            for program in [Copying::Rsync, Copying::Scp] {
                measure(&mut section, &stage, (program, content.name()), (megabits, runs))?;
            }
        }
        if megabits == THIN && outside::has("git") {
            make_repository(&stage.file("repository"))?;
            measure(&mut section, &stage, (Copying::Clone, "repository"), (megabits, runs))?;
        }
    }
    Ok(section)
}

/// One program and one source over all ways in turn.
fn measure(
    section: &mut BenchSection,
    stage: &LoginStage,
    (program, source): (Copying, &str),
    (megabits, runs): (f64, usize),
) -> Result<(), Error> {
    if !outside::has(program.program()) {
        section.notes.push(format!("there is no {}", program.program()));
        return Ok(());
    }
    let mut seconds: [RunValues; WAYS.len()] = Default::default();
    for run in 1..=runs {
        for (way, seconds) in WAYS.into_iter().zip(&mut seconds) {
            if let Some(why) = stage.missing(way) {
                section.notes.extend((run == 1).then_some(why));
                continue;
            }
            section.before.push(settle()?);
            let took = copied(stage, way, program, source)?;
            progress(
                section.name,
                run,
                &format!("{megabits} Mbit/s, {source}, {}, {}", program.name(), way.name()),
                took,
                "s",
            );
            seconds.push(took);
        }
    }
    let subject = format!("{megabits} Mbit/s, {}, {source}", program.name());
    let [ours, plain, compressed] = &seconds;
    let (figure, ratio, target) = match (megabits == THIN, program) {
        (true, Copying::Clone) => ("times as fast as ssh -C", compressed.over(ours), CLONE),
        (true, _) => ("times as fast as ssh -C", compressed.over(ours), AS_FAST),
        (false, _) => ("times as fast as ssh", plain.over(ours), NEARLY),
    };
    section.judge(format!("{subject}: {figure}"), ratio, target);
    section.row(subject, seconds);
    Ok(())
}

/// Copies once; gives the seconds.
fn copied(stage: &LoginStage, way: LoginWay, program: Copying, source: &str) -> Result<f64, Error> {
    let (from, to) = (stage.file(source), stage.file("arrived"));
    let _ = std::fs::remove_file(&to);
    let _ = std::fs::remove_dir_all(&to);
    let options = stage.ssh_options(way);
    let shell = std::iter::once("ssh".to_owned())
        .chain(options.iter().map(|it| quoted(it)))
        .collect::<Vec<_>>()
        .join(" ");
    let place = format!("{}:{}", stage.host_of(way), to.display());
    let mut command = stage.near(program.program());
    match program {
        Copying::Rsync => command.args(["-a", "-e", &shell]).arg(&from).arg(place),
        Copying::Scp => command.args(&options).arg(&from).arg(place),
        Copying::Clone => {
            let place = format!("{}:{}", stage.host_of(way), from.display());
            command.env("GIT_SSH_COMMAND", shell).args(["clone", "-q", "--bare", &place]).arg(&to)
        }
    };
    let log = stage.file("command.log");
    let file = std::fs::File::create(&log).map_err(Error::doing("make a log"))?;
    command.stdout(std::process::Stdio::null()).stderr(file);
    let begin = Instant::now();
    let mut child = command.spawn().map_err(Error::doing(format!("start {}", program.name())))?;
    let status = wait(&mut child, PATIENCE)?;
    let took = begin.elapsed().as_secs_f64();
    let whole = status.success() && (program == Copying::Clone || same(&from, &to)?);
    if !whole {
        let said = std::fs::read_to_string(log).unwrap_or_default();
        let said = format!("{said}\n----\n{}", stage.said());
        let host = stage.hosts.a.name().to_owned();
        let command = format!("{} over {}", program.name(), way.name());
        return Err(strait_testbed::Error::Command { command, host, status: status.to_string(), said }.into());
    }
    Ok(took)
}

/// A repository of text that grows commit by commit, in one pack.
fn make_repository(folder: &Path) -> Result<(), Error> {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.arg("-C").arg(folder).args(["-c", "user.name=strait", "-c", "user.email=strait@example.net"]);
        let done = command.args(arguments).output().map_err(Error::doing("run git"))?;
        if done.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        let command = format!("git {}", arguments.join(" "));
        let host = "this machine".to_owned();
        Err(Error::from(strait_testbed::Error::Command {
            command,
            host,
            status: done.status.to_string(),
            said,
        }))
    };
    std::fs::create_dir(folder).map_err(Error::doing("make a repository"))?;
    git(&["init", "-q"])?;
    let text = crate::content::sample_log(COMMITS * 50_000);
    for (number, part) in text.chunks(50_000).enumerate() {
        std::fs::write(folder.join(format!("part-{:02}.log", number % 10)), part)
            .map_err(Error::doing("write a file"))?;
        git(&["add", "-A"])?;
        git(&["commit", "-q", "-m", &format!("Part {number}")])?;
    }
    git(&["gc", "-q"])
}
