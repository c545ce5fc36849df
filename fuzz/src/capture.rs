//! Files of traffic, of whatever kind they seem to be.

use strait_advise::{CaptureKind, CaptureReader, Mender};

/// Reads to the end, and makes whole packets of what is there.
pub fn check(data: &[u8]) {
    let Ok(mut reader) = CaptureReader::open(data) else { return };
    let kind = reader.kind();
    let (mut mender, mut captured, mut before) = (Mender::default(), 0, reader.position());
    while let Ok(Some(frame)) = reader.frame() {
        assert!(frame.len >= frame.bytes.len());
        captured += frame.bytes.len();
        if let Ok(Some((ip, len))) = frame.ip() {
            assert!(ip.len() <= frame.bytes.len() && len >= ip.len() && len <= frame.len);
            if let Some(mended) = mender.mend(ip, len) {
                assert!(mended.bytes.len() <= len && mended.missing <= mended.bytes.len());
            }
        }
        // Each frame takes some of the file.
        assert!(reader.position() > before);
        before = reader.position();
    }
    assert!(before <= data.len() as u64);
    // Headers of traces and of files are made here.
    if matches!(kind, CaptureKind::Pcap | CaptureKind::Pcapng) {
        assert!(captured <= data.len());
    }
}
