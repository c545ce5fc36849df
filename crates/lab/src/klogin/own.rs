//! A line, a round trip and a file of the user's own, in the place of the paper's.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use strait_compress::Codecs;
use strait_scheduler::Rate;
use strait_sim::DialUpSettings;

use super::cipher::{self, FileCipher};
use super::files;
use super::printed::FILES;
use super::transfer::{self, DialUpSession, FtpWay};
use crate::error::Error;
use crate::report::{Comparison, Exhibit, FigureUnit, LabTable, computed};

/// Bytes of a file that are sent at most: an hour of 2,400 bit/s.
const FILE_MAX: u64 = 1_000_000;

/// A user's line and file; for what is not given the paper's counts.
#[derive(Clone, Debug, Default)]
pub struct OwnLine {
    /// The rate of the line.
    pub rate: Option<Rate>,
    /// The time from modem to modem and back, without what packets take by their length.
    pub round_trip: Option<Duration>,
    /// A file, of which the first 1,000,000 bytes are sent at most.
    pub file: Option<PathBuf>,
}

impl OwnLine {
    /// True if anything is given.
    pub(super) const fn is_given(&self) -> bool {
        self.is_another_line() || self.file.is_some()
    }

    /// True if the line is another than the paper's.
    pub(super) const fn is_another_line(&self) -> bool {
        self.rate.is_some() || self.round_trip.is_some()
    }

    /// The modems' line: the ports are as much faster than it as the paper's.
    pub(super) fn settings(&self) -> DialUpSettings {
        let paper = DialUpSettings::default();
        let line = self.rate.map_or(paper.line, Rate::bits);
        DialUpSettings {
            line,
            port: line.saturating_mul(paper.port) / paper.line,
            delay: self.round_trip.map_or(paper.delay, |round| round / 2),
            ..paper
        }
    }

    fn named(&self) -> String {
        let DialUpSettings { line, delay, .. } = self.settings();
        let file = self.file.as_deref().and_then(|path| path.file_name());
        let file = file.map_or_else(|| FILES[1].to_owned(), |name| name.to_string_lossy().into_owned());
        format!("{file} over {} kbit/s, a round trip of {} ms", line as f64 / 1e3, (2 * delay).as_millis())
    }

    fn content(&self) -> Result<Vec<u8>, Error> {
        let Some(path) = &self.file else { return Ok(files::content(1)) };
        let refused = |why: String| Error::GivenFile { path: path.clone(), why };
        let mut bytes = Vec::new();
        let file = File::open(path).map_err(|error| refused(format!("cannot be opened: {error}")))?;
        file.take(FILE_MAX)
            .read_to_end(&mut bytes)
            .map_err(|error| refused(format!("cannot be read: {error}")))?;
        if bytes.is_empty() { Err(refused("is empty".to_owned())) } else { Ok(bytes) }
    }

    /// The rate at which the file comes: over modems that compress, and over a link of the same rate without them.
    ///
    /// # Errors
    /// [`Error`] when the file cannot be read, or a cipher or a node refuses.
    pub(super) fn table(&self) -> Result<LabTable, Error> {
        let (content, settings) = (self.content()?, self.settings());
        let kbytes = |seconds: f64| content.len() as f64 / 1024.0 / seconds;
        let small = cipher::compressed(&mut Codecs::new(), &content);
        let sent = [(FileCipher::Plain, &content), (FileCipher::Aes, &content), (FileCipher::Aes, &small)];
        let mut ways = Vec::new();
        for (cipher, bytes) in sent {
            ways.push(Arc::<[u8]>::from(cipher.encrypted(bytes.clone())?));
        }
        let modems = ways.iter().map(|file| {
            let times = DialUpSession::new(settings).transfer(FtpWay::Receive, file);
            computed(kbytes(times.arrived))
        });
        let mut cells: [Vec<_>; 2] = [modems.collect(), Vec::new()];
        // The tunnel's ends are not at the modems, which would have nothing to compress of what it sends.
        cells[0].push(None::<f64>.into_iter().collect());
        let rate = Rate::from_bits(settings.line).ok_or_else(|| no_rate(self))?;
        let link = transfer::today(rate, settings.delay);
        cells[1].extend(ways.iter().map(|file| computed(kbytes(transfer::over_link(link, file)))));
        let tunnel = transfer::through_tunnel(link, &content.clone().into());
        let tunnel = tunnel.map_err(|error| Error::refused("a node", "run")(error.into()))?;
        cells[1].push(computed(kbytes(tunnel)));
        let columns = ["plain", "aes", "gz, aes", "Strait, codec auto"];
        let unit = FigureUnit::KilobytesPerSecond;
        let mut table =
            LabTable::new(Exhibit::Section("2"), self.named(), unit, Comparison::Quotient, columns);
        for (name, cells) in ["modems that compress", "none"].into_iter().zip(cells) {
            table.row(name, cells.into_iter().map(|cell| (cell, None)));
        }
        Ok(table)
    }
}

fn no_rate(own: &OwnLine) -> Error {
    Error::refused("a link", "carry")(format!("{:?} is no rate", own.rate).into())
}

#[cfg(test)]
mod tests {
    use strait_testbed::Workdir;

    use super::*;

    #[test]
    fn what_is_not_given_is_the_papers() {
        let paper = DialUpSettings::default();
        let line = |own: &OwnLine| {
            let DialUpSettings { line, port, delay, .. } = own.settings();
            (line, port, delay)
        };
        let none = OwnLine::default();
        assert_eq!((line(&none), none.is_given()), ((paper.line, paper.port, paper.delay), false));
        let round_trip = Some(Duration::from_millis(300));
        let own = OwnLine { rate: Rate::from_bits(28_800), round_trip, file: None };
        assert_eq!(line(&own), (28_800, 76_800, Duration::from_millis(150)));
        assert!(own.is_given() && own.is_another_line());
    }

    #[test]
    fn a_file_of_ones_own_is_sent_over_ones_own_line() {
        let folder = Workdir::create().unwrap();
        let file = Some(folder.path().join("mine.txt"));
        let own = OwnLine { rate: Rate::from_bits(56_000), round_trip: None, file };
        assert!(matches!(own.table(), Err(Error::GivenFile { .. })), "there is none");
        for (content, sent) in [("", false), ("drwxr-xr-x 2 root wheel\n", true)] {
            std::fs::write(own.file.as_deref().unwrap(), content.repeat(400)).unwrap();
            assert_eq!(own.table().is_ok(), sent, "{content}");
        }
        let table = own.table().unwrap();
        assert_eq!(table.subject, "mine.txt over 56 kbit/s, a round trip of 80 ms");
        let cells =
            table.rows.iter().map(|row| row.cells.iter().filter(|cell| cell.ours.spread().is_some()).count());
        assert_eq!(cells.collect::<Vec<_>>(), [3, 4]);
    }
}
