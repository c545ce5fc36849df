//! A daemon that is a unit of systemd.
//!
//! The unit says what program it runs, and which rights that has. A copy of the program that runs is kept beside it; to go back, a drop-in
//! has the unit run the copy. The drop-in is in `/run`, so that the next boot takes the unit's own program.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Seek};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use super::{RestartError, RunningDaemon, before, clean_command, doing, original, write_beside};

/// Where systemd takes drop-ins from until the next boot (systemd.unit(5)).
const DROP_INS: &str = "/run/systemd/system";
/// The name of the drop-in.
const DROP_IN: &str = "strait-before.conf";
/// Where systemd's programs are, whatever the caller's environment says.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The unit of the process with this folder in `/proc`, if it is one of the system's.
pub(super) fn of_process(place: &Path) -> Option<String> {
    unit_among(&fs::read_to_string(place.join("cgroup")).ok()?)
}

/// The unit of the system's that control groups are of (cgroups(7): `number:controllers:path`).
fn unit_among(groups: &str) -> Option<String> {
    let mut paths = groups.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    let path = paths.find(|path| path.contains("/system.slice/") && path.ends_with(".service"))?;
    path.rsplit('/').next().map(str::to_owned)
}

/// A unit, its program, and the one to go back to.
#[derive(Debug)]
pub(super) struct UnitPrograms {
    unit: String,
    program: PathBuf,
}

impl UnitPrograms {
    /// The programs of the unit that `daemon` is.
    pub(super) fn of(unit: String, daemon: &RunningDaemon) -> Result<UnitPrograms, RestartError> {
        if of_process(Path::new("/proc/self")).as_ref() == Some(&unit) {
            // Such as a login through it.
            return Err(RestartError::Unfit(format!(
                "this command is part of {unit} and would end with it; run `systemd-run strait restart {}`",
                daemon.interface
            )));
        }
        let program = original(&daemon.program_path);
        let folder = program.parent().unwrap_or(Path::new("/"));
        let found = folder.metadata().map_err(doing(format!("look at {}", folder.display())))?;
        if found.uid() != 0 || found.mode() & 0o022 != 0 {
            return Err(RestartError::Unfit(format!(
                "{} can be changed by others than root, so no program to go back to is kept there; use `systemctl restart {unit}`",
                folder.display()
            )));
        }
        Ok(UnitPrograms { unit, program })
    }

    /// The program that the unit runs.
    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// Keeps the program that runs, to go back to.
    pub(super) fn keep(&self, program: &File) -> Result<(), RestartError> {
        let kept = before(&self.program);
        let is_it = |found: fs::Metadata| {
            program.metadata().is_ok_and(|own| (own.dev(), own.ino()) == (found.dev(), found.ino()))
        };
        if kept.symlink_metadata().is_ok_and(is_it) {
            return Ok(());
        }
        let mut copied = program;
        copied
            .rewind()
            .and_then(|()| write_beside(&kept, program, 0o755, &mut copied))
            .map_err(doing(format!("keep the program that runs as {}", kept.display())))
    }

    /// Starts the unit with its own program.
    pub(super) fn start_own(&self) -> Result<(), String> {
        self.drop_in(None).map_err(|error| error.to_string())?;
        self.start()
    }

    /// Starts the unit with the program that was kept.
    pub(super) fn start_before(&self, words: &[OsString]) -> Result<(), String> {
        // It may be started again and again, by itself.
        let _ = systemctl(&["stop", &self.unit]);
        self.drop_in(Some(words)).map_err(|error| error.to_string())?;
        self.start()
    }

    /// Removes the program that was kept.
    pub(super) fn forget(&self) {
        let _ = fs::remove_file(before(&self.program));
    }

    fn start(&self) -> Result<(), String> {
        // It may have been started as often as it may be.
        let _ = systemctl(&["reset-failed", &self.unit]);
        let said =
            systemctl(&["start", &self.unit]).map_err(|error| format!("cannot run systemctl: {error}"))?;
        if said.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&said.stderr);
        Err(format!("{} (`journalctl -u {}` has its log)", said.trim(), self.unit))
    }

    /// Writes the drop-in with these words, or removes it.
    fn drop_in(&self, words: Option<&[OsString]>) -> io::Result<()> {
        let folder = Path::new(DROP_INS).join(format!("{}.d", self.unit));
        let file = folder.join(DROP_IN);
        match words {
            Some(words) => {
                fs::create_dir_all(&folder)?;
                fs::write(&file, drop_in(&before(&self.program), words))?;
            }
            None => match fs::remove_file(&file) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                removed => removed?,
            },
        }
        systemctl(&["daemon-reload"]).map(drop)
    }
}

/// The text of a drop-in that has a unit run another program (systemd.service(5): an empty line takes back what was there).
fn drop_in(program: &Path, words: &[OsString]) -> String {
    let mut line = quoted(program.as_os_str().as_bytes());
    for word in words {
        line += " ";
        line += &quoted(word.as_bytes());
    }
    format!(
        "# `strait restart` went back to the program that ran before.\n[Service]\nExecStart=\nExecStart={line}\n"
    )
}

/// A word as systemd reads it from a command line: quoted, with nothing that it would replace.
fn quoted(word: &[u8]) -> String {
    let mut text = "\"".to_owned();
    for byte in word {
        match byte {
            b'%' => text += "%%",
            b'$' => text += "$$",
            b'"' | b'\\' | 0..=0x1f | 0x7f.. => text += &format!("\\x{byte:02x}"),
            _ => text.push(char::from(*byte)),
        }
    }
    text + "\""
}

fn systemctl(words: &[&str]) -> io::Result<Output> {
    clean_command("systemctl").env("PATH", PATH).arg("--no-ask-password").args(words).output()
}

#[cfg(test)]
mod tests {
    use super::super::BEFORE;
    use super::*;

    #[test]
    fn a_unit_is_the_systems_service_that_a_process_is_in() {
        let unit = "strait@site-a.service";
        let slice = "/system.slice/system-strait.slice/strait@site-a.service";
        for (groups, found) in [
            (format!("0::{slice}\n"), Some(unit)),
            (format!("3:pids:{slice}\n1:name=systemd:{slice}\n0::{slice}\n"), Some(unit)),
            (format!("0::/docker/7{slice}\n"), Some(unit)),
            ("0::/user.slice/user-0.slice/session-3.scope\n".to_owned(), None),
            ("0::/user.slice/user-7.slice/user@7.service/app.slice/strait.service\n".to_owned(), None),
            ("0::/\n".to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(unit_among(&groups).as_deref(), found, "{groups}");
        }
    }

    #[test]
    fn a_drop_in_runs_the_words_as_they_are() {
        let words = ["up", "/etc/strait/100% \"a\" $HOME.toml.before", "--foreground"].map(OsString::from);
        let text = drop_in(&PathBuf::from(format!("/usr/bin/strait{BEFORE}")), &words);
        let line = "ExecStart=\"/usr/bin/strait.before\" \"up\" \
                    \"/etc/strait/100%% \\x22a\\x22 $$HOME.toml.before\" \"--foreground\"";
        assert_eq!(text.lines().skip(1).collect::<Vec<_>>(), ["[Service]", "ExecStart=", line]);
    }
}
