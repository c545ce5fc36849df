use super::*;
use crate::daemon::StarterError;
use crate::daemon::starter::Starter;
use crate::testing::in_namespace;
use crate::tun::Tun;
use std::net::IpAddr;

/// A starter for a configuration with one peer, served in a thread, and the configuration's file.
pub(in crate::daemon) fn served(name: &str, body: impl FnOnce(&Starter, &Path)) {
    let folder = std::env::temp_dir().join(format!("strait-starter-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("x.toml");
    let key = PublicKey::from_bytes([7; 32]);
    let text = format!(
        "[node]\nprivate_key_file = \"k\"\naddress = \"10.77.0.1/24\"\ninterface = \"st-{name}\"\n[[peer]]\n\
         public_key = \"{key}\"\nallowed_ips = \"10.78.0.0/16\"\n"
    );
    let config = Config::parse(&text, &path).unwrap();
    let (channel, theirs) = ProcessChannel::pair().unwrap();
    let (warnings, warned) = ProcessChannel::pair().unwrap();
    let outside = std::sync::Arc::new(Wake::new().unwrap());
    let starter = Starter { channel, outside, warnings, stays_closed: None };
    let outside = std::sync::Arc::clone(&starter.outside);
    std::thread::scope(|scope| {
        let process = StarterProcess {
            plan: Plan::of(&config),
            path: path.clone(),
            paths: Some(PathFile::at(folder.join("state").join("x.paths"))),
            config,
            text: KeptText::of(&text),
            read: None,
            known: None,
            network: None,
            marked: Vec::new(),
            watch: TunnelWatch::new(),
            marks: None,
            warned,
            warnings: Vec::new(),
        };
        let serving = scope.spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(process.serve(theirs, &outside))
        });
        body(&starter, &path);
        drop(starter);
        serving.join().unwrap().unwrap();
    });
    std::fs::remove_dir_all(&folder).unwrap();
}

fn refusal<T>(result: Result<T, StarterError>) -> String {
    match result {
        Err(StarterError::Refused(words)) => words,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was done"),
    }
}

#[test]
fn a_packet_process_that_was_taken_over_gets_no_file_and_no_second_network() {
    in_namespace(|| {
        let tun = Tun::open("st-taken").unwrap();
        served("taken", |starter, path| {
            assert!(refusal(starter.route(false, Vec::new())).contains("no network yet"));
            starter.set_up(None, &[]).unwrap();
            assert!(refusal(starter.set_up(None, &[])).contains("already"));
            for file in [Path::new("/etc/shadow"), path, Path::new("")] {
                assert!(
                    refusal(starter.counter(file)).contains("no such counter file"),
                    "{}",
                    file.display()
                );
            }
            for nonsense in [&b"x"[..], b"{}", b"{\"verb\":\"exec\"}", b"{\"verb\":\"counter\"}"] {
                starter.channel.send(nonsense, &[]).unwrap();
                let (answer, _) = message::read::<StarterAnswer>(starter.channel.receive().unwrap()).unwrap();
                assert!(matches!(answer, StarterAnswer::Refused { .. }), "{answer:?}");
            }
            let anywhere: IpAddr = "192.0.2.1".parse().unwrap();
            starter.route(true, vec![anywhere]).unwrap();
            drop(tun);
        });
    });
}

#[test]
fn only_what_was_found_on_paths_is_written_and_only_to_its_file() {
    served("paths", |starter, path| {
        let file = path.with_file_name("state").join("x.paths");
        for text in ["", "#!/bin/sh", "{\"version\": 1, \"paths\": [{}]}", "{\"version\": 2, \"paths\": []}"]
        {
            let request = StarterRequest::Remember { text: text.to_owned() };
            let refused = refusal(starter.ask(&request, &[]));
            assert!(refused.contains("not what was found on paths"), "{text}: {refused}");
            assert!(!file.exists());
        }
        let text = "{\"version\": 1, \"paths\": [], \"more\": \"$(reboot)\"}".to_owned();
        starter.ask(&StarterRequest::Remember { text }, &[]).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), PathMemory::default().render(), "written anew");
    });
}

#[test]
fn a_configuration_that_cannot_be_read_again_is_refused_with_the_reason() {
    in_namespace(|| {
        served("again", |starter, path| {
            assert!(refusal(starter.read_again()).contains("cannot read the configuration"));
            std::fs::write(path, "[node]\naddres = \"10.77.0.1/24\"\n").unwrap();
            assert!(refusal(starter.read_again()).contains("did you mean `address`"));
        });
    });
}

#[test]
fn secrets_of_daily_keys_are_those_of_the_node_whose_marks_are_open() {
    served("daily", |starter, path| {
        let [own, other] = [[7; 32], [8; 32]].map(PublicKey::from_bytes);
        assert!(refusal(starter.daily_secrets(own)).contains("not in use"));
        let _marks = starter.marks(own).unwrap();
        assert!(refusal(starter.daily_secrets(other)).contains("not in use"));
        let file = starter.daily_secrets(own).unwrap();
        let kept = daily_file::path(&path.with_file_name("state"), &own);
        assert_eq!(file.metadata().unwrap().len(), std::fs::metadata(kept).unwrap().len());
    });
}
