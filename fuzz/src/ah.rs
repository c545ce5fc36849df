//! The headers in front of AH, ESP and IPComp, the authentication header, and what of a packet it covers.

use strait_wire::ah::{self, Align, View};
use strait_wire::ip::{self, FRONT_MAX, Front, Packet};
use strait_wire::{Protocol, Tos};

/// One buffer that may hold a packet, or an authentication header.
pub fn check(data: &[u8]) {
    check_header(data);
    let mut any = data.to_vec();
    let _ = ah::canonical(&mut any);
    assert_eq!(any.len(), data.len());
    let Ok(front) = Front::parse(data) else { return };
    assert!(front.len <= FRONT_MAX && front.len <= data.len() && front.next_at < front.len);
    assert_eq!(data[front.next_at], front.next.0);
    if let Ok(packet) = Packet::parse(data) {
        assert!(packet.header_len() >= front.len);
    }
    check_refit(data, &front);
    check_covered(&data[..front.len]);
}

fn check_header(data: &[u8]) {
    let Ok(view) = View::parse(data) else { return };
    assert_eq!([&view.fixed[..], view.check, view.payload].concat(), data);
    for icv_len in [0, 12, 16, 24, 32] {
        let Ok((icv, padding)) = view.icv(icv_len) else { continue };
        assert_eq!([icv, padding].concat(), view.check);
        let aligned = |align: &Align| ah::len(icv_len, *align) == view.header_len();
        let align = [Align::Four, Align::Eight].into_iter().find(aligned).unwrap();
        let mut again = vec![0xff; view.header_len()];
        assert_eq!(view.header().emit(&mut again, icv_len, align), Ok(view.header_len()));
        assert_eq!(View::parse(&again).unwrap().header(), view.header());
    }
}

/// Something put in behind the front, and taken out again.
fn check_refit(data: &[u8], front: &Front) {
    let len = ip::declared_len(data).unwrap();
    let (before, behind) = data[..len].split_at(front.len);
    let mut grown = [before, &[0; 24], behind].concat();
    let grown_len = grown.len();
    if front.refit(&mut grown, Protocol::ESP, grown_len).is_err() {
        return;
    }
    let again = Front::parse(&grown).unwrap();
    assert_eq!((again.len, again.next, again.fragment), (front.len, Protocol::ESP, front.fragment));
    grown.drain(front.len..front.len + 24);
    front.refit(&mut grown, front.next, len).unwrap();
    let mut original = data[..len].to_vec();
    front.refit(&mut original, front.next, len).unwrap();
    assert_eq!(grown, original);
}

/// What routers change does not show, and at the end of the way nothing is foretold any more.
fn check_covered(front: &[u8]) {
    let mut covered = front.to_vec();
    if ah::canonical(&mut covered).is_err() {
        return;
    }
    let mut again = covered.clone();
    ah::canonical(&mut again).unwrap();
    assert_eq!(again, covered);
    let mut on_the_way = front.to_vec();
    ip::set_tos(&mut on_the_way, Tos(0xa5));
    ip::decrement_ttl(&mut on_the_way);
    ah::canonical(&mut on_the_way).unwrap();
    assert_eq!(on_the_way, covered);
}
