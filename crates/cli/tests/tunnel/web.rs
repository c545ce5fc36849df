//! The page of a node in a real browser: what it shows with a script and without, and that its policy is kept.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;

use strait_testbed::{Extra, LinkSpec, TwoHosts};

use crate::browser::{Browser, FLAGS, has_browser};
use crate::pair::{Pair, allowed, eventually};
use crate::why::{END, TEXT, sections, transfer};

/// Where the page is, at each site.
const PAGE: &str = "127.0.0.1:9478";
/// The token of the second site.
const TOKEN: &str = "sixteen-characters-and-more";
/// Pixels of a picture of it.
const SIZE: [u32; 2] = [1_100, 2_000];
/// What a browser says when a page does what its policy forbids.
const VIOLATION: &str = "Content Security Policy";

/// The elements of a page.
struct Seen(String);

impl Seen {
    /// The content of an element of the page.
    fn element(&self, id: &str) -> &str {
        let begin = format!(" id=\"{id}\">");
        let rest = self.0.split(&begin).nth(1).unwrap_or_else(|| panic!("no {id} in {}", self.0));
        rest.split("</div>").next().unwrap().split("</span>").next().unwrap()
    }
}

/// Takes a picture of a page at the first site.
fn picture(pair: &Pair, url: &str, path: &Path) {
    let mut command = pair.hosts.a.command("timeout");
    // It is taken once the page is there, at the latest after so many milliseconds.
    command.args(["120", "chromium"]).args(FLAGS).arg("--timeout=10000");
    command.arg(format!("--user-data-dir={}", pair.dir.path().join("camera").display()));
    let [width, height] = SIZE;
    command.args([format!("--screenshot={}", path.display()), format!("--window-size={width},{height}")]);
    let output = command.arg(url).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A number with its unit, as a page has it, in bytes.
fn bytes(text: &str) -> f64 {
    let (number, unit) = text.split_once(' ').unwrap_or_else(|| panic!("{text}"));
    let power = ["B", "kB", "MB", "GB"].iter().position(|it| *it == unit).unwrap_or_else(|| panic!("{text}"));
    number.parse::<f64>().unwrap() * 1_000_f64.powi(i32::try_from(power).unwrap())
}

/// The cells of a section's rows.
fn rows(seen: &Seen, section: &str) -> Vec<Vec<String>> {
    let cells = |row: &str| {
        let cells = row.split("<td").skip(1);
        cells.map(|cell| cell.split(['>', '<']).nth(1).unwrap().to_owned()).collect()
    };
    seen.element(section).split("<tr>").skip(1).map(cells).collect()
}

/// The cells of the row of a section that begins with this one.
fn row(seen: &Seen, section: &str, first: &str) -> Vec<String> {
    let mut all = rows(seen, section).into_iter();
    all.find(|row| row.first().is_some_and(|it| it.starts_with(first)))
        .unwrap_or_else(|| panic!("no {first} in {}", seen.element(section)))
}

/// What the node has sent and received, in bytes of packets.
fn carried(pair: &Pair) -> f64 {
    let peer = pair.peer(0);
    ["sent", "received"].map(|way| peer[way]["bytes"].as_f64().unwrap()).iter().sum()
}

/// What is sent and received by the first peer, if that is shown.
fn rates(html: &str) -> Option<[String; 2]> {
    let seen = Seen(html.to_owned());
    let link = row(&seen, "link", "site-b");
    let [sending, receiving] = [4, 5].map(|at| link[at].clone());
    (sending.ends_with("bit/s") && receiving.ends_with("bit/s")).then_some([sending, receiving])
}

/// What a page has to show of a tunnel that is told of a link of 1.5 Mbit/s and sends text, when it was opened after `before` bytes.
fn shows_the_tunnel(seen: &Seen, pair: &Pair, before: f64) {
    let month = row(seen, "saved", "this month");
    // Three digits are shown.
    let shown = bytes(&month[1]);
    assert!(shown >= before * 0.99 && shown <= carried(pair) * 1.01, "{shown} of {before}: {month:?}");
    assert!(
        bytes(&month[2]) < shown && bytes(&month[3]) > 0.0 && month[5].parse::<f64>().is_ok(),
        "{month:?}"
    );
    let saved = seen.element("saved");
    assert!(
        saved.contains(" saved in ") && saved.contains(", worth 0.") && saved.contains(" at 8.00/GB"),
        "{saved}"
    );
    let link = row(seen, "link", "site-b");
    assert_eq!(link[1..4], ["up", "1.50 Mbit/s", "configured"]);
    assert!(link[6].ends_with(" ms") && link[7].ends_with(" %"), "{link:?}");
    let queue = row(seen, "queue", "site-b");
    assert!(queue[1].ends_with(" ms") && queue[4].parse::<u64>().is_ok(), "{queue:?}");
    // Blocks of other lengths than most may have other reasons.
    let mut flows = rows(seen, "flows").into_iter();
    let flow = flows.find(|row| row.last().is_some_and(|it| it == "takes the least time")).unwrap();
    assert!(flow[0].starts_with("tcp 10.77.0.1:"), "{flow:?}");
    assert!(flow[0].contains("10.77.0.2:") && flow[1] == "site-b", "{flow:?}");
    assert!(flow[4].parse::<f64>().unwrap() > 1.0 && flow[5] != "none", "{flow:?}");
    assert!(row(seen, "services", "other services")[4].parse::<f64>().is_ok(), "services");
    assert!(seen.element("drops").contains("dropped") || seen.element("drops").contains("<td"), "drops");
    for chart in ["day", "month"] {
        let svg = seen.element(chart);
        assert!(svg.contains("<svg") && svg.contains("on the wire") && svg.contains("before"), "{svg}");
    }
}

/// Answers one request with a page that does what its policy forbids; where it is.
fn forbidden(pair: &Pair) -> String {
    let listener = pair.hosts.a.run("listen", || TcpListener::bind("127.0.0.1:0")).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4_096]).unwrap();
        let page = "<html><link rel=icon href=\"data:,\"><body style=\"color: red\">x</body></html>";
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Security-Policy: default-src 'none'; img-src data:";
        write!(stream, "{head}\r\nConnection: close\r\n\r\n{page}").unwrap();
    });
    url
}

