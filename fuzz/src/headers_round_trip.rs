//! Headers of any packets, whole, broken or cut: what is coded is shorter, and comes back.

use strait_compress::headers::Coder;

/// Packets one after another, and whatever else follows.
pub fn check(data: &[u8]) {
    let mut coder = Coder::new();
    let mut coded = vec![0; data.len()];
    let Some(len) = coder.encode(data, &mut coded) else { return };
    assert!(len < data.len());
    let mut back = vec![0; data.len()];
    assert_eq!(coder.expand(&coded[..len], &mut back), Ok(data.len()));
    assert_eq!(back, data);
    // A coder that was used is as good as a new one.
    let mut again = vec![0; len];
    assert_eq!(coder.encode(data, &mut again), Some(len));
    assert_eq!(again, coded[..len]);
}
