//! A guest with a kernel of its own at one end of a link.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use strait_scheduler::Rate;
use strait_testbed::{EchoService, Error, Guest, LinkSpec, Namespace, TwoHosts, Workdir, sandbox};

const PATIENCE: Duration = Duration::from_secs(60);

/// Every kernel that can be booted here.
fn kernels() -> Vec<PathBuf> {
    let kernels = if sandbox::allows_tests() { strait_testdata::kernels() } else { Vec::new() };
    kernels.into_iter().map(|kernel| kernel.path).collect()
}

/// Two hosts, of which the second is a guest.
fn boot(kernel: &Path, dir: &Workdir) -> (TwoHosts, Guest) {
    let hosts = TwoHosts::direct(LinkSpec::thin(Rate::from_bits(200_000_000).unwrap())).unwrap();
    let guest = Guest::start(kernel, &hosts.link, &[], &dir.path().join("console")).unwrap();
    (hosts, guest)
}

/// How many processes run on a host.
fn population(host: u64) -> usize {
    let on_it =
        |process: &PathBuf| std::fs::metadata(process.join("ns/net")).is_ok_and(|it| it.ino() == host);
    std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path()).filter(on_it).count()
}

/// What the system knows a host by.
fn identity(host: &Namespace) -> u64 {
    host.run("see who it is", || std::fs::metadata("/proc/thread-self/ns/net")).unwrap().ino()
}

#[test]
fn commands_answer_with_what_they_write_and_how_they_ended() {
    for kernel in kernels() {
        let dir = Workdir::create().unwrap();
        let (_hosts, mut guest) = boot(&kernel, &dir);
        assert_eq!(guest.run("uname -r").unwrap().trim(), guest.release());
        assert_ne!(guest.release(), std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap().trim());

        assert_eq!(guest.run("printf 'one\ntwo'; echo three >&2").unwrap(), "one\ntwothree\n");
        assert_eq!(guest.run("true").unwrap(), "");
        match guest.run("echo words; exit 3") {
            Err(Error::Command { status, said, .. }) => {
                assert_eq!((&*status, &*said), ("exit status 3", "words\n"))
            }
            other => panic!("{other:?}"),
        }
        // More than any buffer on the way has room for, in both directions.
        let long: String = (0..20_000).map(|at| char::from(b'a' + u8::try_from(at % 26).unwrap())).collect();
        assert_eq!(guest.run(&format!("echo {long}{long}")).unwrap(), format!("{long}{long}\n"));
        assert!(guest.run("touch /root/x").is_err(), "this machine's files can be written");
    }
}

#[test]
fn both_can_call_each_other() {
    for kernel in kernels() {
        let dir = Workdir::create().unwrap();
        let (hosts, mut guest) = boot(&kernel, &dir);
        let content: Vec<u8> = (0..200_000).map(|at| u8::try_from(at * 7 % 251).unwrap()).collect();
        for address in [hosts.address_of_b().0, hosts.address_of_b().1] {
            EchoService::call(&hosts.a, address, &content, PATIENCE).unwrap();
        }
        let _service = EchoService::start(&hosts.a).unwrap();
        for address in [hosts.address_of_a().0, hosts.address_of_a().1] {
            guest.run(&format!("ping -c 1 -W 5 {address} && echo_with {address}")).unwrap();
        }
    }
}

#[test]
fn dropped_it_is_gone() {
    for kernel in kernels() {
        let dir = Workdir::create().unwrap();
        let (hosts, guest) = boot(&kernel, &dir);
        let host = identity(&hosts.b);
        assert!(population(host) > 0);
        drop(guest);
        // Its processes have let go of all files; the kernel may still be at their end.
        let dropped = Instant::now();
        while population(host) > 0 {
            assert!(dropped.elapsed() < PATIENCE, "processes stay");
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_guest_that_ends_by_itself_says_so() {
    for kernel in kernels() {
        let dir = Workdir::create().unwrap();
        let (_hosts, mut guest) = boot(&kernel, &dir);
        // RB_POWER_OFF of linux/reboot.h.
        match guest.run("/usr/bin/python3 -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)'; sleep 60")
        {
            Err(Error::GuestEnded { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_is_no_kernel_is_told_with_its_last_words() {
    if !sandbox::allows_tests() {
        return;
    }
    let dir = Workdir::create().unwrap();
    let hosts = TwoHosts::direct(LinkSpec::thin(Rate::from_bits(200_000_000).unwrap())).unwrap();
    match Guest::start(Path::new("/nonexistent/kernel"), &hosts.link, &[], &dir.path().join("console")) {
        Err(Error::GuestEnded { said }) => assert!(said.contains("/nonexistent/kernel"), "{said}"),
        other => panic!("{other:?}"),
    }
}

/// Tells this program, started again, to boot this kernel, say on which host, and wait to be killed.
const VICTIM: &str = "STRAIT_TEST_VICTIM";

#[test]
fn a_victim_waits_to_be_killed() {
    let Some(kernel) = std::env::var_os(VICTIM) else { return };
    let dir = Workdir::create().unwrap();
    let (hosts, _guest) = boot(Path::new(&kernel), &dir);
    println!("{VICTIM} {}", identity(&hosts.b));
    thread::sleep(PATIENCE);
}

#[test]
fn killed_with_who_started_it() {
    for kernel in kernels() {
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "a_victim_waits_to_be_killed"])
            .env(VICTIM, &kernel)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let host = BufReader::new(victim.stdout.take().unwrap())
            .lines()
            .find_map(|line| line.unwrap().split_once(&format!("{VICTIM} "))?.1.parse().ok())
            .unwrap();
        assert!(population(host) > 0);
        victim.kill().unwrap();
        victim.wait().unwrap();
        let start = Instant::now();
        while population(host) > 0 {
            assert!(start.elapsed() < PATIENCE, "processes of a killed program live on");
            thread::sleep(Duration::from_millis(10));
        }
    }
}