/// Width and height of a PNG file.
fn png_size(path: &Path) -> [u32; 2] {
    let bytes = fs::read(path).unwrap();
    assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n") && bytes.len() > 10_000, "{} bytes", bytes.len());
    // The first chunk has them (PNG, section 11.2.1).
    [16, 20].map(|at| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()))
}

/// What the server at the first site's loopback says, asked by this host and with this line.
fn ask(pair: &Pair, line: &str, host: &str) -> String {
    let address: SocketAddr = PAGE.parse().unwrap();
    let mut stream = pair.hosts.a.run("connect", || TcpStream::connect(address)).unwrap();
    write!(stream, "{line} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

/// A picture of the page has the size that was asked for.
fn has_a_picture(pair: &Pair, url: &str) {
    let path = pair.dir.path().join("page.png");
    picture(pair, url, &path);
    assert_eq!(png_size(&path), SIZE);
}

/// A link with the token shows the page of the second site, and goes on with a cookie; without it there is none.
fn asks_for_the_token(pair: &Pair) {
    let mut browser = Browser::open(&pair.hosts.b, &pair.dir.path().join("stranger"));
    let url = format!("http://{PAGE}/");
    browser.go(&url);
    browser.shows("no page without the token", |html| {
        html.contains("asks for the token in web_token_file") && !html.contains("site-a")
    });
    browser.go(&format!("{url}?token={TOKEN}"));
    let live = |html: &str| html.contains(">live</span>") && html.contains("<td>site-a</td>");
    let seen = browser.shows("the page with the token", live);
    assert!(!seen.contains(TOKEN));
    browser.go(&url);
    browser.shows("the page with the cookie", live);
}

/// Other names, methods, paths and hosts get nothing.
fn refuses_others(pair: &Pair) {
    assert!(ask(pair, "GET /", "evil.example").starts_with("HTTP/1.1 403"));
    assert!(ask(pair, "POST /", "localhost").starts_with("HTTP/1.1 405"));
    assert!(ask(pair, "GET /../../etc/passwd", "localhost").starts_with("HTTP/1.1 404"));
    let outside = SocketAddr::new(pair.sites[0].outside.ip(), 9_478);
    assert!(
        pair.hosts.b.run("connect", || TcpStream::connect(outside)).is_err(),
        "other hosts reach nothing"
    );
}

#[test]
fn a_browser_shows_a_tunnel_live_and_without_a_script() {
    if !allowed() || !has_browser() {
        return;
    }
    let mut pair = Pair::idle(TwoHosts::direct(LinkSpec::unshaped()).unwrap());
    let node = format!("web = \"{PAGE}\"");
    let priced = sections("1.5Mbit").replace("[link]\n", "[link]\nprice = \"8/GB\"\n");
    pair.start(0, Extra { node: &node, sections: &priced, ..Extra::default() });
    let token = pair.dir.path().join("web.token");
    fs::write(&token, TOKEN).unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    let asking = format!("{node}\nweb_token_file = \"{}\"", token.display());
    pair.start(1, Extra { node: &asking, ..Extra::default() });
    pair.wait_for_session();
    let what = Arc::new(AtomicU8::new(TEXT));
    let sending = transfer(&pair, &what);
    eventually("the text saves bytes", || {
        let sent = pair.peer(0)["sent"].clone();
        sent["bytes"].as_u64() > Some(2_000_000) && sent["ratio"].as_f64() > Some(1.5)
    });

    let url = format!("http://{PAGE}/");
    let mut browser = Browser::open(&pair.hosts.a, &pair.dir.path().join("browser"));
    let complete = |html: &str| {
        let words = ["</html>", "takes the least time", "</svg>", " ms</td>", " saved in "];
        // A browser shows what has come of a page; the chart of the month comes last.
        let last = html.split("<div id=\"month\">").nth(1).is_some_and(|it| it.contains("on the wire"));
        last && words.iter().all(|word| html.contains(word))
    };
    let before = carried(&pair);
    browser.go(&url);
    // The first page has no rates yet: events bring them.
    let live = browser.shows("it is live", |html| {
        complete(html) && html.contains(" id=\"state\">live</span>") && rates(html).is_some()
    });
    shows_the_tunnel(&Seen(live), &pair, before);
    let first = browser.shows("uptime", complete);
    let later = browser.shows("it goes on", |html| {
        Seen(html.to_owned()).element("node") != Seen(first.clone()).element("node")
    });
    assert!(later.contains(" id=\"state\">live</span>"));

    browser.set_scripts(false);
    // A page may be a second old, and is no older than the one that was seen before.
    let before = bytes(&row(&Seen(later), "saved", "this month")[1]);
    browser.go(&url);
    let still = Seen(
        browser.shows("it is there without a script", |html| complete(html) && !html.contains(">live<")),
    );
    shows_the_tunnel(&still, &pair, before);
    assert_eq!(still.element("state"), "");
    let begin = still.element("node").to_owned();
    browser.shows("it is loaded again", |html| complete(html) && !html.contains(&begin));
    assert_eq!(browser.complaints, [""; 0]);
    browser.set_scripts(true);
    browser.go(&forbidden(&pair));
    browser.shows("a page that breaks its policy", |html| html.contains(">x<"));
    let complaints = browser.complaints.join("\n");
    assert!(complaints.contains(VIOLATION), "what is not found above is found here: {complaints}");
    drop(browser);

    asks_for_the_token(&pair);
    has_a_picture(&pair, &url);
    refuses_others(&pair);
    what.store(END, Ordering::Relaxed);
    sending.join().unwrap();
}
