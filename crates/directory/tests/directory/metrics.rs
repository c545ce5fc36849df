//! What Prometheus reads of a directory, beside `docs/reference/metrics.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use strait_keying::PrivateKey;
use strait_keying::directory::{Answer, Question};
use strait_testdata::reference::rows;

use crate::place::{self, Directory, PATIENCE, certificate, find, folder, list, signed, until};

/// An address for metrics, and the line that says it.
fn metrics() -> (SocketAddr, String) {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    (address, format!("metrics = \"{address}\"\n"))
}

fn read(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    answer
}

/// The samples, by their names with labels, behind `strait_directory_server_`.
fn samples(address: SocketAddr) -> BTreeMap<String, f64> {
    let text = read(address);
    let samples = text.lines().filter_map(|line| {
        let (name, value) = line.strip_prefix("strait_directory_server_")?.rsplit_once(' ')?;
        Some((name.to_owned(), value.parse().unwrap()))
    });
    samples.collect()
}

/// Waits until the samples are these: what is served may be a moment old.
fn until_they_are(address: SocketAddr, expected: &[(&str, f64)]) {
    let is = |of: &BTreeMap<String, f64>| expected.iter().all(|(name, value)| of.get(*name) == Some(value));
    until(&format!("{expected:?}"), || is(&samples(address)).then_some(()));
}

#[test]
fn what_is_kept_asked_and_refused_is_counted() {
    let (dir, (address, line)) = (folder(), metrics());
    let directory = Directory::start(dir.path(), "d", &line);
    directory.put(&certificate(1, 1)).unwrap();
    directory.put(&certificate(2, 2)).unwrap();
    directory.put_list(&list(7, &[9])).unwrap();
    assert_eq!(directory.ask(&find(3)), Answer::NotFound);
    directory.put(&certificate(9, 9)).unwrap_err();
    directory.put(&signed(&PrivateKey::generate(&[8; 32]), 4, 4, strait_directory::now() + 100)).unwrap_err();
    directory.put_list(&list(6, &[])).unwrap_err();
    let mut watches = [directory.open(), directory.open()];
    for watch in &mut watches {
        watch.say(&Question::Watch { certificates: false }).unwrap();
        while watch.hear().unwrap() != Answer::NoNews {}
    }
    until_they_are(
        address,
        &[
            ("certificates", 2.0),
            ("list_number", 7.0),
            ("watching", 2.0),
            ("connections", 2.0),
            ("questions_total{question=\"find\"}", 1.0),
            ("questions_total{question=\"watch\"}", 2.0),
            ("questions_total{question=\"put_certificate\"}", 4.0),
            ("questions_total{question=\"put_list\"}", 2.0),
            ("answer_seconds_count{question=\"find\"}", 1.0),
            ("answer_seconds_bucket{question=\"put_list\",le=\"+Inf\"}", 2.0),
            ("refused_total{from=\"client\",reason=\"revoked\"}", 1.0),
            ("refused_total{from=\"client\",reason=\"foreign\"}", 1.0),
            ("refused_total{from=\"client\",reason=\"older_list\"}", 1.0),
            ("refused_total{from=\"client\",reason=\"expired\"}", 0.0),
        ],
    );
    let all = samples(address);
    assert!(!all.contains_key("etcd_followed"), "{all:?}");
    assert!(all["accepted_connections_total"] >= 9.0 && all["list_age_seconds"] < 3600.0, "{all:?}");
    drop(watches);
    until_they_are(address, &[("watching", 0.0), ("connections", 0.0)]);
}

#[test]
fn how_it_stands_with_etcd_is_told() {
    let (dir, (address, line)) = (folder(), metrics());
    let Some(mut etcd) = place::etcd(dir.path(), None) else { return };
    let section = format!("{line}[etcd]\nurls = [\"{}\"]\n", etcd.url());
    let directory = Directory::start(dir.path(), "d", &section);
    until("etcd takes it", || directory.put(&certificate(1, 1)).ok());
    // An empty etcd is at revision 1, and each put makes the next.
    until_they_are(address, &[("etcd_followed", 1.0), ("etcd_revision", 2.0)]);
    let before = samples(address);
    directory.put(&certificate(2, 2)).unwrap();
    until_they_are(address, &[("etcd_revision", 3.0)]);
    etcd.kill();
    directory.put(&certificate(3, 3)).unwrap_err();
    until_they_are(
        address,
        &[("etcd_followed", 0.0), ("refused_total{from=\"client\",reason=\"etcd\"}", 1.0)],
    );
    assert!(samples(address)["etcd_failures_total"] > before["etcd_failures_total"]);
    etcd.run().unwrap();
    until_they_are(address, &[("etcd_followed", 1.0)]);
    assert_served_is_documented(&read(address));
}

/// Every metric of a directory over etcd has a line in the reference, and every line a metric.
fn assert_served_is_documented(text: &str) {
    let served: BTreeSet<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .map(|(name, kind)| {
            let samples = text.lines().filter_map(|line| {
                let rest = line.strip_prefix(name)?.trim_start_matches("_bucket");
                rest.strip_prefix('{')?.split("\"}").next()
            });
            let labels = samples.flat_map(|labels| labels.split("\","));
            let labels: BTreeSet<_> =
                labels.filter_map(|label| Some(label.split_once("=\"")?.0.to_owned())).collect();
            (name.to_owned(), kind.to_owned(), labels)
        })
        .collect();
    let lines = rows("metrics.md").into_iter().filter(|row| row.heading == "The server of a directory");
    let documented = lines.map(|row| {
        let labels = row.cells[2].split(", ").filter(|label| *label != "-").map(str::to_owned).collect();
        (row.name().unwrap().to_owned(), row.cells[1].clone(), labels)
    });
    assert_eq!(served, documented.collect());
}

#[test]
fn metrics_are_for_this_host_alone() {
    let dir = folder();
    let said = Directory::refused(dir.path(), "d", "metrics = \"0.0.0.0:9478\"\n");
    assert!(said.contains("`metrics` in [directory] has to be an address of this host"), "{said}");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let line = format!("metrics = \"{}\"\n", taken.local_addr().unwrap());
    let said = Directory::refused(dir.path(), "d", &line);
    assert!(said.contains("cannot serve metrics at"), "{said}");
}
