//! The same parameters on machines that are not there: with faster or slower algorithms, with better or worse codecs.

use strait_model::{BitRate, Compression, Hash, Ratio, Security};

use super::Parameters;

impl Parameters {
    /// With all algorithms so many times as fast, the networks as they are.
    pub(in super::super) fn faster(&self, times: f64) -> Parameters {
        let mut changed = self.with_codecs(1.0, times);
        for security in changed.protections.iter_mut().flat_map(|it| &mut it.security) {
            *security = secured_faster(security, times);
        }
        changed
    }

    /// With all codecs so many times as good and so many times as fast. What did not shrink still does not.
    pub(in super::super) fn with_codecs(&self, ratio: f64, speed: f64) -> Parameters {
        let mut changed = self.clone();
        for codec in &mut changed.codecs {
            for compression in codec.files.iter_mut().flatten() {
                *compression = compression_changed(compression, ratio, speed);
            }
        }
        changed
    }
}

fn compression_changed(compression: &Compression, ratio: f64, speed: f64) -> Compression {
    let Compression { ratio: before, compress, decompress } = *compression;
    let ratio =
        if before.saving() > 0.0 { Ratio::new(before.get() * ratio).unwrap_or(before) } else { before };
    Compression { ratio, compress: faster(compress, speed), decompress: faster(decompress, speed) }
}

fn secured_faster(security: &Security, times: f64) -> Security {
    let hash = |hash: Hash| Hash { compute: faster(hash.compute, times), verify: faster(hash.verify, times) };
    let mut changed = *security;
    if let Some(esp) = &mut changed.esp {
        esp.encrypt = faster(esp.encrypt, times);
        esp.decrypt = faster(esp.decrypt, times);
        esp.hash = esp.hash.map(hash);
    }
    if let Some(ah) = &mut changed.ah {
        ah.hash = hash(ah.hash);
    }
    changed
}

/// A rate times a number; itself where that is no rate.
fn faster(rate: BitRate, times: f64) -> BitRate {
    rate.share(times).unwrap_or(rate)
}
