//! What is shown of a transfer while it runs, and at its end.

use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};
use strait_transfer::message::{EntryKind, FileFault};
use strait_transfer::outbox::TransferProgress;
use strait_transfer::path::Printable;
use strait_transfer::session::{Tally, TransferEvent};

use crate::failure::Failure;
use crate::output::{note, tell};
use crate::pace::Pace;
use crate::status_line::StatusLine;
use crate::stopping::stopped;
use crate::units::{bytes, per_second, ratio, span};

/// Characters of a name that is shown.
const NAME: usize = 32;

/// Follows a transfer.
pub(super) struct TransferMeter {
    json: bool,
    terminal: StatusLine,
    now: Mutex<MeterState>,
    /// A pipe at this end, which cannot be resumed.
    pipe: Option<&'static str>,
}

/// What is counted of a transfer.
#[derive(Debug)]
pub(super) struct MeterState {
    pace: Pace,
    /// Bytes of content that moved, that were known before, and all that is announced.
    moved: u64,
    held: u64,
    announced: u64,
    wire: u64,
    /// Entries that are whole or failed, and all that are announced.
    done: u64,
    entries: u64,
    /// Name, bytes that moved, and size of the file that is sent.
    current: (String, u64, Option<u64>),
}

impl TransferMeter {
    /// A meter of a transfer that bears a silence of this length, with the name of a pipe at this end.
    pub(super) fn new(json: bool, patience: Duration, pipe: Option<&'static str>) -> TransferMeter {
        let now = Mutex::new(MeterState::new(patience));
        TransferMeter { json, terminal: StatusLine::new(), now, pipe }
    }

    /// Takes an event of the session.
    pub(super) fn event(&self, event: TransferEvent) {
        let Ok(mut state) = self.now.lock() else { return };
        // Bytes on the stream are the stream's to judge: this end also writes some when it has nothing to do.
        if !matches!(event, TransferEvent::Wire { .. }) {
            state.pace.happens();
        }
        state.count(&event);
        if self.json
            && let Some(value) = told(&event, self.pipe)
        {
            tell(&value);
        }
        match &event {
            TransferEvent::Failed { path, fault } if !self.json => {
                self.terminal.clear();
                note(format_args!("{}: {}", shown(path), pipe_text(fault, self.pipe)));
            }
            TransferEvent::Removed { path } if !self.json => {
                self.terminal.clear();
                tell(format_args!("removed {}", Printable(path)));
            }
            _ => {}
        }
        self.show_state(&mut state, None);
    }

    /// Shows how far it is, with the words for a silence of the peer.
    pub(super) fn show(&self, silence: Option<&str>) {
        if let Ok(mut state) = self.now.lock() {
            self.show_state(&mut state, silence);
        }
    }

    fn show_state(&self, state: &mut MeterState, silence: Option<&str>) {
        let now = state.pace.now();
        if !(self.json || self.terminal.is_shown()) || !state.pace.is_due(now, self.json) {
            return;
        }
        state.measure(now);
        if self.json {
            tell(state.told(now));
        } else {
            self.terminal.draw(&state.line(now, silence));
        }
    }

    /// Returns for how long nothing has happened.
    pub(super) fn quiet(&self) -> Duration {
        self.now.lock().map(|state| state.pace.quiet()).unwrap_or_default()
    }

    /// The failure of a transfer that a signal stopped, with how far it was.
    pub(super) fn stopped(&self) -> Failure {
        self.terminal.clear();
        stopped(self.now.lock().ok().map(|state| (state.moved + state.held, state.announced)))
    }

    /// Says how the transfer ended.
    pub(super) fn finish(&self, tally: &Tally) {
        let Ok(mut state) = self.now.lock() else { return };
        let now = state.pace.now();
        state.measure(now);
        if self.json {
            let Tally { whole, failed, removed } = *tally;
            let mut value = state.told(now);
            value["event"] = "done".into();
            value["whole"] = whole.into();
            value["failed"] = failed.into();
            value["removed"] = removed.into();
            tell(&value);
            return;
        }
        self.terminal.clear();
        let mut line = format!(
            "{} of {} in {}: {}, {} on the wire, ratio {}",
            bytes(state.moved),
            crate::units::counted(tally.whole, "entry").replace("entrys", "entries"),
            span(now),
            per_second(state.moved, now),
            bytes(state.wire),
            ratio(state.moved, state.wire),
        );
        if tally.removed > 0 {
            line += &format!(", {} removed", tally.removed);
        }
        note(line);
    }
}

