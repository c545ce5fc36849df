use std::net::{IpAddr, Ipv4Addr};

use strait_wire::{Protocol, Service};

use super::*;

fn flow(src: u32, dst: u32, port: u16) -> Flow {
    let host = |number: u32| IpAddr::from(Ipv4Addr::from(0x0a00_0000 + number));
    Flow { src: host(src), dst: host(dst), protocol: Protocol::UDP, src_port: 50_000, dst_port: port }
}

fn bytes(amount: u64) -> impl FnMut(&mut ClassFigures) {
    move |figures| figures.bytes += amount
}

#[test]
fn both_directions_are_of_one_class() {
    let mut classes = Classes::new();
    let there = flow(1, 2, 53);
    let back = Flow { src: there.dst, dst: there.src, src_port: 53, dst_port: 50_000, ..there };
    let places = classes.places(&there, None);
    assert_eq!(classes.places(&back, None), places);
    assert_eq!(classes.places(&there, None), places, "remembered");
    assert_ne!(classes.places(&there, Some(FileId(0))).service, places.service);
    classes.add(places, bytes(5));
    let names =
        |table: &FigureTable| table.sorted().iter().map(|(key, _)| key.to_string()).collect::<Vec<_>>();
    assert_eq!(names(&classes.protocols), ["udp"]);
    assert_eq!(names(&classes.services), ["dns (udp 53)", "file 0"]);
    assert_eq!(names(&classes.pairs), ["10.0.0.1 - 10.0.0.2", "file 0"]);
    assert_eq!(classes.whole.bytes, 5);
}

#[test]
fn a_table_is_bounded_and_loses_no_byte() {
    let mut table = FigureTable::new(4);
    let key = |port: u16| ClassKey::Service(Service { protocol: Protocol::TCP, port });
    let places: Vec<FigurePlace> = (1..=4).map(|number| table.place(key(number))).collect();
    for (place, amount) in places.iter().zip([40, 10, 30, 20]) {
        table.at(*place).bytes += amount;
    }
    let fifth = table.place(key(5));
    assert!(!table.stands(places[1]) && table.stands(places[0]) && table.stands(fifth));
    assert_eq!(table.place(key(5)), fifth);
    // What is still on its way for the class that had to go is counted among the others.
    table.at(places[1]).bytes += 7;
    table.at(fifth).bytes += 1;
    let sorted: Vec<_> = table.sorted().iter().map(|(key, figures)| (*key, figures.bytes)).collect();
    assert_eq!(sorted, [(key(1), 40), (key(3), 30), (key(4), 20), (key(5), 1)]);
    let (gone, others) = table.others();
    assert_eq!((gone, others.bytes), (1, 17));
    // It comes back as another.
    let again = table.place(key(2));
    assert_ne!(again, places[1]);
    assert_eq!(table.others().1.bytes, 18);
}

#[test]
fn a_scan_of_ports_does_not_push_out_what_matters() {
    let mut classes = Classes::new();
    let busy = classes.places(&flow(1, 2, 80), None);
    classes.add(busy, bytes(1_000_000));
    for number in 0..5_000_u16 {
        let places = classes.places(&flow(3, 4 + u32::from(number), number), None);
        classes.add(places, bytes(40));
    }
    assert!(classes.are_standing(busy));
    for table in [&classes.services, &classes.pairs] {
        assert_eq!(table.sorted().len(), CLASSES);
        let total = table.sorted().iter().map(|(_, figures)| figures.bytes).sum::<u64>();
        assert_eq!(total + table.others().1.bytes, classes.whole.bytes);
    }
}
