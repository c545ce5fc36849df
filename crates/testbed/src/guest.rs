//! A host with a kernel of its own, and in it an independent implementation of IPsec: User-Mode Linux at one end of a link.

mod line;

use std::fs::OpenOptions;
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::interface;
use crate::link::has_ipv6;
use crate::{Error, LinkEnd, WireLink, log, outside};
use line::{GuestLine, Reply};

/// Starts a kernel; its folder has the guest's side as well.
const BOOT: &str = "guest/boot";

/// How long a kernel may take to be ready: 2 s on a quiet machine.
const START: Duration = Duration::from_secs(60);
/// How long a command may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a guest's processes may take to go once they are killed.
const END: Duration = Duration::from_secs(10);

/// A running guest in the place of the second host of a link; dropped, it is gone with all its processes.
#[derive(Debug)]
pub struct Guest {
    child: Child,
    line: GuestLine,
    console: PathBuf,
    release: String,
}

impl Guest {
    /// The guest's hardware address, locally administered and not that of the interface whose frames it takes, so that the
    /// kernel around it leaves them alone.
    pub const HARDWARE: [u8; 6] = [2, 0, 0, 0, 0, 2];

    /// Boots `kernel`, a User-Mode Linux, at the second end of `link`: the guest takes that end's addresses, and its host
    /// stays only as the place the wire ends in. To the guest, `neighbours` are behind the first end of the link too,
    /// whether a host answers for them or not. What the kernel says goes to `console`.
    ///
    /// The link should be without offloads: the guest takes frames as they come on a wire.
    ///
    /// # Errors
    /// [`Error::GuestEnded`] with the end of what it said, [`Error::TooSlow`], [`Error::Interrupted`], [`Error::System`].
    pub fn start(
        kernel: &Path,
        link: &WireLink,
        neighbours: &[IpAddr],
        console: &Path,
    ) -> Result<Guest, Error> {
        let doing = || format!("boot {} on {}", kernel.display(), link.b.host.name());
        leave(&link.b)?;
        let (near, far) = UnixStream::pair().map_err(Error::doing(doing()))?;
        let line = GuestLine::new(near).map_err(Error::doing(doing()))?;
        let child = spawn(kernel, &link.b, far, console).map_err(Error::doing(doing()))?;
        let mut guest = Guest { child, line, console: console.to_owned(), release: String::new() };
        let ready = guest.line.answer(START)?;
        guest.release = guest.judge("boot", ready, START)?.trim().to_owned();
        guest.run(&addressing(link, neighbours)?)?;
        introduce(link)?;
        Ok(guest)
    }

    /// The kernel's release, such as 6.1.176.
    #[must_use]
    pub fn release(&self) -> &str {
        &self.release
    }

    /// Runs `script`, text for bash, in the guest and waits for its end; says what it wrote. A guest that does not
    /// answer in time is ended.
    ///
    /// # Errors
    /// [`Error::Command`] with what it wrote when its exit status is not 0, [`Error::TooSlow`], [`Error::GuestEnded`],
    /// [`Error::Interrupted`].
    pub fn run(&mut self, script: &str) -> Result<String, Error> {
        let reply = self.line.ask(script, PATIENCE)?;
        self.judge(script, reply, PATIENCE)
    }

    fn judge(&mut self, command: &str, reply: Option<Reply>, waited: Duration) -> Result<String, Error> {
        match reply {
            Some(Reply::Done { said, status: 0 }) => Ok(said),
            Some(Reply::Done { said, status }) => Err(Error::Command {
                command: command.to_owned(),
                host: format!("the guest with Linux {}", self.release),
                status: format!("exit status {status}"),
                said,
            }),
            Some(Reply::Ended) => Err(Error::GuestEnded { said: self.last_words() }),
            None => {
                // Its answer, should it come after all, must not be taken for the next one.
                let _ = self.child.kill();
                let what = format!("the guest had not answered '{command}'");
                Err(Error::TooSlow { what, waited, said: self.last_words() })
            }
        }
    }

    /// The end of what its kernel said.
    #[must_use]
    pub fn last_words(&self) -> String {
        log::end_of(&self.console)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.line.wait_for_end(END);
    }
}

/// Makes the kernel around the guest deaf at the end that the guest takes over.
fn leave(end: &LinkEnd) -> Result<(), Error> {
    end.remove_address(end.v4.into(), 24)?;
    end.host.run(&format!("leave {} to a guest", end.interface), || {
        match std::fs::write(format!("/proc/sys/net/ipv6/conf/{}/disable_ipv6", end.interface), "1") {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    })
}

fn spawn(kernel: &Path, end: &LinkEnd, line: UnixStream, console: &Path) -> io::Result<Child> {
    let console = OpenOptions::new().create(true).append(true).open(console)?;
    let line = OwnedFd::from(line);
    let mut command = end.host.command(outside::file(BOOT));
    command.arg(kernel).arg(&end.interface);
    command.stdin(line.try_clone()?).stdout(line).stderr(Stdio::from(console));
    // Its own process group: what is typed on the terminal reaches only who started it.
    command.process_group(0).spawn()
}

/// What gives the guest the addresses of its end, and neighbours that need not be asked for.
fn addressing(link: &WireLink, neighbours: &[IpAddr]) -> Result<String, Error> {
    let LinkEnd { host, interface, v4, v6 } = &link.a;
    let near = host.run(&format!("look at {interface}"), || interface::hardware_address(interface))?;
    let (near, own) = (hardware(near), hardware(Guest::HARDWARE));
    let mut script = format!(
        "ip -batch - <<'end'\nlink set vec0 address {own} mtu {} up\n\
         address add {}/24 dev vec0\naddress add {}/64 dev vec0 nodad\n",
        link.spec().mtu,
        link.b.v4,
        link.b.v6
    );
    for address in [IpAddr::from(*v4), IpAddr::from(*v6)].iter().chain(neighbours) {
        script.push_str(&format!("neighbour replace {address} lladdr {near} dev vec0 nud permanent\n"));
    }
    Ok(script + "end\n")
}

/// Spares the first host asking for the guest, which could not answer while it takes nothing but protected packets.
fn introduce(link: &WireLink) -> Result<(), Error> {
    let LinkEnd { host, interface, .. } = &link.a;
    host.run(&format!("introduce a guest on {interface}"), || {
        let guest = [IpAddr::from(link.b.v4), IpAddr::from(link.b.v6)];
        let known = guest.iter().filter(|address| address.is_ipv4() || has_ipv6());
        known.copied().try_for_each(|address| interface::add_neighbour(interface, address, Guest::HARDWARE))
    })
}

/// A hardware address as people write it.
fn hardware(address: [u8; 6]) -> String {
    address.map(|byte| format!("{byte:02x}")).join(":")
}
