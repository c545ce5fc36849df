//! What is shown of an upload while it runs, and at its end.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use strait_transfer::broker::upload::{ObjectSize, UploadEvent, UploadTally};
use strait_transfer::path::Printable;

use super::name;
use crate::failure::Failure;
use crate::files::day_and_time;
use crate::output::{note, tell};
use crate::pace::Pace;
use crate::status_line::StatusLine;
use crate::stopping::stopped;
use crate::units::{bytes, counted, per_second, ratio, span};

/// The time that a command runs before a line shows how far it is.
const SOON: Duration = Duration::from_secs(1);

/// Follows an upload.
pub(super) struct PutMeter {
    json: bool,
    terminal: StatusLine,
    /// What is put, in words.
    what: String,
    now: Mutex<Counted>,
}

struct Counted {
    pace: Pace,
    /// Bytes of files that were read, and those of all objects that were begun.
    read: u64,
    announced: u64,
    /// Of the object that was begun last.
    last: u64,
    sent: u64,
    objects: u64,
    stored: u64,
    /// The last one that was stored.
    id: String,
}

impl PutMeter {
    pub(super) fn new(json: bool, what: String, patience: Duration) -> PutMeter {
        let now = Counted {
            pace: Pace::new(patience),
            read: 0,
            announced: 0,
            last: 0,
            sent: 0,
            objects: 0,
            stored: 0,
            id: String::new(),
        };
        PutMeter { json, terminal: StatusLine::new(), what, now: Mutex::new(now) }
    }

    /// Takes an event.
    pub(super) fn event(&self, event: &UploadEvent) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        now.pace.happens();
        now.count(event);
        if self.json {
            if let Some(value) = told(event) {
                tell(&value);
            }
        } else {
            match event {
                UploadEvent::Changed { place } => {
                    self.terminal.clear();
                    note(format_args!(
                        "strait: {} changed: it is sent again from its beginning",
                        name(place)
                    ));
                }
                UploadEvent::Failed { place, why } => {
                    self.terminal.clear();
                    note(format_args!("{}: {why}", name(place)));
                }
                _ => {}
            }
        }
        self.show_counted(&mut now, None);
    }

    /// Shows how far it is, with the words for a silence of the broker.
    pub(super) fn show(&self, silence: Option<&str>) {
        self.show_counted(&mut self.now.lock().unwrap_or_else(PoisonError::into_inner), silence);
    }

    fn show_counted(&self, now: &mut Counted, silence: Option<&str>) {
        let time = now.pace.now();
        let is_shown = (self.json || self.terminal.is_shown()) && time >= SOON;
        if !is_shown || !now.pace.is_due(time, self.json) {
            return;
        }
        now.pace.measure(time, now.sent);
        if self.json {
            tell(now.value("progress"));
        } else {
            self.terminal.draw(&now.line(&self.what, silence));
        }
    }

    /// Returns for how long nothing has happened.
    pub(super) fn quiet(&self) -> Duration {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).pace.quiet()
    }

    /// The failure of an upload that a signal stopped, with how far it was.
    pub(super) fn stopped(&self) -> Failure {
        self.terminal.clear();
        let now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        stopped((now.announced > 0).then_some((now.read, now.announced)))
    }

    /// Says how it ended.
    pub(super) fn finish(&self, tally: Option<&UploadTally>, expires: i64) {
        let now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        self.terminal.clear();
        let Some(tally) = tally else { return };
        let (size, time) = (tally.size, now.pace.now());
        if self.json {
            let mut value = now.value("done");
            value["stored"] = tally.stored.into();
            value["stored_before"] = tally.before.into();
            value["failed"] = tally.failed.into();
            value["expires"] = expires.into();
            add_size(&mut value, size);
            tell(&value);
            return;
        }
        if tally.stored == 0 {
            return;
        }
        let which = match tally.stored {
            1 => format!("stored {}", now.id),
            several => format!("stored {}", counted(several, "transfer")),
        };
        let before = match tally.before {
            0 => String::new(),
            count if count == tally.stored => " (an earlier run did)".to_owned(),
            count => format!(" ({count} by an earlier run)"),
        };
        let until = day_and_time(expires.saturating_mul(1_000_000_000));
        let whole = size.contents + size.manifest;
        note(format_args!(
            "{which}{before} until {until} UTC: {} in {} at the broker, ratio {}, of it {} ({:.1} %) padding; {} in {}",
            bytes(size.plain),
            bytes(whole),
            ratio(size.plain, whole),
            bytes(size.padding),
            percent(size),
            per_second(size.plain, time),
            span(time),
        ));
    }
}

