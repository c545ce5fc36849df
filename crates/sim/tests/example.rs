//! The example of the folder `examples` runs, and says that everything arrived.

#![allow(clippy::unwrap_used)]

#[path = "../../../examples/in_memory.rs"]
#[allow(dead_code, unreachable_pub, reason = "an example has a `main` of its own")]
mod in_memory;

#[test]
fn two_nodes_in_memory_deliver_every_packet() {
    let report = in_memory::run().unwrap();
    assert!(report.starts_with("200 packets of 15090 bytes\n"), "{report}");
    assert!(report.ends_with("all of them arrived as they were sent: true\n"), "{report}");
    let datagrams = report.lines().count() - 2;
    assert!(datagrams < 5, "most packets share a datagram: {report}");
}
