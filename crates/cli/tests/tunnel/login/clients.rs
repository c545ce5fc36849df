//! Clients that do not do what this program's do, and what processes have of others.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};

use strait_clock::Time;
use strait_login::{
    ClientEvent, ClientOptions, Exit, LoginClient, Program, SessionNumber, SessionRequest, Terminal, Ticket,
    WindowSize,
};
use strait_node::client::open_stream_at;
use strait_stream::StreamPriority;

use super::place::{LoginPlace, gives_accounts};
use crate::confined::have_places_of_their_own;
use crate::login_ssh::runs;
use crate::pair::{PATIENCE, eventually, fast};

/// A client that begins a command, and reads nothing.
struct Deaf {
    client: LoginClient,
    stream: UnixStream,
}

impl Deaf {
    fn start(place: &LoginPlace, command: &str, terminal: Option<Terminal>) -> Deaf {
        let request = SessionRequest {
            program: Program::Command(command.as_bytes().to_vec()),
            terminal,
            environment: Vec::new(),
            agent: false,
        };
        static STARTED: AtomicU64 = AtomicU64::new(1);
        let number = SessionNumber(STARTED.fetch_add(1, Ordering::Relaxed));
        Deaf::ask(place, LoginClient::start(Ticket::new(number, [7; 32]), request, ClientOptions::default()))
    }

    fn ask(place: &LoginPlace, client: LoginClient) -> Deaf {
        let mut deaf = Deaf { client, stream: open(place) };
        deaf.send();
        deaf
    }

    /// Everything until the server closes the stream, or the program has ended.
    fn hears(&mut self) -> Vec<ClientEvent> {
        let (mut events, mut bytes) = (Vec::new(), [0; 512]);
        while !events.iter().any(|event| matches!(event, ClientEvent::Exited(_))) {
            let length = self.stream.read(&mut bytes).unwrap();
            if length == 0 {
                break;
            }
            self.client.received(&bytes[..length], Time::ZERO).unwrap();
            events.extend(core::iter::from_fn(|| self.client.next_event()));
        }
        events
    }

    fn send(&mut self) {
        let mut bytes = Vec::new();
        self.client.send(&mut bytes, 1 << 20, Time::ZERO);
        self.stream.write_all(&bytes).unwrap();
    }
}

fn open(place: &LoginPlace) -> UnixStream {
    let socket = place.sites[0].folder().join("run/strait0.sock");
    let mut stream = open_stream_at(&socket, "site-b", StreamPriority::Now).unwrap().stream;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // The service, its version, and no name.
    stream.write_all(&[2, 1, 0]).unwrap();
    stream
}

/// The processes called `name` of the place's second site.
pub(crate) fn processes(place: &LoginPlace, name: &str) -> Vec<u32> {
    let folder = place.dir.path().display().to_string();
    let numbers = fs::read_dir("/proc").unwrap().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let ours = |number: &u32| {
        let line = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let called = fs::read_to_string(format!("/proc/{number}/comm")).unwrap_or_default();
        called.trim() == name && String::from_utf8_lossy(&line).contains(&folder)
    };
    numbers.filter(ours).collect()
}

/// Sockets that a process has, beside its standard descriptors.
pub(crate) fn sockets(process: u32) -> usize {
    let open = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let standard = |name: &str| ["0", "1", "2"].contains(&name);
    open.filter(|entry| !standard(&entry.file_name().to_string_lossy()))
        .filter(|entry| {
            fs::read_link(entry.path()).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"))
        })
        .count()
}

#[test]
fn a_keeper_has_its_own_stream_and_none_that_was_refused() {
    if !gives_accounts() {
        return;
    }
    let place = LoginPlace::new(fast(), "accounts = [\"alice\"]");
    // Refused streams stay open for a while, so that their clients hear why.
    for _ in 0..3 {
        place.ends(255, &["bob@site-b", "true"], b"");
    }
    let mut command = place.command(&["login", "site-b", "echo here; cat"]);
    let mut running = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = [0; 5];
    running.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
    let (keepers, monitors) = (processes(&place, "strait-keeper"), processes(&place, "strait-session"));
    assert_eq!((keepers.len(), monitors.len()), (1, 1));
    assert_eq!(sockets(keepers[0]), 3, "its stream, its monitor, and where later streams come");
    assert_eq!(sockets(monitors[0]), 1, "its keeper");
    drop(running.stdin.take());
    assert!(running.wait().unwrap().success());
}

#[test]
fn processes_of_streams_have_their_memory_at_places_of_their_own() {
    if !gives_accounts() {
        return;
    }
    let place = LoginPlace::new(fast(), "accounts = [\"alice\"]");
    let mut running = Vec::new();
    for number in 1..=2 {
        let mut command = place.command(&["login", "site-b", "echo here; cat"]);
        let mut client = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        client.stdout.as_mut().unwrap().read_exact(&mut [0; 5]).unwrap();
        running.push(client);
        assert_eq!(processes(&place, "strait-keeper").len(), number);
    }
    // A keeper has its monitor's places, and no other stream's: it was there before a byte was read.
    let monitors = processes(&place, "strait-session");
    assert_eq!(monitors.len(), 2);
    assert!(have_places_of_their_own(&[monitors, vec![place.daemon(1).pid()]].concat()));
    running.iter_mut().for_each(|client| drop(client.stdin.take()));
    assert!(running.into_iter().all(|mut client| client.wait().unwrap().success()));
}