impl Counted {
    fn count(&mut self, event: &UploadEvent) {
        match event {
            UploadEvent::Begun { bytes, .. } => {
                self.objects += 1;
                self.announced = self.announced.saturating_add(*bytes);
                self.last = *bytes;
            }
            UploadEvent::Read { bytes } => self.read = self.read.saturating_add(*bytes),
            UploadEvent::Sent { bytes } => self.sent = self.sent.saturating_add(*bytes),
            UploadEvent::Changed { .. } => {
                self.objects = self.objects.saturating_sub(1);
                self.announced = self.announced.saturating_sub(self.last);
            }
            UploadEvent::Stored { id, .. } => {
                self.stored += 1;
                self.id = id.to_string();
            }
            UploadEvent::Failed { .. } => {}
        }
    }

    fn line(&self, what: &str, silence: Option<&str>) -> String {
        let part = self.read.saturating_mul(100).checked_div(self.announced).unwrap_or(100).min(100);
        let far = format!("{what}  {} of {} {part}%", bytes(self.read), bytes(self.announced));
        let rate = self.pace.rate_text();
        if let Some(silence) = silence {
            return format!("{silence}  {far}  {rate}");
        }
        format!(
            "{far}  {rate}  {} sent, ratio {}  {} of {} stored",
            bytes(self.sent),
            ratio(self.read, self.sent),
            self.stored,
            self.objects,
        )
    }

    fn value(&self, event: &str) -> Value {
        json!({
            "event": event,
            "seconds": self.pace.now().as_secs_f64(),
            "read_bytes": self.read,
            "announced_bytes": self.announced,
            "sent_bytes": self.sent,
            "transfers": self.objects,
            "stored": self.stored,
        })
    }
}

/// What of the contents is padding, in percent of what is beside it.
fn percent(size: ObjectSize) -> f64 {
    let beside = size.contents.saturating_sub(size.padding);
    if beside == 0 { 0.0 } else { size.padding as f64 * 100.0 / beside as f64 }
}

fn add_size(value: &mut Value, size: ObjectSize) {
    value["bytes"] = size.plain.into();
    value["contents_bytes"] = size.contents.into();
    value["manifest_bytes"] = size.manifest.into();
    value["padding_bytes"] = size.padding.into();
    value["padding_percent"] = ((percent(size) * 100.0).round() / 100.0).into();
}

/// Events that are told one by one.
fn told(event: &UploadEvent) -> Option<Value> {
    let shown = |place: &[u8]| Printable(place).to_string();
    Some(match event {
        UploadEvent::Begun { place, id, bytes, held } => json!({
            "event": "begun", "path": shown(place), "transfer": id.to_string(), "bytes": bytes, "held_bytes": held,
        }),
        UploadEvent::Changed { place } => json!({"event": "changed", "path": shown(place)}),
        UploadEvent::Stored { place, id, size } => {
            let mut value = json!({"event": "stored", "path": shown(place), "transfer": id.to_string()});
            if let Some(size) = size {
                add_size(&mut value, *size);
            }
            value
        }
        UploadEvent::Failed { place, why } => {
            json!({"event": "failed", "path": shown(place), "reason": why.to_string()})
        }
        UploadEvent::Read { .. } | UploadEvent::Sent { .. } => return None,
    })
}
