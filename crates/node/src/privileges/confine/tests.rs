use super::*;
use crate::privileges::{ServiceUser, drop_all};
use std::cell::Cell;
use std::ffi::CStr;
use std::fs::File;
use std::io::Write;
use std::net::TcpStream;
use std::os::fd::FromRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

/// As [`after`] once a process was confined.
fn confined(body: impl FnOnce() -> bool) -> Result<i32, i32> {
    after(|| confine().is_ok_and(|confinement| confinement.calls), body)
}

/// How a process ended that did `body` once it had no privileges and was `ready`: the number of its exit, or that of the
/// signal.
fn after(ready: impl FnOnce() -> bool, body: impl FnOnce() -> bool) -> Result<i32, i32> {
    // SAFETY: the other threads of a test's process hold no lock that is taken here; the C library keeps its memory usable.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        // Other tests' devices stay busy while a copy of their descriptor is open here.
        // SAFETY: nothing of this process uses a descriptor that it inherited.
        unsafe { libc::close_range(3, libc::c_uint::MAX, 0) };
        let user = ServiceUser::Other { user: 65_534, group: 65_534 };
        let user = if crate::privileges::is_root() { user } else { ServiceUser::Same };
        let ready = drop_all(user).is_ok() && ready();
        let done = ready && body();
        // SAFETY: takes an integer; ends this process only.
        unsafe { libc::_exit(if !ready { 2 } else { i32::from(!done) }) }
    }
    let mut status = 0;
    // SAFETY: the pointer is to an integer that outlives the call.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    if libc::WIFSIGNALED(status) { Err(libc::WTERMSIG(status)) } else { Ok(libc::WEXITSTATUS(status)) }
}

/// Whether a call was refused, and not for want of what it asks for.
fn is_refused(result: impl Into<i64>) -> bool {
    let refused = [libc::EPERM, libc::EACCES];
    result.into() < 0 && io::Error::last_os_error().raw_os_error().is_some_and(|code| refused.contains(&code))
}

#[test]
fn a_process_that_was_taken_over_opens_no_file() {
    for path in [c"/etc/shadow", c"/etc/passwd", c"/proc/self/mem", c"/dev/net/tun", c"."] {
        // SAFETY: the path ends in a zero byte and outlives the call.
        let open = || is_refused(unsafe { libc::open(path.as_ptr(), libc::O_RDONLY) });
        assert_eq!(confined(open), Ok(0), "{path:?}");
    }
    // SAFETY: as above.
    let make =
        || is_refused(unsafe { libc::open(c"/tmp/x".as_ptr(), libc::O_CREAT | libc::O_WRONLY, 0o600) });
    assert_eq!(confined(make), Ok(0));
    // SAFETY: as above.
    assert_eq!(confined(|| is_refused(unsafe { libc::unlink(c"/tmp/x".as_ptr()) })), Ok(0));
}

#[test]
fn landlock_alone_opens_no_file_and_no_connection() {
    let has_ports = Cell::new(false);
    let close = || {
        let version = close_files(&[], FIRST).unwrap_or(0);
        has_ports.set(version >= 4);
        // Where the kernel has no Landlock there is nothing to try.
        if version == 0 && io::Error::last_os_error().raw_os_error().is_some_and(is_unknown) {
            // SAFETY: takes an integer; ends this process only.
            unsafe { libc::_exit(0) };
        }
        version > 0
    };
    let nothing = || {
        // SAFETY: the path ends in a zero byte and outlives the call.
        let opens = |path: &CStr| is_refused(unsafe { libc::open(path.as_ptr(), libc::O_RDONLY) });
        let connects = || {
            TcpStream::connect(("127.0.0.1", 9))
                .is_err_and(|error| error.raw_os_error() == Some(libc::EACCES))
        };
        opens(c"/etc/passwd") && opens(c"/") && (!has_ports.get() || connects())
    };
    assert_eq!(after(close, nothing), Ok(0));
}

