//! The page, and clients that want more than it.

use std::io::{Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use jiff::tz::TimeZone;
use tokio::sync::{mpsc, watch};

use super::page::{Page, SCRIPT, STYLE};
use super::{Web, WebToken};
use crate::local::{Answer, PendingRequest};
use crate::metrics::tests::report;
use crate::report::{DaemonReport, DecisionReport, DropReport, EstimateReport, StagesReport};
use crate::saved::{SavedAmounts, SavedFigures, SavedKind, SavedSample, SavedSeries};

/// 2026-11-27 19:21:40 UTC.
const NOW: u64 = 1_795_807_300;
const TOKEN: &str = "wXKeEeD2sUcsfgwA2rO7tClR0yGv6Ro0Hk4mVF2RQhI=";
/// What a hostile peer, or a hostile configuration, would call itself.
const HOSTILE: &str = "<script>alert('1')</script>\" onload=\"x\u{202e}\n";

fn decision(class: &str, bytes_per_second: u64) -> DecisionReport {
    let stages = StagesReport {
        compress_us: 1.0,
        encrypt_us: 1.0,
        sender_us: 1.0,
        link_us: 1.0,
        receiver_us: 1.0,
        decrypt_us: 1.0,
        decompress_us: 1.0,
    };
    let estimate = EstimateReport {
        objective: "throughput".to_owned(),
        block_bytes: 65_536,
        method: "zstd-3".to_owned(),
        ratio: 2.5,
        compress_bytes_per_second: None,
        decompress_bytes_per_second: None,
        link_rate_bits_per_second: None,
        break_even_bits_per_second: None,
        pays: "always".to_owned(),
        uncompressed: stages,
        compressed: stages,
        bottleneck: "link".to_owned(),
        serial_speedup: 2.0,
        pipelined_speedup: 2.5,
        runner_up: None,
        runner_up_slower_percent: None,
    };
    DecisionReport {
        class: class.to_owned(),
        peer: Some("site-b".to_owned()),
        domain: Some("logs".to_owned()),
        bytes_per_second,
        choice: "zstd-3".to_owned(),
        reason: "pays".to_owned(),
        age_seconds: 1.0,
        estimate: Some(estimate),
    }
}

/// A month with traffic of one peer.
fn figures() -> Arc<SavedFigures> {
    let mut series = SavedSeries::new(SavedKind::Peer, "site-b");
    for (at, sent_bytes) in [(NOW - 86_400, 1 << 30), (NOW, 4_000_000)] {
        let amounts = SavedAmounts { sent_bytes, sent_wire_bytes: sent_bytes / 4, ..SavedAmounts::default() };
        series.add(at, &SavedSample { amounts, ..SavedSample::default() });
    }
    let mut figures = SavedFigures::of(&[series], NOW, &TimeZone::UTC).unwrap();
    figures.control.sent_wire_bytes = report().control.wire_bytes;
    Arc::new(figures)
}

fn page(report: &DaemonReport, before: Option<&Page>) -> Page {
    Page::new(report, Some(figures()), before, tokio::time::Instant::now())
}

/// Serves the page while `client` runs; gives its result, and how often the daemon was asked.
fn while_serving<T: Send + 'static>(
    token: Option<&str>,
    report: DaemonReport,
    client: impl FnOnce(SocketAddr) -> T + Send + 'static,
) -> (T, u64) {
    let token = token.map(|text| WebToken::new(text).unwrap());
    let (_sender, shown) = watch::channel(Some(figures()));
    let web = Web::bind("127.0.0.1:0".parse().unwrap(), token, &[7; 32], shown).unwrap();
    let address = web.listener.local_addr().unwrap();
    let asked = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&asked);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = thread::spawn(move || client(address));
    runtime.block_on(async {
        let (asks, mut requests) = mpsc::channel(1);
        web.serve(asks).unwrap();
        tokio::spawn(async move {
            while let Some(PendingRequest { answer, .. }) = requests.recv().await {
                count.fetch_add(1, Ordering::Relaxed);
                let _ = answer.send(Answer::Report { report: Box::new(report.clone()) });
            }
        });
        while !client.is_finished() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    (client.join().unwrap(), asked.load(Ordering::Relaxed))
}

fn say(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

/// The answer to a request of this method and path, as a browser at this host sends it, with these headers besides.
fn ask(address: SocketAddr, line: &str, headers: &str) -> String {
    say(address, format!("{line} HTTP/1.1\r\nHost: {address}\r\n{headers}\r\n").as_bytes())
}

/// The beginning of a stream of events, until this is in it.
fn stream(address: SocketAddr, until: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut said = String::new();
    let mut buffer = [0; 65_536];
    while !said.contains(until) {
        let got = stream.read(&mut buffer).unwrap();
        assert!(got > 0, "ended: {said}");
        said += core::str::from_utf8(&buffer[..got]).unwrap();
    }
    (stream, said)
}

#[test]
fn the_page_is_complete_without_a_script() {
    let mut told = report();
    told.node.price_per_gigabyte = Some(8.0);
    told.peers[0].name = "site-b".to_owned();
    told.peers[0].sent = crate::report::TrafficReport::default();
    told.decisions = Some(vec![decision("tcp 10.1.0.1:5 -> 10.2.0.1:80", 1_000_000)]);
    let html = page(&told, None).html();
    for words in [
        "808 MB saved in November 2026, worth 6.47 at 8.00/GB",
        "<td>this month</td><td class=\"n\">1.08 GB</td><td class=\"n\">269 MB</td>",
        "<td>site-b</td><td class=\"n\">900 B</td><td class=\"n\">1.00 kB/month</td><td class=\"n\">90 %</td>\
         <td class=\"n\">1.10 kB</td><td class=\"n\">0 ms</td><td>all but bulk traffic</td>",
        "<td>today</td><td class=\"n\">4.00 MB</td>",
        "1.50 Mbit/s</td><td>found</td>",
        "<td class=\"n\">50.0 ms</td><td class=\"n\">25.0 %</td>",
        "<td class=\"n\">8.0 ms</td><td class=\"n\">21.0 ms</td><td class=\"n\">7 B</td>",
        "<td>tcp 10.1.0.1:5 -&gt; 10.2.0.1:80</td><td>site-b</td><td class=\"n\">1.00 MB/s</td><td class=\"n\">400 kB/s</td>\
         <td class=\"n\">2.5</td><td>zstd-3</td><td>takes the least time</td>",
        "<td>forged</td><td class=\"n\">9</td>",
        "<noscript><meta http-equiv=\"refresh\" content=\"5\"></noscript>",
    ] {
        assert!(html.contains(words), "{words}\nis not in\n{html}");
    }
    assert_eq!(html.matches("<svg").count(), 2, "two charts");
    let month = html.split("<div id=\"month\">").nth(1).unwrap();
    for words in [">1.07 GB<", ">268 MB<", ">4 MB<", ">1 MB<", ">28<", ">Oct 2026<", ">27<", ">Nov 2026<"] {
        assert!(month.contains(words), "{words} is not in\n{month}");
    }
    assert!(!month.contains(">0 B<"), "days without traffic have no numbers");
    assert_eq!(html.matches("<script").count(), 1);
    // The policy allows neither.
    assert!(!html.contains(" style=") && !html.contains("<style"), "{html}");
}

#[test]
fn rates_are_differences_of_two_pages_and_events_have_what_changed() {
    let mut told = report();
    let first = page(&told, None);
    assert!(first.event(None).contains("\"month\":"), "the first event has all");
    told.peers[0].sent.wire_bytes += 125_000;
    let later = first.made + Duration::from_secs(2);
    let charts = Some(figures());
    let next = Page::new(&told, charts.clone(), Some(&first), later);
    assert!(next.html().contains("<td class=\"n\">500 kbit/s</td><td class=\"n\">0 bit/s</td>"));
    let event = next.event(Some(&first));
    assert!(event.starts_with("data: {") && event.ends_with("}\n\n") && event.matches('\n').count() == 2);
    assert!(
        event.contains("\"link\":") && !event.contains("\"queue\":") && !event.contains("\"day\":"),
        "{event}"
    );
    let same = Page::new(&told, charts, Some(&next), later);
    assert_eq!(same.event(Some(&same)), ":\n\n");
    let late = Page::new(&told, None, Some(&first), first.made + Duration::from_secs(60));
    assert!(
        !late.html().contains("500 kbit/s") && !late.html().contains("bit/s</td><td class=\"n\">0 bit/s")
    );
    assert!(late.html().contains("No figures are kept"));
}

#[test]
fn names_of_others_are_text_and_never_markup() {
    let mut told = report();
    told.node.interface = HOSTILE.to_owned();
    told.node.listen = HOSTILE.to_owned();
    told.node.warnings = vec![HOSTILE.to_owned()];
    told.peers[0].name = HOSTILE.to_owned();
    told.peers[0].state = HOSTILE.to_owned();
    told.drops = vec![DropReport { reason: HOSTILE.to_owned(), packets: 1 }];
    let hostile = DecisionReport {
        peer: Some(HOSTILE.to_owned()),
        choice: HOSTILE.to_owned(),
        reason: HOSTILE.to_owned(),
        ..decision(HOSTILE, 5)
    };
    told.decisions = Some(vec![hostile]);
    let html = page(&told, None).html();
    assert!(
        html.matches("&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&quot; onload=&quot;x").count() >= 10,
        "{html}"
    );
    assert_eq!(html.matches("<script").count(), 1, "our own");
    assert!(!html.contains("onload=\"") && !html.contains('\u{202e}'));
}

#[test]
fn ten_thousand_flows_and_peers_make_no_large_page() {
    let mut told = report();
    let long = "x".repeat(10_000);
    told.decisions = Some((0..10_000).map(|at| decision(&format!("udp {at} {long}"), at)).collect());
    told.peers = (0..10_000).map(|_| told.peers[0].clone()).collect();
    for peer in &mut told.peers {
        peer.name.clone_from(&long);
    }
    told.node.warnings = vec![long; 10_000];
    let page = page(&told, None);
    assert!(page.html().len() < 120_000, "{} bytes", page.html().len());
    assert!(page.event(None).len() < 140_000, "{} bytes", page.event(None).len());
    for words in ["and 9950 more flows", "and 9950 more peers", "udp 8192 ", "x\u{2026}"] {
        assert!(page.html().contains(words), "{words}");
    }
    let html = page.html();
    let mut shown =
        html.split("<td>udp ").skip(1).map(|row| row.split(' ').next().unwrap().parse::<u64>().unwrap());
    assert!(shown.all(|rate| rate >= 8_192), "the busiest are there, to a factor of 2");
}

#[test]
fn assets_are_small_and_name_no_other_origin() {
    assert!(SCRIPT.lines().count() <= 60, "{} lines", SCRIPT.lines().count());
    // A name space is no place, and is asked for nothing.
    let html = page(&report(), None).html().replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    for (name, text) in [("live.js", SCRIPT), ("style.css", STYLE), ("/", &html)] {
        for origin in ["//www", "http:", "https:", "url(", "@import", "src=\"//", "href=\"//", "import "] {
            assert!(!text.contains(origin), "{name} has {origin}");
        }
    }
    assert!(!SCRIPT.contains("eval") && !SCRIPT.contains(".style"));
}

#[test]
fn every_answer_has_the_headers_that_bound_what_a_browser_does() {
    let (answers, _) = while_serving(None, report(), |address| {
        ["GET /", "GET /style.css", "GET /live.js", "GET /nothing", "HEAD /", "HEAD /events", "POST /"]
            .map(|line| ask(address, line, ""))
    });
    for answer in &answers {
        for header in [
            "content-security-policy: default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' \
             data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'\r\n",
            "x-content-type-options: nosniff\r\n",
            "referrer-policy: no-referrer\r\n",
            "cache-control: no-store\r\n",
        ] {
            assert!(answer.contains(header), "{header}\nis not in\n{answer}");
        }
    }
    let [page, style, script, nothing, head, events, post] = &answers;
    assert!(
        page.starts_with("HTTP/1.1 200")
            && page.contains("text/html; charset=utf-8")
            && page.contains("</html>")
    );
    assert!(style.contains("text/css; charset=utf-8") && style.ends_with(STYLE));
    assert!(script.contains("text/javascript; charset=utf-8") && script.ends_with(SCRIPT));
    assert!(nothing.starts_with("HTTP/1.1 404"), "{nothing}");
    assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(events.starts_with("HTTP/1.1 200") && events.contains("text/event-stream"), "{events}");
    assert!(post.starts_with("HTTP/1.1 405") && post.contains("allow: GET, HEAD\r\n"), "{post}");
}

#[test]
fn other_hosts_methods_paths_and_heads_get_nothing() {
    let (answers, asked) = while_serving(None, report(), |address| {
        let status = |answer: String| answer.split(' ').nth(1).unwrap_or("none").to_owned();
        let host = |host: &str| status(say(address, format!("GET / HTTP/1.1\r\n{host}\r\n").as_bytes()));
        let hosts = [
            "Host: evil.example\r\n",
            "Host: 127.0.0.1.evil.example\r\n",
            "Host: localhost.evil.example:80\r\n",
            "Host: 127.0.0.1:x\r\n",
            "Host: [::1\r\n",
            "Host: \u{e9}\r\n",
            "Host:\r\n",
            "",
            "Host: localhost\r\nHost: evil.example\r\n",
        ]
        .map(host);
        let absolute = status(say(address, b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        let methods = ["POST /", "PUT /", "DELETE /", "OPTIONS *", "TRACE /", "CONNECT 10.0.0.1:80"]
            .map(|line| status(ask(address, line, "")));
        let paths = [
            "/../../etc/passwd",
            "/%2e%2e/etc/passwd",
            "//style.css",
            "/style.css/",
            "/STYLE.CSS",
            "/.",
            "/events/..",
        ]
        .map(|path| status(ask(address, &format!("GET {path}"), "")));
        let long = status(ask(address, "GET /", &format!("X: {}\r\n", "x".repeat(100_000))));
        let many = status(ask(address, "GET /", &"X: y\r\n".repeat(1_000)));
        let site = |site: &str| status(ask(address, "GET /events", &format!("Sec-Fetch-Site: {site}\r\n")));
        let sites = ["cross-site", "same-site"].map(site);
        (hosts, absolute, methods, paths, long, many, sites)
    });
    let (hosts, absolute, methods, paths, long, many, sites) = answers;
    assert_eq!(hosts, ["403"; 9]);
    assert_eq!(absolute, "403");
    assert!(methods.iter().all(|status| status == "405" || status == "403"), "{methods:?}");
    assert_eq!(paths, ["404"; 7]);
    assert!(long != "200" && many != "200", "{long} {many}");
    assert_eq!(sites, ["403"; 2]);
    assert_eq!(asked, 0, "none of it costs a report");
}

#[test]
fn addresses_and_localhost_are_served_by_any_port() {
    let (answers, _) = while_serving(None, report(), |address| {
        ["localhost", "LOCALHOST:8080", "127.0.0.1", "192.0.2.1:80", "[::1]", "[fd00::1]:9478"].map(|host| {
            say(
                address,
                format!("GET / HTTP/1.1\r\nHost: {host}\r\nSec-Fetch-Site: cross-site\r\n\r\n").as_bytes(),
            )
        })
    });
    assert!(answers.iter().all(|answer| answer.starts_with("HTTP/1.1 200")), "{answers:?}");
}

#[test]
fn with_a_token_only_those_who_have_it_see_anything() {
    let (answers, _) = while_serving(Some(TOKEN), report(), |address| {
        let wrong = [
            ("GET /", String::new()),
            ("GET /style.css", String::new()),
            ("GET /events", String::new()),
            ("GET /nothing", String::new()),
            ("GET /?token=wrong", String::new()),
            ("GET /?token=", String::new()),
            ("GET /", "Authorization: Bearer wrong\r\n".to_owned()),
            ("GET /", format!("Authorization: Basic {TOKEN}\r\n")),
            ("GET /", format!("Authorization: Bearer {TOKEN}x\r\n")),
            ("GET /", format!("Cookie: strait-web-{}={TOKEN}\r\n", address.port())),
            ("GET /", format!("Cookie: strait-web-{}=; strait-web\r\n", address.port())),
        ]
        .map(|(line, headers)| ask(address, line, &headers));
        let bearer = ask(address, "GET /", &format!("Authorization: bearer  {TOKEN}\r\n"));
        let welcome = ask(address, &format!("GET /?token={}", TOKEN.replace('=', "%3D")), "");
        let plain = ask(address, &format!("GET /?token={TOKEN}"), "");
        let cookie = welcome.split("set-cookie: ").nth(1).unwrap().split(';').next().unwrap().to_owned();
        let again = ask(address, "GET /", &format!("Cookie: other=1; {cookie}\r\n"));
        (wrong, bearer, welcome, plain, again)
    });
    let (wrong, bearer, welcome, plain, again) = answers;
    for answer in &wrong {
        assert!(
            answer.starts_with("HTTP/1.1 401") && answer.contains("www-authenticate: Bearer"),
            "{answer}"
        );
        assert!(!answer.contains(TOKEN) && !answer.contains("strait0"), "{answer}");
    }
    assert!(bearer.starts_with("HTTP/1.1 200"), "{bearer}");
    for answer in [&welcome, &plain] {
        assert!(answer.starts_with("HTTP/1.1 303") && answer.contains("location: /\r\n"), "{answer}");
        assert!(answer.contains("; Path=/; HttpOnly; SameSite=Strict\r\n"), "{answer}");
        assert!(!answer.contains(TOKEN), "the browser keeps something else");
    }
    assert!(again.starts_with("HTTP/1.1 200"), "{again}");
    assert_eq!(format!("{:?}", WebToken::new(TOKEN).unwrap()), "[token]");
    for no_token in ["", "fifteen letters", "fifteen-letters", "sixteen letters!", "\u{e9}0123456789abcdef"] {
        assert!(WebToken::new(no_token).is_none(), "{no_token}");
    }
    assert!(WebToken::new(&"x".repeat(256)).is_some() && WebToken::new(&"x".repeat(257)).is_none());
}

#[test]
fn eight_pages_are_live_and_cost_one_report_a_second_together() {
    let ((ninth, after, elapsed), asked) = while_serving(None, report(), |address| {
        let begin = Instant::now();
        // Three events each, the first of which has all sections.
        let open = || thread::spawn(move || stream(address, "\n:\n\n\r\n"));
        let opening: Vec<_> = (0..8).map(|_| open()).collect();
        let live: Vec<_> = opening.into_iter().map(|it| it.join().unwrap()).collect();
        assert!(
            live.iter().all(|(_, said)| said.contains("\"flows\":") && said.contains("text/event-stream"))
        );
        let ninth = ask(address, "GET /events", "");
        let pages: Vec<_> = (0..40).map(|_| ask(address, "GET /", "")).collect();
        assert!(pages.iter().all(|page| page.starts_with("HTTP/1.1 200")));
        drop(live);
        // A stream ends when its client has gone, which is seen at its next event.
        let after = loop {
            let answer = stream(address, "\r\n\r\n").1;
            if answer.starts_with("HTTP/1.1 200") {
                break answer;
            }
            thread::sleep(Duration::from_millis(100));
        };
        (ninth, after, begin.elapsed())
    });
    assert!(ninth.starts_with("HTTP/1.1 503") && ninth.contains("8 pages are live already"), "{ninth}");
    assert!(after.starts_with("HTTP/1.1 200"));
    assert!(u128::from(asked) <= 2 + elapsed.as_millis() / 1000, "{asked} reports in {elapsed:?}");
}

#[test]
fn connections_that_say_nothing_do_not_stay() {
    let (answer, _) = while_serving(None, report(), |address| {
        let silent = Vec::from_iter((0..32).map(|_| TcpStream::connect(address).unwrap()));
        // They were first, and have all places.
        assert_eq!(ask(address, "GET /", ""), "");
        for mut stream in silent {
            let _ = stream.read_to_end(&mut Vec::new());
        }
        ask(address, "GET /", "")
    });
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}
