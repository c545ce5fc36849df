//! How many cells do what a sentence says, and which do not.

use std::fmt;

use super::Finding;

/// Cells counted, with those that are exceptions, by the first two parts of their names: such as a file and a network.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClaimTally {
    groups: Vec<CellGroup>,
}

/// The cells of one file on one network, or whatever two parts are.
#[derive(Clone, Debug)]
struct CellGroup {
    file: String,
    network: String,
    cells: usize,
    /// The rest of their names, and their figures.
    exceptions: Vec<(String, f64)>,
}

/// Exceptions of one file and network that are named one by one; of more, the range of their figures is told.
const NAMED: usize = 2;

impl ClaimTally {
    /// Counts a cell of a file and a network, with the rest of its name and the figure that decides.
    pub(crate) fn count(&mut self, [file, network, rest]: [&str; 3], figure: f64, meets: bool) {
        let place = self.groups.iter().position(|it| it.file == file && it.network == network);
        let place = place.unwrap_or_else(|| {
            let (file, network) = (file.to_owned(), network.to_owned());
            self.groups.push(CellGroup { file, network, cells: 0, exceptions: Vec::new() });
            self.groups.len() - 1
        });
        let group = &mut self.groups[place];
        group.cells += 1;
        if !meets {
            group.exceptions.push((rest.to_owned(), figure));
        }
    }

    /// How many cells were counted.
    pub(crate) fn all(&self) -> usize {
        self.groups.iter().map(|it| it.cells).sum()
    }

    /// How many of them meet it.
    pub(crate) fn met(&self) -> usize {
        self.groups.iter().map(|it| it.cells - it.exceptions.len()).sum()
    }

    /// The share that does.
    pub(crate) fn share(&self) -> f64 {
        self.met() as f64 / self.all() as f64
    }

    /// Whether all cells meet it; no finding where there are none.
    pub(crate) fn every(&self) -> Option<Finding> {
        (self.all() > 0).then(|| (self.met() == self.all(), self.to_string()))
    }

    /// The exceptions of a file in words, if it has any.
    fn exceptions(&self, file: &str) -> Option<String> {
        let groups = || self.groups.iter().filter(|it| it.file == file);
        let (cells, exceptions) = groups()
            .fold((0, 0), |(cells, exceptions), it| (cells + it.cells, exceptions + it.exceptions.len()));
        if exceptions == cells {
            return Some(format!("{file} (all {cells})"));
        }
        let words: Vec<String> = groups().filter_map(CellGroup::exceptions).collect();
        (exceptions > 0).then(|| format!("{file} ({})", words.join("; ")))
    }
}

impl CellGroup {
    /// The exceptions in words, if there are any.
    fn exceptions(&self) -> Option<String> {
        let CellGroup { network, cells, exceptions, .. } = self;
        let figures = || exceptions.iter().map(|(_, figure)| *figure);
        let (least, most) = (figures().fold(f64::INFINITY, f64::min), figures().fold(0.0, f64::max));
        match exceptions.len() {
            0 => None,
            1..=NAMED => {
                let named: Vec<String> =
                    exceptions.iter().map(|(rest, figure)| format!("{rest} {figure:.3}")).collect();
                Some(format!("{network}: {}", named.join(" and ")))
            }
            many => Some(format!("{network}: {many} of {cells}, {least:.3} to {most:.3}")),
        }
    }
}

impl fmt::Display for ClaimTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.met(), self.all())?;
        let mut files: Vec<&str> = Vec::new();
        for group in &self.groups {
            if !files.contains(&group.file.as_str()) {
                files.push(&group.file);
            }
        }
        let exceptions = files.into_iter().filter_map(|file| self.exceptions(file));
        for (at, words) in exceptions.enumerate() {
            write!(f, "{} {words}", if at == 0 { "; not" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_are_named_by_file_and_network() {
        let mut tally = ClaimTally::default();
        tally.count(["pic", "1 Gbit/s", "1 KiB, RC5"], 1.5, true);
        tally.count(["gif", "1 Gbit/s", "1 KiB, RC5"], 0.9, false);
        tally.count(["gif", "10 Mbit/s", "1 KiB, RC5"], 0.99, false);
        tally.count(["pic", "1 Gbit/s", "4 KiB, RC5"], 0.987, false);
        assert_eq!((tally.met(), tally.all(), tally.share()), (1, 4, 0.25));
        assert_eq!(tally.to_string(), "1 of 4; not pic (1 Gbit/s: 4 KiB, RC5 0.987), gif (all 2)");
        tally.count(["pic", "1 Gbit/s", "63 KiB, RC5"], 0.5, false);
        tally.count(["pic", "1 Gbit/s", "63 KiB, 3DES"], 0.75, false);
        assert!(tally.to_string().contains("pic (1 Gbit/s: 3 of 4, 0.500 to 0.987), "), "{tally}");
        assert_eq!(ClaimTally::default().to_string(), "0 of 0");
    }
}
