//! Leave to make hosts: given to root, and to every user inside a user namespace of its own.
#![allow(unsafe_code)]

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;

use strait_testdata::skip::{Need, skip};

use crate::Error;
use crate::error::Obstacle;
use crate::namespace::check;

/// Set in the environment of a program that has been started again inside a user namespace.
const INSIDE: &str = "STRAIT_TESTBED_SANDBOX";

const TUN: &str = "/dev/net/tun";

/// Returns when this program may make network namespaces and TUN devices. Without that right the program starts
/// itself again, with the same arguments, inside a user namespace in which it has it; the call does not return then.
/// Must be called before any thread is started.
///
/// # Errors
/// [`Error::Forbidden`], naming what the system forbids or lacks, and the fix.
pub fn enter() -> Result<(), Error> {
    enter_unless(tun_obstacle(open_tun()))
}

/// As [`enter`], for hosts whose nodes have no tunnel, and need no TUN device.
///
/// # Errors
/// As [`enter`].
pub fn enter_without_tunnels() -> Result<(), Error> {
    enter_unless(None)
}

fn enter_unless(obstacle: Option<Obstacle>) -> Result<(), Error> {
    let mut obstacles: Vec<Obstacle> = obstacle.into_iter().collect();
    if may_make_namespaces() {
        return if obstacles.is_empty() { Ok(()) } else { Err(Error::Forbidden(obstacles)) };
    }
    if std::env::var_os(INSIDE).is_some() {
        obstacles.push(namespace_obstacle(&io::Error::from_raw_os_error(libc::EPERM)));
    } else if obstacles.is_empty() {
        let error = start_again();
        obstacles.push(namespace_obstacle(&error));
    } else if let Err(error) = in_child(unshare_user) {
        obstacles.push(namespace_obstacle(&error));
    }
    Err(Error::Forbidden(obstacles))
}

/// Whether the calling process may make network namespaces; tried on a thread that ends with the answer.
#[must_use]
pub fn may_make_namespaces() -> bool {
    // SAFETY: takes no pointers; affects that thread only.
    thread::spawn(|| check(unsafe { libc::unshare(libc::CLONE_NEWNET) }).is_ok()).join().unwrap_or(false)
}

/// For tests: whether hosts can be made here; where not, see [`skip()`].
///
/// # Panics
/// As [`skip()`] does.
#[must_use]
pub fn allows_hosts() -> bool {
    may_make_namespaces() || skip(Need::Namespaces, "may not make network namespaces (run as root)")
}

/// For tests: whether hosts with tunnels can be made here; where not, see [`skip()`].
///
/// # Panics
/// As [`skip()`] does.
#[must_use]
pub fn allows_tests() -> bool {
    let opened = || open_tun().map_err(|error| format!("may not open {TUN}: {error}"));
    allows_hosts() && opened().map_or_else(|why| skip(Need::Tun, &why), |()| true)
}

/// Replaces this program by itself inside new namespaces; returns only why that failed.
fn start_again() -> io::Error {
    let arguments: Vec<_> = std::env::args_os().collect();
    let attempt = || -> io::Result<std::convert::Infallible> {
        let program = std::env::current_exe()?;
        unshare_user()?;
        let mut command = Command::new(program);
        if let Some((name, rest)) = arguments.split_first() {
            command.arg0(name).args(rest);
        }
        Err(command.env(INSIDE, "1").exec())
    };
    match attempt() {
        Ok(never) => match never {},
        Err(error) => error,
    }
}

/// Moves the calling process into new user, mount and network namespaces, where it is root.
fn unshare_user() -> io::Result<()> {
    // SAFETY: these calls take no pointers and cannot fail.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    // SAFETY: takes no pointers; refused when the process has several threads.
    check(unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWNET) })?;
    // Without this an ordinary user may not map a group (user_namespaces(7)).
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1"))
}

/// What `work` answers in a forked child; nothing of it stays.
fn in_child(work: fn() -> io::Result<()>) -> io::Result<()> {
    // SAFETY: called before any thread exists (see `enter`), so the child may use the whole library.
    let child = unsafe { libc::fork() };
    check(child)?;
    if child == 0 {
        let code = work().err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EPERM));
        // SAFETY: ends the child without running the parent's exit handlers.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: `status` outlives the call; the child is ours and not waited for elsewhere.
    check(unsafe { libc::waitpid(child, &raw mut status, 0) })?;
    match libc::WEXITSTATUS(status) {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

fn open_tun() -> io::Result<()> {
    OpenOptions::new().read(true).write(true).open(TUN).map(|_| ())
}

fn tun_obstacle(opened: io::Result<()>) -> Option<Obstacle> {
    let error = opened.err()?;
    let remedy = match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => {
            "sudo modprobe tun (in a container: start it with --device /dev/net/tun)"
        }
        Some(libc::EACCES) => "sudo chmod 666 /dev/net/tun (as most distributions ship it), or run as root",
        _ => "start the container with --device /dev/net/tun, or run on the host itself",
    };
    Some(Obstacle { cause: format!("{TUN} cannot be opened: {error}"), remedy: remedy.to_owned() })
}

/// What keeps an ordinary user from making a user namespace, told from the error and the system's switches.
fn namespace_obstacle(error: &io::Error) -> Obstacle {
    let cause = format!("this user may not make network namespaces: {error}");
    let remedy = SWITCHES
        .iter()
        .find(|switch| setting(switch.name).as_deref() == Some(switch.forbids))
        .map_or("run as root, or start the container with --privileged".to_owned(), |switch| {
            format!("sudo sysctl -w {}={} ({}), or run as root", switch.name, switch.allows, switch.why)
        });
    Obstacle { cause, remedy }
}

/// A kernel setting that forbids user namespaces at one value and allows them at another.
struct NamespaceSwitch {
    name: &'static str,
    forbids: &'static str,
    allows: &'static str,
    why: &'static str,
}

const SWITCHES: [NamespaceSwitch; 3] = [
    NamespaceSwitch {
        name: "user.max_user_namespaces",
        forbids: "0",
        allows: "15000",
        why: "user namespaces are switched off",
    },
    NamespaceSwitch {
        name: "kernel.unprivileged_userns_clone",
        forbids: "0",
        allows: "1",
        why: "Debian's switch for user namespaces",
    },
    NamespaceSwitch {
        name: "kernel.apparmor_restrict_unprivileged_userns",
        forbids: "1",
        allows: "0",
        why: "AppArmor restricts user namespaces, as on Ubuntu 23.10 and later",
    },
];

fn setting(name: &str) -> Option<String> {
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_a_tun_can_be_missing_has_its_fix() {
        for (code, expected) in [
            (libc::ENOENT, "modprobe tun"),
            (libc::ENODEV, "modprobe tun"),
            (libc::EACCES, "chmod 666 /dev/net/tun"),
            (libc::EPERM, "--device /dev/net/tun"),
        ] {
            let obstacle = tun_obstacle(Err(io::Error::from_raw_os_error(code))).unwrap();
            assert!(obstacle.remedy.contains(expected), "{code}: {obstacle}");
        }
        assert_eq!(tun_obstacle(Ok(())), None);
    }

    #[test]
    fn a_forbidden_namespace_always_has_a_fix() {
        let obstacle = namespace_obstacle(&io::Error::from_raw_os_error(libc::EPERM));
        assert!(obstacle.cause.contains("Operation not permitted"));
        assert!(obstacle.remedy.contains("run as root"));
    }
}
