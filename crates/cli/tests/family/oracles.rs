//! The peers against each other, without anything of ours between them: where they do not understand each other, a case or
//! what is generated from it is wrong.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use strait_crypto::{Cipher, Integrity, Suite};
use strait_testbed::outside::{has, has_scapy};
use strait_testbed::{Guest, Workdir};

use crate::agreement::{Addresses, Agreement, Direction, INSIDE};
use crate::case::{Case, Esp, Mode, Version};
use crate::dissect::{self, dissect};
use crate::echo::Echo;
use crate::guests::{Place, kernels, knows};
use crate::kernel;
use crate::matrix::chosen;
use crate::scapy::{Opened, Scapy};
use crate::wire::Wire;

/// Addresses on the link that no kernel answers for.
const UNANSWERED: Addresses = (Ipv4Addr::new(198, 18, 0, 9), Ipv6Addr::new(0xfd00, 0x18, 0, 0, 0, 0, 0, 9));

/// A guest on a busy machine can miss a frame.
const ATTEMPTS: u32 = 5;

/// How long replies are waited for, longer each time.
const PATIENCE: Duration = Duration::from_secs(1);

/// Enough text to be compressed by everyone.
const WORTH_COMPRESSING: usize = 400;

/// What is echoed: one packet that is too short to be compressed, one that is worth it, and one that fills a datagram.
const SIZES: [usize; 3] = [10, WORTH_COMPRESSING, 1200];

#[test]
fn a_kernel_and_scapy_understand_each_other() {
    if !has_scapy() {
        return;
    }
    for kernel in kernels() {
        let start = Instant::now();
        let mut place = Place::boot(&kernel, &[UNANSWERED.0.into(), UNANSWERED.1.into()]);
        let booted = start.elapsed();
        let guest = (place.hosts.link.b.v4, place.hosts.link.b.v6);
        let (mut scapy, mut wire) = (Scapy::start(), Wire::open(&place.hosts.link.a, Guest::HARDWARE));
        let (mut good, mut bad) = (0, Vec::new());
        for (number, case) in
            chosen().into_iter().filter(|(_, case)| knows(&kernel, *case) && scapy_knows(*case))
        {
            let agreement = Agreement { case, number, outside: [UNANSWERED, guest] };
            match understand(&mut place.guest, &mut scapy, &mut wire, &agreement) {
                Ok(()) => good += 1,
                Err(why) => bad.push(format!("{case}: {why}")),
            }
        }
        let (release, all, took) = (place.guest.release(), good + bad.len(), start.elapsed());
        println!("Linux {release}: {good} of {all} cases, booted in {booted:.1?}, all in {took:.1?}");
        assert!(bad.is_empty(), "Linux {release}:\n{}", bad.join("\n"));
    }
}

