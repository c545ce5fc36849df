//! Objects at a broker: a sender and a receiver that are never there at once, and what goes wrong between them.

mod apart;
mod bucket;
mod clients;
mod faults;
mod lies;
mod limits;
mod silence;
mod stock;

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::thread;
use std::time::Duration;

use strait_bucket::{Bucket, Credentials};
use strait_testbed::{DaemonProcess, Extra, Post, TwoHosts, Workdir};

use crate::pair::{PATIENCE, allowed, fast, program};

/// The bucket of the S3-compatible server.
const BUCKET: &str = "tests";
/// The receiver's folder that its peers may write.
const FOLDER: &str =
    "[[folder]]\nname = \"inbox\"\npath = \"PATH\"\nwrite = [\"site-a\"]\nowner = \"root\"\n";

/// Whether brokers can be run here.
fn allowed_with_broker() -> bool {
    let broker = program().with_file_name("strait-broker");
    assert!(broker.exists(), "no {}: run `cargo build --package strait-broker` first", broker.display());
    allowed()
}

/// Three hosts, each with a daemon or none, and a folder of files at each end.
struct Scene {
    // In the order in which they must go.
    sender: Option<DaemonProcess>,
    receiver: Option<DaemonProcess>,
    broker: Option<DaemonProcess>,
    bucket: Option<Bucket>,
    post: Post,
    dir: Workdir,
}

