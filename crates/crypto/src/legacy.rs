//! Ciphers that are no longer secure, one family a file: for measuring what the papers of their time
//! measured, and for peers that have nothing else. No [`Suite`](crate::Suite) names one, so nothing here can
//! be negotiated.
//!
//! Key schedules are wiped when dropped. What the libraries and this code leave on the stack while they
//! expand a key is not; nor is what RC4, which expands its key for every packet, leaves there.

mod cbc64;
pub(crate) mod des;
pub(crate) mod idea;
pub(crate) mod rc2;
pub(crate) mod rc4;
pub(crate) mod rc5;
pub(crate) mod safer;
#[cfg(test)]
mod tomcrypt;
