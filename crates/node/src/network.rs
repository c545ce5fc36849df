//! stub
pub const DEFAULT_MARK: u32 = 0x5354;
