//! A real terminal, tmux's: keys go in, and what is on its screen is read.

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use strait_testbed::Namespace;

use crate::pair::PATIENCE;

/// A terminal of 80 columns and 24 lines at a host.
pub(crate) struct Tmux<'a> {
    host: &'a Namespace,
    /// What a daemon's commands have around them.
    around: Vec<(OsString, Option<OsString>)>,
    socket: PathBuf,
    logs: Box<dyn Fn() -> String + 'a>,
    /// The line that was typed last, for a shell.
    line: RefCell<String>,
}

impl<'a> Tmux<'a> {
    /// A terminal in which this line runs, at `host`, around it what is around `own`; its socket is the file `socket`.
    pub(crate) fn open(
        host: &'a Namespace,
        own: &Command,
        socket: &Path,
        line: &str,
        logs: Box<dyn Fn() -> String + 'a>,
    ) -> Tmux<'a> {
        let around = own.get_envs().map(|(name, value)| (name.to_owned(), value.map(OsString::from)));
        let tmux = Tmux {
            host,
            around: around.collect(),
            socket: socket.to_owned(),
            logs,
            line: RefCell::default(),
        };
        tmux.run(&["-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", line]);
        tmux.run(&["set-option", "-g", "status", "off"]);
        tmux.resize(80, 24);
        tmux
    }

    fn command(&self) -> Command {
        let mut command = self.host.command("tmux");
        for (name, value) in &self.around {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.env_remove("TMUX").env("LC_ALL", "C.UTF-8").args(["-u", "-S"]).arg(&self.socket);
        command.current_dir(self.socket.parent().unwrap());
        command
    }

    /// Has tmux do something; what it says.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let output = self.command().args(arguments).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tmux {arguments:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Gives the window another size.
    pub(crate) fn resize(&self, columns: u16, lines: u16) {
        self.run(&["resize-window", "-x", &columns.to_string(), "-y", &lines.to_string()]);
    }

    /// Presses keys by their names.
    pub(crate) fn keys(&self, keys: &[&str]) {
        self.run(&[&["send-keys"], keys].concat());
    }

    /// Types text.
    pub(crate) fn types(&self, text: &str) {
        self.run(&["send-keys", "-l", text]);
    }

    /// Types a line for the shell.
    pub(crate) fn line(&self, text: &str) {
        text.clone_into(&mut self.line.borrow_mut());
        self.types(text);
        self.keys(&["Enter"]);
    }

    pub(crate) fn screen(&self) -> String {
        self.run(&["capture-pane", "-p"])
    }

    /// Waits until the screen is so.
    pub(crate) fn shows(&self, what: &str, good: impl Fn(&str) -> bool) {
        let begun = Instant::now();
        loop {
            let screen = self.screen();
            if good(&screen) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "never: {what}\n{screen}\n{}", (self.logs)());
            thread::sleep(Duration::from_millis(30));
        }
    }

    /// Waits until this is on the screen. A line that was typed is echoed: that is no answer to it.
    pub(crate) fn sees(&self, text: &str) {
        assert!(!self.line.borrow().contains(text), "the echo of the line shows {text:?}");
        self.shows(text, |screen| screen.contains(text));
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        let _ = self.command().arg("kill-server").output();
    }
}
