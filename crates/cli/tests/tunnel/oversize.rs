//! Datagrams of every size that a link carries, in fragments where need be.

use std::net::{SocketAddr, UdpSocket};

use strait_testbed::{Extra, TwoHosts};

use crate::pair::{Family, Pair, allowed, eventually, fast};

/// More than any buffer of a page, more than any frame, and the most that UDP over IPv4 has.
const SIZES: [usize; 5] = [1_473, 4_097, 9_001, 16_385, 65_507];

#[test]
fn datagrams_larger_than_any_of_a_tunnel_are_dropped_and_counted() {
    if !allowed() {
        return;
    }
    let pair = Pair::up(TwoHosts::direct(fast()).unwrap(), Extra::default());
    let target = SocketAddr::new(pair.hosts.address_of_a().0, 51_820);
    // A known SPI too: what fits no packet must not reach the cipher as if it did.
    let spi = pair.peer(0)["association"]["inbound_spi"].as_str().unwrap().to_owned();
    let spi = u32::from_str_radix(spi.trim_start_matches("0x"), 16).unwrap();
    let quic = 0xc000_0000_u32;
    let first_words = [0, 1, spi, spi ^ 0xff, quic, 0x4000_0000, u32::MAX];
    let dropped = || ["unknown-datagram", "unknown-spi", "forged"].map(|reason| pair.drops(0, reason));
    let before = dropped();
    pair.hosts
        .b
        .run("send what is too large", || {
            let socket = UdpSocket::bind("0.0.0.0:0")?;
            for size in SIZES {
                for word in first_words {
                    let mut bytes = vec![0xa5; size];
                    bytes[..4].copy_from_slice(&word.to_be_bytes());
                    socket.send_to(&bytes, target)?;
                }
            }
            Ok(())
        })
        .unwrap();
    eventually("one of each size is of no protocol, one has an unknown SPI, and one a known one", || {
        dropped().into_iter().zip(before).all(|(now, then)| now >= then + SIZES.len() as u64)
    });
    pair.tcp(1, Family::V4, 50_000);
    pair.tcp(0, Family::V4, 50_000);
}
