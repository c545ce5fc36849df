//! The header of an age v1 file: who can open its key, and a code over all of it (age-encryption.org/v1, C2SP `age`).

use std::io::{self, BufRead, Read, Write};

use aws_lc_rs::hmac::{self, HMAC_SHA256};
use zeroize::Zeroizing;

use super::derive::{ObjectSeed, derive};
use super::recipient::{AgeIdentity, AgeRecipient, RecipientError};
use super::text;

/// Bytes of a file key (age-encryption.org/v1).
pub(super) const FILE_KEY_LEN: usize = 16;
/// The first line.
const VERSION: &str = "age-encryption.org/v1";
/// Characters in a whole line of a body; a shorter line, which may be empty, ends it.
const COLUMNS: usize = 64;
/// Recipients of one object: far more than a transfer has peers. It bounds what a stranger's file makes a reader compute.
pub const RECIPIENTS_MAX: usize = 256;
/// Bytes of one line: an ssh-rsa stanza, which others write, has lines of 64; the longest first line has a kilobyte.
const LINE_MAX: u64 = 4096;
/// Bytes of a body: 32 for the kinds that are read here, some 512 for RSA.
const BODY_MAX: usize = 8192;
/// Bytes between the header and the chunks.
pub(super) const NONCE_LEN: usize = 16;

/// The key that everything of one object is encrypted under; wiped when dropped.
pub struct FileKey(pub(super) Zeroizing<[u8; FILE_KEY_LEN]>);

/// A recipient's part of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stanza {
    /// Its kind and arguments.
    pub(super) words: Vec<String>,
    /// The wrapped file key.
    pub(super) body: Vec<u8>,
}

/// Why a header cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HeaderError {
    /// The reader or writer failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Not an age v1 file.
    #[error("it is not an age v1 file: {0}")]
    Malformed(&'static str),
    /// No stanza is for this identity.
    #[error("it is not for this key")]
    NotForUs,
    /// The code over the header is wrong.
    #[error("its header was changed")]
    Forged,
    /// There are no recipients, or too many.
    #[error("an object has 1 to {RECIPIENTS_MAX} recipients")]
    Recipients,
    /// A recipient's key is not usable.
    #[error("a recipient's key {0}")]
    Recipient(#[from] RecipientError),
}

use HeaderError::Malformed;

/// Writes the header for new contents and returns the key of their chunks. The seed is used up.
///
/// # Errors
/// [`HeaderError`] when there are no recipients or too many, one of them has an unusable key, or writing failed.
pub fn write(
    out: &mut impl Write,
    recipients: &[AgeRecipient],
    seed: ObjectSeed,
) -> Result<Zeroizing<[u8; 32]>, HeaderError> {
    if recipients.is_empty() || recipients.len() > RECIPIENTS_MAX {
        return Err(HeaderError::Recipients);
    }
    let key = FileKey(seed.part("file key", 0));
    let mut header = format!("{VERSION}\n").into_bytes();
    for (number, recipient) in (0_u32..).zip(recipients) {
        recipient.wrap(&key, &seed.part("ephemeral", number))?.append(&mut header);
    }
    header.extend_from_slice(b"---");
    let mac = text::encode(hmac::sign(&mac_key(&key), &header).as_ref());
    let nonce: Zeroizing<[u8; NONCE_LEN]> = seed.part("nonce", 0);
    header.extend_from_slice(format!(" {mac}\n").as_bytes());
    header.extend_from_slice(&*nonce);
    out.write_all(&header)?;
    Ok(derive(&*key.0, &*nonce, "payload"))
}

/// Reads a header and what follows it up to the chunks, and returns their key.
///
/// # Errors
/// [`HeaderError`]; at most some kilobytes a recipient are read and kept.
pub fn read(
    input: &mut impl BufRead,
    identity: &AgeIdentity<'_>,
) -> Result<Zeroizing<[u8; 32]>, HeaderError> {
    let mut seen = Vec::new();
    if line(input, &mut seen)? != VERSION.as_bytes() {
        return Err(Malformed("its first line is another"));
    }
    let mut found = None;
    let mut count = 0;
    loop {
        let before = seen.len();
        let first = line(input, &mut seen)?;
        if let Some(mac) = first.strip_prefix(b"--- ") {
            let key = found.ok_or(HeaderError::NotForUs)?;
            let mac = text::decode(mac).ok_or(Malformed("its code is not base64"))?;
            seen.truncate(before + 3);
            hmac::verify(&mac_key(&key), &seen, &mac).map_err(|_| HeaderError::Forged)?;
            let mut nonce = [0; NONCE_LEN];
            input.read_exact(&mut nonce)?;
            return Ok(derive(&*key.0, &nonce, "payload"));
        }
        count += 1;
        if count > RECIPIENTS_MAX {
            return Err(HeaderError::Recipients);
        }
        let stanza = stanza(&first, input, &mut seen)?;
        if found.is_none() {
            found = identity.unwrap(&stanza);
        }
    }
}

/// The rest of a stanza that begins with `first`.
fn stanza(first: &[u8], input: &mut impl BufRead, seen: &mut Vec<u8>) -> Result<Stanza, HeaderError> {
    let words = first.strip_prefix(b"-> ").ok_or(Malformed("a stanza begins with another line"))?;
    let words: Option<Vec<String>> = words
        .split(|byte| *byte == b' ')
        .map(|word| {
            let visible = !word.is_empty() && word.iter().all(u8::is_ascii_graphic);
            visible.then(|| String::from_utf8_lossy(word).into_owned())
        })
        .collect();
    let words = words.ok_or(Malformed("an argument of a stanza is empty or not visible"))?;
    let mut body = Vec::new();
    loop {
        let text = line(input, seen)?;
        if text.len() > COLUMNS || body.len() > BODY_MAX {
            return Err(Malformed("a stanza is too long"));
        }
        body.extend(text::decode(&text).ok_or(Malformed("a stanza is not base64"))?);
        if text.len() < COLUMNS {
            return Ok(Stanza { words, body });
        }
    }
}

/// The next line without its newline; it is added to `seen` with it.
fn line(input: &mut impl BufRead, seen: &mut Vec<u8>) -> Result<Vec<u8>, HeaderError> {
    let mut line = Vec::new();
    input.by_ref().take(LINE_MAX).read_until(b'\n', &mut line)?;
    seen.extend_from_slice(&line);
    match line.pop() {
        Some(b'\n') => Ok(line),
        Some(_) if line.len() as u64 + 1 == LINE_MAX => Err(Malformed("a line is too long")),
        _ => Err(Malformed("it is cut off")),
    }
}

impl Stanza {
    /// Appends it as it stands in a header.
    fn append(&self, header: &mut Vec<u8>) {
        header.extend_from_slice(format!("-> {}\n", self.words.join(" ")).as_bytes());
        let body = text::encode(&self.body);
        let mut rest = body.as_str();
        loop {
            let (line, behind) = rest.split_at(rest.len().min(COLUMNS));
            header.extend_from_slice(format!("{line}\n").as_bytes());
            if line.len() < COLUMNS {
                return;
            }
            rest = behind;
        }
    }
}

fn mac_key(key: &FileKey) -> hmac::Key {
    let key: Zeroizing<[u8; 32]> = derive(&*key.0, &[], "header");
    hmac::Key::new(HMAC_SHA256, &*key)
}

impl core::fmt::Debug for FileKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("[key]")
    }
}

#[cfg(test)]
mod tests;
