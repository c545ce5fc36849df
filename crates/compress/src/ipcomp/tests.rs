//! What is tried, what is refused, and that it comes back.

use strait_clock::Random;

use super::*;

fn text(len: usize) -> Vec<u8> {
    let mut random = Random::new(len as u64);
    let line = |_| format!("request {} served\n", random.below(1_000)).into_bytes();
    let mut text: Vec<u8> = (0..=len / 18).flat_map(line).collect();
    text.truncate(len);
    text
}

#[test]
fn every_length_comes_back() {
    let mut ipcomp = Ipcomp::new();
    let (mut squeezed, mut back) = (vec![0; 65_535], vec![0; 65_535]);
    for algorithm in Algorithm::ALL {
        for len in (200..3_000).step_by(7).chain([9_000, 64_512, 65_535]) {
            let input = text(len);
            let squeezed_len = ipcomp.compress(algorithm, &input, &mut squeezed).unwrap();
            assert!(squeezed_len + HEADER_LEN < len);
            let back_len = ipcomp.expand(algorithm, &squeezed[..squeezed_len], &mut back).unwrap();
            assert_eq!(back[..back_len], input, "{algorithm} of {len} bytes");
        }
    }
}
