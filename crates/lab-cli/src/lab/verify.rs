//! `lab verify`: the model against real tunnels.

use std::collections::BTreeSet;
use std::fmt::Write;

use strait_lab::Effort;
use strait_lab::measure::{RunValues, short};
use strait_lab::verify::{self, Content, FindingCell, MethodResult, Verification, VerifyGrid};
use strait_testbed::{interrupt, sandbox};

use super::{csv, in_form};
use crate::failure::{CommandResult, Failure, colours};
use crate::progress::Progress;
use crate::table::{Side, TextTable};
use crate::{failed, flags};

/// Runs the grid through tunnels of `strait` and prints what came of it.
pub(super) fn run(flags: &flags::LabVerify) -> CommandResult {
    // Before any thread is started: this may start the program again inside a user namespace.
    sandbox::enter().map_err(failed)?;
    interrupt::watch();
    let grid = grid(flags)?;
    let program = flags.program.path()?;
    let mut progress = Progress::new("{pos} of {len}");
    let found = verify::verify(&program, &grid, &mut |step| {
        let line = || format!("{}, {} of {}", step.what, step.done, step.of);
        progress.at(step.done as u64, step.of as u64, step.what, line);
    })
    .map_err(failed)?;
    progress.finish();
    in_form(&flags.form, &found, lines, |found| render(found, colours(&std::io::stdout())))
}

const HEAD: &str = "content,block_bytes,link_mbit,method,without_mbit,goodput_mbit,speedup,predicted,limit,average_block_bytes,ratio,disturbed";

/// A line for each method of each cell, and for the choice of the tunnel.
fn lines(found: &Verification) -> String {
    let cells = found.cells.iter().flat_map(|cell| {
        let line = move |method: &str, goodput: &RunValues, [speedup, predicted]: [Option<f64>; 2]| {
            let about =
                [cell.content.to_owned(), cell.block.to_string(), csv::number(cell.link), method.to_owned()];
            let rates = [&cell.without, goodput].map(|rate| csv::number(rate.spread().map(|it| it.median)));
            let speedups = [speedup, predicted].map(csv::number);
            [&about[..], &rates, &speedups].concat()
        };
        let tried = cell.tried.iter().map(move |it| {
            let mut fields = line(&it.method, &it.goodput, [Some(it.speedup), Some(it.predicted)]);
            fields.push(it.limit.unwrap_or_default().to_owned());
            fields.extend([it.block, it.ratio].map(csv::number));
            fields
        });
        let speedup = median(&cell.pick.goodput) / median(&cell.without);
        let mut auto = line("auto", &cell.pick.goodput, [Some(speedup), None]);
        auto.extend([const { String::new() }; 3]);
        tried.chain([auto]).map(|mut fields| {
            fields.push(cell.disturbed.to_string());
            fields
        })
    });
    csv::lines(HEAD, cells)
}

fn grid(flags: &flags::LabVerify) -> Result<VerifyGrid, Failure> {
    let contents = match &flags.corpus {
        Some(folder) => Content::corpus(folder).map_err(failed)?,
        None => Content::generated(),
    };
    let effort = if flags.quick { Effort::Quick } else { Effort::Full };
    let mut grid = VerifyGrid::new(effort, contents);
    if !flags.links.is_empty() {
        grid.links.clone_from(&flags.links);
    }
    if !flags.blocks.is_empty() {
        grid.blocks.clone_from(&flags.blocks);
    }
    if !flags.codecs.is_empty() {
        grid.methods.clone_from(&flags.codecs);
    }
    Ok(grid)
}

/// A table a cap and content: links down, methods across, each with the speedup that was measured and the model's.
fn render(found: &Verification, colours: bool) -> String {
    let mut out = format!(
        "Speedup by compression: measured through a tunnel between two namespaces, and the model's beside it\n\
         {}; both ends, writer and reader share them\n",
        found.machine
    );
    let mut tables: Vec<(u32, &str)> = found.cells.iter().map(|cell| (cell.block, cell.content)).collect();
    let mut seen = BTreeSet::new();
    tables.retain(|table| seen.insert(*table));
    for (block, content) in tables {
        let cells = found.cells.iter().filter(|cell| (cell.block, cell.content) == (block, content));
        let _ = write!(
            out,
            "\n{content}, blocks of at most {block} bytes\n{}",
            table(&cells.collect::<Vec<_>>())
        );
    }
    out + &verdicts(found, colours)
}

