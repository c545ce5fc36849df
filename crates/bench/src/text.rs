//! What compression gains on text: whole files over a thin link, beside the tunnel and through it; and what aggregation has to
//! do with that.

use std::sync::Arc;
use std::time::Duration;

use strait_lab::measure::{RunValues, settle};
use strait_testbed::{LinkSpec, Transfer, interrupt};

use crate::content::{Text, generated, texts};
use crate::error::Error;
use crate::random::rate;
use crate::report::{BenchSection, progress};
use crate::stage::{BenchHosts, BenchRoute, BenchSetup, pair, rule};
use crate::target::Target;

/// Goodput through the tunnel over goodput of the plain link, of any text,
const ANY: Target = Target::AtLeast(2.0);
/// and of the generated sample; and over that of a tunnel where every packet goes by itself.
const SAMPLE: Target = Target::AtLeast(3.5);
const AGGREGATION: Target = Target::AtLeast(1.6);
/// How long a transfer may stand still.
const PATIENCE: Duration = Duration::from_secs(60);
/// Until what the last transfer left in queues has drained.
const DRAIN: Duration = Duration::from_millis(500);
/// Faster links, with how often the text goes over them, so that slow start does not decide.
const FASTER: [(f64, usize); 2] = [(10.0, 2), (100.0, 16)];

pub(crate) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let (runs, share) = setting.effort.pick((3, 1), (1, 8));
    let title = format!(
        "text files over one TCP connection, shaped link, whole transfers, {runs} runs, Mbit/s, median (min-max)"
    );
    let columns = [
        "plain link",
        "window = 1, zstd-3 rule",
        "Strait, zstd-3 rule",
        "Strait / plain link",
        "Strait / window = 1",
    ];
    let mut section = BenchSection::new("text", title, &columns);
    let (texts, notes) = texts(share)?;
    section.notes = notes;
    let ratios = one(setting, &mut section, 1.5, &texts, runs)?;
    for ((place, text), [plain, bundled]) in texts.iter().enumerate().zip(ratios) {
        let target = if place == 0 { SAMPLE } else { ANY };
        section.judge(format!("{}, Strait / plain link at 1.5 Mbit/s", text.name), plain, target);
        if place == 0 {
            section.judge(format!("{}, Strait / window = 1 at 1.5 Mbit/s", text.name), bundled, AGGREGATION);
        }
    }
    for (megabits, times) in FASTER {
        let once = generated(share);
        let text = Text { name: once.name, bytes: once.bytes.repeat(times).into() };
        one(setting, &mut section, megabits, &[text], runs)?;
    }
    Ok(section)
}

/// Adds a row for each text, and gives its ratios to the plain link and to packets by themselves.
fn one(
    setting: &BenchSetup,
    section: &mut BenchSection,
    megabits: f64,
    texts: &[Text],
    runs: usize,
) -> Result<Vec<[RunValues; 2]>, Error> {
    let [alone, bundled] = &pair(&setting.program, LinkSpec::thin(rate(megabits)), &rule("zstd-3", ""))?;
    let ways = [(bundled, BenchRoute::Plain), (alone, BenchRoute::Strait), (bundled, BenchRoute::Strait)];
    let mut ratios = Vec::new();
    for text in texts {
        let mut samples: [RunValues; 3] = Default::default();
        for run in 1..=runs {
            for (place, ((stage, way), sample)) in ways.into_iter().zip(&mut samples).enumerate() {
                section.before.push(settle()?);
                let goodput = transfer(stage, way, text)?;
                let subject = format!("{}, {}", text.name, section.columns[place]);
                progress("text", run, &subject, goodput, "Mbit/s");
                sample.push(goodput);
                interrupt::pause(DRAIN)?;
            }
        }
        let [plain, alone, bundled] = samples;
        let both = [bundled.over(&plain), bundled.over(&alone)];
        let quantity = format!("{megabits} Mbit/s, {}, {:.1} MB", text.name, text.bytes.len() as f64 / 1e6);
        section.row(quantity, [plain, alone, bundled].into_iter().chain(both.clone()));
        ratios.push(both);
    }
    Ok(ratios)
}

/// Mbit/s of content, from connecting until every byte is known to have arrived.
pub(crate) fn transfer(stage: &BenchHosts, way: BenchRoute, text: &Text) -> Result<f64, Error> {
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
