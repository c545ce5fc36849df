//! Daily keys of this node: when they are made, that their secrets are on disk before they are published, and what is shown of them.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use strait_clock::Time;
use strait_keying::sessionless::{DailyPolicy, DailySlotWrite, Day, OwnDailyKeys};
use tokio::task::{JoinHandle, spawn_blocking};

use super::{Daemon, StarterError, start};
use crate::config::Config;
use crate::daily_file;
use crate::path_memory::unix_time;
use crate::report::DailyKeysReport;

/// How often days are looked at, and a write that failed is tried again: secrets are wiped so long after their time at most.
const LOOK: Duration = Duration::from_secs(60);

/// What is written, and what came of it.
type Written = (Vec<DailySlotWrite>, io::Result<()>);

/// The file of secrets, and what is to be written and published.
#[derive(Debug)]
pub(super) struct DailySecrets {
    file: Arc<File>,
    /// What is not on disk yet, oldest first.
    wanted: VecDeque<DailySlotWrite>,
    /// The write that is under way.
    writing: Option<JoinHandle<Written>>,
    /// Whether what is in force was given out to be published.
    is_published: bool,
    /// When days are looked at again.
    next: Time,
    /// What is wrong with the file.
    trouble: Option<String>,
}

impl DailySecrets {
    /// When something is to be done.
    pub(super) fn poll_timeout(secrets: Option<&DailySecrets>) -> Time {
        secrets.map_or(Time::MAX, |secrets| secrets.next)
    }

    /// What came of the write under way; never without one. To be called again when another future was quicker.
    pub(super) async fn written(secrets: Option<&mut DailySecrets>) -> Written {
        let Some(writing) = secrets.and_then(|secrets| secrets.writing.as_mut()) else {
            return std::future::pending().await;
        };
        // What a thread that panicked had to write is made anew by the next start.
        writing.await.unwrap_or_else(|error| (Vec::new(), Err(io::Error::other(error))))
    }

    /// Begins to write what is wanted, unless a write is under way.
    fn write(&mut self) {
        if self.writing.is_some() || self.wanted.is_empty() {
            return;
        }
        let (file, writes) = (Arc::clone(&self.file), Vec::from(std::mem::take(&mut self.wanted)));
        self.writing = Some(spawn_blocking(move || {
            let written = daily_file::write(&file, &writes);
            (writes, written)
        }));
    }
}

/// When daily keys are used, if the configuration has a directory.
pub(super) fn policy(config: &Config) -> DailyPolicy {
    config.directory.as_ref().map_or(DailyPolicy::Off, |section| section.daily_keys)
}

impl Daemon {
    /// Reads the secrets of daily keys, if `config` wants some. The marks of the node are open.
    pub(super) fn open_daily(
        &mut self,
        config: &Config,
    ) -> Result<Option<(DailyPolicy, OwnDailyKeys)>, StarterError> {
        let (policy, node) = (policy(config), self.control.public());
        if policy == DailyPolicy::Off {
            return Ok(None);
        }
        let file = self.starter.daily_secrets(node)?;
        let own = OwnDailyKeys::read(node, &daily_file::read(&file)?);
        self.daily = Some(DailySecrets {
            file: Arc::new(file),
            wanted: VecDeque::new(),
            writing: None,
            is_published: false,
            next: Time::ZERO,
            trouble: None,
        });
        Ok(Some((policy, own)))
    }

    /// Makes secrets of days to come and wipes those of days that are over, if it is time to look.
    pub(super) fn look_at_days(&mut self) {
        let now = self.clock.now();
        let Some(secrets) = self.daily.as_mut().filter(|secrets| secrets.next <= now) else { return };
        secrets.next = now + LOOK;
        match start::seed() {
            Ok(seed) => {
                let writes = self.control.roll_daily_keys(&seed, now);
                secrets.is_published &= writes.is_empty();
                secrets.wanted.extend(writes);
            }
            Err(error) => tracing::error!("no daily keys are made: {error}"),
        }
        secrets.write();
        self.publish_daily();
    }

    /// A write is over.
    pub(super) fn daily_written(&mut self, (writes, written): Written) {
        let Some(secrets) = &mut self.daily else { return };
        secrets.writing = None;
        match written {
            Ok(()) => {
                if secrets.trouble.take().is_some() {
                    tracing::info!("the secrets of daily keys are written again");
                }
                secrets.write();
                self.publish_daily();
            }
            Err(error) => {
                // It is tried again with the next look.
                for write in writes.into_iter().rev() {
                    secrets.wanted.push_front(write);
                }
                let words = format!("the secrets of daily keys cannot be written: {error}");
                if secrets.trouble.replace(words.clone()).is_none() {
                    tracing::error!(
                        "{words}; new ones are not published, and those of days that are over stay on disk"
                    );
                }
            }
        }
    }

    /// Has the keys published whose secrets are on disk.
    fn publish_daily(&mut self) {
        let now = self.clock.now();
        let Some(secrets) = &mut self.daily else { return };
        if secrets.is_published || secrets.writing.is_some() || !secrets.wanted.is_empty() {
            return;
        }
        if let (Some(keys), Some(directory)) = (self.control.sign_daily_keys(now), &self.directory) {
            secrets.is_published = true;
            directory.publish(&keys);
        }
    }

    /// What cannot be written, a sentence.
    pub(super) fn daily_warning(&self) -> Option<String> {
        self.daily.as_ref()?.trouble.clone()
    }

    /// What can be shown of daily keys, where they are used.
    pub(super) fn daily_report(&self) -> Option<DailyKeysReport> {
        let (ring, directory) = (self.control.daily_keys()?, self.directory.as_ref()?);
        let policy = match ring.policy() {
            DailyPolicy::Off => return None,
            DailyPolicy::Prefer => "prefer",
            DailyPolicy::Require => "require",
        };
        let today = Day::at(unix_time());
        let keys = self.config.peers.iter().filter(|peer| peer.sessionless.is_some());
        let keys = keys.filter_map(|peer| peer.public_key());
        Some(DailyKeysReport {
            policy: policy.to_owned(),
            own_until: ring.own().days().map(|(_, last)| last.to_string()),
            published: directory.published(),
            peers: keys.filter(|key| ring.has(key, today)).count(),
        })
    }
}
