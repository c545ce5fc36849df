//! Peers by certificates: three nodes whose files name no peer, a directory, and a real etcd behind it.

mod daily;
mod demand;

use std::fs::{self, File};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use strait_keying::PrivateKey;
use strait_keying::directory::{Answer, Certificate, CertificateTerms, HEAD_LEN, Question, RevocationList};
use strait_keying::sessionless::KeyCard;
use strait_testbed::{DaemonProcess, Namespace, Site, Workdir};
use strait_testdata::skip::{Need, skip};

use crate::pair::{PATIENCE, allowed, eventually, program, star};

const DIRECTORY_PORT: u16 = 7707;
const ETCD: &str = "http://127.0.0.1:2379";
/// A directory without etcd.
const ALONE: &str = "alone";

/// Whether this can be run here, with a real etcd.
fn can_run() -> bool {
    let etcd = Command::new("etcd").arg("--version").output().is_ok_and(|output| output.status.success());
    can_run_alone() && (etcd || skip(Need::Programs, "no etcd"))
}

/// The same without one.
fn can_run_alone() -> bool {
    let directory = program().with_file_name("strait-directory");
    assert!(
        directory.exists(),
        "no {}: run `cargo build --package strait-directory` first",
        directory.display()
    );
    allowed()
}

/// A process that is killed when its owner goes.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A centre with etcd and a directory, and two sites that reach nothing but that.
struct Fleet {
    daemons: Vec<Option<DaemonProcess>>,
    directory: Option<Running>,
    etcd: Option<Running>,
    sites: Vec<Site>,
    authority: PathBuf,
    /// Where the sites reach the directory.
    servers: Vec<String>,
    dir: Workdir,
}

impl Fleet {
    fn new() -> Fleet {
        let mut fleet = Fleet::without_directory();
        fleet.start_etcd();
        fleet.start_directory("");
        fleet
    }

    /// The same where the directory has its own store only.
    fn alone() -> Fleet {
        let mut fleet = Fleet::without_directory();
        fleet.start_directory(ALONE);
        fleet
    }

    fn without_directory() -> Fleet {
        let dir = Workdir::create().unwrap();
        let (centre, [a, b], links) = star(["centre", "site-a", "site-b"], &dir);
        let sites = vec![centre, a, b];
        let servers = ["127.0.0.1".parse::<IpAddr>().unwrap(), links[0].b.v4.into(), links[1].b.v4.into()];
        let servers = servers.map(|address| SocketAddr::new(address, DIRECTORY_PORT).to_string()).to_vec();
        let authority = dir.path().join("ca");
        let fleet = Fleet {
            daemons: vec![None, None, None],
            directory: None,
            etcd: None,
            sites,
            authority,
            servers,
            dir,
        };
        fleet.strait(&["authority", "init", fleet.authority.to_str().unwrap()]);
        fleet
    }

    fn host(&self) -> &Namespace {
        &self.sites[0].host
    }

    fn log(&self, name: &str) -> File {
        File::options().create(true).append(true).open(self.dir.path().join(name)).unwrap()
    }

    fn start_etcd(&mut self) {
        let log = self.log("etcd.log");
        let data = self.dir.path().join("etcd");
        let child = self.host().run("etcd", || {
            let mut command = Command::new("etcd");
            command.arg("--data-dir").arg(&data).args([
                "--listen-client-urls",
                ETCD,
                "--advertise-client-urls",
                ETCD,
            ]);
            command.env_clear().stdout(Stdio::null()).stderr(log).spawn()
        });
        self.etcd = Some(Running(child.unwrap()));
    }