#[test]
fn a_process_that_is_left_a_folder_works_in_it_and_opens_nothing_else() {
    let folder = std::env::temp_dir().join(format!("strait-left-{}", std::process::id()));
    let (inside, other) = (folder.join("in"), folder.join("other"));
    for path in [&folder, &inside, &other] {
        std::fs::create_dir_all(path).unwrap();
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).unwrap();
    }
    std::fs::write(other.join("f"), "secret").unwrap();
    let knows = Cell::new(true);
    let ready = || {
        let confined = confine_to(&[&inside], &[]);
        knows.set(matches!(confined, Ok(true)));
        confined.is_ok()
    };
    let works = || {
        let (deep, aside) = (inside.join("deep"), inside.join("aside"));
        let written = std::fs::create_dir(&deep)
            .and_then(|()| std::fs::write(&aside, "whole"))
            .and_then(|()| std::fs::rename(&aside, deep.join("name")))
            .and_then(|()| std::fs::hard_link(deep.join("name"), inside.join("second")))
            .and_then(|()| std::os::unix::fs::symlink("second", inside.join("link")))
            .and_then(|()| std::fs::remove_file(inside.join("second")))
            .and_then(|()| std::fs::read_to_string(deep.join("name")));
        let refused = |result: io::Result<()>| {
            !knows.get() || result.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
        };
        let fifo = inside.join("fifo");
        let fifo = std::ffi::CString::new(fifo.as_os_str().as_encoded_bytes()).unwrap_or_default();
        written.is_ok_and(|text| text == "whole")
            && refused(File::open(other.join("f")).map(drop))
            && refused(File::open("/etc/passwd").map(drop))
            && refused(std::fs::write(other.join("new"), ""))
            && refused(std::fs::rename(deep.join("name"), other.join("moved")).map_err(as_refused))
            // SAFETY: the path ends in a zero byte and outlives the call.
            && (!knows.get() || is_refused(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }))
    };
    assert_eq!(after(ready, works), Ok(0));
    assert_eq!(std::fs::read_to_string(inside.join("deep/name")).unwrap(), "whole");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_process_that_reads_tokens_has_what_it_is_given_and_a_folder_to_write() {
    let folder = std::env::temp_dir().join(format!("strait-reader-{}", std::process::id()));
    let [given, own, other] = ["given", "own", "other"].map(|name| folder.join(name));
    for path in [&folder, &given, &own, &other] {
        std::fs::create_dir_all(path).unwrap();
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).unwrap();
    }
    let [file, foreign, alone] = [given.join("f"), other.join("f"), other.join("alone")];
    for path in [&file, &foreign, &alone] {
        std::fs::write(path, "text").unwrap();
    }
    let knows = Cell::new(true);
    let ready = || {
        let confined = confine_reader(&[given.clone(), alone.clone()], &own);
        confined.is_ok_and(|confinement| {
            knows.set(confinement.landlock > 0);
            confinement.calls
        })
    };
    let reads = |path: &Path| std::fs::read_to_string(path).is_ok_and(|text| text == "text");
    let works = || {
        let refused = |result: io::Result<()>| {
            result.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
        };
        let written = std::fs::write(own.join("record"), "text").is_ok() && reads(&own.join("record"));
        let closed = refused(File::open(&foreign).map(drop))
            && refused(File::open("/etc/passwd").map(drop))
            && refused(std::fs::write(given.join("new"), ""));
        // SAFETY: takes numbers only.
        let socket = || unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0) };
        written
            && reads(&file)
            && reads(&alone)
            && (closed || !knows.get())
            && refused(std::fs::remove_file(own.join("record")))
            && is_refused(socket())
    };
    assert_eq!(after(ready, works), Ok(0));
    let program = || std::process::Command::new("/bin/true").exec().kind() == io::ErrorKind::NotFound;
    assert_eq!(after(ready, program), Err(libc::SIGSYS));
    std::fs::remove_dir_all(&folder).unwrap();
}

/// To another folder, the kernel refuses as if it were another disk.
fn as_refused(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::CrossesDevices => io::ErrorKind::PermissionDenied.into(),
        _ => error,
    }
}

fn is_unknown(code: i32) -> bool {
    matches!(code, libc::ENOSYS | libc::EOPNOTSUPP)
}