impl Scene {
    /// With nothing that runs.
    fn idle() -> Scene {
        let dir = Workdir::create().unwrap();
        let post = Post::beside(TwoHosts::direct(fast()).unwrap(), program(), dir.path()).unwrap();
        for name in ["source", "inbox", "here"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        Scene { sender: None, receiver: None, broker: None, bucket: None, post, dir }
    }

    /// With a broker whose store is in a folder.
    fn new() -> Scene {
        let mut scene = Scene::idle();
        scene.start_broker("", "");
        scene
    }

    /// With a broker whose store is in a bucket.
    fn with_bucket() -> Scene {
        let mut scene = Scene::idle();
        let listener = scene.post.hosts.b.run("listen", || TcpListener::bind("127.0.0.1:0")).unwrap();
        let root = scene.dir.path().join("buckets");
        scene.bucket = Some(Bucket::serve(listener, &root, BUCKET, Credentials::of_tests()).unwrap());
        scene.start_broker("", "");
        scene
    }

    /// Starts the broker, with `lines` in `[broker]` and `more` behind it.
    fn start_broker(&mut self, lines: &str, more: &str) {
        let section = format!("{}{lines}", self.store());
        let config = self.post.configure_broker(&section, more).unwrap();
        self.broker = Some(self.post.start_broker(&config).unwrap());
    }

    /// The lines of `[broker]` that say where its store is.
    fn store(&self) -> String {
        match &self.bucket {
            Some(bucket) => bucket_lines(bucket, self.post.broker.folder()),
            None => self.post.local_store(),
        }
    }

    /// The folder that has the objects.
    fn objects(&self) -> PathBuf {
        match &self.bucket {
            Some(_) => self.dir.path().join("buckets").join(BUCKET).join("post"),
            None => self.post.broker.folder().join("store"),
        }
    }

    /// The letters of transfers in the store; receipts are others.
    fn letters(&self) -> Vec<PathBuf> {
        let mut letters = files(&self.objects().join("inbox"));
        letters.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("t-")));
        letters
    }

    /// Kills the broker as hard as can be, and starts it again.
    fn restart_broker(&mut self) {
        self.kill_broker();
        self.start_broker("", "");
    }

    fn kill_broker(&mut self) {
        let mut broker = self.broker.take().unwrap();
        broker.signal(9).unwrap();
        while broker.ended().unwrap().is_none() {
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn start_sender(&mut self) {
        self.start_sender_with("");
    }

    /// Starts the sender, with `receiver` in the section of the receiver.
    fn start_sender_with(&mut self, receiver: &str) {
        let config = self.post.configure_sender(receiver, Extra::default()).unwrap();
        let sender = self.post.sender.start(&config, "run").unwrap();
        sender.wait_for_session("site-b", PATIENCE).unwrap();
        self.sender = Some(sender);
    }

    /// Starts the receiver, with a folder that the sender may write.
    fn start_receiver(&mut self) {
        let sections = FOLDER.replace("PATH", self.inbox().to_str().unwrap());
        let config =
            self.post.configure_receiver("", Extra { sections: &sections, ..Extra::default() }).unwrap();
        let receiver = self.post.receiver.start(&config, "run").unwrap();
        receiver.wait_for_session("site-b", PATIENCE).unwrap();
        self.receiver = Some(receiver);
    }

    fn stop_sender(&mut self) {
        self.sender.take().unwrap().stop().unwrap();
    }

    fn stop_receiver(&mut self) {
        self.receiver.take().unwrap().stop().unwrap();
    }

    /// Where the sender's files are.
    fn source(&self) -> PathBuf {
        self.dir.path().join("source")
    }

    /// The receiver's folder that the sender may write.
    fn inbox(&self) -> PathBuf {
        self.dir.path().join("inbox")
    }

    /// Where the receiver's user is.
    fn here(&self) -> PathBuf {
        self.dir.path().join("here")
    }

    /// A command at the sender, in the folder of its files.
    fn at_sender(&self, arguments: &[&str]) -> Output {
        let mut command = self.sender.as_ref().unwrap().command(arguments);
        command.current_dir(self.source()).output().unwrap()
    }

    /// A command at the receiver.
    fn at_receiver(&self, arguments: &[&str]) -> Output {
        let mut command = self.receiver.as_ref().unwrap().command(arguments);
        command.current_dir(self.here()).output().unwrap()
    }

    /// Puts files for the receiver.
    fn put(&self, names: &[&str]) -> Output {
        self.at_sender(&[&["put"], names, &["site-b", "--to", "site-c"]].concat())
    }

    /// Fetches all there is into [`Scene::here`].
    fn fetch(&self) -> Output {
        self.at_receiver(&["fetch", "site-b", "--into", "."])
    }

    /// Fetches all there is into the receiver's folder, or where the user is.
    fn fetch_into_folders(&self) -> Output {
        self.at_receiver(&["fetch", "site-b"])
    }

    /// What a command said that has to end well.
    fn good(&self, output: Output) -> String {
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {error}\n{}", output.status, self.logs());
        String::from_utf8(output.stdout).unwrap()
    }

    /// What a command complained of that has to fail.
    fn bad(&self, output: Output) -> String {
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        let code = output.status.code();
        assert!(code.is_some_and(|code| code > 0 && code < 64), "{code:?}: {error}\n{}", self.logs());
        assert!(error.contains("strait: ") || error.contains("error: "), "{error}");
        error
    }

    /// The objects in the receiver's inbox, as `strait ls --json` has them.
    fn listed(&self) -> Vec<serde_json::Value> {
        let said = self.good(self.at_receiver(&["ls", "site-b:", "--json"]));
        let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {said}"));
        said.lines().map(line).collect()
    }

    /// The ends of all logs.
    fn logs(&self) -> String {
        let all = [&self.sender, &self.broker, &self.receiver];
        let ends = all.into_iter().flatten().map(DaemonProcess::last_words);
        ends.collect::<Vec<_>>().join("\n----\n")
    }
}

/// The lines of `[broker]` for a store in a bucket, with the keys to it in a file in `folder`, where the spool is as well.
fn bucket_lines(bucket: &Bucket, folder: &Path) -> String {
    let Credentials { access_key, secret_key } = Credentials::of_tests();
    let file = folder.join("s3.credentials");
    fs::write(&file, format!("access_key_id = {access_key}\nsecret_access_key = {secret_key}\n")).unwrap();
    fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    format!(
        "store = \"s3://{BUCKET}/post\"\nendpoint = \"{}\"\nregion = \"us-east-1\"\nallow_http = true\n\
         credentials_file = \"{}\"\nspool = \"{}/spool\"\n",
        bucket.endpoint(),
        file.display(),
        folder.display()
    )
}

/// All files below a folder, in the order of their names.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

#[test]
fn what_peers_put_is_read_without_rights() {
    if !allowed_with_broker() {
        return;
    }
    let scene = Scene::new();
    let pid = crate::confined::child(scene.broker.as_ref().unwrap().pid(), "strait-broker");
    let mut said = String::new();
    crate::pair::eventually("its calls are filtered", || {
        said = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        said.contains("Seccomp:\t2")
    });
    assert!(said.contains("CapEff:\t0000000000000000") && said.contains("NoNewPrivs:\t1"), "{said}");
}