    /// Starts the directory, over etcd and with `more` in its file, or [`ALONE`].
    fn start_directory(&mut self, more: &str) {
        let config = self.dir.path().join("directory.toml");
        let authority = fs::read_to_string(self.authority.join("authority.pub")).unwrap();
        let (etcd, more) = if more == ALONE {
            (String::new(), "")
        } else {
            (format!("[etcd]\nurls = [\"{ETCD}\"]\n"), more)
        };
        let text = format!(
            "[directory]\nlisten = \"0.0.0.0:{DIRECTORY_PORT}\"\nauthority = \"{}\"\nstore = \"directory.redb\"\n\
             {etcd}{more}",
            authority.trim()
        );
        fs::write(&config, text).unwrap();
        let log = self.log("directory.log");
        let child = self.host().run("directory", || {
            let mut command = Command::new(program());
            command.arg("directory").arg(&config).stderr(log).spawn()
        });
        self.directory = Some(Running(child.unwrap()));
    }

    fn strait(&self, arguments: &[&str]) -> Output {
        let output = self.try_strait(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        output
    }

    fn try_strait(&self, arguments: &[&str]) -> Output {
        self.host().run("strait", || Command::new(program()).args(arguments).output()).unwrap()
    }

    /// Publishes, when the directory and etcd are there.
    fn publish(&self) {
        let ca = self.authority.to_str().unwrap();
        eventually("it is published", || {
            self.try_strait(&["authority", "publish", ca, &self.servers[0]]).status.success()
        });
    }

    /// Signs a certificate for a site, without publishing it.
    fn sign(&self, which: usize) {
        let site = &self.sites[which];
        let card = self.dir.path().join(format!("card-{which}"));
        fs::write(&card, card_of(site)).unwrap();
        let (inside, outside) = (format!("{}/32", site.inside()), site.outside.to_string());
        let (ca, card) = (self.authority.to_str().unwrap(), card.to_str().unwrap());
        self.strait(&[
            "authority",
            "sign",
            ca,
            card,
            "--name",
            site.name(),
            "--allowed-ips",
            &inside,
            "--endpoint",
            &outside,
        ]);
    }

    fn revoke(&self, which: usize) {
        self.strait(&["authority", "revoke", self.authority.to_str().unwrap(), self.sites[which].name()]);
        self.publish();
    }

    /// Starts the daemon of a site, whose file names no peer.
    fn start(&mut self, which: usize) {
        let (server, more) = (self.servers[which].clone(), "");
        self.start_with(which, &[server], more);
    }

    fn start_with(&mut self, which: usize, servers: &[String], more: &str) {
        let site = &self.sites[which];
        let authority = fs::read_to_string(self.authority.join("authority.pub")).unwrap();
        let text = site.configuration(
            &[],
            strait_testbed::Extra { node: "peers = \"directory\"", ..Default::default() },
        );
        let text = format!(
            "{text}\n[directory]\nauthority = \"{}\"\nservers = {servers:?}\nallowed_ips = [\"10.77.0.0/16\"]\n{more}",
            authority.trim()
        );
        let config = site.folder().join("strait.toml");
        fs::write(&config, text).unwrap();
        self.daemons[which] = Some(site.start(&config, "run").unwrap());
    }

    fn daemon(&self, which: usize) -> &DaemonProcess {
        self.daemons[which].as_ref().unwrap()
    }

    /// The names of a node's peers.
    fn peers(&self, which: usize) -> Vec<String> {
        let report = self.daemon(which).show().unwrap();
        let peers = report["peers"].as_array().unwrap().iter();
        peers.map(|peer| peer["name"].as_str().unwrap().to_owned()).collect()
    }

    fn pings(&self, from: usize, to: usize) -> bool {
        let (from, to) = (&self.sites[from].host, self.sites[to].inside());
        from.run("ping", || {
            Command::new("ping").args(["-c", "1", "-W", "1", &to.to_string()]).stdout(Stdio::null()).status()
        })
        .unwrap()
        .success()
    }

    fn counted(&self, which: usize, reason: &str) -> u64 {
        let report = self.daemon(which).show().unwrap();
        let counts = report["directory"]["not_taken"].as_array().unwrap().clone();
        counts
            .iter()
            .find(|count| count["reason"] == reason)
            .map_or(0, |count| count["count"].as_u64().unwrap())
    }

    fn logs(&self) -> String {
        self.daemons.iter().flatten().map(DaemonProcess::last_words).collect::<Vec<_>>().join("\n----\n")
    }
}

fn card_of(site: &Site) -> String {
    let own: PrivateKey = fs::read_to_string(site.key_file()).unwrap().parse().unwrap();
    let card = KeyCard::plain(site.name().parse().unwrap(), own.public());
    card.sign(&own)
}

#[test]
fn peers_come_and_go_with_their_certificates_and_known_ones_go_on_without_etcd() {
    if !can_run() {
        return;
    }
    let mut fleet = Fleet::new();
    fleet.sign(0);
    fleet.sign(2);
    fleet.publish();
    fleet.start(0);
    fleet.start(1);
    fleet.start(2);
    let reach = |fleet: &Fleet, from, to| {
        let begun = std::time::Instant::now();
        while !fleet.pings(from, to) {
            assert!(begun.elapsed() < PATIENCE, "{from} does not reach {to}\n{}", fleet.logs());
        }
    };
    reach(&fleet, 2, 0);
    reach(&fleet, 0, 2);
    assert!(!fleet.peers(0).contains(&"site-a".to_owned()), "it has no certificate yet");
    assert!(!fleet.pings(1, 0));

    // Another node gets a certificate: nothing is told to the others but by the directory.
    fleet.sign(1);
    fleet.publish();
    reach(&fleet, 1, 0);
    reach(&fleet, 0, 1);

    // A node that is revoked is a peer of none.
    fleet.revoke(2);
    eventually("the revoked node is no peer", || !fleet.peers(0).contains(&"site-b".to_owned()));
    assert!(!fleet.pings(2, 0) && !fleet.pings(0, 2));
    reach(&fleet, 1, 0);

    // etcd stops, then the directory, then a node starts anew: those that are known go on.
    fleet.etcd = None;
    reach(&fleet, 1, 0);
    fleet.directory = None;
    reach(&fleet, 0, 1);
    fleet.daemons[1] = None;
    fleet.start(1);
    reach(&fleet, 1, 0);
    assert!(fleet.daemon(1).show().unwrap()["directory"]["server"].is_null());

    // All of it comes back, and what is signed meanwhile takes effect.
    fleet.start_etcd();
    fleet.start_directory("");
    fleet.sign(2);
    fleet.publish();
    reach(&fleet, 2, 0);
}

#[test]
fn peers_of_a_directory_need_no_session_if_it_says_so() {
    if !can_run() {
        return;
    }
    let mut fleet = Fleet::new();
    fleet.sign(0);
    fleet.sign(1);
    fleet.publish();
    for which in [0, 1] {
        let server = fleet.servers[which].clone();
        fleet.start_with(which, &[server], "keying = \"sessionless\"\n");
    }
    eventually("they reach each other", || fleet.pings(1, 0) && fleet.pings(0, 1));
    let report = fleet.daemon(0).show().unwrap();
    assert_eq!(report["peers"][0]["keys"], "sessionless", "{report:#}");
    fleet.revoke(1);
    eventually("the revoked node is no peer", || fleet.peers(0).is_empty());
    assert!(!fleet.pings(1, 0) && !fleet.pings(0, 1));
}

/// A directory that says what it is told to, to all that ask.
fn liar(host: &Namespace, answers: Vec<Answer>) -> (String, std::thread::JoinHandle<()>) {
    let listener = host.run("listen", || std::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let server = listener.local_addr().unwrap().to_string();
    let says: Vec<u8> = answers.iter().flat_map(Answer::to_bytes).collect();
    let thread = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let mut clients = Vec::new();
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut question = vec![0; Question::Watch { certificates: true }.to_bytes().len()];
            if stream.read_exact(&mut question).is_err() || question[HEAD_LEN] == 9 {
                return;
            }
            let _ = stream.write_all(&says);
            clients.push(stream);
        }
    });
    (server, thread)
}