#[test]
fn a_session_has_its_place_as_long_as_it_has_memory() {
    if !gives_accounts() {
        return;
    }
    let place = LoginPlace::new(fast(), "accounts = [\"alice\"]\nsessions = 1");
    let mut deaf = Deaf::start(&place, "true", None);
    let log = place.daemon(1).log();
    let over = || fs::read_to_string(&log).unwrap().contains("the login as alice ended");
    eventually("the program has ended", over);
    let (_, errors) = place.ends(255, &["site-b", "true"], b"");
    assert!(errors.contains("as many sessions run as may"), "{errors}");
    deaf.stream.shutdown(Shutdown::Write).unwrap();
    while deaf.stream.read(&mut [0; 512]).unwrap() > 0 {}
    eventually("there is room again", || place.login(&["site-b", "true"], b"").status.success());
}

#[test]
fn a_program_that_outlives_its_hanging_up_keeps_no_client() {
    if !gives_accounts() {
        return;
    }
    let place = LoginPlace::new(fast(), "accounts = [\"alice\"]");
    let mut deaf = Deaf::start(&place, "trap '' HUP; echo $$ > number; exec sleep 1000", None);
    let number = place.file("home/alice/number");
    eventually("the program runs", || fs::read_to_string(&number).is_ok_and(|text| text.ends_with('\n')));
    deaf.client.hang_up();
    deaf.send();
    // The stream stays open at this end; the other has nothing to wait for.
    let mut bytes = [0; 512];
    while deaf.stream.read(&mut bytes).unwrap() > 0 {}
    let process = fs::read_to_string(&number).unwrap();
    let ended = std::process::Command::new("kill").args(["-KILL", process.trim()]).status().unwrap();
    assert!(ended.success());
}

#[test]
fn a_command_ends_with_a_client_that_is_killed_in_its_output() {
    if !gives_accounts() {
        return;
    }
    let place = LoginPlace::new(fast(), "accounts = [\"alice\"]");
    let mut command = place.command(&["login", "site-b", "echo $$ > number; exec cat /dev/zero"]);
    let mut client = command.stdout(Stdio::null()).spawn().unwrap();
    let number = place.file("home/alice/number");
    eventually("the program runs", || fs::read_to_string(&number).is_ok_and(|text| text.ends_with('\n')));
    let process = fs::read_to_string(&number).unwrap();
    // Output arrives all the time.
    std::thread::sleep(std::time::Duration::from_millis(200));
    client.kill().unwrap();
    client.wait().unwrap();
    let runs = || fs::exists(format!("/proc/{}", process.trim())).unwrap();
    eventually("the command has ended", || !runs());
    eventually("its session too", || processes(&place, "strait-keeper").is_empty());
}

#[test]
fn a_session_that_no_client_has_heard_of_ends_by_itself() {
    if !gives_accounts() {
        return;
    }
    let place = LoginPlace::new(fast(), "accounts = [\"alice\"]");
    let file = place.file("home/alice/pid");
    let terminal = Terminal { term: b"vt100".to_vec(), size: WindowSize::USUAL, modes: Vec::new() };
    let lost = Deaf::start(&place, "echo $$ > ~/pid; exec sleep 1000", Some(terminal));
    eventually("the program runs", || fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n')));
    let pid = fs::read_to_string(&file).unwrap();
    // The answer may be on its way, but it is not read.
    drop(lost);
    let listed = || place.ends(0, &["--list", "--json", "site-b"], b"").0.matches("\"session\"").count();
    eventually("the end of the session", || listed() == 0);
    eventually("the end of the program", || !runs(&pid));
}

#[test]
fn a_command_ends_with_a_session_that_is_forgotten() {
    if !gives_accounts() {
        return;
    }
    let mut place = LoginPlace::new(fast(), "accounts = [\"alice\"]");
    let file = place.file("home/alice/pid");
    let _lost = Deaf::start(&place, "echo $$ > ~/pid; exec sleep 1000", None);
    eventually("the program runs", || fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n')));
    let pid = fs::read_to_string(&file).unwrap();
    // The stream is lost with its daemon; the next one's session says so to the other end.
    place.kill(0);
    place.start(0, "");
    // It has no terminal whose end it would notice.
    eventually("the end of the program", || !runs(&pid));
}

/// It wrote something, and nothing of it was read.
#[test]
fn a_command_whose_answer_was_lost_runs_once() {
    if !gives_accounts() {
        return;
    }
    let mut place = LoginPlace::new(fast(), "accounts = [\"alice\"]");
    let ran = place.file("home/alice/ran");
    let request = SessionRequest {
        program: Program::Command(b"echo once >> ran; echo done".to_vec()),
        terminal: None,
        environment: Vec::new(),
        agent: false,
    };
    let ticket = Ticket::new(SessionNumber(u64::MAX), [7; 32]);
    let begin = || LoginClient::start(ticket.clone(), request.clone(), ClientOptions::default());
    let lost = Deaf::ask(&place, begin());
    eventually("the command runs", || fs::read_to_string(&ran).is_ok_and(|text| text == "once\n"));
    place.kill(0);
    place.start(0, "");
    place.wait_for_session();
    // The same request again is refused, and the session that it has begun is there.
    let mut again = Deaf::ask(&place, begin());
    assert!(again.hears().is_empty());
    again.stream = open(&place);
    again.client.reconnect(Time::ZERO);
    again.send();
    let events = again.hears();
    assert!(matches!(&events[0], ClientEvent::Started { account } if account == "alice"), "{events:?}");
    let done = |event: &ClientEvent| matches!(event, ClientEvent::Output { bytes, .. } if bytes == b"done\n");
    assert!(events.iter().any(done), "{events:?}");
    assert!(events.contains(&ClientEvent::Exited(Exit::Status(0))), "{events:?}");
    drop(lost);
    assert_eq!(fs::read_to_string(&ran).unwrap(), "once\n");
}
