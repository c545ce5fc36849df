//! Cipher block chaining (RFC 2451 section 2.1) for ciphers with blocks of 64 bits, as these have.

use cipher::consts::U8;
use cipher::{BlockCipherDecrypt, BlockCipherEncrypt};

use crate::cipher_key::{Keyed, Unfit};

/// A cipher with its key, at work on one block, the first byte of which is the most significant.
pub(super) trait BlockCipher64: Send + Sync {
    /// The ciphertext of `block`.
    fn encrypt_block(&self, block: u64) -> u64;
    /// The plaintext of `block`.
    fn decrypt_block(&self, block: u64) -> u64;
}

/// What `RustCrypto` has.
impl<C> BlockCipher64 for C
where
    C: BlockCipherEncrypt<BlockSize = U8> + BlockCipherDecrypt + Send + Sync,
{
    #[inline]
    fn encrypt_block(&self, block: u64) -> u64 {
        let mut block = block.to_be_bytes().into();
        BlockCipherEncrypt::encrypt_block(self, &mut block);
        u64::from_be_bytes(block.into())
    }

    #[inline]
    fn decrypt_block(&self, block: u64) -> u64 {
        let mut block = block.to_be_bytes().into();
        BlockCipherDecrypt::decrypt_block(self, &mut block);
        u64::from_be_bytes(block.into())
    }
}

/// A cipher in CBC mode.
pub(crate) struct Cbc64<C>(pub(crate) C);

impl<C: BlockCipher64> Keyed for Cbc64<C> {
    fn encrypt(&self, iv: &[u8], text: &mut [u8]) -> Result<(), Unfit> {
        let (mut chained, blocks) = whole(iv, text)?;
        for block in blocks {
            chained = self.0.encrypt_block(chained ^ u64::from_be_bytes(*block));
            *block = chained.to_be_bytes();
        }
        Ok(())
    }

    fn decrypt(&self, iv: &[u8], text: &mut [u8]) -> Result<(), Unfit> {
        let (mut chained, blocks) = whole(iv, text)?;
        for block in blocks {
            let received = u64::from_be_bytes(*block);
            *block = (chained ^ self.0.decrypt_block(received)).to_be_bytes();
            chained = received;
        }
        Ok(())
    }
}

/// The IV as a block, and `text` in blocks.
fn whole<'a>(iv: &[u8], text: &'a mut [u8]) -> Result<(u64, &'a mut [[u8; 8]]), Unfit> {
    let iv = iv.try_into().map_err(|_| Unfit)?;
    match text.as_chunks_mut() {
        (blocks, []) => Ok((u64::from_be_bytes(iv), blocks)),
        _ => Err(Unfit),
    }
}