fn stranger() -> (PrivateKey, Certificate) {
    let (foreign, own) = (PrivateKey::generate(&[8; 32]), PrivateKey::generate(&[7; 32]));
    let card = KeyCard::plain("stranger".parse().unwrap(), own.public());
    let terms = CertificateTerms {
        serial: 5,
        name: "stranger".parse().unwrap(),
        networks: vec!["10.77.0.50/32".parse().unwrap()],
        valid: (0, u64::MAX),
        endpoint: None,
    };
    let certificate = Certificate::issue(&foreign, &terms, &card.sign(&own)).unwrap();
    (foreign, certificate)
}

#[test]
fn a_directory_that_lies_or_is_silent_is_noticed_and_the_next_one_is_followed() {
    if !can_run() {
        return;
    }
    let mut fleet = Fleet::new();
    let first = fs::read(fleet.authority.join("revocations")).unwrap();
    fleet.sign(0);
    fleet.sign(1);
    fleet.strait(&["authority", "renew", fleet.authority.to_str().unwrap()]);
    fleet.publish();
    fleet.start(1);
    let (foreign, certificate) = stranger();
    let list = RevocationList::issue(&foreign, 99, 0, [1, 2]).unwrap();
    let lies = [
        vec![Answer::Certificate(certificate.as_bytes().into())],
        vec![Answer::List(list.as_bytes().into())],
        vec![Answer::List(first.into())],
    ];
    let liars = lies.map(|answers| liar(fleet.host(), answers));
    let mut servers: Vec<String> = vec!["127.0.0.1:9".to_owned()];
    // What is true first, so that an older list is seen to be older.
    servers.push(fleet.servers[0].clone());
    servers.extend(liars.iter().map(|(server, _)| server.clone()));
    fleet.start_with(0, &servers, "");
    eventually(&format!("the true one is followed\n{}", fleet.logs()), || fleet.pings(0, 1));
    // While it is away, the others are asked, and say what they say.
    fleet.directory = None;
    eventually("the foreign signatures are counted", || fleet.counted(0, "foreign") >= 2);
    eventually("the older list is counted", || fleet.counted(0, "older_list") >= 1);
    assert!(fleet.pings(0, 1), "what is known goes on");
    assert_eq!(fleet.peers(0), ["site-a"]);
    fleet.start_directory("");
    eventually("the true one is followed again", || {
        fleet.daemon(0).show().unwrap()["directory"]["server"] == servers[1]
    });
}

