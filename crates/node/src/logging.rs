//! The daemon's log: one line an event on standard error, for people or for programs.

mod lossy;

use std::fs;
use std::io::{self, IsTerminal};
use std::sync::{Mutex, OnceLock};

use serde::{Deserialize, Serialize};
use tracing_subscriber::filter::{ParseError, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use lossy::LossyLog;
pub use lossy::lost_lines;

/// Says what is logged, such as `debug` or `strait_keying=trace`.
pub const FILTER_VARIABLE: &str = "STRAIT_LOG";
/// The filter where the environment has none.
const DEFAULT_FILTER: &str = "info";
/// The same for a node that shares its standard error with a command: only what is wrong.
pub const QUIET_FILTER: &str = "warn";
/// The part of every filter that does not name this crate: it warns of every attribute newer than itself, which does not matter here.
const NETLINK: &str = "netlink_packet_route";

/// The form of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Form {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Why nothing can be logged.
#[derive(Debug, thiserror::Error)]
#[error("{FILTER_VARIABLE} is not valid: {source}; write for example \"debug\" or \"strait_keying=trace\"")]
pub struct FilterError {
    source: ParseError,
}

/// The place that this process logs to.
static PLACE: OnceLock<Option<String>> = OnceLock::new();
/// The form in which it does.
static FORM: OnceLock<Form> = OnceLock::new();

/// Returns the form of this process's log.
pub(crate) fn form() -> Form {
    FORM.get().copied().unwrap_or_default()
}

/// Returns the path of the file that the log goes to, or `journal`; none for a terminal, a pipe, and before the log was started.
#[must_use]
pub fn place() -> Option<String> {
    PLACE.get().cloned().flatten()
}

/// Finds where standard error goes. A process that reads what peers send may not look later.
fn find_place() -> Option<String> {
    let path = fs::read_link("/proc/self/fd/2").ok()?;
    let is_journal = || std::env::var_os("JOURNAL_STREAM").is_some();
    if path.is_file() { Some(path.display().to_string()) } else { is_journal().then(|| "journal".to_owned()) }
}

/// Logs to standard error from now on; a second call changes nothing.
///
/// # Errors
/// [`FilterError`] when the environment asks for something that cannot be understood.
pub fn start(form: Form) -> Result<(), FilterError> {
    let asked = std::env::var(FILTER_VARIABLE).ok().filter(|text| !text.is_empty());
    start_with(form, asked.as_deref())
}

/// The same with a filter, or the usual one, whatever the environment asks for.
///
/// # Errors
/// [`FilterError`] when the filter cannot be understood.
pub(crate) fn start_with(form: Form, asked: Option<&str>) -> Result<(), FilterError> {
    let filter = filter(asked)?;
    let colours =
        io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let output = Mutex::new(LossyLog::new(io::stderr(), form));
    let log = tracing_subscriber::fmt::layer().with_writer(output).with_ansi(colours);
    let filtered = tracing_subscriber::registry().with(filter);
    PLACE.get_or_init(find_place);
    FORM.get_or_init(|| form);
    // Fails only when a log has been started before, as tests in one process do.
    let _ = match form {
        Form::Text => filtered.with(log.with_target(false)).try_init(),
        Form::Json => filtered.with(log.json().flatten_event(true)).try_init(),
    };
    Ok(())
}

fn filter(asked: Option<&str>) -> Result<Targets, FilterError> {
    let asked = asked.unwrap_or(DEFAULT_FILTER);
    let filter = if asked.contains(NETLINK) { asked.to_owned() } else { format!("{asked},{NETLINK}=error") };
    filter.parse().map_err(|source| FilterError { source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_logged_can_be_chosen() {
        assert_eq!(filter(None).unwrap().to_string(), "netlink_packet_route=error,info");
        let one = filter(Some("strait_keying=trace")).unwrap().to_string();
        assert_eq!(one, "netlink_packet_route=error,strait_keying=trace");
        let all = filter(Some("debug,netlink_packet_route=debug")).unwrap().to_string();
        assert_eq!(all, "netlink_packet_route=debug,debug");
        let error = filter(Some("strait=loud")).unwrap_err().to_string();
        assert!(error.starts_with("STRAIT_LOG is not valid: "), "{error}");
    }
}
