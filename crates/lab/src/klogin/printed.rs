//! The paper's figures, as it prints them.

/// Bytes of each file (section 3).
pub const FILE_LEN: usize = 100_000;
/// The files of Tables 1 and 2, in their order.
pub const FILES: [&str; 3] = ["same char (u)", "text (lsR)", "random char (r)"];
/// The paper's ways to encrypt, in the order of both tables.
pub const CIPHERS: [&str; 3] = ["plain", "crypt", "des"];

/// Table 1: `ftp`'s throughput in kbytes/s by file, sent and received, by way to encrypt.
pub const TABLE1: [[[f64; 3]; 2]; 3] = [
    [[3.63, 1.59, 1.58], [3.52, 1.54, 1.53]],
    [[3.59, 1.58, 1.58], [3.52, 1.52, 1.53]],
    [[1.59, 1.59, 1.57], [1.54, 1.53, 1.52]],
];

/// Table 2: bytes that gzip and compress leave, by file, by way to encrypt; nothing where compress makes it no smaller.
pub const TABLE2: [[[Option<f64>; 2]; 3]; 3] = [
    [[Some(138.0), Some(530.0)], [Some(100_049.0), None], [Some(100_056.0), None]],
    [[Some(26_632.0), Some(37_548.0)], [Some(100_051.0), None], [Some(100_058.0), None]],
    [[Some(100_044.0), None], [Some(100_049.0), None], [Some(100_056.0), None]],
];

/// Table 3: packets of a keystroke, the bytes of TCP payload in them, and the milliseconds from the first to the last, of klogin as it
/// was and as the authors changed it.
pub const TABLE3: [[f64; 3]; 2] = [[7.0, 40.0, 1045.837], [3.0, 40.0, 243.021]];
