//! One of many clients of a broker: a node of its own, for the time of a command, that puts one file.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::Post;
use crate::daemon::kill_group;
use crate::{Error, Extra, KnownPeer, PORT, Site, interrupt};

/// How often clients are looked after.
const TICK: Duration = Duration::from_millis(50);

/// A client on the sender's host, which may be killed while it puts its file.
#[derive(Debug)]
pub struct PostClient {
    site: Site,
    file: PathBuf,
    child: Option<Child>,
    killed_at: Option<Duration>,
    acknowledged: bool,
}

impl PostClient {
    /// The client with this number, whose name is `client-NUMBER` and whose file has this content, with the lines of `[link]`.
    ///
    /// # Errors
    /// [`Error::System`] when its files cannot be written, [`Error::Command`] when there is no key.
    pub fn create(
        post: &Post,
        parent: &Path,
        number: u16,
        content: &[u8],
        link: &str,
    ) -> Result<PostClient, Error> {
        let name = format!("client-{number}");
        let outside = SocketAddr::new(post.hosts.address_of_a().0, PORT + number);
        // Its number is of no matter without a tunnel.
        let site = Site::create(post.sender.program(), &post.hosts.a.renamed(&name), 1, outside, parent)?;
        let peers = [
            KnownPeer { site: &post.broker, at: Some(post.broker.outside), more: "broker = true" },
            KnownPeer { site: &post.receiver, at: None, more: "" },
        ];
        let text = site.configuration_without_tunnel(&peers, Extra { link, ..Extra::default() });
        site.make_home(&text)?;
        let file = site.folder().join(format!("file-{number}"));
        fs::write(&file, content).map_err(Error::doing(format!("write the file of {name}")))?;
        Ok(PostClient { site, file, child: None, killed_at: None, acknowledged: false })
    }

    /// Has it killed so long after all began, unless it has ended.
    #[must_use]
    pub fn killed_at(mut self, at: Option<Duration>) -> PostClient {
        self.killed_at = at;
        self
    }

    /// Its site.
    #[must_use]
    pub const fn site(&self) -> &Site {
        &self.site
    }

    /// The file that it puts.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Whether its command said that the file is stored.
    #[must_use]
    pub const fn is_acknowledged(&self) -> bool {
        self.acknowledged
    }

    /// What its last command said.
    #[must_use]
    pub fn said(&self) -> String {
        fs::read_to_string(self.log()).unwrap_or_default()
    }

    /// Has all of them put their files at once, and waits until all have ended or were killed: those that are to be killed, if `kill`
    /// says so, and after `patience` all that are left.
    ///
    /// # Errors
    /// [`Error::System`] when one cannot be started or killed, [`Error::Interrupted`].
    pub fn put_all(
        post: &Post,
        clients: &mut [PostClient],
        kill: bool,
        patience: Duration,
    ) -> Result<(), Error> {
        for client in &mut *clients {
            client.start(post)?;
        }
        let begin = Instant::now();
        while clients.iter().any(|client| client.child.is_some()) {
            interrupt::check()?;
            for client in &mut *clients {
                client.look()?;
                let due = client.killed_at.is_some_and(|at| begin.elapsed() >= at);
                if (kill && due) || begin.elapsed() > patience {
                    client.kill()?;
                }
            }
            thread::sleep(TICK);
        }
        Ok(())
    }

    fn start(&mut self, post: &Post) -> Result<(), Error> {
        let doing = || Error::doing(format!("start {}", self.site.name()));
        let log = File::create(self.log()).map_err(doing())?;
        let mut command = self.site.command(&["put"]);
        command.arg(&self.file).args([post.broker.name(), "--to", post.receiver.name()]);
        // With its own node in a group of its own, so that both are killed at once.
        command.stdout(Stdio::null()).stderr(log).process_group(0);
        let child = command.spawn().map_err(doing())?;
        self.child = Some(child);
        Ok(())
    }

    fn log(&self) -> PathBuf {
        self.site.folder().join("log")
    }

    fn look(&mut self) -> Result<(), Error> {
        let Some(child) = &mut self.child else { return Ok(()) };
        if let Some(status) = child.try_wait().map_err(Error::doing("look after a client"))? {
            self.acknowledged = status.success();
            self.child = None;
        }
        Ok(())
    }

    fn kill(&mut self) -> Result<(), Error> {
        self.look()?;
        if let Some(mut child) = self.child.take() {
            kill_group(child.id())?;
            child.wait().map_err(Error::doing("wait for a client"))?;
        }
        Ok(())
    }
}

impl Drop for PostClient {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}
