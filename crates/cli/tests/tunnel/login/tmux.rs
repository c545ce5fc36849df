//! A session in a real terminal, tmux's: editors, pagers and monitors, and a link that fails under them.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use strait_scheduler::Rate;
use strait_testbed::{FrameFate, InterfaceState, LinkSpec, Relay, TwoHosts};
use strait_testdata::skip::{Need, skip};

use super::place::{LoginPlace, PAM, gives_accounts};
use crate::pair::eventually;
use crate::tmux::Tmux;

const ALICE: &str = "accounts = [\"alice\"]";

impl<'a> Tmux<'a> {
    /// A terminal at the first site, in which `strait login` runs.
    fn start(place: &'a LoginPlace, name: &str, arguments: &str) -> Tmux<'a> {
        let program = crate::pair::program().display();
        let line = format!("env TERM=xterm-256color {program} login {arguments}; echo ended $?; sleep 1000");
        Tmux::with(place, name, &line)
    }

    /// A terminal at the first site, in which this line runs.
    fn with(place: &'a LoginPlace, name: &str, line: &str) -> Tmux<'a> {
        let own = place.command(&[]);
        Tmux::open(&place.sites[0].host, &own, &place.dir.path().join(name), line, Box::new(|| place.logs()))
    }

    /// The shell is there, with a prompt of its own.
    fn shell(&self) {
        self.shows("a prompt", |screen| screen.contains('$'));
        self.line("PS1='at-b> '; clear");
        self.shows("an empty screen", |screen| screen.trim() == "at-b>");
    }

    /// An editor with an empty file.
    fn editor(&self) {
        self.line("vim -u NONE -i NONE notes");
        self.sees("\"notes\" [New");
    }

    /// Types these keys one after the other.
    fn keys_of(&self, keys: &[&str]) {
        keys.iter().for_each(|key| self.types(key));
    }

    /// The screen, and where the cursor is.
    fn picture(&self) -> (String, String) {
        (self.screen(), self.run(&["display-message", "-p", "#{cursor_x},#{cursor_y}"]))
    }

    fn prompt(&self) {
        self.shows("the prompt", |screen| screen.trim_end().ends_with("at-b>"));
    }
}

fn has_programs() -> bool {
    let has = |name: &str| {
        ["/usr/bin", "/bin", "/usr/local/bin"].iter().any(|at| fs::metadata(format!("{at}/{name}")).is_ok())
    };
    ["tmux", "vim", "top", "htop", "less"].into_iter().all(has)
        || skip(Need::Programs, "no tmux, vim, top, htop or less")
}

/// The link of the papers.
fn thin() -> LinkSpec {
    LinkSpec::thin(Rate::from_bits(1_540_000).unwrap())
}

#[test]
fn an_outage_is_said_and_leaves_nothing_on_the_screen() {
    if !gives_accounts() || !has_programs() {
        return;
    }
    let place = LoginPlace::new(thin(), ALICE);
    let tmux = Tmux::start(&place, "tmux", "site-b");
    let link = |state| place.hosts.link.b.set_state(state).unwrap();
    tmux.shell();
    tmux.line("echo be''fore");
    tmux.sees("\nbefore\n");
    link(InterfaceState::Down);
    tmux.types("echo af''ter");
    tmux.shows("how long it has been, above the line with the cursor", |screen| {
        let mut lines = screen.trim_end().lines().rev();
        lines.next().is_some_and(|line| line.starts_with("at-b>"))
            && lines.next().is_some_and(|line| {
                line.starts_with("strait: site-b has not answered for ")
                    && line.ends_with(" s (~. ends this)")
            })
    });
    link(InterfaceState::Up);
    let quiet = "at-b> echo be''fore\nbefore\nat-b> echo af''ter";
    tmux.shows("the screen as it was", |screen| screen.trim_end() == quiet);
    tmux.keys(&["Enter"]);
    tmux.sees("\nafter\nat-b>");
    tmux.editor();
    link(InterfaceState::Down);
    tmux.types("ihello");
    tmux.shows("the same over the first line of an editor", |screen| {
        screen.starts_with(" strait: site-b has not answered for ")
    });
    link(InterfaceState::Up);
    tmux.shows("the editor's first line", |screen| screen.starts_with("hello\n~\n"));
}

#[test]
fn programs_of_the_whole_screen_look_as_they_do_there() {
    if !gives_accounts() || !has_programs() {
        return;
    }
    let place = LoginPlace::new(thin(), ALICE);
    let tmux = Tmux::start(&place, "tmux", "site-b");
    tmux.shell();

    // An editor, with characters of two columns and of several bytes.
    tmux.editor();
    tmux.types("igrüße 漢字 👍 end");
    tmux.keys(&["Escape"]);
    tmux.sees("grüße 漢字 👍 end");
    tmux.types("yyp:%s/end/last/");
    tmux.keys(&["Enter"]);
    tmux.shows("both lines", |screen| screen.matches("漢字 👍 last").count() == 2);
    // The editor draws its window anew when that has another size.
    tmux.run(&["resize-window", "-x", "100", "-y", "30"]);
    tmux.shows("a larger window", |screen| {
        screen.lines().count() == 30 && screen.lines().nth(20) == Some("~")
    });
    tmux.line(":wq");
    tmux.prompt();
    let notes = fs::read_to_string(place.file("home/alice/notes")).unwrap();
    assert_eq!(notes, "grüße 漢字 👍 last\ngrüße 漢字 👍 last\n");
    tmux.line("clear; stty size");
    tmux.sees("30 100");

    tmux.line("top -d 1");
    tmux.shows("top", |screen| screen.contains("load average") && screen.contains("PID"));
    tmux.types("q");
    tmux.prompt();
    tmux.line("clear; htop");
    tmux.shows("htop", |screen| screen.contains("F10") && screen.contains("PID"));
    tmux.keys(&["F10"]);
    tmux.prompt();
    tmux.line("clear; seq 1 1000 | less");
    tmux.shows("less", |screen| screen.starts_with("1\n2\n") && screen.trim_end().ends_with(':'));
    tmux.types("G");
    tmux.shows("its end", |screen| screen.contains("\n1000\n") && screen.contains("(END)"));
    tmux.types("g");
    tmux.shows("its beginning", |screen| screen.starts_with("1\n2\n"));
    tmux.types("q");
    tmux.prompt();

    // Keys that stop and interrupt; before the program runs, the shell takes them and does not stop.
    tmux.line("clear; sh -c 'echo be\"\"gun; exec sleep 1000'");
    tmux.sees("begun");
    tmux.keys(&["C-z"]);
    tmux.sees("Stopped");
    tmux.line("fg");
    tmux.shows("it goes on", |screen| screen.trim_end().ends_with("sleep 1000'"));
    tmux.keys(&["C-c"]);
    tmux.prompt();
    tmux.line("clear; exit 5");
    tmux.sees("ended 5");
}

/// tmux joins what the model of the client gives cells of their own, and the other way round. It joins only what is written at once, as
/// keyboards send it; the terminal there echoes what it gets, however keys come together on their way.
#[test]
fn characters_of_doubtful_width_look_as_they_do_without_predictions() {
    if !gives_accounts() || !has_programs() {
        return;
    }
    let late = |_, _: &_| FrameFate::Delay(Duration::from_millis(150));
    let (hosts, _relay) = Relay::between(thin(), late).unwrap();
    let place = LoginPlace::on(hosts, ALICE, PAM);
    let never = Tmux::start(&place, "never", "--predict never site-b");
    let auto = Tmux::start(&place, "auto", "site-b");
    for tmux in [&never, &auto] {
        tmux.shell();
        tmux.line("clear; cat");
        tmux.shows("nothing", |screen| screen.trim().is_empty());
    }
    let texts: [&[&str]; 5] = [
        &["a", " ", "日", " ", "b", " ", "👩\u{200d}🚀", " ", "c"],
        &["a", " ", "👩\u{200d}👩\u{200d}👧", " ", "b", " ", "c"],
        &["☺\u{fe0f}", " ", "a", "c"],
        &["👍🏽", " ", "🇩🇪", " ", "c"],
        &["日", "本", "語", " ", "g", "r", "u", "\u{308}", "ß", "e"],
    ];
    for text in texts {
        for backspaces in [&[][..], &["\x7f"; 4][..]] {
            let keys = [text, backspaces, &["z"][..]].concat();
            never.keys_of(&keys);
            never.shows("all keys", |screen| {
                let screen = screen.trim_end();
                screen.lines().count() % 2 == 1 && screen.ends_with('z')
            });
            let wanted = never.picture();
            auto.keys_of(&keys);
            let begun = Instant::now();
            while auto.picture() != wanted {
                assert!(begun.elapsed() < crate::pair::PATIENCE, "{:?} and not {wanted:?}", auto.picture());
                thread::sleep(Duration::from_millis(30));
            }
            for tmux in [&never, &auto] {
                tmux.keys(&["Enter"]);
                tmux.shows("the line from there", |screen| screen.trim_end().lines().count() % 2 == 0);
            }
        }
    }
    assert_eq!(auto.picture(), never.picture());
}

#[test]
fn an_editor_outlives_an_outage_a_change_of_address_and_its_client() {
    if !gives_accounts() || !has_programs() {
        return;
    }
    let place = LoginPlace::new(thin(), ALICE);
    let tmux = Tmux::start(&place, "tmux", "site-b");
    tmux.shell();
    tmux.editor();
    tmux.types("ifirst");
    tmux.keys(&["Enter"]);
    tmux.sees("first");

    place.hosts.link.b.set_state(InterfaceState::Down).unwrap();
    tmux.types("second");
    tmux.keys(&["Enter"]);
    thread::sleep(Duration::from_secs(12));
    place.hosts.link.b.set_state(InterfaceState::Up).unwrap();
    tmux.types("third");
    tmux.keys(&["Enter"]);
    tmux.sees("first\nsecond\nthird\n");

    let (old, new) = (place.hosts.address_of_a().0, "198.18.0.50".parse().unwrap());
    place.hosts.link.a.remove_address(old, 24).unwrap();
    place.hosts.link.a.add_address(new, 24).unwrap();
    tmux.types("fourth");
    tmux.keys(&["Enter"]);
    tmux.sees("third\nfourth\n");

    // The client is killed, and another goes back to the editor.
    let clients = clients(&place);
    assert_eq!(clients.len(), 1);
    let killed = Command::new("kill").args(["-KILL", &clients[0].to_string()]).status().unwrap();
    assert!(killed.success());
    let again = Tmux::start(&place, "again", "--resume");
    again.sees("first\nsecond\nthird\nfourth\n");
    again.keys(&["Escape"]);
    again.line(":wq");
    again.prompt();
    let notes = fs::read_to_string(place.file("home/alice/notes")).unwrap();
    assert_eq!(notes, "first\nsecond\nthird\nfourth\n\n");
}

/// Clients of logins that run at the first site: their terminals are tmux's.
fn clients(place: &LoginPlace) -> Vec<u32> {
    let folder = place.daemon(0).log().parent().unwrap().display().to_string();
    let numbers = fs::read_dir("/proc").unwrap().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_client = |number: &u32| {
        let line = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let environment = fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
        line.starts_with(crate::pair::program().as_os_str().as_encoded_bytes())
            && line.split(|byte| *byte == 0).nth(1) == Some(b"login")
            && String::from_utf8_lossy(&environment).contains(&folder)
    };
    numbers.filter(is_client).collect()
}

#[test]
fn a_client_that_is_stopped_by_its_key_goes_on_in_the_foreground() {
    if !gives_accounts() || !has_programs() {
        return;
    }
    let place = LoginPlace::new(thin(), ALICE);
    let tmux = Tmux::with(&place, "tmux", "env TERM=xterm-256color bash --norc --noprofile -i");
    tmux.sees("bash-");
    tmux.line("PS1='at-a> '; clear");
    let local = |what: &str| tmux.shows(what, |screen| screen.trim_end().ends_with("at-a>"));
    local("an empty screen");
    tmux.line(&format!("clear; {} login site-b", crate::pair::program().display()));
    tmux.shell();
    let stop = || {
        tmux.keys(&["Enter"]);
        tmux.types("~");
        tmux.keys(&["C-z"]);
        tmux.sees("Stopped");
        local("the shell here");
    };
    // What is typed is read with the key that stops the client, and gets to the shell all the same.
    tmux.types("(until [ -e go ]; do sleep 0.1; done; touch went; echo while''-stopped) &\r\r~\x1a");
    tmux.sees("Stopped");
    local("the shell here");
    tmux.line("clear; stty -a; echo lo''cal");
    tmux.sees("local");
    let modes = tmux.screen();
    let is_set = |mode: &str| modes.split_whitespace().any(|word| word == mode);
    assert!(["icanon", "echo", "isig", "opost"].into_iter().all(is_set), "{modes}");
    // Output and another window come while it is stopped.
    fs::write(place.file("home/alice/go"), "").unwrap();
    eventually("output at the other end", || fs::metadata(place.file("home/alice/went")).is_ok());
    tmux.run(&["resize-window", "-x", "100", "-y", "30"]);
    tmux.line("clear; fg");
    tmux.sees("while-stopped");
    tmux.line("clear; stty size");
    tmux.sees("30 100");
    tmux.prompt();

    // In a program that has the whole screen.
    tmux.line("vim -u NONE -i NONE notes");
    tmux.sees("\"notes\" [New");
    tmux.types("ione");
    tmux.keys(&["Enter"]);
    tmux.types("two");
    tmux.keys(&["Escape"]);
    tmux.sees("one\ntwo\n~\n");
    stop();
    tmux.line("clear; echo lo''cal; tput cnorm");
    tmux.shows("the shell's own screen", |screen| screen.starts_with("local\n"));
    tmux.line("fg");
    tmux.shows("the editor", |screen| screen.starts_with("one\ntwo\n~\n"));
    tmux.types("othree");
    tmux.keys(&["Escape"]);
    tmux.sees("three\n~\n");
    tmux.line(":wq");
    tmux.prompt();
    tmux.line("exit 3");
    local("the shell here again");
    tmux.line("echo ended $?");
    tmux.sees("ended 3");
}

/// As long as the specification of the project asks for.
#[test]
#[ignore = "ten minutes without a path"]
fn the_screen_answers_soon_after_ten_minutes_without_a_path() {
    if !gives_accounts() || !has_programs() {
        return;
    }
    let place = LoginPlace::on(TwoHosts::routed(thin(), thin()).unwrap(), ALICE, PAM);
    let tmux = Tmux::start(&place, "tmux", "site-b");
    tmux.shell();
    tmux.line("i=0; while sleep 1; do echo tick $((i+=1)); done");
    tmux.sees("tick 3");
    place.forward(false);
    let minutes = std::env::var("STRAIT_OUTAGE_SECONDS").ok().and_then(|text| text.parse().ok());
    thread::sleep(Duration::from_secs(minutes.unwrap_or(600)));
    let newest = |screen: &str| -> u32 {
        let ticks = screen.lines().filter_map(|line| line.strip_prefix("tick ")?.parse().ok());
        ticks.max().unwrap_or(0)
    };
    let before = newest(&tmux.screen());
    place.forward(true);
    let back = Instant::now();
    eventually("the screen answers", || newest(&tmux.screen()) > before + 5);
    println!("the screen answered {:?} after the path was back", back.elapsed());
    tmux.keys(&["C-c"]);
    tmux.prompt();
}
