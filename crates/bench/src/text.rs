//! What compression gains on text: whole files over a thin link, beside the tunnel and through it.

use std::sync::Arc;
use std::time::Duration;

use strait_lab::measure::{Sample, settle};
use strait_testbed::{LinkSpec, Transfer, interrupt};

use crate::content::{Text, generated, texts};
use crate::error::Error;
use crate::random::rate;
use crate::report::{Section, progress};
use crate::stage::{Setting, Stage, Way, rule};
use crate::target::Target;

const WAYS: [Way; 2] = [Way::Plain, Way::Strait];
/// Goodput through the tunnel over goodput of the plain link.
const RATIO: Target = Target::AtLeast(2.0);
/// How long a transfer may stand still.
const PATIENCE: Duration = Duration::from_secs(60);
/// Until what the last transfer left in queues has drained.
const DRAIN: Duration = Duration::from_millis(500);
/// Faster links, with how often the text goes over them, so that slow start does not decide.
const FASTER: [(f64, usize); 2] = [(10.0, 2), (100.0, 16)];

pub(crate) fn run(setting: &Setting) -> Result<Section, Error> {
    let (runs, share) = setting.effort.pick((3, 1), (1, 8));
    let title = format!(
        "text files over one TCP connection, shaped link, whole transfers, {runs} runs, Mbit/s, median (min-max)"
    );
    let columns = [Way::Plain.name(), "Strait, zstd-3 rule", "Strait / plain link"];
    let mut section = Section::new("text", title, &columns);
    let (texts, notes) = texts(share)?;
    section.notes = notes;
    for (text, ratio) in one(setting, &mut section, 1.5, &texts, runs)? {
        section.judge(format!("{text}, Strait / plain link at 1.5 Mbit/s"), ratio, RATIO);
    }
    for (megabits, times) in FASTER {
        let once = generated(share);
        let text = Text { name: once.name, bytes: once.bytes.repeat(times).into() };
        one(setting, &mut section, megabits, &[text], runs)?;
    }
    Ok(section)
}

/// Adds a row for each text, and gives their ratios.
fn one(
    setting: &Setting,
    section: &mut Section,
    megabits: f64,
    texts: &[Text],
    runs: usize,
) -> Result<Vec<(&'static str, Sample)>, Error> {
    let stage = Stage::set(&setting.program, LinkSpec::thin(rate(megabits)), &rule("zstd-3", ""))?;
    let mut ratios = Vec::new();
    for text in texts {
        let mut samples = [Sample::default(), Sample::default()];
        for run in 1..=runs {
            for (way, sample) in WAYS.into_iter().zip(&mut samples) {
                section.before.push(settle()?);
                let goodput = transfer(&stage, way, text)?;
                progress("text", run, &format!("{}, {}", text.name, way.name()), goodput, "Mbit/s");
                sample.push(goodput);
                interrupt::pause(DRAIN)?;
            }
        }
        let [plain, strait] = samples;
        let ratio = strait.over(&plain);
        let quantity = format!("{megabits} Mbit/s, {}, {:.1} MB", text.name, text.bytes.len() as f64 / 1e6);
        section.row(quantity, [plain, strait, ratio.clone()]);
        ratios.push((text.name, ratio));
    }
    Ok(ratios)
}

/// Mbit/s of content, from connecting until every byte is known to have arrived.
fn transfer(stage: &Stage, way: Way, text: &Text) -> Result<f64, Error> {
    let content: &Arc<[u8]> = &text.bytes;
    let took = Transfer {
        from: &stage.hosts().a,
        to: &stage.hosts().b,
        address: stage.address(way),
        name: text.name,
        content,
        patience: PATIENCE,
    }
    .run(&mut |_| {})?;
    Ok(content.len() as f64 * 8.0 / took.as_secs_f64() / 1e6)
}
