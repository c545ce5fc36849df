use super::*;

fn csv(text: &str) -> Result<PacketTrace, String> {
    TraceColumns::of(text.as_bytes()).expect("columns").read(text.as_bytes())
}

#[test]
fn columns_are_found_by_their_names() {
    let trace = csv("timestamp,size,dst,segment\n0.0,54,7,0\n0.1,76,x,0\r\n0.2,1500,7,1\n").unwrap();
    assert_eq!(trace.packets, [(54, 0), (76, 1), (1500, 0)]);
    assert!(trace.recorded && trace.about.contains("2 destinations"), "{}", trace.about);
    assert_eq!(csv("dst, size\na,1\n").unwrap().packets, [(1, 0)]);
    for names in ["", "size\n", "time,dst\n", "\u{1}\u{2}"] {
        assert!(TraceColumns::of(names.as_bytes()).is_none(), "{names:?}");
    }
}

#[test]
fn a_damaged_line_is_named() {
    for (line, text) in [
        (2, "size,dst\nx,1\n"),
        (3, "size,dst\n5,1\n5\n"),
        (2, "size,dst\n65576,1\n"),
        (2, "size,dst\n-1,1\n"),
    ] {
        let said = csv(text).unwrap_err();
        assert!(said.contains(&format!("line {line} ")), "{said}");
    }
    assert!(without_sizes(&b"0.5 1 2 3 4\n0.6 1\n"[..]).unwrap_err().contains("line 2 "));
}

#[test]
fn destinations_without_sizes() {
    let udp = b"759189600.422972 1 2 3161 9030\n0.451923 2 3 2234 27358\n1.075330 4 2 53 53\n";
    let connections = b"0.722337 35 36 1199 21 S 790272000:790272000 0\n";
    assert!(names_no_sizes(udp) && names_no_sizes(connections));
    for other in [&b""[..], b"0.001340  1090\n", b"0.1 1 2 3 4 512\n", b"1 2 3 4 5\n", b"a b c d e\n"] {
        assert!(!names_no_sizes(other), "{}", String::from_utf8_lossy(other));
    }
    let trace = without_sizes(&udp[..]).unwrap();
    assert_eq!(trace.packets.iter().map(|packet| packet.1).collect::<Vec<_>>(), [0, 1, 0]);
    assert!(trace.packets.iter().all(|packet| (40..=1500).contains(&packet.0)));
    assert!(trace.about.contains("no sizes"));
}

#[test]
fn text_traces_with_sizes() {
    let trace = captured(&b"0.1 1 2 80 80 512\n0.2 2 1 80 80 0\n0.3 1 2 80 80 1460\n"[..]).unwrap();
    assert_eq!(trace.packets, [(552, 0), (40, 1), (1500, 0)]);
    assert!(trace.recorded);
    let lengths: String = (0..300).map(|line| format!("{line}.5 {}\n", 64 + line)).collect();
    let trace = captured(lengths.as_bytes()).unwrap();
    assert!(!trace.recorded && trace.about.contains("no hosts"), "{}", trace.about);
    assert!(trace.packets.iter().any(|packet| packet.1 > 50), "of 100 associations");
    assert_eq!(captured(&b"no trace at all"[..]).unwrap_err(), "is no capture and no trace");
    assert!(captured(&b""[..]).unwrap_err().contains("empty"));
}

#[test]
fn a_capture_has_lengths_and_destinations() {
    let Some(path) = strait_testdata::find_or_skip("captures/snmp.pcap") else { return };
    let trace = PacketTrace::read(&path).unwrap();
    assert!(trace.recorded && trace.packets.len() > 50, "{}", trace.about);
    assert!(trace.packets.iter().all(|packet| (28..=1500).contains(&packet.0)));
    let destinations = trace.packets.iter().map(|packet| packet.1).max().unwrap() + 1;
    assert!(trace.about.ends_with(&format!("{destinations} destinations")), "{}", trace.about);
}

#[test]
fn unsuitable_file_is_named_in_error() {
    let said = PacketTrace::read(Path::new("/nowhere/trace.csv")).unwrap_err().to_string();
    assert!(said.contains("/nowhere/trace.csv") && said.contains("No such file"), "{said}");
    let dir = strait_testbed::Workdir::create().unwrap();
    let path = dir.path().join("empty.csv");
    std::fs::write(&path, "size,dst\n").unwrap();
    let said = PacketTrace::read(&path).unwrap_err().to_string();
    assert!(said.contains("empty.csv has no packets"), "{said}");
}

#[test]
fn the_generated_trace_has_the_papers_packets_a_bundle() {
    let mut window = strait_scheduler::Window::new(super::super::gateway::window(30));
    let (mut sent, mut jobs) = (0, 0);
    let trace = PacketTrace::generated();
    for (_, destination) in &trace.packets {
        while window.is_full() {
            sent += window.take(usize::MAX, |(), _| None);
            jobs += 1;
        }
        assert_eq!(window.push(*destination, (), 40, strait_clock::Time::ZERO), Ok(()));
    }
    let mean = f64::from(u32::try_from(sent).unwrap()) / f64::from(jobs);
    assert!((mean - 2.57).abs() < 0.05, "{mean}");
}
