//! The paper's figures, as it prints them.

/// Lengths of payloads: name and bytes (section 4.1), and how many are drawn from the front of each file
/// (section 5.4).
pub const SIZES: [(&str, usize, usize); 3] =
    [("1 KiB", 1 << 10, 40), ("4 KiB", 4 << 10, 10), ("63 KiB", 63 << 10, 1)];
/// The place in [`SIZES`] of the one that Table 2 is for (section 4.2).
pub const TABLE2_SIZE: usize = 1;

/// Table 1: throughput in Mbit/s, by payload as in [`SIZES`].
pub const TABLE1: [(&str, [f64; 3]); 4] = [
    ("MD5", [229.0, 299.0, 332.0]),
    ("SHA-1", [214.0, 274.0, 302.0]),
    ("RC5", [96.0, 97.0, 96.0]),
    ("3DES", [28.0, 28.0, 28.0]),
];
/// Table 1 is rounded to 1 Mbit/s.
pub const TABLE1_ROUNDING: f64 = 0.5;

/// The share of a link's rate that can be used (section 4.1).
pub const EFFICIENCY: f64 = 0.8;
/// Table 2's networks: name and Mbit/s.
pub const NETWORKS: [(&str, f64); 5] = [
    ("56 kbit/s", 0.056),
    ("1.54 Mbit/s", 1.54),
    ("10 Mbit/s", 10.0),
    ("100 Mbit/s", 100.0),
    ("1 Gbit/s", 1000.0),
];
/// Table 2's columns.
pub const COMBINATIONS: [&str; 8] =
    ["MD5", "SHA-1", "RC5", "RC5 MD5", "RC5 SHA-1", "3DES", "3DES MD5", "3DES SHA-1"];
/// Table 2: speedups, a row a network.
pub const TABLE2: [[f64; 8]; 5] = [
    [0.99, 0.99, 0.99, 0.99, 0.99, 0.99, 0.99, 0.98],
    [0.99, 0.98, 0.97, 0.96, 0.96, 0.92, 0.90, 0.90],
    [0.94, 0.94, 0.86, 0.82, 0.82, 0.64, 0.62, 0.62],
    [0.65, 0.63, 0.39, 0.32, 0.32, 0.15, 0.14, 0.14],
    [0.16, 0.15, 0.06, 0.04, 0.04, 0.02, 0.02, 0.02],
];
/// Table 2 is rounded to hundredths.
pub const TABLE2_ROUNDING: f64 = 0.005;

/// The files of Tables 4 to 6: six of the Calgary corpus, a picture, random bytes.
pub const FILES: [&str; 8] = ["obj2", "progl", "paper2", "trans", "book1", "pic", "gif", "random"];
/// How many of [`FILES`] are of the Calgary corpus.
pub const CALGARY: usize = 6;

/// What the paper prints of one codec, a row a file, by payload as in [`SIZES`].
#[derive(Clone, Copy, Debug)]
pub struct PrintedCodec {
    /// As the paper names it.
    pub name: &'static str,
    /// Its part of Table 4: bytes before over bytes after, IPComp's header among them.
    pub ratio: [[f64; 3]; 8],
    /// Table 5 or 6, compression in Mbit/s.
    pub compress: [[f64; 3]; 8],
    /// Table 5 or 6, expansion in Mbit/s; zero where blocks do not shrink and so are sent as they are.
    pub expand: [[f64; 3]; 8],
    /// The number of that table.
    pub table: u8,
}

/// DEFLATE: zlib 1.1.3 with its default settings (section 5.2).
pub const DEFLATE: PrintedCodec = PrintedCodec {
    name: "DEFLATE",
    ratio: [
        [1.76, 2.08, 2.36],
        [2.31, 3.16, 4.23],
        [1.74, 2.08, 2.70],
        [1.93, 2.55, 5.02],
        [1.68, 1.94, 2.34],
        [26.1, 67.5, 21.4],
        [0.99, 1.00, 1.00],
        [0.99, 1.00, 1.00],
    ],
    compress: [
        [14.0, 21.0, 23.0],
        [18.0, 31.0, 31.0],
        [17.0, 25.0, 23.0],
        [17.0, 29.0, 43.0],
        [17.0, 23.0, 20.0],
        [34.0, 72.0, 76.0],
        [14.0, 28.0, 31.0],
        [14.0, 29.0, 31.0],
    ],
    expand: [
        [66.0, 121.0, 365.0],
        [77.0, 146.0, 492.0],
        [67.0, 123.0, 365.0],
        [70.0, 143.0, 492.0],
        [68.0, 112.0, 340.0],
        [166.0, 299.0, 703.0],
        [0.0; 3],
        [0.0; 3],
    ],
    table: 5,
};

/// LZS, the authors' own (section 5.2).
pub const LZS: PrintedCodec = PrintedCodec {
    name: "LZS",
    ratio: [
        [1.52, 1.67, 1.77],
        [1.76, 2.16, 2.33],
        [1.28, 1.50, 1.61],
        [1.52, 1.82, 2.01],
        [1.22, 1.40, 1.46],
        [10.0, 12.7, 8.01],
        [0.89, 0.89, 0.89],
        [0.89, 0.89, 0.89],
    ],
    compress: [
        [217.0, 210.0, 201.0],
        [234.0, 245.0, 252.0],
        [178.0, 179.0, 182.0],
        [216.0, 222.0, 232.0],
        [172.0, 169.0, 169.0],
        [983.0, 1047.0, 735.0],
        [186.0, 160.0, 150.0],
        [186.0, 161.0, 151.0],
    ],
    expand: [
        [254.0, 252.0, 245.0],
        [253.0, 263.0, 263.0],
        [224.0, 214.0, 211.0],
        [259.0, 255.0, 259.0],
        [220.0, 207.0, 203.0],
        [498.0, 537.0, 476.0],
        [0.0; 3],
        [0.0; 3],
    ],
    table: 6,
};
