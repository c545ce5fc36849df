//! The system calls of a running tunnel; the kernel refuses all others.
//!
//! A call that is missing here is refused with EPERM and logged by the kernel, and the tunnel goes on. Calls by which a
//! process that was taken over would become another program, or reach into another process, end it instead. What a call
//! does can depend on its arguments where those are numbers; what a pointer leads to, a filter cannot see.
//!
//! Most calls are allowed whatever their arguments are: those the kernel (since Linux 5.11) answers from a table, without
//! running the filter, so that packets pay nothing for it.

use libc::{c_long, sock_filter};

use crate::bpf::Program;

/// What becomes of a call (`linux/seccomp.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallVerdict {
    Allow,
    /// It fails with this error.
    Fail(i32),
    /// The process ends.
    Kill,
}

/// A call that is allowed if of an argument these bits are this.
struct Conditional {
    call: c_long,
    argument: u32,
    bits: u32,
    value: u32,
}

const fn only(call: c_long, argument: u32, bits: u32, value: u32) -> Conditional {
    Conditional { call, argument, bits, value }
}

/// All of the argument's lower half, which is all that an `int` has.
const ALL: u32 = u32::MAX;

/// Whatever their arguments are.
const ALWAYS: &[c_long] = &[
    // Packets, datagrams, streams: by descriptors that are open.
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_accept4,
    libc::SYS_shutdown,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_getsockopt,
    libc::SYS_socketpair,
    // Counter files, exported keys, the log.
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_lseek,
    libc::SYS_fdatasync,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_flock,
    libc::SYS_fstat,
    libc::SYS_statx,
    // Descriptors, and waiting for them.
    libc::SYS_close,
    libc::SYS_dup,
    libc::SYS_fcntl,
    libc::SYS_ppoll,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_eventfd2,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_timerfd_gettime,
    // Time and chance.
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    // Memory.
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    // Threads and signals of this process.
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_set_robust_list,
    libc::SYS_membarrier,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_geteuid,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// What not all architectures have of the same kind.
#[cfg(target_arch = "x86_64")]
const ALSO: &[c_long] =
    &[libc::SYS_newfstatat, libc::SYS_rseq, libc::SYS_poll, libc::SYS_epoll_wait, libc::SYS_time];
#[cfg(target_arch = "aarch64")]
const ALSO: &[c_long] = &[libc::SYS_newfstatat, libc::SYS_rseq];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ALSO: &[c_long] = &[];

/// Files are opened and looked at by name, which a running tunnel does not.
#[cfg(target_arch = "x86_64")]
pub(super) const FILES: &[c_long] = &[
    libc::SYS_open,
    libc::SYS_openat,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_getdents64,
];
#[cfg(not(target_arch = "x86_64"))]
pub(super) const FILES: &[c_long] =
    &[libc::SYS_openat, libc::SYS_faccessat, libc::SYS_faccessat2, libc::SYS_getdents64];

/// Files are written, renamed and removed, and what is kept beside them: times, permissions, attributes. A time limit ends.
pub(super) const FOLDERS: &[c_long] = &[
    libc::SYS_openat2,
    libc::SYS_readlinkat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_unlinkat,
    libc::SYS_mkdirat,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_utimensat,
    libc::SYS_fallocate,
    libc::SYS_copy_file_range,
    FADVISE,
    libc::SYS_syncfs,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_fgetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_fremovexattr,
    libc::SYS_flistxattr,
    libc::SYS_getcwd,
    libc::SYS_getuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_setsockopt,
    libc::SYS_timer_settime,
    libc::SYS_timer_delete,
];
/// The same by calls of earlier kinds.
#[cfg(target_arch = "x86_64")]
pub(super) const FOLDERS_ALSO: &[c_long] = &[
    libc::SYS_readlink,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_unlink,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_chmod,
];
#[cfg(not(target_arch = "x86_64"))]
pub(super) const FOLDERS_ALSO: &[c_long] = &[libc::SYS_renameat];

/// The call that maps memory.
#[cfg(not(target_arch = "arm"))]
const MMAP: c_long = libc::SYS_mmap;
#[cfg(target_arch = "arm")]
const MMAP: c_long = libc::SYS_mmap2;

/// The call that says how a file is read.
#[cfg(not(target_arch = "arm"))]
const FADVISE: c_long = libc::SYS_fadvise64;
/// `arm_fadvise64_64` (`arch/arm/tools/syscall.tbl`), which libc does not list with musl.
#[cfg(target_arch = "arm")]
const FADVISE: c_long = 270;

/// By their arguments.
fn conditional() -> Vec<Conditional> {
    let flag = |flag: libc::c_int| u32::from_ne_bytes(flag.to_ne_bytes());
    let pid = std::process::id();
    vec![
        // A thread, and no process.
        only(libc::SYS_clone, 0, flag(libc::CLONE_THREAD), flag(libc::CLONE_THREAD)),
        // Memory that is no code.
        only(MMAP, 2, flag(libc::PROT_EXEC), 0),
        only(libc::SYS_mprotect, 2, flag(libc::PROT_EXEC), 0),
        // A thread's name, and how exactly it wakes.
        only(libc::SYS_prctl, 0, ALL, flag(libc::PR_SET_NAME)),
        only(libc::SYS_prctl, 0, ALL, flag(libc::PR_SET_TIMERSLACK)),
        // A descriptor that does not block.
        only(libc::SYS_ioctl, 1, ALL, FIONBIO),
        // Two files share what is in them (FICLONE, `linux/fs.h`).
        only(libc::SYS_ioctl, 1, ALL, 0x4004_9409),
        // The filter of packets directly behind IP.
        only(libc::SYS_setsockopt, 2, ALL, flag(libc::SO_ATTACH_FILTER)),
        // Whether routers may fragment what is sent.
        only(libc::SYS_setsockopt, 2, ALL, flag(libc::IP_MTU_DISCOVER)),
        // A limit is looked at.
        only(libc::SYS_prlimit64, 2, ALL, 0),
        // This process ends itself, as it does when it panics.
        only(libc::SYS_tgkill, 0, ALL, pid),
    ]
}

/// `asm-generic/ioctls.h`, which both architectures follow.
const FIONBIO: u32 = 0x5421;

/// Other programs, and other processes' memory.
const NEVER: &[c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
];

/// The architecture that numbers of calls are of (`linux/audit.h`).
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: Option<u32> = Some(0xc000_003e);
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: Option<u32> = Some(0xc000_00b7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE: Option<u32> = None;

/// Places in `struct seccomp_data`, of little-endian machines.
const NUMBER: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const fn argument_at(argument: u32) -> u32 {
    16 + 8 * argument
}

/// The filter that allows `more` besides, as the kernel takes it; none for machines whose calls are not listed.
pub(super) fn filter(more: &[c_long]) -> Option<Vec<sock_filter>> {
    let mut program = Program::default();
    let ours = program.label();
    program.load_word(ARCHITECTURE_AT);
    program.equal(ARCHITECTURE?, ours);
    verdict(&mut program, CallVerdict::Kill);
    program.here(ours);
    program.load_word(NUMBER);
    for call in ALWAYS.iter().chain(ALSO).chain(more) {
        rule(&mut program, number(*call), CallVerdict::Allow);
    }
    for call in NEVER {
        rule(&mut program, number(*call), CallVerdict::Kill);
    }
    // The C library then takes `clone`, whose flags are no pointer.
    rule(&mut program, number(libc::SYS_clone3), CallVerdict::Fail(libc::ENOSYS));
    for Conditional { call, argument, bits, value } in conditional() {
        let other = program.label();
        program.differs(number(call), other);
        program.load_word(argument_at(argument));
        program.mask(bits);
        rule(&mut program, value, CallVerdict::Allow);
        program.load_word(NUMBER);
        program.here(other);
    }
    verdict(&mut program, CallVerdict::Fail(libc::EPERM));
    program.finish()
}

/// What becomes of a call if A is `value`.
fn rule(program: &mut Program, value: u32, what: CallVerdict) {
    let other = program.label();
    program.differs(value, other);
    verdict(program, what);
    program.here(other);
}

fn verdict(program: &mut Program, what: CallVerdict) {
    program.take(match what {
        CallVerdict::Allow => libc::SECCOMP_RET_ALLOW,
        CallVerdict::Fail(error) => libc::SECCOMP_RET_ERRNO | u32::from_ne_bytes(error.to_ne_bytes()),
        CallVerdict::Kill => libc::SECCOMP_RET_KILL_PROCESS,
    });
}

fn number(call: c_long) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}
