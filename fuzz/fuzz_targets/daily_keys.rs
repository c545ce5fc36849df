#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| strait_fuzz::daily_keys::check(data));