#[test]
fn a_process_that_was_taken_over_starts_no_program_and_reaches_into_no_process() {
    let arguments = [c"/bin/true".as_ptr(), std::ptr::null()];
    // SAFETY: the path and the lists end in zeros and outlive the call.
    let exec = || unsafe { libc::execv(c"/bin/true".as_ptr(), arguments.as_ptr()) } < 0;
    assert_eq!(confined(exec), Err(libc::SIGSYS));
    // SAFETY: takes numbers; attaches to process 1, which would be refused to most.
    let trace = || unsafe { libc::ptrace(libc::PTRACE_ATTACH, 1, 0, 0) } < 0;
    assert_eq!(confined(trace), Err(libc::SIGSYS));
    // SAFETY: no memory is named, so none is read.
    let peek = || unsafe { libc::process_vm_readv(1, std::ptr::null(), 0, std::ptr::null(), 0, 0) } < 0;
    assert_eq!(confined(peek), Err(libc::SIGSYS));
    // SAFETY: a process that comes to be ends at once.
    let fork = || match unsafe { libc::fork() } {
        // SAFETY: takes an integer.
        0 => unsafe { libc::_exit(0) },
        result => is_refused(result),
    };
    assert_eq!(confined(fork), Ok(0));
    // SAFETY: takes numbers; signal 0 asks whether there is such a process.
    assert_eq!(confined(|| is_refused(unsafe { libc::kill(libc::getppid().max(1), 0) })), Ok(0));
}

#[test]
fn a_process_that_was_taken_over_gets_no_socket_and_no_executable_memory() {
    for (domain, kind) in [
        (libc::AF_INET, libc::SOCK_STREAM),
        (libc::AF_INET6, libc::SOCK_DGRAM),
        (libc::AF_NETLINK, libc::SOCK_RAW),
        (libc::AF_UNIX, libc::SOCK_STREAM),
    ] {
        // SAFETY: takes numbers only.
        assert_eq!(confined(|| is_refused(unsafe { libc::socket(domain, kind, 0) })), Ok(0), "{domain}");
    }
    let map = |protection| {
        let (flags, none) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, std::ptr::null_mut());
        // SAFETY: a new mapping, which nothing refers to.
        unsafe { libc::mmap(none, 4096, protection, flags, -1, 0) }
    };
    let code = || map(libc::PROT_READ | libc::PROT_EXEC) == libc::MAP_FAILED;
    assert_eq!(confined(code), Ok(0));
    let later = || {
        let page = map(libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: the page was mapped above.
        page != libc::MAP_FAILED && is_refused(unsafe { libc::mprotect(page, 4096, libc::PROT_EXEC) })
    };
    assert_eq!(confined(later), Ok(0));
}

#[test]
fn threads_open_files_and_chance_are_left() {
    let path = std::env::temp_dir().join(format!("strait-confined-{}", std::process::id()));
    let open = Cell::new(None);
    let ready = || {
        open.set(File::create(&path).ok());
        confine().is_ok_and(|confinement| confinement.calls)
    };
    let works = || {
        let written = open
            .take()
            .is_some_and(|mut file| file.write_all(b"still").and_then(|()| file.sync_data()).is_ok());
        let thread = std::thread::spawn(|| vec![7_u8; 1 << 20].len()).join().is_ok_and(|len| len == 1 << 20);
        let mut byte = 0_u8;
        // SAFETY: the pointer and length describe `byte`, which outlives the call.
        let random = unsafe { libc::getrandom((&raw mut byte).cast(), 1, 0) } == 1;
        // SAFETY: takes integers only; the descriptor is checked before it is owned.
        let event = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
        // SAFETY: as above.
        let event = event >= 0 && unsafe { File::from_raw_fd(event) }.metadata().is_ok();
        written && thread && random && event
    };
    assert_eq!(after(ready, works), Ok(0));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "still");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_panic_ends_a_confined_process_as_any_other() {
    assert_eq!(confined(|| std::panic::catch_unwind(|| panic!("meant")).is_err()), Ok(0));
    // SAFETY: takes nothing, and ends that process.
    assert_eq!(confined(|| unsafe { libc::abort() }), Err(libc::SIGABRT));
}
