//! Who is logged in, as utmp(5) and wtmp(5) have it. Where these files are not, cannot be written or are full, nothing is recorded.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::workers::wait_for;
use crate::process::fork;
use crate::services::TimeLimit;

/// How long writing a record may take.
const PATIENCE: Duration = Duration::from_secs(3);
/// Where wtmp is (`<paths.h>`).
const WTMP: &str = "/var/log/wtmp";

/// A login that is recorded; dropped, its end is.
#[derive(Debug)]
pub(super) struct LoginRecord {
    /// The terminal's name without `/dev/`.
    line: Vec<u8>,
    process: i32,
}

impl LoginRecord {
    /// Records that `account` logged in from `peer` at the terminal; `process` is the first of the session.
    pub(super) fn begin(terminal: &Path, account: &str, peer: &str, process: i32) -> Option<LoginRecord> {
        let line = terminal.strip_prefix("/dev").ok()?.as_os_str().as_encoded_bytes().to_vec();
        let record = LoginRecord { line, process };
        record.write_aside(libc::USER_PROCESS, account.as_bytes(), peer.as_bytes());
        Some(record)
    }

    /// Writes an entry, in a process of its own: what the library finds in these files may keep it busy, and others may have locked
    /// them.
    fn write_aside(&self, kind: libc::c_short, account: &[u8], peer: &[u8]) {
        let written = fork(c"strait-record", &[], || match TimeLimit::set(PATIENCE) {
            Ok(_limit) => {
                self.write(kind, account, peer);
                0
            }
            Err(_) => 1,
        });
        if let Ok(process) = written
            && !wait_for(process).is_ok_and(|status| status.success())
        {
            tracing::warn!("a login or its end is not recorded: utmp or wtmp cannot be written in time");
        }
    }

    fn write(&self, kind: libc::c_short, account: &[u8], peer: &[u8]) {
        // SAFETY: all zeros is a valid utmpx, of integers and arrays of them.
        let mut entry: libc::utmpx = unsafe { std::mem::zeroed() };
        entry.ut_type = kind;
        entry.ut_pid = self.process;
        fill(&mut entry.ut_line, &self.line);
        // As getty and sshd have it: what fits of the line's end.
        let id = self.line.strip_prefix(b"pts/").unwrap_or(&self.line);
        let room = entry.ut_id.len();
        fill(&mut entry.ut_id, id.get(id.len().saturating_sub(room)..).unwrap_or(id));
        fill(&mut entry.ut_user, account);
        fill(&mut entry.ut_host, peer);
        #[expect(clippy::disallowed_methods, reason = "these files have the time of day")]
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        entry.ut_tv.tv_sec = now.as_secs() as _;
        entry.ut_tv.tv_usec = now.subsec_micros() as _;
        // SAFETY: the pointer is to a value that outlives the call, which copies it.
        #[cfg_attr(target_env = "musl", expect(deprecated, reason = "musl writes nothing"))]
        unsafe {
            libc::setutxent();
            libc::pututxline(&raw const entry);
            libc::endutxent();
        }
        // SAFETY: all bytes of the entry were made zero before its fields were set, those between them too.
        let bytes =
            unsafe { std::slice::from_raw_parts((&raw const entry).cast::<u8>(), size_of::<libc::utmpx>()) };
        append(Path::new(WTMP), bytes);
    }
}

impl Drop for LoginRecord {
    fn drop(&mut self) {
        self.write_aside(libc::DEAD_PROCESS, b"", b"");
    }
}

/// Adds a record to a file that is there, whole or not at all.
fn append(file: &Path, record: &[u8]) {
    let Ok(mut file) = OpenOptions::new().append(true).open(file) else { return };
    let Ok(before) = file.metadata().map(|found| found.len()) else { return };
    if !matches!(file.write(record), Ok(written) if written == record.len()) {
        let _ = file.set_len(before);
    }
}

/// Copies as much as there is room for; what is shorter ends in zero bytes.
fn fill(field: &mut [libc::c_char], text: &[u8]) {
    for (to, from) in field.iter_mut().zip(text) {
        *to = libc::c_char::from_ne_bytes([*from]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_added_whole_and_only_to_a_file_that_is_there() {
        let file = std::env::temp_dir().join(format!("strait-wtmp-{}", std::process::id()));
        append(&file, b"x");
        assert!(!file.exists());
        std::fs::write(&file, "ab").unwrap();
        append(&file, b"cd");
        assert_eq!(std::fs::read(&file).unwrap(), b"abcd");
        std::fs::remove_file(&file).unwrap();
        // A full disk, as the kernel has one.
        append(Path::new("/dev/full"), b"cd");
    }

    #[test]
    fn a_field_takes_what_it_has_room_for() {
        let mut field = [0; 4];
        fill(&mut field, b"ab");
        assert_eq!(field.map(|letter| letter.to_ne_bytes()[0]), *b"ab\0\0");
        fill(&mut field, b"abcdef");
        assert_eq!(field.map(|letter| letter.to_ne_bytes()[0]), *b"abcd");
    }
}
