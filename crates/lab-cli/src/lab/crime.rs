//! `lab crime`: what a scripted client learns of a cookie from the lengths of datagrams.

use std::fmt::Write;

use strait_ipsec::{Mix, Padding};
use strait_lab::crime::{CrimeCell, CrimeGrid, CrimeTable, CrimeTally, LoneDigits, policies};

use super::{csv, in_form};
use crate::failure::CommandResult;
use crate::flags;
use crate::progress::Progress;

/// Cookies and packets of a run that is no more than a look.
const QUICK: (u64, u64) = (2, 1_000);

/// Runs the client against every cell and prints what it learned.
pub(super) fn run(flags: &flags::LabCrime) -> CommandResult {
    let grid = grid(flags);
    let mut progress = Progress::new("{pos} of {len}");
    let table = grid.run(&mut |step| {
        let line = || format!("{}, {} of {}", step.what, step.done, step.of);
        progress.at(step.done as u64, step.of as u64, step.what, line);
    });
    progress.finish();
    in_form(&flags.form, &table, lines, render)
}

const HEAD: &str =
    "padding,mix,pause,codec,place,history,play,cookies,digits,right,packets,bits,bits_limit,safe";

/// A line a cell, and one for packets that leave alone behind each kind of history.
fn lines(table: &CrimeTable) -> String {
    let counts =
        |tally: &CrimeTally| [tally.digits, tally.right, tally.packets].map(|count| count.to_string());
    let cells = table.cells.iter().map(|it| {
        let rule = [it.padding.to_owned(), it.mix.to_owned(), it.pause.to_string(), it.method.to_string()];
        let client = [
            it.place.name().to_owned(),
            String::new(),
            it.play.name().to_owned(),
            it.tally.cookies.to_string(),
        ];
        let yields = [it.bits.to_string(), it.bits_limit.to_string(), it.tally.is_safe().to_string()];
        [&rule[..], &client, &counts(&it.tally), &yields].concat()
    });
    let lone = table.lone.iter().map(|it| {
        let empty = [const { String::new() }; 5];
        let client = [it.history.name().to_owned(), String::new(), it.tally.cookies.to_string()];
        [&empty[..], &client, &counts(&it.tally), &empty[..3]].concat()
    });
    csv::lines(HEAD, cells.chain(lone))
}

fn grid(flags: &flags::LabCrime) -> CrimeGrid {
    let (cookies, packets) = if flags.quick { QUICK } else { (flags.cookies, flags.packets) };
    let mut grid = CrimeGrid { cookies, packets, seed: flags.seed, ..CrimeGrid::default() };
    let named = |given: &[String], name: &str| given.is_empty() || given.iter().any(|it| it == name);
    let paddings = Padding::ALL.into_iter().filter(|it| named(&flags.paddings, it.name()));
    let mixes = Mix::ALL.into_iter().filter(|it| named(&flags.mixes, it.name()));
    let pauses = flags.pause.map_or_else(|| vec![false, true], |pause| vec![pause]);
    grid.policies = policies(&paddings.collect::<Vec<_>>(), &mixes.collect::<Vec<_>>(), &pauses);
    if !flags.places.is_empty() {
        grid.places.retain(|place| flags.places.iter().any(|name| name == place.key()));
    }
    if !flags.codecs.is_empty() {
        grid.methods.clone_from(&flags.codecs);
    }
    grid
}

/// A table in Markdown, so that it can stand in a page as it is.
fn render(table: &CrimeTable) -> String {
    let mut out = String::from(
        "| padding | mix | pause | codec | the client's packets | play | cookies | digits | right | packets | bits a 1,000 packets | at most (95 %) | safe |\n\
         |---|---|---|---|---|---|--:|--:|--:|--:|--:|--:|---|\n",
    );
    for CrimeCell { padding, mix, pause, method, place, play, tally, bits, bits_limit } in &table.cells {
        let safe = if tally.is_safe() { "yes" } else { "no" };
        let _ = writeln!(
            out,
            "| {padding} | {mix} | {pause} | {method} | {} | {} | {} | {} | {} | {} | {bits:.1} | {bits_limit:.1} | {safe} |",
            place.name(),
            play.name(),
            tally.cookies,
            tally.digits,
            tally.right,
            tally.packets,
        );
    }
    if !table.lone.is_empty() {
        out += "\n| packets alone, another flow of the service | digits | right | packets |\n|---|--:|--:|--:|\n";
    }
    for LoneDigits { history, tally } in &table.lone {
        let _ =
            writeln!(out, "| {} | {} | {} | {} |", history.name(), tally.digits, tally.right, tally.packets);
    }
    out
}

#[cfg(test)]
mod tests {
    use strait_compress::Method;
    use strait_lab::crime::{CrimePlace, CrimePlay, LoneHistory};

    use super::*;

    #[test]
    fn a_line_a_cell_as_a_page_takes_it() {
        let tally = CrimeTally { cookies: 2, digits: 80, right: 5, packets: 20_000 };
        let cell = CrimeCell {
            padding: "padme",
            mix: "flow",
            pause: false,
            method: Method::LZ4,
            place: CrimePlace::OtherDomain,
            play: CrimePlay::ALL[0],
            tally,
            bits: tally.bits(),
            bits_limit: tally.bits_limit(),
        };
        let lone = LoneDigits { history: LoneHistory::Cache, tally };
        let values = super::lines(&CrimeTable { cells: vec![cell.clone()], lone: vec![lone] });
        assert!(values.lines().all(|line| line.split(',').count() == 14), "{values}");
        assert!(values.lines().nth(1).is_some_and(|line| {
            line.starts_with("padme,flow,false,lz4,other domain,,two tries,2,80,5,20000,")
        }));
        assert_eq!(values.lines().nth(2), Some(",,,,,cache,,2,80,5,20000,,,"));
        let text = render(&CrimeTable { cells: vec![cell], lone: Vec::new() });
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| line.matches('|').count() == 14), "{text}");
        assert!(lines[2].starts_with(
            "| padme | flow | false | lz4 | other domain | two tries | 2 | 80 | 5 | 20000 | 0.0 |"
        ));
    }
}
