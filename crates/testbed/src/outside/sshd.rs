//! An sshd of its own on one of the hosts, with keys and configuration in a folder of the caller's; nothing of the user's or the
//! system's is read or changed.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::listening::ListeningProgram;
use super::packages::{quiet, unpack};
use crate::daemon::{children, end};
use crate::{Error, Namespace};

/// Where systems install it.
const INSTALLED: &str = "/usr/sbin/sshd";
/// Its port, which no other program of the hosts uses.
const PORT: u16 = 2222;
/// What Debian calls the packages that have it and the one library that only it needs.
const PACKAGES: [&str; 2] = ["openssh-server", "libwrap0"];
/// The library of the second one, and where such packages put libraries.
const LIBRARY: &str = "libwrap.so.0";

/// How often, and how far apart, is looked whether its own processes have ended.
const LOOKS: u32 = 50;
const LOOK: Duration = Duration::from_millis(10);

/// The program, and where a library is that the system lacks.
#[derive(Clone, Debug)]
pub struct SshdProgram {
    program: PathBuf,
    libraries: Option<PathBuf>,
}

impl SshdProgram {
    /// The one at `program`, with a library that was unpacked together with it; nothing if there is none.
    #[must_use]
    pub fn at(program: &Path) -> Option<SshdProgram> {
        let beside = program.ancestors().nth(2).map(|root| root.join("lib"))?;
        let found = fs::read_dir(beside).into_iter().flatten().flatten().map(|entry| entry.path());
        let libraries = found.into_iter().find(|folder| folder.join(LIBRARY).exists());
        program.is_file().then(|| SshdProgram { program: program.to_owned(), libraries })
    }

    /// Where systems install it.
    #[must_use]
    pub fn installed() -> Option<SshdProgram> {
        SshdProgram::at(Path::new(INSTALLED))
    }

    /// Looks where systems install it, then in `cache`, where Debian's package is unpacked if it is not there; or says why there is
    /// none.
    ///
    /// # Errors
    /// Why there is none, for a person.
    pub fn find(cache: &Path) -> Result<SshdProgram, String> {
        let unpacked = cache.join("usr/sbin/sshd");
        if let Some(program) = SshdProgram::installed().or_else(|| SshdProgram::at(&unpacked)) {
            return Ok(program);
        }
        unpack(&PACKAGES, cache).map_err(|error| format!("openssh-server is not installed, and {error}"))?;
        let none = || "openssh-server is not installed, and its package has no sshd".to_owned();
        SshdProgram::at(&unpacked).ok_or_else(none)
    }
}

/// A running sshd. Dropped, it is killed.
#[derive(Debug)]
pub struct Sshd {
    process: ListeningProgram,
    folder: PathBuf,
    user: String,
}

impl Sshd {
    /// Starts it on `host`, reached at `address`, with its files in the new folder `folder`.
    ///
    /// # Errors
    /// [`Error`] when its files cannot be written, or it does not listen.
    pub fn start(
        program: &SshdProgram,
        host: &Namespace,
        address: std::net::IpAddr,
        folder: &Path,
    ) -> Result<Sshd, Error> {
        let doing = || format!("start an sshd on {}", host.name());
        let user = write_files(folder).map_err(Error::doing(doing()))?;
        // What sshd insists on: a folder in /run, and a user to be until a client has proved who it is. Both are there for it alone,
        // in a mount namespace of its own.
        let script = "mount -t tmpfs none /run && mkdir -m 755 /run/sshd && mount --bind \"$1/passwd\" /etc/passwd && \
                      exec \"$0\" -D -e -f \"$1/sshd_config\"";
        let mut command = host.command("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", script]);
        command.arg(&program.program).arg(folder).env_clear();
        command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command.envs(program.libraries.iter().map(|folder| ("LD_LIBRARY_PATH", folder)));
        let (address, log) = (SocketAddr::new(address, PORT), folder.join("sshd.log"));
        let process = ListeningProgram::start(command, host, address, &log)?;
        Ok(Sshd { process, folder: folder.to_owned(), user })
    }

    /// The process's number.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Whom clients name.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The options of ssh and scp with which they reach it, without a port: `-p` of one is another thing to the other.
    #[must_use]
    pub fn options(&self) -> Vec<String> {
        let file = |name: &str| self.folder.join(name).display().to_string();
        let known = format!("UserKnownHostsFile={}", file("known_hosts"));
        let port = format!("Port={PORT}");
        let mut options = vec!["-q".to_owned(), "-F".into(), "none".into(), "-i".into(), file("client")];
        for option in [
            "BatchMode=yes",
            "IdentitiesOnly=yes",
            "IdentityAgent=none",
            "StrictHostKeyChecking=yes",
            "GlobalKnownHostsFile=none",
            &known,
            &port,
        ] {
            options.extend(["-o".to_owned(), option.to_owned()]);
        }
        options
    }

    /// Has clients trust it at `address`.
    ///
    /// # Errors
    /// When the file of trusted keys cannot be written.
    pub fn trusted_at(&self, address: std::net::IpAddr) -> Result<(), Error> {
        let doing = || "write known_hosts";
        let key = fs::read_to_string(self.folder.join("host.pub")).map_err(Error::doing(doing()))?;
        let line = format!("[{address}]:{PORT} {key}");
        fs::write(self.folder.join("known_hosts"), line).map_err(Error::doing(doing()))
    }
}

impl Drop for Sshd {
    /// Its own processes for connections would outlive it where the other end cannot say goodbye any more. They go first, so that
    /// it takes note of their end.
    fn drop(&mut self) {
        let mut found = vec![self.process.pid()];
        let mut at = 0;
        while let Some(&parent) = found.get(at) {
            found.extend(children(parent).unwrap_or_default().into_iter().map(|(_, pid)| pid));
            at += 1;
        }
        found.remove(0);
        for pid in &found {
            let _ = end(*pid);
        }
        let are_there = || found.iter().any(|pid| fs::exists(format!("/proc/{pid}")).unwrap_or(false));
        for _ in 0..LOOKS {
            if !are_there() {
                break;
            }
            thread::sleep(LOOK);
        }
    }
}

/// Keys, configuration and a list of users; gives the name of the one who runs this.
fn write_files(folder: &Path) -> io::Result<String> {
    fs::DirBuilder::new().mode(0o700).create(folder)?;
    for key in ["host", "client"] {
        let path = folder.join(key);
        quiet(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(path))?;
    }
    let at = folder.display();
    let config = format!(
        "Port {PORT}\nHostKey {at}/host\nAuthorizedKeysFile {at}/client.pub\nPidFile none\nUsePAM no\nStrictModes no\n\
         PermitRootLogin prohibit-password\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPrintMotd no\n\
         PrintLastLog no\nPermitTunnel point-to-point\nSubsystem sftp internal-sftp\n"
    );
    fs::write(folder.join("sshd_config"), config)?;
    let mut users = fs::read_to_string("/etc/passwd")?;
    if !users.lines().any(|line| line.starts_with("sshd:")) {
        users.push_str("sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n");
    }
    fs::write(folder.join("passwd"), users)?;
    let output = Command::new("id").arg("-un").output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