impl MeterState {
    pub(super) fn new(patience: Duration) -> MeterState {
        MeterState {
            pace: Pace::new(patience),
            moved: 0,
            held: 0,
            announced: 0,
            wire: 0,
            done: 0,
            entries: 0,
            current: (String::new(), 0, None),
        }
    }

    /// Counts an event of the session.
    pub(super) fn count(&mut self, event: &TransferEvent) {
        match event {
            TransferEvent::Announced { kind, .. } => {
                self.entries += 1;
                if let EntryKind::File { size: Some(size) } = kind {
                    self.announced = self.announced.saturating_add(*size);
                }
            }
            TransferEvent::Begun { path, size, held } => {
                self.held = self.held.saturating_add(*held);
                let name: String = Printable(path).to_string().chars().take(NAME).collect();
                self.current = (name, *held, *size);
            }
            TransferEvent::Moved { bytes } => {
                self.moved = self.moved.saturating_add(*bytes);
                self.current.1 = self.current.1.saturating_add(*bytes);
            }
            TransferEvent::Void { bytes } => {
                self.moved = self.moved.saturating_sub(*bytes);
                self.current.1 = self.current.1.saturating_sub(*bytes);
            }
            TransferEvent::Skipped { size, .. } => self.held = self.held.saturating_add(*size),
            TransferEvent::Whole { .. } | TransferEvent::Failed { .. } => self.done += 1,
            TransferEvent::Wire { bytes } => self.wire = self.wire.saturating_add(*bytes),
            TransferEvent::Removed { .. } | TransferEvent::Asked { .. } | TransferEvent::Settled => {}
        }
    }

    /// Returns how far it is now.
    pub(super) fn look(&mut self) -> TransferProgress {
        self.measure(self.pace.now());
        self.progress()
    }

    fn measure(&mut self, now: Duration) {
        self.pace.measure(now, self.moved);
    }

    /// The time that is left, if all that is to come is announced; none if nothing of that is to come and entries are not done.
    fn left(&self) -> Option<Duration> {
        let rest = self.announced.saturating_sub(self.moved.saturating_add(self.held));
        let rate = self.pace.rate();
        (rate >= 1.0 && (rest > 0 || self.done >= self.entries))
            .then(|| Duration::from_secs_f64(rest as f64 / rate))
    }

    fn line(&self, now: Duration, silence: Option<&str>) -> String {
        let (name, moved, size) = &self.current;
        let of = size.map_or(String::new(), |size| {
            let percent = moved.saturating_mul(100).checked_div(size).unwrap_or(100);
            format!(" of {} {}%", bytes(size), percent.min(100))
        });
        let far = format!("{name}  {}{of}", bytes(*moved));
        if let Some(silence) = silence {
            return format!("{silence}  {far}  0 B/s");
        }
        let rate = self.pace.rate_text();
        let left = self.left().map_or(String::new(), |left| format!("  {} left", span(left)));
        let entries = match self.entries {
            0 | 1 => String::new(),
            all => format!("  {} of {all} entries", self.done),
        };
        // What a narrow terminal cuts off is what people miss least.
        let (wire, ratio) = (per_second(self.wire, now), ratio(self.moved, self.wire));
        format!("{far}  {rate}{left}{entries}  {wire} on the wire, ratio {ratio}")
    }

    fn progress(&self) -> TransferProgress {
        TransferProgress {
            moved_bytes: self.moved,
            held_bytes: self.held,
            announced_bytes: self.announced,
            wire_bytes: self.wire,
            bytes_per_second: self.pace.rate() as u64,
            seconds_left: self.left().map(|left| left.as_secs()),
            entries_done: self.done,
            entries: self.entries,
        }
    }

    /// The same as an event.
    fn told(&self, now: Duration) -> Value {
        let mut value = json!(self.progress());
        value["event"] = "progress".into();
        value["seconds"] = now.as_secs_f64().into();
        value
    }
}

/// A fault in words for a person.
pub(super) fn fault_words(fault: &FileFault) -> String {
    let (says, more) = (fault.reason.says(), Printable(&fault.text).to_string());
    match more.strip_prefix(says) {
        Some(rest) if rest.is_empty() || rest.starts_with(':') => more,
        _ if more.is_empty() => says.to_owned(),
        _ => format!("{says} ({more})"),
    }
}

/// The same with what to do.
pub(super) fn fault_text(fault: &FileFault) -> String {
    format!("{}; {}", fault_words(fault), fault.reason.remedy())
}

/// The words that a pipe makes untrue.
const GOES_ON: &str = "it goes on where it stopped";

