//! The server as `curl` sees it, which signs requests by itself.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use strait_bucket::{Bucket, ClockShift, Credentials, Fault, Rule};
use strait_testbed::Workdir;
use strait_testdata::skip::{Need, skip};

/// A server with the bucket `tests`, and `curl` to ask it with.
struct Place {
    dir: Workdir,
    bucket: Bucket,
}

/// What `curl` saw: its exit code, the status, the headers and the body.
#[derive(Debug)]
struct Seen {
    exit: i32,
    status: u16,
    headers: String,
    body: Vec<u8>,
}

impl Seen {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

fn has_curl() -> bool {
    let version = Command::new("curl").arg("--version").stdout(Stdio::null()).status();
    version.is_ok_and(|status| status.success()) || skip(Need::Programs, "no curl")
}

impl Place {
    fn new() -> Place {
        let dir = Workdir::create().unwrap();
        let bucket = Bucket::on_loopback(&dir.path().join("root"), "tests", Credentials::of_tests()).unwrap();
        Place { dir, bucket }
    }

    fn command(&self, target: &str, secret: &str) -> Command {
        let mut command = Command::new("curl");
        command.args(["--silent", "--include", "--aws-sigv4", "aws:amz:us-east-1:s3"]);
        command.args(["--user", &format!("{}:{secret}", Credentials::of_tests().access_key)]);
        // curl 7.88 does not say it by itself.
        command.args(["--header", "x-amz-content-sha256: UNSIGNED-PAYLOAD"]);
        command.args(["--write-out", "%{stderr}%{http_code}", "--max-time", "60"]);
        command.arg(format!("{}/tests/{target}", self.bucket.endpoint()));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn start(&self, target: &str, flags: &[&str]) -> Child {
        self.command(target, &Credentials::of_tests().secret_key).args(flags).spawn().unwrap()
    }

    fn ask(&self, target: &str, flags: &[&str]) -> Seen {
        seen(self.start(target, flags))
    }

    /// Puts a file with this content.
    fn put(&self, target: &str, content: &[u8], flags: &[&str]) -> Seen {
        let file = self.dir.path().join("content");
        fs::write(&file, content).unwrap();
        self.ask(target, &[&["--upload-file", file.to_str().unwrap()], flags].concat())
    }

    fn root(&self) -> &Path {
        self.dir.path()
    }
}

fn seen(child: Child) -> Seen {
    let output = child.wait_with_output().unwrap();
    let mut body = output.stdout;
    let mut headers = String::new();
    // A body that waits for `100 Continue` has that before the headers.
    while body.starts_with(b"HTTP/") {
        let end = body.windows(4).position(|it| it == b"\r\n\r\n").unwrap() + 4;
        headers = String::from_utf8(body.drain(..end).collect()).unwrap().to_lowercase();
    }
    let status = String::from_utf8_lossy(&output.stderr).trim().parse().unwrap_or(0);
    Seen { exit: output.status.code().unwrap(), status, headers, body }
}

fn content(size: usize) -> Vec<u8> {
    (0..size).map(|at| (at * 31 + at / 251) as u8).collect()
}

#[test]
fn objects_come_back_whole_and_in_parts() {
    if !has_curl() {
        return;
    }
    let place = Place::new();
    for size in [0, 1, 4000, 3 << 20] {
        let content = content(size);
        let key = format!("contents/{size}");
        assert_eq!(place.put(&key, &content, &[]).status, 200);
        let got = place.ask(&key, &[]);
        assert_eq!((got.status, got.body == content), (200, true), "{size} bytes");
        assert!(got.headers.contains("last-modified:") && got.headers.contains("etag:"), "{}", got.headers);
    }
    let got = place.ask("contents/4000", &["--range", "10-19"]);
    assert_eq!((got.status, &got.body[..]), (206, &content(4000)[10..20]));
    let head = place.ask("contents/4000", &["--head"]);
    assert!(head.headers.contains("content-length: 4000"), "{}", head.headers);
    assert_eq!(place.ask("contents/none", &[]).status, 404);
    assert_eq!(place.ask("contents/4000", &["--request", "DELETE"]).status, 204);
    assert_eq!(place.ask("contents/4000", &[]).status, 404);
    assert_eq!(place.ask("contents/4000", &["--request", "DELETE"]).status, 204, "as in S3");
}

#[test]
fn a_pipe_whose_length_is_not_known_is_taken() {
    if !has_curl() {
        return;
    }
    let place = Place::new();
    let mut curl = place.command("piped", &Credentials::of_tests().secret_key);
    let mut curl = curl.args(["--upload-file", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    let content = content(2_000_000);
    curl.stdin.take().unwrap().write_all(&content).unwrap();
    let put = seen(curl);
    assert_eq!(put.status, 200, "{}", put.text());
    assert_eq!(fs::read(place.root().join("root/tests/piped")).unwrap(), content);
}

#[test]
fn names_as_long_as_a_file_may_have_are_taken() {
    if !has_curl() {
        return;
    }
    let place = Place::new();
    let key = format!("inbox/{}/{}", "a".repeat(64), "b".repeat(250));
    assert_eq!(place.put(&key, b"letter", &[]).status, 200);
    assert_eq!(place.ask(&key, &[]).body, b"letter");
    let longer = place.put(&format!("inbox/{}", "b".repeat(256)), b"letter", &[]);
    assert_eq!(longer.status, 400);
    for escaping in ["a/../../b", "a//b"] {
        let seen = place.put(escaping, b"x", &["--path-as-is"]);
        assert_eq!(seen.status, 400, "{escaping}: {}", seen.text());
    }
}

#[test]
fn lists_say_keys_and_sizes_page_by_page() {
    if !has_curl() {
        return;
    }
    let place = Place::new();
    for (key, size) in [("inbox/one/1", 3), ("inbox/one/2", 4), ("inbox/two/1", 5)] {
        place.put(key, &content(size), &[]);
    }
    let all = place.ask("?list-type=2&prefix=inbox%2Fone%2F", &[]).text();
    assert!(all.contains("<Key>inbox/one/1</Key>") && all.contains("<Size>4</Size>"), "{all}");
    assert!(!all.contains("inbox/two") && all.contains("<IsTruncated>false"), "{all}");
    let first = place.ask("?list-type=2&max-keys=2", &[]).text();
    assert!(first.contains("<IsTruncated>true") && first.contains("inbox/one/2"), "{first}");
    let token = first.split("<NextContinuationToken>").nth(1).unwrap().split('<').next().unwrap();
    let token = token.replace('/', "%2F");
    let rest = place.ask(&format!("?continuation-token={token}&list-type=2&max-keys=2"), &[]).text();
    assert!(rest.contains("inbox/two/1") && !rest.contains("<Key>inbox/one/"), "{rest}");
    let groups = place.ask("?delimiter=%2F&list-type=2&prefix=inbox%2F", &[]).text();
    assert!(groups.contains("<Prefix>inbox/one/</Prefix>") && !groups.contains("<Key>"), "{groups}");
}

#[test]
fn who_does_not_know_the_secret_is_refused() {
    if !has_curl() {
        return;
    }
    let place = Place::new();
    place.put("x", b"x", &[]);
    assert_eq!(seen(place.command("x", "another").spawn().unwrap()).status, 403);
    let unsigned = Command::new("curl")
        .args(["--silent", "--write-out", "%{stderr}%{http_code}", "--include"])
        .arg(format!("{}/tests/x", place.bucket.endpoint()))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    assert_eq!(seen(unsigned.unwrap()).status, 403);
}

#[test]
fn of_those_that_create_one_name_at_once_one_wins() {
    if !has_curl() {
        return;
    }
    let place = Place::new();
    for round in 0..4 {
        let key = format!("inbox/{round}/letter");
        let racing: Vec<(usize, Child)> = (0..6)
            .map(|it| {
                let file = place.root().join(format!("racing-{it}"));
                fs::write(&file, content(700_000 + it)).unwrap();
                let flags = ["--header", "If-None-Match: *", "--upload-file", file.to_str().unwrap()];
                (it, place.start(&key, &flags))
            })
            .collect();
        let seen: Vec<(usize, u16)> =
            racing.into_iter().map(|(it, child)| (it, seen(child).status)).collect();
        let winners: Vec<usize> =
            seen.iter().filter(|(_, status)| *status == 200).map(|(it, _)| *it).collect();
        assert_eq!(winners.len(), 1, "{seen:?}");
        assert!(seen.iter().all(|(_, status)| matches!(status, 200 | 412)), "{seen:?}");
        assert_eq!(place.ask(&key, &[]).body, content(700_000 + winners[0]));
    }
}

#[test]
fn faults_come_when_rules_say_so_and_leave_what_they_should() {
    if !has_curl() {
        return;
    }
    let place = Place::new();
    let big = content(2 << 20);
    let faults = place.bucket.faults();
    for status in [500, 503, 507, 403] {
        faults.set([Rule::every(Fault::Status(status)).method("PUT").times(1)]);
        assert_eq!(place.put("x", &big, &[]).status, status);
        assert_eq!(place.ask("x", &[]).status, 404, "{status} does nothing");
    }
    assert_eq!(place.put("x", &big, &[]).status, 200, "the rule is used up");

    faults.set([Rule::every(Fault::CutRequest(1 << 20)).method("PUT")]);
    assert_ne!(place.put("half", &big, &[]).exit, 0);
    faults.set([]);
    assert_eq!(place.ask("half", &[]).status, 404);
    assert_eq!(fs::read_dir(place.root().join("root/.unfinished")).unwrap().count(), 0);

    faults.set([Rule::every(Fault::LostAnswer).method("PUT")]);
    assert_eq!(place.put("lost", &big, &[]).exit, 52, "nothing is answered");
    faults.set([Rule::every(Fault::CutAnswer(100_000)).method("GET").times(1)]);
    let cut = place.ask("lost", &[]);
    assert!(cut.exit != 0 && cut.body.len() <= 100_000, "{} after {}", cut.exit, cut.body.len());
    assert_eq!(place.ask("lost", &[]).body, big, "but it was done");

    faults.set([Rule::every(Fault::Silence)]);
    assert_eq!(place.ask("lost", &["--max-time", "1"]).exit, 28, "curl gives up");
    assert_eq!(faults.met(), 8);
}

#[test]
fn a_clock_that_is_off_is_seen_in_every_time() {
    if !has_curl() {
        return;
    }
    let place = Place::new();
    place.put("x", b"x", &[]);
    // The 1st of January 2100 is behind every clock that runs this test.
    let century = 100 * 365 * 86_400;
    place.bucket.faults().shift_clock(ClockShift { seconds: -century, strict: false });
    let seen = place.ask("x", &[]);
    let years = |name: &str| {
        let line = seen.headers.lines().find(|line| line.starts_with(name)).unwrap();
        line.split(' ').nth(4).unwrap().parse::<i64>().unwrap()
    };
    assert_eq!(seen.status, 200);
    assert!(years("date:") < 2000 && years("last-modified:") < 2000, "{}", seen.headers);
    place.bucket.faults().shift_clock(ClockShift { seconds: 3600, strict: true });
    let seen = place.ask("x", &[]);
    assert_eq!((seen.status, seen.text().contains("RequestTimeTooSkewed")), (403, true));
}

#[test]
fn another_server_goes_on_with_what_one_stored() {
    if !has_curl() {
        return;
    }
    let mut place = Place::new();
    place.put("x", b"kept", &[]);
    place.bucket = Bucket::on_loopback(&place.root().join("root"), "tests", Credentials::of_tests()).unwrap();
    assert_eq!(place.ask("x", &[]).body, b"kept");
    thread::scope(|scope| {
        let all: Vec<_> = (0..20).map(|_| scope.spawn(|| place.ask("x", &[]).body == b"kept")).collect();
        assert!(all.into_iter().all(|one| one.join().unwrap()));
    });
}
