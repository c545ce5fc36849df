//! A transfer as the command line lists it.

use serde::Serialize;

use super::live::{RunningTransfer, TransferProgress};
use super::record::QueuedTransfer;
use strait_scheduler::calendar::DailyWindow;

/// What `strait outbox` says of a transfer; its JSON is this with the same names.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ListedTransfer {
    /// Its 32 digits.
    pub id: String,
    /// The peer's name.
    pub peer: String,
    /// Where it goes there: `FOLDER/path`.
    pub to: String,
    /// What is sent; bytes that no terminal should get are written as `\x1b`.
    pub what: Vec<String>,
    /// Its class.
    pub priority: &'static str,
    /// How far it is.
    pub state: &'static str,
    /// When it may go, what failed, or how it ended.
    pub note: String,
    /// The broker that has a copy of it.
    pub broker: Option<String>,
    /// When it was accepted, in seconds since 1970.
    pub accepted: i64,
    /// When it is no longer wanted, in seconds since 1970.
    pub expires: Option<i64>,
    /// Whether it lies in the outbox as a copy.
    pub spooled: bool,
    /// How far it is, while it runs.
    pub progress: Option<TransferProgress>,
}

impl ListedTransfer {
    /// What is to be said of a transfer.
    #[must_use]
    pub fn of(transfer: &QueuedTransfer) -> ListedTransfer {
        let at_broker = transfer.state.over().is_none() && transfer.copy.is_some();
        let order = &transfer.order;
        let below =
            if order.below.0.is_empty() { String::new() } else { format!("/{}", visible(&order.below.0)) };
        ListedTransfer {
            id: transfer.id.to_string(),
            peer: visible(order.name.as_bytes()),
            to: format!("{}{below}", visible(order.folder.as_bytes())),
            what: order.paths.iter().map(|path| visible(&path.0)).collect(),
            priority: transfer.limits.priority.name(),
            state: if at_broker { "at broker" } else { transfer.state.name() },
            note: note(transfer),
            broker: transfer.copy.as_ref().map(|copy| visible(copy.name.as_bytes())),
            accepted: transfer.accepted,
            expires: transfer.limits.expires,
            spooled: order.spooled,
            progress: None,
        }
    }

    /// The same on a day, as [`day`](strait_scheduler::calendar::day) numbers it: with why it does not go any more on this one.
    #[must_use]
    pub fn on(mut self, transfer: &QueuedTransfer, day: i32) -> ListedTransfer {
        if transfer.state.over().is_none() && transfer.copy.is_none() && transfer.allowance(day) == Some(0) {
            self.note = "the bytes of this day are used up".to_owned();
        }
        self
    }

    /// The same, with how far it is if it runs.
    #[must_use]
    pub fn among(mut self, running: &[RunningTransfer]) -> ListedTransfer {
        let found = running.iter().find(|running| running.id.to_string() == self.id);
        if let Some(found) = found {
            self.state = "sending";
            self.progress = Some(found.progress.clone());
        }
        self
    }
}

/// The one thing that is worth a column.
fn note(transfer: &QueuedTransfer) -> String {
    use super::QueuedState::{Delivered, Failed};
    match &transfer.state {
        Delivered { failed: 0, .. } => String::new(),
        Delivered { failed, reason, .. } => {
            let reason = visible(reason.as_deref().unwrap_or_default().as_bytes());
            format!("{failed} failed: {reason}")
        }
        Failed { reason, .. } => visible(reason.as_bytes()),
        _ if transfer.tries.error.is_none() && transfer.copy.is_some() => {
            let name = transfer.copy.as_ref().map(|copy| visible(copy.name.as_bytes()));
            name.map_or_else(String::new, |name| format!("{name} keeps it for the peer"))
        }
        _ => match (&transfer.tries.error, transfer.limits.between) {
            (Some(error), _) => format!("try {}: {}", transfer.tries.count, visible(error.as_bytes())),
            (None, between) => between.as_ref().map(DailyWindow::to_string).unwrap_or_default(),
        },
    }
}

/// Text without control characters and with nothing lost of what is no text.
fn visible(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            // A direction override can turn a name around on the screen as well as a control character (Unicode TR 36).
            let turns =
                matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
            if c.is_control() || turns { text.extend(c.escape_default()) } else { text.push(c) }
        }
        text.extend(chunk.invalid().escape_ascii().map(char::from));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_write_on_the_screen_what_they_are_not() {
        for (bytes, shown) in [
            (&b"plain \xc3\xa4"[..], "plain \u{e4}"),
            (b"a\nb\x1b[31m", "a\\nb\\u{1b}[31m"),
            (b"\xff\xfe", "\\xff\\xfe"),
            ("gpj.\u{202e}exe".as_bytes(), "gpj.\\u{202e}exe"),
        ] {
            assert_eq!(visible(bytes), shown);
        }
    }
}
