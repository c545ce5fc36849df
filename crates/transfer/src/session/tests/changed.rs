//! A byte that changes between two ends, as if QUIC let it pass.

use std::fs;
use std::io::{self, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use strait_clock::Random;

use super::real::{ends, inbox, pushing};
use crate::message::TransferOptions;
use crate::session::*;
use crate::testing::TestFolder;

/// Changes some bits of the byte at a place.
struct Changing<'a> {
    stream: &'a UnixStream,
    passed: usize,
    at: usize,
    bits: u8,
}

impl Write for Changing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut bytes = bytes.to_vec();
        if let Some(byte) = self.at.checked_sub(self.passed).and_then(|at| bytes.get_mut(at)) {
            *byte ^= self.bits;
        }
        self.stream.write_all(&bytes)?;
        self.passed += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Sends the file `f` with one byte of the stream changed: how the sender sees it end.
fn push_changed(
    source: &TestFolder,
    target: &TestFolder,
    at: usize,
    bits: u8,
) -> Result<Tally, TransferError> {
    let (one, other) = UnixStream::pair().unwrap();
    for stream in [&one, &other] {
        // A length that grew waits for bytes that do not come.
        stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    }
    let (cancel, quiet) = (AtomicBool::new(false), |_| ());
    let (mut origin, hello) = pushing(&[source.join("f")], "", TransferOptions::default());
    thread::scope(|scope| {
        scope.spawn(|| {
            let hang_up = || drop(other.shutdown(Shutdown::Both));
            let watch = Watch { event: &quiet, cancel: &cancel, hang_up: &hang_up };
            let _ = serve(ends(&other, &other), &[inbox(target.path())], [2; 32], watch);
            hang_up();
        });
        let hang_up = || drop(one.shutdown(Shutdown::Both));
        let watch = Watch { event: &quiet, cancel: &cancel, hang_up: &hang_up };
        let writer = Changing { stream: &one, passed: 0, at, bits };
        let pushed = push(ends(&one, writer), hello, &mut origin, watch);
        hang_up();
        pushed
    })
}

#[test]
fn a_changed_byte_on_the_way_never_puts_other_content_under_the_name() {
    let source = TestFolder::new("s");
    let mut content = vec![0; 300_000];
    blake3::Hasher::new().finalize_xof().fill(&mut content);
    fs::write(source.join("f"), &content).unwrap();
    let (mut random, mut refused) = (Random::new(5), 0);
    for _ in 0..60 {
        let target = TestFolder::new("t");
        fs::write(target.join("f"), "older").unwrap();
        let (at, bits) = (random.below(300_200) as usize, 1 << random.below(8));
        let pushed = push_changed(&source, &target, at, bits);
        let found = fs::read(target.join("f")).unwrap();
        assert!(found == b"older" || found == content, "{} bytes at {at}: {pushed:?}", found.len());
        refused += usize::from(!matches!(pushed, Ok(Tally { failed: 0, .. })));
    }
    // Nearly all of the stream is content, which does not compress.
    assert!(refused > 50, "{refused} of 60");
}