/// A fault in words with what to do, in a transfer with a pipe at this end or none.
fn pipe_text(fault: &FileFault, pipe: Option<&str>) -> String {
    let text = fault_text(fault);
    pipe.map_or_else(|| text.clone(), |pipe| text.replace(GOES_ON, &format!("{pipe} cannot be resumed")))
}

/// A path below the place; the place itself has none.
pub(super) fn shown(path: &[u8]) -> String {
    if path.is_empty() { ".".to_owned() } else { Printable(path).to_string() }
}

/// Events that are told one by one. Paths are escaped: a backslash stands before what a terminal would not show.
fn told(event: &TransferEvent, pipe: Option<&str>) -> Option<Value> {
    let path = |path: &[u8]| Printable(path).to_string();
    Some(match event {
        TransferEvent::Begun { path: name, size, held } => {
            json!({"event": "begun", "path": path(name), "bytes": size, "held_bytes": held})
        }
        TransferEvent::Skipped { path: name, size } => {
            json!({"event": "skipped", "path": path(name), "bytes": size})
        }
        TransferEvent::Whole { path: name } => json!({"event": "whole", "path": path(name)}),
        TransferEvent::Failed { path: name, fault } => {
            json!({"event": "failed", "path": path(name), "reason": pipe_text(fault, pipe)})
        }
        TransferEvent::Removed { path: name } => json!({"event": "removed", "path": path(name)}),
        TransferEvent::Announced { .. }
        | TransferEvent::Moved { .. }
        | TransferEvent::Void { .. }
        | TransferEvent::Wire { .. }
        | TransferEvent::Asked { .. }
        | TransferEvent::Settled => return None,
    })
}

#[cfg(test)]
mod tests {
    use strait_transfer::message::FaultReason;

    use super::*;
    use crate::silence;

    #[test]
    fn a_transfer_in_which_nothing_happens_has_no_rate_and_no_time_left() {
        let mut state = MeterState::new(silence::patience(None));
        let at = |quarter: u32| Duration::from_millis(250) * quarter;
        let path = b"photo".to_vec();
        let kind = EntryKind::File { size: Some(40_000_000) };
        state.count(&TransferEvent::Announced { path: path.clone(), kind });
        state.count(&TransferEvent::Begun { path, size: Some(40_000_000), held: 0 });
        for quarter in 1..=40 {
            state.count(&TransferEvent::Moved { bytes: 250_000 });
            state.measure(at(quarter));
        }
        let line = state.line(at(40), None);
        assert!(line.starts_with("photo  10.0 MB of 40.0 MB 25%  1.00 MB/s  30 s left  "), "{line}");
        for quarter in 41..=60 {
            state.measure(at(quarter));
        }
        let line = state.line(at(60), None);
        assert!(line.starts_with("photo  10.0 MB of 40.0 MB 25%  0 B/s  "), "{line}");
        assert!(!line.contains("left"), "{line}");
        let told = state.told(at(60));
        assert_eq!((&told["bytes_per_second"], &told["seconds_left"]), (&json!(0), &Value::Null));
        let words = silence::words("office", Duration::from_secs(12));
        let line = state.line(at(90), Some(&words));
        assert_eq!(line, "nothing from office for 12 s  photo  10.0 MB of 40.0 MB 25%  0 B/s");
    }

    #[test]
    fn a_fault_is_said_once() {
        let said = |reason, text: &str| fault_text(&FileFault::new(reason, text));
        let unreadable = "the source cannot be read: Permission denied; check its permissions and its disk";
        assert_eq!(said(FaultReason::Unreadable, "the source cannot be read: Permission denied"), unreadable);
        let in_the_way =
            "something of another kind has this name; remove it at the receiver, or send under another name";
        assert_eq!(said(FaultReason::InTheWay, "something of another kind has this name"), in_the_way);
        assert_eq!(said(FaultReason::InTheWay, ""), in_the_way);
        assert_eq!(
            said(FaultReason::Busy, "x").split(';').next(),
            Some("another run of this transfer is writing it (x)")
        );
    }

    #[test]
    fn a_pipe_is_not_said_to_go_on() {
        let full = FileFault::from(FaultReason::DiskFull);
        assert!(pipe_text(&full, None).ends_with("run the command again; it goes on where it stopped"));
        let text = pipe_text(&full, Some("standard input"));
        assert!(text.ends_with("run the command again; standard input cannot be resumed"), "{text}");
        assert_eq!(shown(b""), ".");
    }
}
