//! `malloc` and its relatives, replaced in a test binary by counting ones, which C code meets as well.
//! That takes glibc, whose own allocator stays reachable under other names.
#![allow(unsafe_code, reason = "replacing the C allocator cannot be said safely")]

use std::cell::Cell;
use std::ffi::{c_int, c_void};

thread_local! {
    /// Calls of the allocator on this thread.
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// Calls of the allocator on this thread until now.
pub(crate) fn calls() -> u64 {
    CALLS.get()
}

fn count() {
    CALLS.with(|calls| calls.set(calls.get() + 1));
}

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(old: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_memalign(align: usize, size: usize) -> *mut c_void;
}

/// `malloc(3)`, counted.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn malloc(size: usize) -> *mut c_void {
    count();
    // SAFETY: glibc's own malloc, with the caller's argument.
    unsafe { __libc_malloc(size) }
}

/// `calloc(3)`, counted.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn calloc(members: usize, size: usize) -> *mut c_void {
    count();
    // SAFETY: glibc's own calloc, with the caller's arguments.
    unsafe { __libc_calloc(members, size) }
}

/// `realloc(3)`, counted.
///
/// # Safety
/// As for `realloc(3)`: `old` is null or came from this allocator.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn realloc(old: *mut c_void, size: usize) -> *mut c_void {
    count();
    // SAFETY: glibc's own realloc; the caller vouches for `old`.
    unsafe { __libc_realloc(old, size) }
}

/// `posix_memalign(3)`, counted.
///
/// # Safety
/// As for `posix_memalign(3)`: `out` is valid for writing a pointer.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn posix_memalign(out: *mut *mut c_void, align: usize, size: usize) -> c_int {
    const ENOMEM: c_int = 12;
    count();
    // SAFETY: glibc's own memalign, with the caller's arguments.
    let place = unsafe { __libc_memalign(align, size) };
    if place.is_null() {
        return ENOMEM;
    }
    // SAFETY: the caller vouches for `out`.
    unsafe { out.write(place) };
    0
}

#[test]
fn the_counter_counts() {
    let before = calls();
    let boxed = std::hint::black_box(vec![1_u8; 100]);
    assert_eq!(calls(), before + 1);
    drop(boxed);
}
