//! A log that loses lines rather than the daemon, and says how many.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use super::Form;

/// Lines that this process could not write to its log.
static LOST: AtomicU64 = AtomicU64::new(0);

/// How many lines this process could not write to its log since it started.
#[must_use]
pub fn lost_lines() -> u64 {
    LOST.load(Ordering::Relaxed)
}

/// Where lines go, each in one call of [`Write::write`], which never fails: a line that cannot be written is counted,
/// and the next that can be follows a line with that count.
#[derive(Debug)]
pub(super) struct LossyLog<W> {
    out: W,
    form: Form,
    lost: &'static AtomicU64,
    /// Whether lines were lost since the last that was written.
    is_behind: bool,
    /// Whether the beginning of a line was written, and its end was not.
    is_torn: bool,
}

impl<W: Write> LossyLog<W> {
    pub(super) const fn new(out: W, form: Form) -> LossyLog<W> {
        LossyLog { out, form, lost: &LOST, is_behind: false, is_torn: false }
    }

    /// Whether all of `text` was written.
    fn put(&mut self, mut text: &[u8]) -> bool {
        while !text.is_empty() {
            match self.out.write(text) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => return false,
                Ok(len) => {
                    text = text.get(len..).unwrap_or_default();
                    self.is_torn = !text.is_empty();
                }
            }
        }
        true
    }

    /// Writes how many lines are lost, on a line of its own; whether that was possible.
    fn catch_up(&mut self) -> bool {
        let lost = self.lost.load(Ordering::Relaxed);
        let words = "lines of this log are lost, since it could not be written";
        let end = if self.is_torn { "\n" } else { "" };
        let note = match self.form {
            Form::Text => format!("{end}WARN {lost} {words}\n"),
            Form::Json => {
                format!(
                    "{end}{{\"level\":\"WARN\",\"message\":\"{lost} {words}\",\"lost_log_lines\":{lost}}}\n"
                )
            }
        };
        self.is_behind = !self.put(note.as_bytes());
        !self.is_behind
    }
}

impl<W: Write> Write for LossyLog<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let written = (!self.is_behind || self.catch_up()) && self.put(line);
        if !written {
            self.is_behind = true;
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk with so much room, which it is given back at times.
    #[derive(Debug, Default)]
    struct Disk {
        text: Vec<u8>,
        room: usize,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let len = bytes.len().min(self.room);
            if len == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.room -= len;
            self.text.extend(&bytes[..len]);
            Ok(len)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn log(form: Form) -> LossyLog<Disk> {
        let lost = Box::leak(Box::default());
        LossyLog { out: Disk::default(), form, lost, is_behind: false, is_torn: false }
    }

    #[test]
    fn a_disk_that_fills_up_within_a_line_costs_that_line_and_those_behind_it() {
        let mut log = log(Form::Text);
        log.out.room = 8;
        for line in ["first\n", "second\n", "third\n"] {
            log.write_all(line.as_bytes()).unwrap();
        }
        // Room for a part of the note, then for all.
        log.out.room = 7;
        log.write_all(b"fourth\n").unwrap();
        log.out.room = 1000;
        log.write_all(b"fifth\n").unwrap();
        log.write_all(b"sixth\n").unwrap();
        let note = "WARN 3 lines of this log are lost, since it could not be written";
        let text = String::from_utf8(log.out.text).unwrap();
        assert_eq!(text, format!("first\nse\nWARN 2\n{note}\nfifth\nsixth\n"));
    }

    #[test]
    fn a_log_for_programs_stays_one_object_a_line() {
        let mut log = log(Form::Json);
        log.write_all(b"{\"lost\":true}\n").unwrap();
        log.out.room = 1000;
        log.write_all(b"{}\n").unwrap();
        let text = String::from_utf8(log.out.text).unwrap();
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((lines.len(), &lines[0]["lost_log_lines"]), (2, &1.into()));
    }
}
