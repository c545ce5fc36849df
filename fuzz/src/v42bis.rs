//! V.42bis: whatever a modem sends, the other only refuses it; and what was compressed comes back.

use strait_sim::{V42bisDecoder, V42bisEncoder, V42bisSettings};

/// A byte of settings, then what the line brings: octets for a decoder, or text that is compressed, flushed where the settings say,
/// and expanded.
pub fn check(data: &[u8]) {
    let Some((&bits, rest)) = data.split_first() else { return };
    let settings = match bits & 3 {
        0 => V42bisSettings::new(512, 6),
        1 => V42bisSettings::new(512, 250),
        2 => V42bisSettings::new(700, 32),
        _ => Some(V42bisSettings::default()),
    };
    let settings = settings.expect("the Recommendation allows all of these");
    if bits & 4 != 0 {
        round_trip(settings, 1 + usize::from(bits >> 3) * 40, rest);
        return;
    }
    let (mut decoder, mut out) = (V42bisDecoder::new(settings), Vec::new());
    for octet in rest {
        let before = out.len();
        if decoder.push(*octet, &mut out).is_err() {
            return;
        }
        assert!(out.len() - before <= 250, "an octet gave more than a string");
    }
}

fn round_trip(settings: V42bisSettings, part: usize, text: &[u8]) {
    let (mut encoder, mut sent) = (V42bisEncoder::new(settings), Vec::new());
    let (mut decoder, mut arrived) = (V42bisDecoder::new(settings), Vec::new());
    for (number, chunk) in text.chunks(part).enumerate() {
        chunk.iter().for_each(|octet| encoder.push(*octet, &mut sent));
        if number % 16 == 15 {
            encoder.reset(&mut sent);
        } else {
            encoder.flush(&mut sent);
        }
        for octet in sent.drain(..) {
            decoder.push(octet, &mut arrived).expect("the encoder broke the Recommendation");
        }
        let end = text.len().min((number + 1) * part);
        assert!(arrived == text[..end], "not all of a flushed part arrived");
    }
}
