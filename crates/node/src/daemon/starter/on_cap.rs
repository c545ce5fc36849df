//! Runs the command that a configuration has for steps of a cap.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::message::CapEvent;

/// How long a command may take, and how often it is looked at.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Commands at once: a peer that reaches its steps together with others.
const AT_ONCE: usize = 8;

/// Commands that run.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// Starts the command, without waiting for its end. What it is told stands in its environment.
pub(super) fn run(command: &[String], event: &CapEvent) -> Result<(), String> {
    let Some((program, arguments)) = command.split_first() else { return Ok(()) };
    if RUNNING.fetch_add(1, Ordering::Relaxed) >= AT_ONCE {
        RUNNING.fetch_sub(1, Ordering::Relaxed);
        return Err(format!("{AT_ONCE} commands of `on_cap` are running already"));
    }
    let started = Command::new(program)
        .args(arguments)
        .env("STRAIT_CAP_PEER", event.peer.as_deref().unwrap_or_default())
        .env("STRAIT_CAP_STEP", &event.step)
        .env("STRAIT_CAP_USED_BYTES", event.used.to_string())
        .env("STRAIT_CAP_BYTES", event.cap.to_string())
        .env("STRAIT_CAP_FORECAST_BYTES", event.forecast.map_or_else(String::new, |bytes| bytes.to_string()))
        .stdin(Stdio::null())
        .spawn();
    let watched = started.and_then(|child| {
        let name = program.clone();
        thread::Builder::new().name("strait-on-cap".to_owned()).spawn(move || {
            watch(&name, child);
            RUNNING.fetch_sub(1, Ordering::Relaxed);
        })
    });
    watched.map(|_| ()).map_err(|error| {
        RUNNING.fetch_sub(1, Ordering::Relaxed);
        format!("cannot start {program}: {error}")
    })
}

/// Waits for the end of a command; one that takes too long is killed.
fn watch(name: &str, mut child: Child) {
    let until = Instant::now() + PATIENCE;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return,
            Ok(Some(status)) => return tracing::warn!("{name}, the command of `on_cap`, failed: {status}"),
            Ok(None) if Instant::now() < until => thread::sleep(LOOK_EVERY),
            Ok(None) => {
                tracing::warn!(
                    "{name}, the command of `on_cap`, is killed: it took more than {} s",
                    PATIENCE.as_secs()
                );
                let _ = child.kill();
                let _ = child.wait();
                return;
            }
            Err(error) => {
                return tracing::warn!("{name}, the command of `on_cap`, cannot be waited for: {error}");
            }
        }
    }
}
