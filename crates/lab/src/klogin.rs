//! H.-W. Braun, K. Claffy and A. Gross, *Measured interference of network security mechanisms with network performance* (INET '95):
//! what encrypting before compressing costs over a modem that compresses, and how many packets a keystroke takes.
//!
//! - Tables 1 and 2 in virtual time: files over [`strait_sim::DialUp`], with `crypt(1)`, `compress(1)` and DES as of that time, and
//!   AES and a tunnel as of today;
//! - Table 3 on a real interface, where hosts may be made: programs that a keystroke is typed into, and each packet that it caused.

mod cipher;
mod claims;
mod files;
mod grid;
mod keystroke;
mod lzw;
mod own;
pub mod printed;
mod real;
mod rotor;
mod tables;
mod transfer;

use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;

use crate::claim::{self, FigureSource};
use crate::error::Error;
use crate::report::LabReport;
use crate::steps::{Effort, StepCounter, StepNote};
use claims::KloginFigures;
use grid::FtpGrid;
pub use keystroke::{Keystroke, KeystrokeRow};
pub use own::OwnLine;

/// As reports name it.
const PAPER: &str =
    "Braun, Claffy and Gross, Measured interference of network security mechanisms with network performance";
/// Transfers of each cell, of which the best counts (section 3).
const REPEATS: usize = 3;

/// What is made, and with what.
#[derive(Clone, Debug)]
pub struct KloginLab {
    /// How much.
    pub effort: Effort,
    /// Why no hosts can be made, if so: what needs them is left out then.
    pub hosts: Result<(), String>,
    /// The `strait` whose logins are looked at, if there is one.
    pub strait: Option<PathBuf>,
    /// OpenSSH's server, if not where systems install it.
    pub sshd: Option<PathBuf>,
    /// A line and a file of the user's own.
    pub own: OwnLine,
}

/// A report, and what else a person wants to see.
#[derive(Clone, Debug, Serialize)]
pub struct Klogin {
    /// Tables, claims and notes.
    #[serde(flatten)]
    pub report: LabReport,
    /// Each keystroke of each program, with its packets.
    pub keystrokes: Vec<KeystrokeRow>,
}

