#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| strait_fuzz::key_card::check(data));