#[test]
fn tshark_sees_what_scapy_made() {
    if !has_scapy() || !has("tshark") {
        return;
    }
    let (dir, mut scapy) = (Workdir::create().unwrap(), Scapy::start());
    let (mut agreements, mut packets, mut wanted) = (Vec::new(), Vec::new(), Vec::new());
    for (number, case) in chosen().into_iter().filter(|(_, case)| scapy_knows(*case)) {
        let agreement = Agreement { case, number, outside: INSIDE };
        for request in requests(&agreement).iter().filter(|request| request.data.len() == WORTH_COMPRESSING) {
            let inner = if request.from.is_ipv4() { Version::V4 } else { Version::V6 };
            let Some(seen) = dissect::expected(case, inner) else { continue };
            packets.extend(scapy.seal(&agreement, Direction::ToGuest, &[request.packet()], 1).unwrap());
            wanted.push((case, seen));
        }
        agreements.push(agreement);
    }
    let found = dissect(&agreements, &packets, &dir.path().join("made.pcap"));
    println!("tshark: {} packets", found.len());
    assert_eq!(found.len(), wanted.len());
    let wrong = found.iter().zip(&wanted).filter(|(found, (_, wanted))| *found != wanted);
    let wrong: Vec<_> =
        wrong.map(|(found, (case, wanted))| format!("{case}: {found:?} is not {wanted:?}")).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_bent_packet_is_refused_by_scapy_and_marked_by_tshark() {
    if !has_scapy() || !has("tshark") {
        return;
    }
    let (dir, mut scapy) = (Workdir::create().unwrap(), Scapy::start());
    let separate = Esp::Separate(Cipher::Aes128Cbc, Some(Integrity::HmacSha256_128));
    for esp in [Esp::Combined(Suite::Aes128Gcm), separate] {
        for esn in [false, true] {
            let agreement =
                Agreement { case: Case { esn, ..Case::EMPTY.esp(esp) }, number: 0, outside: INSIDE };
            let packets = [requests(&agreement)[0].packet()];
            let mut datagrams = scapy.seal(&agreement, Direction::ToGuest, &packets, 1).unwrap();
            let opened = scapy.open(&agreement, Direction::ToGuest, &datagrams, 0).unwrap();
            assert_eq!(opened.packets, packets);
            assert_eq!(
                scapy.open(&agreement, Direction::ToGuest, &datagrams, 1).is_err(),
                esn,
                "another upper half"
            );
            *datagrams[0].last_mut().unwrap() ^= 1;
            assert!(
                scapy.open(&agreement, Direction::ToGuest, &datagrams, 0).unwrap_err().contains("Integrity")
            );
            if !esn {
                let found = dissect(&[agreement], &datagrams, &dir.path().join("bent.pcap"));
                assert_eq!(found[0].icv, Some(false), "{found:?}");
            }
        }
    }
}

/// Scapy pads AH as RFC 4302 has it.
pub(crate) fn scapy_knows(case: Case) -> bool {
    !case.ah.is_some_and(|ah| ah.padded)
}

/// Echoes of every size through a case, between scapy and the guest.
fn understand(
    guest: &mut Guest,
    scapy: &mut Scapy,
    wire: &mut Wire,
    agreement: &Agreement,
) -> Result<(), String> {
    guest.run(&kernel::configuration(agreement)).map_err(|error| error.to_string())?;
    let requests = requests(agreement);
    let packets: Vec<_> = requests.iter().map(Echo::packet).collect();
    let expected: Vec<_> = requests.iter().map(Echo::reply).collect();
    let mut why = String::new();
    for attempt in 0..ATTEMPTS {
        for datagram in scapy.seal(agreement, Direction::ToGuest, &packets, u64::from(1 + 100 * attempt))? {
            wire.send(&datagram);
        }
        match replies(scapy, wire, agreement, &expected, PATIENCE * (attempt + 1)) {
            Ok(()) => return Ok(()),
            Err(reason) => why = reason,
        }
    }
    Err(format!("{why}; {}", kernel::statistics(guest)))
}

pub(crate) fn requests(agreement: &Agreement) -> Vec<Echo> {
    let ways = agreement.protected(Direction::ToGuest);
    let numbered = (0..).zip(ways.into_iter().flat_map(|way| SIZES.map(|size| (way, size))));
    let request = |(number, ((from, to), size)): (u32, ((_, _), usize))| {
        let data = b"interoperability ".iter().copied().cycle().take(size).collect();
        Echo { from, to, is_reply: false, number, data }
    };
    numbered.map(request).collect()
}

/// Waits until scapy finds all replies in what the guest has sent since the last request.
fn replies(
    scapy: &mut Scapy,
    wire: &mut Wire,
    agreement: &Agreement,
    expected: &[Echo],
    patience: Duration,
) -> Result<(), String> {
    let (start, mut datagrams, mut why) = (Instant::now(), Vec::new(), "no reply".to_owned());
    while let Some(packet) = wire.receive(patience.saturating_sub(start.elapsed())) {
        if !is_from_guest(&packet, agreement) {
            continue;
        }
        datagrams.push(packet);
        // Only bundles can have everything in fewer datagrams.
        if datagrams.len() < expected.len() && !matches!(agreement.case.mode, Mode::Aggfrag(_)) {
            continue;
        }
        let opened = match scapy.open(agreement, Direction::FromGuest, &datagrams, 0) {
            Ok(opened) => opened,
            Err(reason) => {
                why = reason;
                continue;
            }
        };
        let found: Vec<_> = opened.packets.iter().filter_map(|packet| Echo::of(packet)).collect();
        if expected.iter().all(|reply| found.contains(reply)) {
            return judge(agreement.case, &opened);
        }
        why = format!("only {} of {} replies", found.len(), expected.len());
    }
    Err(why)
}

fn is_from_guest(packet: &[u8], agreement: &Agreement) -> bool {
    let outer = strait_wire::ip::Packet::parse(packet);
    outer.is_ok_and(|it| (it.src(), it.dst()) == agreement.outer(Direction::FromGuest))
}

/// What is true of all datagrams: no number comes twice, and where IPComp was agreed on, what is worth it came compressed.
fn judge(case: Case, Opened { layers, numbers, .. }: &Opened) -> Result<(), String> {
    if numbers.iter().flatten().collect::<BTreeSet<_>>().len() != numbers.iter().flatten().count() {
        return Err(format!("a number came twice: {numbers:?}"));
    }
    let compressed = layers.iter().filter(|layers| layers.iter().any(|layer| layer == "ipcomp")).count();
    match (case.ipcomp, compressed) {
        (true, 0) => Err(format!("nothing came compressed: {layers:?}")),
        (false, 1..) => Err(format!("something came compressed: {layers:?}")),
        _ => Ok(()),
    }
}
