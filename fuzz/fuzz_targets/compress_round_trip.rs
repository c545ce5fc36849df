#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| strait_fuzz::compress_round_trip::check(data));
