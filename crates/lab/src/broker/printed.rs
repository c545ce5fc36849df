//! The post's figures, as it prints them.

/// The three places that it measured in.
pub const PLACES: [&str; 3] = ["disk to disk", "fast network", "slow network"];
/// The place in [`PLACES`] of each.
pub const DISK: usize = 0;
/// A network of 100 Mbit/s.
pub const FAST: usize = 1;
/// An ADSL line, upstream.
pub const SLOW: usize = 2;

/// Its ways to encrypt, each plain and compressed: the columns of its table.
pub const COMBINATIONS: [&str; 8] =
    ["none", "none, compr.", "TLS", "TLS, compr.", "RC4", "RC4, compr.", "AES", "AES, compr."];
/// The table: speeds by place and combination, where plain data without encryption has 100.
pub const TABLE: [[Option<f64>; 8]; 3] = [
    [Some(100.0), Some(19.0), None, None, Some(41.0), Some(19.0), Some(22.0), Some(16.0)],
    [Some(100.0), Some(90.0), Some(77.0), Some(80.0), Some(106.0), Some(84.0), Some(87.0), Some(76.0)],
    [
        Some(100.0),
        Some(1060.0),
        Some(100.0),
        Some(1220.0),
        Some(100.0),
        Some(1090.0),
        Some(100.0),
        Some(1060.0),
    ],
];

/// What 100 stands for in each place, in Mbit/s.
pub const RAW: [f64; 3] = [139.0, 33.4, 0.1];
/// The share of a core that RC4 takes on the fast network, 30 to 50 %, in its middle.
pub const RC4_LOAD: f64 = 40.0;
