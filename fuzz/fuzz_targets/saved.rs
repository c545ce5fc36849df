#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| strait_fuzz::saved::check(data));
