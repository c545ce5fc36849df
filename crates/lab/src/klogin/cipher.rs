//! What files are encrypted with, and compressed before.

use strait_compress::{Codec, Codecs, Method};
use strait_crypto::{Cipher, CipherKey, IV_MAX, KeyMaterial, KeyedAlgorithm};

use super::lzw;
use super::rotor::RotorMachine;
use crate::error::Error;

/// Bytes of gzip's header without a name, and of its trailer (RFC 1952 section 2.3).
const GZIP: usize = 10 + 8;
/// What `crypt(3)` makes of the word `klogin`: the key of the rotor machine.
const CRYPT_KEY: &[u8; 13] = b"klf.AIrOikym2";

/// A way to encrypt a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileCipher {
    Plain,
    /// `crypt(1)`.
    Crypt,
    /// DES in CBC mode, filled to whole blocks as `des` does.
    Des,
    /// AES with 128 bits in CBC mode.
    Aes,
}

impl FileCipher {
    pub(super) const ALL: [FileCipher; 4] =
        [FileCipher::Plain, FileCipher::Crypt, FileCipher::Des, FileCipher::Aes];
    /// The paper's, in its order.
    pub(super) const PAPERS: [FileCipher; 3] = [FileCipher::Plain, FileCipher::Crypt, FileCipher::Des];

    pub(super) const fn name(self) -> &'static str {
        match self {
            FileCipher::Plain => "plain",
            FileCipher::Crypt => "crypt",
            FileCipher::Des => "des",
            FileCipher::Aes => "aes",
        }
    }

    /// The file, encrypted.
    ///
    /// # Errors
    /// [`Error::Refused`] when the cipher does not take it.
    pub(super) fn encrypted(self, mut file: Vec<u8>) -> Result<Vec<u8>, Error> {
        let cipher = match self {
            FileCipher::Plain => return Ok(file),
            FileCipher::Crypt => {
                RotorMachine::new(CRYPT_KEY).run(&mut file);
                return Ok(file);
            }
            FileCipher::Des => Cipher::DesCbc,
            FileCipher::Aes => Cipher::Aes128Cbc,
        };
        // As RFC 5652 section 6.3 fills: each byte says how many there are.
        let filled = cipher.block_len() - file.len() % cipher.block_len();
        file.resize(file.len() + filled, filled as u8);
        let material = KeyMaterial::new(cipher, &KEY[..cipher.key_material_len()]);
        let material = material.map_err(|error| Error::refused(cipher, "take a key")(error.into()))?;
        let iv = &[0x5a; IV_MAX][..cipher.iv_len()];
        let done = CipherKey::new(&material).encrypt(iv, &mut file);
        done.map_err(|error| Error::refused(cipher, "encrypt")(error.into()))?;
        Ok(file)
    }
}

/// A key for files that are no secret.
const KEY: &[u8; 16] = b"a key of a table";

/// Bytes of the file that `gzip` writes, without a name in it, longer than this one or not.
pub(super) fn gzip_len(codecs: &mut Codecs, file: &[u8]) -> usize {
    deflated(codecs, file).len() + GZIP
}

/// Bytes of what `compress` writes; nothing when that is not less.
pub(super) fn compress_len(file: &[u8]) -> Option<usize> {
    Some(lzw::compress(file).len()).filter(|len| *len < file.len())
}

/// As the authors' klogin does: a byte that says whether what follows is compressed, then that, or the file as it is where that
/// is no longer (section 5).
pub(super) fn compressed(codecs: &mut Codecs, file: &[u8]) -> Vec<u8> {
    let made = deflated(codecs, file);
    let (flag, content) = if made.len() < file.len() { (1, &made[..]) } else { (0, file) };
    [&[flag][..], content].concat()
}

/// DEFLATE at gzip's usual level.
fn deflated(codecs: &mut Codecs, file: &[u8]) -> Vec<u8> {
    // A stored block of at most 65,535 bytes has five more (RFC 1951 section 3.2.4).
    let mut out = vec![0; file.len() + file.len() / 1000 + 64];
    let method = Method { level: 6, ..Method::of(Codec::Deflate) };
    let len = codecs.compress(method, file, &mut out).unwrap_or(0);
    out.truncate(len);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::klogin::files;

    #[test]
    fn sizes_are_of_the_papers_class() {
        let mut codecs = Codecs::new();
        for (file, gzip, compress) in [
            (0, 60..200, Some(530..531)),
            (1, 25_000..28_500, Some(35_000..39_500)),
            (2, 100_010..100_060, None),
        ] {
            let content = files::content(file);
            assert_eq!(content.len(), 100_000);
            let (gz, z) = (gzip_len(&mut codecs, &content), compress_len(&content));
            println!("{file}: {gz} {z:?}");
            assert!(gzip.contains(&gz), "{file}: {gz}");
            assert_eq!(compress.is_some(), z.is_some());
            assert!(z.zip(compress).is_none_or(|(z, range)| range.contains(&z)), "{file}: {z:?}");
        }
    }

    #[test]
    fn what_is_encrypted_shrinks_no_more_and_what_was_compressed_before_stays_small() {
        let mut codecs = Codecs::new();
        for cipher in [FileCipher::Crypt, FileCipher::Des, FileCipher::Aes] {
            for file in 0..3 {
                let sealed = cipher.encrypted(files::content(file)).unwrap();
                assert!(gzip_len(&mut codecs, &sealed) > sealed.len() && compress_len(&sealed).is_none());
                let small = compressed(&mut codecs, &files::content(file));
                assert_eq!(small[0], u8::from(file < 2));
                let sealed = cipher.encrypted(small.clone()).unwrap();
                assert!((small.len()..small.len() + 17).contains(&sealed.len()));
            }
        }
    }
}