impl KloginLab {
    /// Makes the paper's tables.
    ///
    /// # Errors
    /// [`Error`] when a cipher, a node or a host refuses.
    pub fn run(&self, tell: &mut dyn FnMut(StepNote<'_>)) -> Result<Klogin, Error> {
        let mut made = self.papers(tell)?;
        if self.own.is_given() {
            made.report.tables.insert(0, self.own.table()?);
        }
        Ok(made)
    }

    /// The paper's tables, with keystrokes over the user's line.
    fn papers(&self, tell: &mut dyn FnMut(StepNote<'_>)) -> Result<Klogin, Error> {
        let full = self.effort == Effort::Full;
        let mut steps = StepCounter::new(FtpGrid::STEPS + 1 + usize::from(full), tell);
        let grid = Arc::new(FtpGrid::run(if full { REPEATS } else { 1 }, &mut steps)?);
        if let Err(why) = &self.hosts {
            return Ok(reported(&grid, Err(why), None));
        }
        steps.next("keystrokes");
        let keystrokes = keystroke::measured(self)?;
        if !full {
            return Ok(reported(&grid, Ok(keystrokes), None));
        }
        steps.next("three files in real time");
        Ok(reported(&grid, Ok(keystrokes), Some(real::measured()?)))
    }
}

/// Puts together what was made; instead of keystrokes there may be a reason why there are none.
fn reported(
    grid: &Arc<FtpGrid>,
    keystrokes: Result<Vec<KeystrokeRow>, &str>,
    real: Option<[f64; 3]>,
) -> Klogin {
    let mut report = LabReport::computed(PAPER);
    report.tables = tables::of(grid);
    report.notes = notes();
    if let Some(rates) = real {
        report.tables.insert(1, tables::real(grid, rates));
    }
    match &keystrokes {
        Ok(rows) => {
            report.tables.extend(tables::keystrokes(rows));
            report.notes.extend(keystroke_notes(rows));
        }
        Err(why) => {
            report.notes.push(format!(
                "Table 3, and Table 1 in real time, are left out as no hosts can be made: {why}"
            ));
        }
    }
    let keystrokes = keystrokes.unwrap_or_default();
    let here = KloginFigures { table3: tables::table3(&keystrokes), ..KloginFigures::NONE };
    let computed = KloginFigures::computed(grid);
    let sets = [
        (FigureSource::Printed, &KloginFigures::PRINTED),
        (FigureSource::Computed, &computed),
        (FigureSource::Here, &here),
    ];
    report.claims = claim::judged(&claims::rules::RULES, &sets);
    Klogin { report, keystrokes }
}

fn notes() -> Vec<String> {
    vec![
        "what the paper leaves open: V.42bis with 2,048 codewords and strings of up to 32 characters, frames of 128 octets \
         (LAPM, six more each), 40 ms from modem to modem, serial ports of 38,400 bit/s with ten bits an octet and a flag for \
         their flow, an MTU of 296 and compressed headers (RFC 1144), windows of 4,096 bytes as in Table 3. TCP is that of the \
         simulator, CUBIC and a first window of ten segments; nothing is lost, so little depends on it"
            .to_owned(),
        "38,400 bit/s with ten bits an octet are 3.75 kbytes/s, which caps what shrinks; `ftp` stops its clock when a socket has \
         taken the last byte, so that what is sent seems faster than what is received by what a socket holds, here as in the \
         paper"
            .to_owned(),
        "crypt is the rotor machine of crypt(1), as Debian's package mcrypt has it; des is DES in CBC mode with whole blocks. gz \
         is DEFLATE at level 6, without the file's name, which the paper's sizes seem to have (six bytes more explain 138)"
            .to_owned(),
        "the paper's file of random characters becomes longer by gzip, so that all 256 values are in it; its ls -R is not known, \
         and a listing is made that shrinks about as far"
            .to_owned(),
        "over links of today, 100,000 bytes are there after a few round trips, in which TCP begins slowly: at 10 Mbit/s and more \
         that decides, and segments are smaller in a tunnel. gz has the whole file at once, Strait compresses what waits for the link"
            .to_owned(),
        "no time of a processor is in Tables 1 and 2, nor in those of sections 2 and 4: they are made in virtual time".to_owned(),
    ]
}

fn keystroke_notes(rows: &[KeystrokeRow]) -> Vec<String> {
    let mut notes = vec![
        "Table 3: hosts in network namespaces, between which packet sockets and the modems of Tables 1 and 2 carry packets in real \
         time; the kernel's TCP without timestamps. klogin's own code is not at hand: what it writes is, four bytes of length and \
         sixteen of data that DES encrypted, and so is Nagle's algorithm. \
         Its acknowledgements wait for answers, as 4.3BSD's did; Linux by itself sends one more at once. Times are of the keystroke in the middle, from its first \
         to its last packet at the home machine. The line of strait login has packets of up to 1,500 bytes, as QUIC wants 1,200; \
         its echo is not predicted here"
            .to_owned(),
        "strait login, short: with suites = [\"aes-128-gcm-12\"] and carrier = \"ip\", tags of 12 bytes and ESP directly behind IP. IPHC: PPP \
         compresses the headers of UDP and ESP (RFC 2507, RFC 3544), as Cisco's routers do; the PPP of Linux and of the BSDs has RFC \
         1144 alone, which knows TCP only. Of packets with compressed headers, one in 257 and one each 5 s has whole ones"
            .to_owned(),
    ];
    let lacking: Vec<&str> =
        keystroke::names().filter(|name| rows.iter().all(|row| row.program != *name)).collect();
    if !lacking.is_empty() {
        notes.push(format!("not installed, or left out for a quick look: {}", lacking.join(", ")));
    }
    notes
}

#[cfg(test)]
mod tests;
