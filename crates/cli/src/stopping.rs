//! The end of a transfer that a signal asks for: in order, with a word about how it goes on.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread;

use strait_node::interrupt::EndSignal;
use strait_node::poll::{self, PollFd};

use crate::failure::{Code, Failure};
use crate::units::bytes;

/// Does `work`, and ends it by `stop` if a signal asks for that; returns its result, and whether one did.
pub(crate) fn until_asked_to_end<T>(
    stop: &(impl Fn() + Sync),
    work: impl FnOnce() -> T,
) -> Result<(T, bool), Failure> {
    let failed = || Failure::doing("wait for signals");
    let signal = EndSignal::any().map_err(failed())?;
    let (done, ended) = UnixStream::pair().map_err(failed())?;
    let result = thread::scope(|scope| {
        let (signal, ended) = (&signal, &ended);
        let asked = scope.spawn(move || {
            let mut both = [PollFd::readable(signal.as_fd()), PollFd::readable(ended.as_fd())];
            let mut asked = false;
            while poll::wait(&mut both, None).is_ok() {
                if signal.came() && !core::mem::replace(&mut asked, true) {
                    stop();
                }
                if both.iter().skip(1).any(PollFd::is_ready) {
                    break;
                }
            }
            asked
        });
        let result = work();
        drop(done);
        (result, asked.join().unwrap_or_default())
    });
    // Where one came, the program ends in a moment, and what else belongs to that request is not to end it before.
    if !result.1 {
        signal.release();
    }
    Ok(result)
}

/// The failure of a transfer that a signal stopped, with how many bytes of how many there are, if that is known.
pub(crate) fn stopped(far: Option<(u64, u64)>) -> Failure {
    let far = far.map_or(String::new(), |(done, all)| format!(" at {} of {}", bytes(done), bytes(all)));
    Failure::new(format!("stopped{far}"))
        .remedy("run the same command again: it goes on where it stopped")
        .code(Code::Interrupted)
}
