//! What history gives for text over a thin link: whole transfers through tunnels with it and without, beside `ssh -C` on the same link.

use std::process::Stdio;
use std::time::{Duration, Instant};

use strait_lab::measure::{RunValues, settle};
use strait_testbed::outside::Sshd;
use strait_testbed::{Extra, LinkSpec, Workdir, interrupt};

use crate::content::{Text, texts};
use crate::error::Error;
use crate::random::rate;
use crate::report::{BenchSection, progress};
use crate::stage::{BenchHosts, BenchRoute, BenchSetup, rule};
use crate::target::Target;
use crate::text;

/// Bytes of a transfer.
const SIZE: usize = 4 << 20;
const QUICK: usize = 512 << 10;
/// Goodput over that of `ssh -C`, and over that of a tunnel without history: with blocks as large as the link takes, and of 6,000 bytes.
const SSH: Target = Target::AtLeast(1.02);
const LARGE: Target = Target::AtLeast(1.12);
const SMALL: Target = Target::AtLeast(1.2);
/// Faster links: not slower than without.
const FASTER: Target = Target::AtLeast(0.97);
const THIN: f64 = 1.54;
/// Links, with how many times the text goes over each, so that slow start does not decide.
const LINKS: [(f64, usize); 3] = [(THIN, 1), (10.0, 2), (100.0, 12)];
const DRAIN: Duration = Duration::from_millis(500);

/// Tunnels with a rule that leaves the codec to Strait.
struct HistoryStage {
    flow: BenchHosts,
    none: BenchHosts,
    /// The same with blocks of 6,000 bytes at most.
    small: Option<[BenchHosts; 2]>,
}

impl HistoryStage {
    fn set(setting: &BenchSetup, megabits: f64) -> Result<HistoryStage, Error> {
        let one = |node: &str, history: &str| {
            let sections = format!("{}history = \"{history}\"\n", rule("auto", ""));
            let extra = Extra { node, sections: &sections, ..Extra::default() };
            BenchHosts::set(&setting.program, LinkSpec::thin(rate(megabits)), extra)
        };
        let small = "block = 6000\n";
        Ok(HistoryStage {
            flow: one("", "flow")?,
            none: one("", "none")?,
            small: if megabits == THIN { Some([one(small, "flow")?, one(small, "none")?]) } else { None },
        })
    }
}

pub(crate) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let (runs, size) = setting.effort.pick((5, SIZE), (1, QUICK));
    let title = format!(
        "{} KiB of text over one TCP connection, shaped link, codec = \"auto\", {runs} runs, Mbit/s, median (min-max)",
        size >> 10
    );
    let columns = ["ssh -C", "none", "flow", "block = 6000, none", "block = 6000, flow"];
    let mut section = BenchSection::new("history", title, &columns);
    let (texts, notes) = texts(1)?;
    section.notes = notes;
    for (megabits, times) in LINKS {
        let stage = HistoryStage::set(setting, megabits)?;
        let dir = Workdir::create()?;
        let sshd = setting.sshd(stage.flow.hosts(), &dir);
        if let (Err(why), true) = (&sshd, megabits == THIN) {
            section.notes.push(format!("ssh -C is left out: {why}"));
        }
        for text in &texts {
            let bytes: Vec<u8> =
                text.bytes.iter().copied().cycle().take(size.min(text.bytes.len())).collect();
            let text = Text { name: text.name, bytes: bytes.repeat(times).into() };
            measure(
                &mut section,
                (&stage, sshd.as_ref().ok().map(|sshd| (sshd, &dir))),
                &text,
                (megabits, runs),
            )?;
        }
    }
    Ok(section)
}

fn measure(
    section: &mut BenchSection,
    (stage, ssh): (&HistoryStage, Option<(&Sshd, &Workdir)>),
    text: &Text,
    (megabits, runs): (f64, usize),
) -> Result<(), Error> {
    let mut samples: [RunValues; 5] = Default::default();
    let tunnels = [Some(&stage.none), Some(&stage.flow)].into_iter();
    let small = stage.small.as_ref().map_or([None, None], |[flow, none]| [Some(none), Some(flow)]);
    let tunnels: Vec<Option<&BenchHosts>> = tunnels.chain(small).collect();
    let quantity = format!("{megabits} Mbit/s, {}, {:.1} MB", text.name, text.bytes.len() as f64 / 1e6);
    for run in 1..=runs {
        let tell = |column: usize, goodput: f64| {
            progress("history", run, &format!("{quantity}, column {column}"), goodput, "Mbit/s")
        };
        if let Some((sshd, dir)) = ssh {
            section.before.push(settle()?);
            let goodput = by_ssh(&stage.flow, sshd, dir, text)?;
            tell(0, goodput);
            samples[0].push(goodput);
        }
        for (column, tunnel) in tunnels.iter().enumerate() {
            let Some(tunnel) = tunnel else { continue };
            section.before.push(settle()?);
            let goodput = text::transfer(tunnel, BenchRoute::Strait, text)?;
            tell(column + 1, goodput);
            samples[column + 1].push(goodput);
            interrupt::pause(DRAIN)?;
        }
    }
    let [ssh, none, flow, small_none, small_flow] = &samples;
    section.judge(
        format!("{quantity}, flow / none"),
        flow.over(none),
        if megabits == THIN { LARGE } else { FASTER },
    );
    if megabits == THIN {
        section.judge(format!("{quantity}, flow / ssh -C"), flow.over(ssh), SSH);
        section.judge(format!("{quantity}, block = 6000, flow / none"), small_flow.over(small_none), SMALL);
    }
    section.row(quantity, samples);
    Ok(())
}

/// Mbit/s of content through `ssh -C` on the plain link, from the start of ssh until it has ended.
fn by_ssh(hosts: &BenchHosts, sshd: &Sshd, dir: &Workdir, text: &Text) -> Result<f64, Error> {
    let file = dir.path().join("content");
    std::fs::write(&file, &text.bytes).map_err(Error::doing("write the content"))?;
    let input = std::fs::File::open(&file).map_err(Error::doing("read the content"))?;
    let mut command = hosts.hosts().a.command("ssh");
    let host = format!("{}@{}", sshd.user(), hosts.address(BenchRoute::Plain));
    command.args(sshd.options()).args(["-C", &host, "cat > /dev/null"]).stdin(Stdio::from(input));
    let began = Instant::now();
    let status = command.status().map_err(Error::doing("run ssh"))?;
    let took = began.elapsed().as_secs_f64();
    if !status.success() {
        return Err(Error::Silent { what: "text", way: format!("ssh, which ended with {status}") });
    }
    Ok(text.bytes.len() as f64 * 8.0 / took / 1e6)
}
