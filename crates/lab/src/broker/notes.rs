//! What is to be known of the tables.

use super::machine::StageNanos;
use super::payload::BrokerPayload;

/// What stands for what, what was left open, and where the post's own table differs from its sentences.
pub(super) fn all(payloads: &[BrokerPayload], slow: &StageNanos, factor: f64) -> Vec<String> {
    let mut notes: Vec<String> =
        payloads.iter().map(|payload| format!("{}: {}", payload.name, payload.note)).collect();
    notes.extend([
        "disk to disk: a file is really read, compressed, encrypted and written, 64 KiB at a time in constant memory, in the folder for \
         temporary files, the disk's cache being hot as in the post. What counts is the time on a processor, so that other work on this \
         machine does not; the rates have a row by the clock on the wall beside it"
            .to_owned(),
        "networks are in virtual time, as 0.1 Mbit/s would take hours: a sender, a link and a broker of one core each work on chunks of \
         64 KiB one after the other, 1 GiB in all. What both ends take is measured in each run: from the file into memory, which stands \
         for the socket, and from there into a file. The link is 100 Mbit/s of Ethernet less its headers and TCP's, and 0.1 Mbit/s of \
         payload. The kernel's work for TCP is not counted"
            .to_owned(),
        "TLS is what the post calls SSL, with SSL_RSA_WITH_RC4_128_MD5: records of 16 KiB as in TLS 1.0 with RC4 of 128 bits, one key stream to the end, and HMAC-MD5, cut to 96 \
         bits as IPsec has it, which costs the same. The broker's end decrypts and verifies, so that it has plain files, as the post says. \
         There is no handshake, which minutes of data hide"
            .to_owned(),
        "AES: Java's provider takes AES/ECB/PKCS5Padding when a program asks for AES alone, and 128 bits is the post's key. Here aws-lc \
         computes it with the processor's instructions; the Java of 2011 had tables, which stand in the table of a slow processor. ECB is \
         what the post measured and nothing to use: equal blocks stay equal"
            .to_owned(),
        "compressed: DEFLATE by zlib-rs at its level 2, which has the algorithm and the parameters of zlib's level 1, Java's BEST_SPEED; \
         level 1 of zlib-rs is a faster algorithm that zlib does not have"
            .to_owned(),
        format!(
            "a processor as slow as the post's: two of its cells are taken and the others follow. Reading and writing take {:.1} ns a byte, \
             which are its 139.0 Mbit/s; all computing takes {factor:.0} times as long as here, so that RC4 takes {:.1} ns a byte, as its \
             41 of 100 say; links carry its 33.4 and 0.1 Mbit/s; AES is by tables. One \
             factor is simple and not quite true: DEFLATE took the post's programs three times as long as RC4, and here {:.1} times",
            slow.read + slow.write,
            slow.ciphers[2],
            slow.deflate / slow.ciphers[2],
        ),
        "the post's own stages: four cells of its row from disk to disk (139.0 Mbit/s, RC4 41, AES 22, compressed 19) give what each of \
         them took, and our payload how far it shrinks; records of TLS take as much more than RC4 as here. The other cells follow within \
         the 20 % that the post names, but for plain data over its fast network with TLS, which has 77 and not 100. So what the post \
         prints fits together, and TLS cost it more there than computing"
            .to_owned(),
        "where the post's table does not say what its sentences do: over the fast network TLS is faster compressed than plain (80 and 77); \
         the price of compression is not smaller there with RC4 and AES than without; the tie of TLS and AES is 77 and 87; over the slow \
         network, where nothing but length counts, TLS compressed has 1220 and no encryption compressed 1060, though records are longer: \
         as much as that is chance. RC4 equals no encryption over networks only: from disk to disk it has 41 of 100"
            .to_owned(),
        "space saved: the broker stores what comes out of TLS, so compressed data without encryption for `TLS, compr.`; AES adds up to 16 \
         bytes, a suite 16 a record"
            .to_owned(),
    ]);
    notes
}