#[test]
fn an_old_list_brings_no_new_peers_and_is_shown() {
    if !can_run() {
        return;
    }
    let mut fleet = Fleet::new();
    // The shortest `max_stale` is a minute, most of which is over.
    let key = fs::read_to_string(fleet.authority.join("authority.key")).unwrap().parse().unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let list = RevocationList::issue(&key, 2, now - 40, []).unwrap();
    fs::write(fleet.authority.join("revocations"), list.as_bytes()).unwrap();
    fleet.sign(0);
    fleet.sign(1);
    fleet.publish();
    let server = fleet.servers[0].clone();
    fleet.start_with(0, &[server], "max_stale = \"1m\"\n");
    fleet.start(1);
    eventually("both reach each other", || fleet.pings(0, 1));
    let stale = || fleet.daemon(0).show().unwrap()["directory"]["is_fresh"] == false;
    let begun = std::time::Instant::now();
    while !stale() {
        assert!(begun.elapsed() < PATIENCE + Duration::from_secs(90), "the list stays fresh");
        std::thread::sleep(Duration::from_millis(500));
    }
    fleet.sign(2);
    fleet.publish();
    eventually("it is counted", || fleet.counted(0, "stale_list") >= 1);
    assert!(fleet.pings(0, 1), "what is known goes on");
    assert_eq!(fleet.peers(0), ["site-a"]);
    fleet.strait(&["authority", "renew", fleet.authority.to_str().unwrap()]);
    fleet.publish();
    eventually("with a new list it comes", || fleet.peers(0).len() == 2);
}
