use std::fs::{self, File};

use strait_testdata::skip::{Need, skip};

use super::*;

#[test]
fn counts_forwards_from_zero() {
    let clock = Clock::start();
    let (one, other) = (clock.now(), clock.now());
    assert!(one <= other);
    assert_eq!(clock.until(one), Duration::ZERO);
    assert!(clock.until(other + Duration::from_secs(3600)) > Duration::from_secs(3000));
}

/// How the child of the next test ended.
const JUMPED: i32 = 0;
const STOOD_STILL: i32 = 1;
const FORBIDDEN: i32 = 2;

/// Moves this process, which has one thread, to a time namespace whose clocks are as after an hour of suspend: the clock that
/// counts suspend is an hour ahead, the other is not.
fn suspend_for_an_hour() -> io::Result<()> {
    // SAFETY: no pointer is passed.
    if unsafe { libc::unshare(libc::CLONE_NEWTIME) } != 0 {
        return Err(io::Error::last_os_error());
    }
    fs::write("/proc/self/timens_offsets", "boottime 3600 0\n")?;
    let namespace = File::open("/proc/self/ns/time_for_children")?;
    // SAFETY: the descriptor is open; no pointer is passed.
    match unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWTIME) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[test]
fn an_hour_of_suspend_is_an_hour_of_the_clock() {
    // SAFETY: the child is a process with one thread. It makes system calls and exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let clock = Clock::start();
        let code = match suspend_for_an_hour() {
            Err(_) => FORBIDDEN,
            Ok(()) if clock.now() < Time::ZERO + Duration::from_secs(3600) => STOOD_STILL,
            Ok(()) if clock.running() > 1_000_000_000_000 => STOOD_STILL,
            Ok(()) => JUMPED,
        };
        // SAFETY: ends the child without running what belongs to the test's process.
        unsafe { libc::_exit(code) }
    }
    assert!(child > 0, "{}", io::Error::last_os_error());
    let mut status = 0;
    // SAFETY: the pointer is to a value that outlives the call.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status), "{status:#x}");
    match libc::WEXITSTATUS(status) {
        FORBIDDEN => drop(skip(Need::Namespaces, "may not make time namespaces")),
        code => assert_eq!(code, JUMPED),
    }
}

/// Runs `body` where tokio's timers and descriptors work.
fn block_on<T>(body: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(body)
}

#[test]
fn the_timer_ends_at_its_time_whatever_it_waited_for_before() {
    block_on(async {
        let clock = Clock::start();
        let mut timer = BootTimer::new(clock).unwrap();
        timer.until(Time::ZERO).await.unwrap();
        for never in [Time::MAX, clock.now() + Duration::from_secs(86_400)] {
            let waited = tokio::time::timeout(Duration::from_millis(20), timer.until(never)).await;
            assert!(waited.is_err(), "{never:?} has not come");
        }
        let at = clock.now() + Duration::from_millis(20);
        timer.until(at).await.unwrap();
        assert!(clock.now() >= at);
        // Over before it was looked at, and another time is awaited now. A busy machine may let it end at the first look.
        let soon = clock.now() + Duration::from_millis(50);
        let _ = tokio::time::timeout(Duration::ZERO, timer.until(soon)).await;
        tokio::time::sleep(Duration::from_millis(80)).await;
        assert!(clock.now() >= soon);
        let later = clock.now() + Duration::from_millis(20);
        timer.until(later).await.unwrap();
        assert!(clock.now() >= later);
    });
}

#[test]
fn the_timer_counts_suspend() {
    block_on(async {
        let timer = BootTimer::new(Clock::start()).unwrap();
        let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", timer.timer.get_ref().as_raw_fd()));
        assert!(info.unwrap().contains(&format!("clockid: {}\n", libc::CLOCK_BOOTTIME)));
    });
}
