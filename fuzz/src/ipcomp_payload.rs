//! IPComp payloads: any bytes are expanded within their cap or refused, and what is compressed comes back.

use strait_compress::{ExpandError, Ipcomp, IpcompAlgorithm};

/// Most bytes of a payload.
const LONGEST: usize = 65_535;

/// A byte of choices, a cap of two bytes, then what a peer sent or the host is about to send.
pub fn check(data: &[u8]) {
    let Some((&[choice, high, low], payload)) = data.split_first_chunk() else { return };
    let algorithm = IpcompAlgorithm::ALL[usize::from(choice & 1)];
    let cap = usize::from(u16::from_be_bytes([high, low]));
    let mut ipcomp = Ipcomp::new();
    let mut room = vec![0; cap];
    match ipcomp.expand(algorithm, payload, &mut room) {
        Ok(len) => assert!(len <= cap),
        Err(ExpandError::TooLong { cap: said }) => assert_eq!(said, cap),
        Err(ExpandError::Malformed { .. }) => {}
    }
    // Repeated, so that matches reach as far as the window and farther.
    let input = payload.repeat(1 + usize::from(choice >> 4));
    let input = &input[..input.len().min(LONGEST)];
    let mut output = vec![0; LONGEST];
    let Some(len) = ipcomp.compress(algorithm, input, &mut output) else { return };
    assert!(len + 4 < input.len());
    let mut back = vec![0; input.len()];
    assert_eq!(ipcomp.expand(algorithm, &output[..len], &mut back), Ok(input.len()));
    assert_eq!(back, input);
}
