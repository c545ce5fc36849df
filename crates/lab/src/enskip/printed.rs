//! The paper's figures, as it prints them.

/// What packets were encrypted with: the rows of the table here. The paper lists the third and never measured it.
pub const ALGORITHMS: [&str; 8] = ["none", "DES", "2DES", "IDEA", "3DES", "RC4", "RC2", "SAFER"];
/// The places in [`ALGORITHMS`] of what sentences name.
pub const NONE: usize = 0;
/// Single DES.
pub const DES: usize = 1;
/// 3DES, with which ping was measured.
pub const TRIPLE_DES: usize = 4;
/// RC4.
pub const RC4: usize = 5;

/// Where it was measured: between two machines, and on the loopback interface of three.
pub const MACHINES: [&str; 4] = ["Ethernet", "486DX2-66", "486DX4-100", "P90"];
/// The places in [`MACHINES`]: from the second machine to the third,
pub const ETHERNET: usize = 0;
/// and each by itself.
pub const DX2: usize = 1;
/// The machine in the middle.
pub const DX4: usize = 2;
/// The fastest.
pub const P90: usize = 3;
/// What their names say of their clocks, in MHz.
pub const CLOCKS: [f64; 4] = [f64::NAN, 66.0, 100.0, 90.0];

/// What `ftp` printed in kbytes/s, by machine and algorithm: without and with MD5. The P90's first cell is 0 in print.
pub const TABLE: [[[Option<f64>; 2]; 8]; 4] = [
    [
        [Some(900.0), Some(360.0)],
        [Some(180.0), Some(160.0)],
        [None, None],
        [Some(130.0), Some(120.0)],
        [Some(100.0), None],
        [Some(290.0), Some(260.0)],
        [Some(190.0), None],
        [Some(110.0), None],
    ],
    [
        [Some(1100.0), Some(320.0)],
        [Some(120.0), Some(110.0)],
        [None, None],
        [Some(120.0), None],
        [Some(100.0), None],
        [Some(220.0), Some(170.0)],
        [Some(110.0), None],
        [None, None],
    ],
    [
        [Some(2900.0), None],
        [Some(190.0), Some(170.0)],
        [None, None],
        [Some(150.0), None],
        [Some(130.0), None],
        [Some(580.0), Some(470.0)],
        [Some(190.0), None],
        [Some(140.0), None],
    ],
    [
        [None, Some(1300.0)],
        [Some(260.0), Some(240.0)],
        [None, None],
        [Some(170.0), Some(160.0)],
        [Some(140.0), None],
        [Some(720.0), Some(590.0)],
        [Some(240.0), None],
        [Some(150.0), None],
    ],
];

/// Bytes of the file: `dd` with `count=1.5M`, and `bs=1`.
pub const FILE_LEN: usize = 3 * 512 * 1024;
/// kbytes/s of two channels of ISDN, above which the paper wants to be, as it prints them.
pub const ISDN_PRINTED: f64 = 128.0;
/// The same of two channels of 64 kbit/s (ITU-T I.412): the paper takes bits for bytes.
pub const ISDN: f64 = 2.0 * 64_000.0 / 8.0 / 1024.0;

/// What ping printed on the loopback interface of the 486DX2-66, with 3DES and MD5: milliseconds by where keys came from. A last row, without
/// any cache, "varies".
pub const LATENCY: [(&str, f64); 4] =
    [("no SKIP", 1.6), ("primary cache", 7.5), ("secondary cache", 25.3), ("CERT disk cache", 221.7)];
/// The places in [`LATENCY`]: without ENskip,
pub const LATENCY_NONE: usize = 0;
/// with packet keys,
pub const LATENCY_PRIMARY: usize = 1;
/// with Kij,
pub const LATENCY_SECONDARY: usize = 2;
/// and with the certificate.
pub const LATENCY_DISK: usize = 3;
