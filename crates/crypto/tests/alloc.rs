//! Sealing and opening allocate nothing, neither in Rust nor in the library behind it.
//!
//! `malloc` and its relatives are replaced in this test binary by counting ones, which C code meets as
//! well. That takes glibc, whose own allocator stays reachable under other names.

#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![allow(unsafe_code, reason = "replacing the C allocator cannot be said safely")]
#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::ffi::{c_int, c_void};

use strait_crypto::{Aead, ICV_LEN, Key, KeyMaterial, MAX_KEY_MATERIAL, NonceCounter, Suite};

thread_local! {
    /// Calls of the allocator on this thread.
    static CALLS: Cell<u64> = const { Cell::new(0) };
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
pub extern "C" fn malloc(size: usize) -> *mut c_void {
    count();
    // SAFETY: glibc's own malloc, with the caller's argument.
    unsafe { __libc_malloc(size) }
}

/// `calloc(3)`, counted.
#[unsafe(no_mangle)]
pub extern "C" fn calloc(members: usize, size: usize) -> *mut c_void {
    count();
    // SAFETY: glibc's own calloc, with the caller's arguments.
    unsafe { __libc_calloc(members, size) }
}

/// `realloc(3)`, counted.
///
/// # Safety
/// As for `realloc(3)`: `old` is null or came from this allocator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(old: *mut c_void, size: usize) -> *mut c_void {
    count();
    // SAFETY: glibc's own realloc; the caller vouches for `old`.
    unsafe { __libc_realloc(old, size) }
}

/// `posix_memalign(3)`, counted.
///
/// # Safety
/// As for `posix_memalign(3)`: `out` is valid for writing a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(out: *mut *mut c_void, align: usize, size: usize) -> c_int {
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
    let before = CALLS.get();
    let boxed = std::hint::black_box(vec![1_u8; 100]);
    assert_eq!(CALLS.get(), before + 1);
    drop(boxed);
}

#[test]
fn seal_and_open_allocate_nothing() {
    for suite in Suite::ALL {
        let material = KeyMaterial::new(suite, &[7; MAX_KEY_MATERIAL][..suite.key_material_len()]).unwrap();
        let before = CALLS.get();
        let key = Key::new(&material);
        assert!(CALLS.get() > before, "the library's own allocations are counted");
        let mut counter = NonceCounter::new();
        let mut packet = vec![0; 65_000 + ICV_LEN];
        // aws-lc keeps a record of errors a thread, made at the first: a thread's first forgery costs that.
        assert!(key.open(1, &[], &mut packet[..ICV_LEN]).is_err());

        let before = CALLS.get();
        for len in [0, 64, 1_400, 65_000] {
            for forged in [false, true] {
                let nonce = counter.next().unwrap();
                let iv = nonce.value();
                let tag = key.seal(nonce, &[1; 12], &mut packet[..len]).unwrap();
                packet[len..][..ICV_LEN].copy_from_slice(&tag);
                packet[len] ^= u8::from(forged);
                let opened = key.open(iv, &[1; 12], &mut packet[..len + ICV_LEN]);
                assert_eq!(opened.is_err(), forged);
            }
        }
        assert_eq!(CALLS.get(), before, "{suite} allocated");
    }
}
