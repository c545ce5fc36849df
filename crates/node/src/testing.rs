//! What tests of this crate need: a network namespace of their own.
#![allow(unsafe_code)]

/// Runs `body` in a thread with an empty network namespace of its own, whose loopback is down.
///
/// Says so and returns without running it where the system forbids namespaces.
pub(crate) fn in_namespace(body: impl FnOnce() + Send) {
    let outcome = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // SAFETY: no pointer is passed; only this thread moves to the new namespace.
            if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
                return eprintln!("skipped: {}", std::io::Error::last_os_error());
            }
            body();
        });
        thread.join()
    });
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}
