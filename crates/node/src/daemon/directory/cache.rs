//! What is held, in a file: as a directory says it, one message behind the other. What is read from it is verified as if it came from
//! there, so the file needs no other protection than that a torn end is cut off.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use strait_keying::directory::{Answer, HEAD_LEN};

use crate::runtime;

/// Most bytes of the file: 10,000 certificates of some 2 kB each, with daily keys of some 500 B, as often again, and lists.
const FILE_MAX: u64 = 64 << 20;

/// The file; without one, nothing is kept.
#[derive(Debug, Default)]
pub(super) struct CertificateCache(Option<File>);

impl CertificateCache {
    /// Opens the file at `path`, which is made if there is none, as is its folder.
    pub(super) fn open(path: &Path) -> io::Result<CertificateCache> {
        runtime::make(path.parent().unwrap_or(Path::new("/"))).map_err(io::Error::other)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
        Ok(CertificateCache(Some(file)))
    }

    /// All that it has, up to the first thing that is no message; what is behind that is named in the log.
    pub(super) fn read(&mut self) -> io::Result<Vec<Answer>> {
        let Some(file) = &mut self.0 else { return Ok(Vec::new()) };
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0))?;
        (&*file).take(FILE_MAX).read_to_end(&mut bytes)?;
        let (mut rest, mut kept) = (bytes.as_slice(), Vec::new());
        while let Some((answer, next)) = first(rest) {
            kept.push(answer);
            rest = next;
        }
        if !rest.is_empty() {
            tracing::warn!(
                "certificates on disk: the last {} of {} bytes are damaged and not read; directories give them again",
                rest.len(),
                bytes.len()
            );
        }
        Ok(kept)
    }

    /// Writes all of it anew.
    pub(super) fn write(&mut self, all: impl Iterator<Item = Answer>) -> io::Result<()> {
        let Some(file) = &mut self.0 else { return Ok(()) };
        let bytes: Vec<u8> = all.flat_map(|answer| answer.to_bytes()).collect();
        // What is behind the new end is left of before, and its first message begins where the new ones end only by chance; then it is
        // as true as it was.
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&bytes)?;
        file.set_len(u64::try_from(bytes.len()).unwrap_or(FILE_MAX))?;
        file.sync_data()
    }

    /// Adds something; says whether the file has grown so long that it is better written anew.
    pub(super) fn add(&mut self, answer: &Answer) -> io::Result<bool> {
        let Some(file) = &mut self.0 else { return Ok(false) };
        let end = file.seek(SeekFrom::End(0))?;
        file.write_all(&answer.to_bytes())?;
        if let Answer::List(_) = answer {
            // What it has revoked, and the time that it proves, outlast a power failure.
            file.sync_data()?;
        }
        Ok(end > FILE_MAX / 2)
    }
}

fn first(bytes: &[u8]) -> Option<(Answer, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<HEAD_LEN>()?;
    let len = usize::try_from(u32::from_be_bytes(*head)).ok()?;
    let (body, next) = rest.split_at_checked(len)?;
    let answer = Answer::from_body(body).ok()?;
    let is_kept = matches!(answer, Answer::Certificate(_) | Answer::List(_) | Answer::DailyKeys(_));
    is_kept.then_some((answer, next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_file_is_read_to_the_damage() {
        let path = std::env::temp_dir().join(format!("strait-damaged-{}/x", std::process::id()));
        let answers: Vec<Answer> = (0..3_u8).map(|at| Answer::List(vec![at; 40].into())).collect();
        let mut cache = CertificateCache::open(&path).unwrap();
        for answer in &answers {
            assert!(!cache.add(answer).unwrap());
        }
        let mut bytes = std::fs::read(&path).unwrap();
        // The length of the second.
        bytes[45] = 0xff;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(CertificateCache::open(&path).unwrap().read().unwrap(), answers[..1]);
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn what_was_added_is_read_and_a_torn_end_is_cut_off() {
        let path = std::env::temp_dir().join(format!("strait-certificates-{}/x", std::process::id()));
        let answers: Vec<Answer> = (0..5_u8).map(|at| Answer::Certificate(vec![at; 40].into())).collect();
        let mut cache = CertificateCache::open(&path).unwrap();
        assert_eq!(cache.read().unwrap(), []);
        for answer in &answers {
            assert!(!cache.add(answer).unwrap());
        }
        assert_eq!(CertificateCache::open(&path).unwrap().read().unwrap(), answers);
        let whole = std::fs::read(&path).unwrap();
        for end in 0..whole.len() {
            std::fs::write(&path, &whole[..end]).unwrap();
            assert_eq!(CertificateCache::open(&path).unwrap().read().unwrap(), answers[..end / 45]);
        }
        std::fs::write(&path, &whole).unwrap();
        let mut cache = CertificateCache::open(&path).unwrap();
        cache.write(answers.iter().take(2).cloned()).unwrap();
        cache.add(&answers[4]).unwrap();
        let expected = [answers[0].clone(), answers[1].clone(), answers[4].clone()];
        assert_eq!(CertificateCache::open(&path).unwrap().read().unwrap(), expected);
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }
}
