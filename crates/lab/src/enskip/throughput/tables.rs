//! The tables: the paper's with ours beside it, and what it says in words only.

use super::variants::{BITS, PACKETS};
use super::{Throughput, median};
use crate::enskip::algorithm::Combination;
use crate::enskip::printed::{ALGORITHMS, DES, DX2, ETHERNET, MACHINES, TABLE};
use crate::measure::RunValues;
use crate::report::{Comparison, Exhibit, FigureUnit, LabTable};

/// A figure for each algorithm, without and with MD5.
pub(super) type AlgorithmTable = [[Option<f64>; 2]; ALGORITHMS.len()];

/// Such a table of what is known by the places of combinations.
pub(super) fn by_algorithm(of: impl Fn(usize) -> Option<f64>) -> AlgorithmTable {
    core::array::from_fn(|algorithm| [false, true].map(|md5| of(Combination::place(algorithm, md5))))
}

/// What the paper prints for a combination.
pub(super) fn printed(machine: usize, place: usize) -> Option<f64> {
    let [plain, md5] = TABLE[machine].get(place / 2)?;
    if place.is_multiple_of(2) { *plain } else { *md5 }
}

impl Throughput {
    /// All of them.
    pub(super) fn tables(&self) -> Vec<LabTable> {
        let mut all = vec![self.loopback_table()];
        all.extend(self.link_table());
        all.push(self.shape_table());
        all.push(self.here_table());
        all.extend([self.key_table(), self.kij_table(), self.share_table()]);
        all
    }

    fn loopback_table(&self) -> LabTable {
        let mut table = speeds("loopback, each of the paper's machines", &MACHINES[DX2..]);
        for (place, combination) in Combination::all().enumerate() {
            let ours = || self.loopback[place].processor.clone();
            table.row(
                combination.to_string(),
                (DX2..MACHINES.len()).map(|machine| (ours(), printed(machine, place))),
            );
        }
        table
    }

    fn link_table(&self) -> Option<LabTable> {
        let link = self.link.as_ref().ok()?;
        let mut table = speeds("between two hosts", &["link"]);
        for (place, combination) in Combination::all().enumerate() {
            table.row(combination.to_string(), [(link[place].processor.clone(), printed(ETHERNET, place))]);
        }
        Some(table)
    }

    /// Both in units of a machine's DES, so that the shapes of fast and of slow machines can be compared.
    fn shape_table(&self) -> LabTable {
        let mut table = LabTable::new(
            Exhibit::OnlyTable,
            "the same over the rate with DES",
            FigureUnit::OverDes,
            Comparison::Quotient,
            MACHINES,
        );
        let des = Combination::place(DES, false);
        for (place, combination) in Combination::all().enumerate() {
            let cell = |machine: usize| {
                let runs = match &self.link {
                    Ok(link) if machine == ETHERNET => link,
                    Err(_) if machine == ETHERNET => return (RunValues::default(), None),
                    _ => &self.loopback,
                };
                let over = median(&runs[des].processor);
                let paper = printed(machine, place).zip(printed(machine, des));
                (runs[place].processor.map(|rate| rate / over), paper.map(|(rate, des)| rate / des))
            };
            table.row(combination.to_string(), (0..MACHINES.len()).map(cell));
        }
        table
    }

    /// Every place of a measurement here.
    fn here_table(&self) -> LabTable {
        let source = format!("memory, {}", self.source.name);
        let columns =
            ["memory, random", &source, "loopback", "loopback, wall", "link", "link, wall", "tunnel, wall"];
        let mut table = speeds("here, by file and by way", &columns);
        table.exhibit = Exhibit::Words;
        for (place, combination) in Combination::all().enumerate() {
            let link = self.link.as_ref().ok().map(|link| link[place].clone()).unwrap_or_default();
            let tunnel = self.tunnel.as_ref().ok().map(|it| it.rates[place].clone()).unwrap_or_default();
            let cells = [
                self.memory[0][place].clone(),
                self.memory[1][place].clone(),
                self.loopback[place].processor.clone(),
                self.loopback[place].wall.clone(),
                link.processor,
                link.wall,
                tunnel,
            ];
            table.row(combination.to_string(), cells.map(|ours| (ours, None)));
        }
        table
    }

    fn key_table(&self) -> LabTable {
        let mut table = speeds("in memory, by bits of the key", &BITS.map(|bits| bits.to_string()));
        table.exhibit = Exhibit::Words;
        for row in &self.variants.keys {
            let cell = |at: usize| (row.rates.get(at).cloned().unwrap_or_default(), None);
            table.row(&*row.name, (0..BITS.len()).map(cell));
        }
        table
    }

    fn kij_table(&self) -> LabTable {
        let columns = PACKETS.map(|packets| match packets {
            1 => "a key for each packet".to_owned(),
            packets => format!("{packets} packets a key"),
        });
        let mut table = speeds("RC4 in memory, by Kij algorithm", &columns);
        table.exhibit = Exhibit::Words;
        for row in &self.variants.kij {
            table.row(&*row.name, row.rates.iter().map(|rates| (rates.clone(), None)));
        }
        table
    }

    /// RC4 beside rivals; what the machines of the paper did is no share, so it stands in the first table.
    fn share_table(&self) -> LabTable {
        let mut table =
            speeds("RC4 in memory, by share of the processor, wall clock", &["rate", "rate over share"]);
        table.exhibit = Exhibit::Words;
        for runs in &self.shares {
            let over = runs.rate.over(&runs.share.map(|share| share / 100.0));
            let name = format!("{:.1} % of the processor", median(&runs.share));
            table.row(name, [(runs.rate.clone(), None), (over, None)]);
        }
        table
    }
}

/// A table of rates without rows.
fn speeds(subject: &str, columns: &[impl ToString]) -> LabTable {
    LabTable::new(
        Exhibit::OnlyTable,
        subject,
        FigureUnit::KilobytesPerSecond,
        Comparison::Quotient,
        columns.iter().map(ToString::to_string),
    )
}