fn table(cells: &[&FindingCell]) -> String {
    let methods = cells.first().map_or(&[][..], |cell| &cell.tried);
    let head = ["link", "without"].into_iter().map(str::to_owned);
    let head = head.chain(methods.iter().map(|it| it.method.clone()));
    let head = head.chain(["auto".to_owned(), String::new()]);
    let mut table = TextTable::with_head(head).side(methods.len() + 3, Side::Left);
    for cell in cells {
        let link = cell.link.map_or_else(|| "unshaped".to_owned(), |megabits| format!("{megabits} Mbit/s"));
        let without = format!("{} Mbit/s", short(median(&cell.without)));
        let auto = median(&cell.pick.goodput) / median(&cell.without);
        let row = [link, without].into_iter().chain(cell.tried.iter().map(both));
        table.row(row.chain([speedup(auto), chosen(cell)]));
    }
    table.render(2)
}

/// Measured, and predicted.
fn both(tried: &MethodResult) -> String {
    format!("{} {}", speedup(tried.speedup), speedup(tried.predicted))
}

/// What the tunnel chose, and what would have been better.
fn chosen(cell: &FindingCell) -> String {
    let mut methods: Vec<&str> = cell.pick.methods().collect();
    methods.dedup();
    let methods = methods.join(", ");
    if cell.pick.is_right() {
        return methods;
    }
    format!(
        "{methods}; {} is {:.0} % faster",
        cell.pick.best,
        cell.pick.short / (1.0 - cell.pick.short) * 100.0
    )
}

fn speedup(value: f64) -> String {
    format!("{value:.2}")
}

fn median(sample: &RunValues) -> f64 {
    sample.spread().map_or(f64::NAN, |spread| spread.median)
}

/// The targets, met or missed: of the model where the processors limit and where the link does, and of the choices.
fn verdicts(found: &Verification, colours: bool) -> String {
    let all = found.all;
    let target = format!("at most {}", percent(found.error_target));
    let mut out = String::from("\n");
    for (limit, errors) in
        [("the processors limit", all.processors), ("the link does, the ratio given", all.link)]
    {
        let figure = format!(
            "error of the model's speedups where {limit}, median of {}: {}",
            errors.count,
            percent(errors.median)
        );
        let met = (errors.count > 0).then_some(errors.median <= found.error_target);
        out += &verdict(&figure, &target, met, colours);
    }
    let near = percent(found.near);
    out += &verdict(
        &format!("choices that are the best or within {near} of it: {} of {}", percent(all.right), all.cells),
        &format!("at least {}", percent(found.right_target)),
        Some(all.right >= found.right_target),
        colours,
    );
    let quiet = found.undisturbed;
    let disturbed = all.cells - quiet.cells;
    if disturbed > 0 {
        let _ = writeln!(
            out,
            "others used the processors beside {disturbed} of {} cells; without those: {} and {}, {} of {}",
            all.cells,
            percent(quiet.processors.median),
            percent(quiet.link.median),
            percent(quiet.right),
            quiet.cells
        );
    }
    out
}

fn percent(share: f64) -> String {
    if share.is_nan() { "-".to_owned() } else { format!("{:.1} %", share * 100.0) }
}

fn verdict(figure: &str, target: &str, met: Option<bool>, colours: bool) -> String {
    let (word, colour) = match met {
        Some(true) => ("met", 32),
        Some(false) => ("missed", 31),
        None => ("not measured", 33),
    };
    let word = if colours { format!("\x1b[{colour}m{word}\x1b[0m") } else { word.to_owned() };
    format!("{figure}; target {target}: {word}\n")
}

#[cfg(test)]
mod tests {
    use strait_lab::measure::MachineInfo;
    use strait_lab::verify::{FindingSummary, Pick, PredictionErrors};

    use super::*;

    #[test]
    fn a_line_a_method_and_one_for_the_choice() {
        let one = |rate: f64| std::iter::once(rate).collect::<RunValues>();
        let tried = MethodResult {
            method: "zstd-1".to_owned(),
            goodput: one(20.0),
            speedup: 2.5,
            predicted: 2.25,
            limit: Some("link"),
            block: Some(4000.0),
            ratio: None,
        };
        let pick = Pick { decisions: Vec::new(), goodput: one(18.0), best: "zstd-1".to_owned(), short: 0.1 };
        let cell = FindingCell {
            link: None,
            block: 4096,
            content: "text",
            without: one(8.0),
            others: 0.0,
            disturbed: false,
            tried: vec![tried],
            pick,
        };
        let errors = PredictionErrors { count: 0, median: f64::NAN };
        let all = FindingSummary { cells: 1, processors: errors, link: errors, right: 1.0 };
        let machine =
            MachineInfo { processor: String::new(), cores: 1, kernel: String::new(), governor: None };
        let found = Verification {
            machine,
            work: [verify::Work::default(); 2],
            cells: vec![cell],
            all,
            undisturbed: all,
            error_target: 0.1,
            right_target: 0.95,
            near: 0.05,
        };
        let expected =
            [HEAD, "text,4096,,zstd-1,8,20,2.5,2.25,link,4000,,false", "text,4096,,auto,8,18,2.25,,,,,false"];
        assert_eq!(lines(&found).lines().collect::<Vec<_>>(), expected);
    }
}
