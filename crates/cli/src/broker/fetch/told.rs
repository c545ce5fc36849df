//! What is shown of a visit to the inbox.

use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};
use strait_transfer::broker::download::{FetchEvent, FetchTally};
use strait_transfer::path::Printable;
use strait_transfer::sealed::Manifest;

use crate::broker::places::ArrivalPlaces;
use crate::carry::{outcome, receipt_json};
use crate::output::{note, tell};
use crate::pace::Pace;
use crate::silence;
use crate::status_line::StatusLine;
use crate::units::{bytes, counted, per_second};

/// Tells what happens.
pub(crate) struct FetchTold<'a> {
    json: bool,
    terminal: StatusLine,
    places: &'a ArrivalPlaces,
    far: Mutex<HowFar>,
}

struct HowFar {
    pace: Pace,
    /// Sealed bytes that came, those of an earlier visit, and all that are there.
    moved: u64,
    held: u64,
    all: u64,
}

impl<'a> FetchTold<'a> {
    pub(crate) fn new(json: bool, places: &'a ArrivalPlaces) -> FetchTold<'a> {
        let far = HowFar { pace: Pace::new(silence::patience(None)), moved: 0, held: 0, all: 0 };
        let far = Mutex::new(far);
        FetchTold { json, terminal: StatusLine::new(), places, far }
    }

    /// Tells of an event.
    pub(crate) fn event(&self, event: &FetchEvent<'_>) {
        let Ok(mut far) = self.far.lock() else { return };
        far.pace.happens();
        match event {
            FetchEvent::Listed { bytes, .. } => far.all = *bytes,
            FetchEvent::Begun { held, .. } => far.held += held,
            FetchEvent::Moved { bytes } => far.moved += bytes,
            _ => {}
        }
        if self.json {
            if let Some(value) = self.value(event) {
                tell(&value);
            }
        } else if let Some((line, wrong)) = self.line(event) {
            self.terminal.clear();
            if wrong { note(line) } else { tell(line) }
        }
        self.show_far(&mut far, None);
    }

    /// Shows how far it is, with the words for a silence of the broker.
    pub(crate) fn show(&self, silence: Option<&str>) {
        if let Ok(mut far) = self.far.lock() {
            self.show_far(&mut far, silence);
        }
    }

    fn show_far(&self, far: &mut HowFar, silence: Option<&str>) {
        let now = far.pace.now();
        if !(self.json || self.terminal.is_shown()) || !far.pace.is_due(now, self.json) {
            return;
        }
        far.pace.measure(now, far.moved);
        if self.json {
            tell(far.value());
        } else {
            self.terminal.draw(&far.line(silence));
        }
    }

    /// Returns for how long nothing has happened.
    pub(crate) fn quiet(&self) -> Duration {
        self.far.lock().map(|far| far.pace.quiet()).unwrap_or_default()
    }

    /// Says what the visit came to; `quiet`: only where something came.
    pub(crate) fn finish(&self, tally: Option<&FetchTally>, quiet: bool) {
        self.terminal.clear();
        let (Ok(far), Some(tally)) = (self.far.lock(), tally) else { return };
        let FetchTally { received, failed_entries, delivered, lacking, left, failed } = *tally;
        if quiet && received + delivered + failed == 0 {
            return;
        }
        if self.json {
            let mut value = far.value();
            value["event"] = "done".into();
            value["received"] = received.into();
            value["delivered"] = delivered.into();
            value["left"] = left.into();
            value["failed"] = failed.into();
            value["failed_entries"] = failed_entries.into();
            value["lacking"] = lacking.into();
            return tell(&value);
        }
        let time = far.pace.now();
        let rate = per_second(far.moved, time);
        note(format_args!("{} received, {}, {rate}", counted(received, "transfer"), bytes(far.moved)));
    }

    /// An event in a line, and whether it says that something is wrong.
    fn line(&self, event: &FetchEvent<'_>) -> Option<(String, bool)> {
        let name = |key| self.places.name(key);
        Some(match event {
            FetchEvent::Found { manifest, place } => {
                let to = below(&place.folder.path().display().to_string(), manifest);
                let (what, from) = (what(manifest), name(&manifest.sender));
                (format!("{}  from {from}: {what}, to {to}", manifest.transfer), false)
            }
            FetchEvent::Received { manifest, place, receipt } => {
                let to = place.map_or_else(
                    || "; it came before, or is not taken".to_owned(),
                    |place| format!(", in {}", below(&place.folder.path().display().to_string(), manifest)),
                );
                let from = name(&manifest.sender);
                (format!("{}  received from {from}: {}{to}", receipt.transfer, outcome(receipt)), false)
            }
            FetchEvent::Delivered { receipt } => {
                let to = name(&receipt.receiver);
                (format!("{}  delivered to {to}: {}", receipt.transfer, outcome(receipt)), false)
            }
            // What a stranger wrote may be in it.
            FetchEvent::Left { object, reason } => {
                (format!("{}  stays at the broker: {}", object.id, reason.escape_debug()), true)
            }
            FetchEvent::Failed { object, reason } => {
                (format!("{}  {}", object.id, reason.escape_debug()), true)
            }
            FetchEvent::Listed { .. } | FetchEvent::Begun { .. } | FetchEvent::Moved { .. } => return None,
        })
    }

    fn value(&self, event: &FetchEvent<'_>) -> Option<Value> {
        let name = |key| self.places.name(key);
        Some(match event {
            FetchEvent::Listed { transfers, bytes } => {
                json!({"event": "listed", "transfers": transfers, "sealed_bytes": bytes})
            }
            FetchEvent::Found { manifest, place } => {
                let names = manifest.entries.iter().map(|entry| Printable(&entry.path).to_string());
                json!({
                    "event": "found",
                    "transfer": manifest.transfer.to_string(),
                    "peer": name(&manifest.sender),
                    "folder": Printable(manifest.folder.as_bytes()).to_string(),
                    "to": below(&place.folder.path().display().to_string(), manifest),
                    "entries": manifest.entries.len(),
                    "bytes": manifest.content_len(),
                    "names": names.collect::<Vec<_>>(),
                })
            }
            FetchEvent::Begun { manifest, sealed, held, .. } => json!({
                "event": "begun",
                "transfer": manifest.transfer.to_string(),
                "sealed_bytes": sealed,
                "held_bytes": held,
            }),
            FetchEvent::Received { manifest, place, receipt } => {
                let mut value = receipt_json(receipt);
                value["event"] = "received".into();
                value["peer"] = name(&receipt.sender).into();
                let to = place.map(|place| below(&place.folder.path().display().to_string(), manifest));
                value["to"] = to.into();
                value
            }
            FetchEvent::Delivered { receipt } => {
                let mut value = receipt_json(receipt);
                value["event"] = "delivered".into();
                value["peer"] = name(&receipt.receiver).into();
                value
            }
            FetchEvent::Left { object, reason } => {
                json!({"event": "left", "transfer": object.id.to_string(), "reason": reason})
            }
            FetchEvent::Failed { object, reason } => {
                json!({"event": "failed", "transfer": object.id.to_string(), "reason": reason})
            }
            FetchEvent::Moved { .. } => return None,
        })
    }
}

impl HowFar {
    fn line(&self, silence: Option<&str>) -> String {
        let rate = self.pace.rate_text();
        let silence = silence.map_or_else(String::new, |silence| format!("{silence}  "));
        format!("{silence}{} of {}  {rate}", bytes(self.moved + self.held), bytes(self.all))
    }

    fn value(&self) -> Value {
        json!({
            "event": "progress",
            "moved_bytes": self.moved,
            "held_bytes": self.held,
            "announced_bytes": self.all,
            "seconds": self.pace.now().as_secs_f64(),
        })
    }
}

/// A folder and the path below it.
fn below(folder: &str, manifest: &Manifest) -> String {
    if manifest.below.is_empty() {
        folder.to_owned()
    } else {
        format!("{folder}/{}", Printable(&manifest.below))
    }
}

/// What is in a transfer: its only name, or how many there are.
fn what(manifest: &Manifest) -> String {
    let size = bytes(manifest.content_len());
    match manifest.entries.as_slice() {
        [only] => format!("{}, {size}", Printable(&only.path)),
        entries => format!("{} entries, {size}", entries.len()),
    }
}
