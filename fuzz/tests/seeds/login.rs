//! Seeds of logins: messages of both ends, and output for terminals.

use strait_clock::Time;
use strait_login::message::{Channel, LoginMessage, MessageUnit};
use strait_login::{
    ClientOptions, Exit, ListedSession, LoginClient, LoginServer, OutputKind, Program, Refusal,
    RefusedReason, ResumePoint, ResumeRequest, ServerOptions, SessionNumber, SessionRequest, SessionSignal,
    Terminal, TerminalModes, Ticket, WindowSize,
};

use super::Seed;

fn ticket() -> Ticket {
    Ticket::new(SessionNumber(7), [3; 32])
}

fn request(program: Program, terminal: bool) -> SessionRequest {
    let modes = vec![3, 0, 0, 0, 127, 128, 0, 0, 0x96, 0, 0];
    let terminal = terminal.then(|| Terminal { term: b"xterm".to_vec(), size: WindowSize::USUAL, modes });
    let environment = vec![(b"LANG".to_vec(), b"C.UTF-8".to_vec())];
    SessionRequest { program, terminal, environment, agent: true }
}

fn of(messages: &[LoginMessage<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    messages.iter().for_each(|message| message.put(0, &mut bytes));
    bytes
}

/// What a client sends first, and what a session says to it.
fn conversation(terminal: Option<WindowSize>) -> Vec<u8> {
    let options =
        ServerOptions { ticket: ticket(), account: "alice".to_owned(), terminal, rate_bits: Some(1_000_000) };
    let mut server = LoginServer::new(options, Time::ZERO);
    server.attach(None, Time::ZERO).unwrap();
    server.modes(TerminalModes { echo: true, canonical: false });
    let kind = if terminal.is_some() { OutputKind::Terminal } else { OutputKind::Out };
    server.output(kind, &b"the same line again and again\r\n".repeat(40), Time::ZERO);
    server.output_ended(kind);
    server.exited(Exit::Status(1));
    let mut bytes = Vec::new();
    server.send(&mut bytes, 1 << 16, Time::ZERO);
    bytes
}

fn typed() -> Vec<u8> {
    let mut client = LoginClient::start(ticket(), request(Program::Shell, true), ClientOptions::default());
    client.input(&b"a pasted line that is long enough to be compressed, ".repeat(4));
    client.resize(WindowSize { columns: u16::MAX, rows: 0, width: 0, height: 0 });
    client.signal(SessionSignal::Int);
    client.input(b"x");
    client.detach();
    let mut bytes = Vec::new();
    client.send(&mut bytes, 1 << 16, Time::ZERO);
    // Less the request.
    let first = of(&[LoginMessage::Start(ticket(), request(Program::Shell, true))]).len();
    bytes.split_off(first)
}

/// Messages of both ends.
pub fn message_seeds() -> Vec<Seed> {
    let listed = ListedSession {
        number: SessionNumber(7),
        since: 1,
        idle: 300,
        what: "vim".to_owned(),
        attached: true,
    };
    let killed = Exit::Signal { name: "SEGV".to_owned(), core_dumped: true, message: "at home".to_owned() };
    let refusal = Refusal { reason: RefusedReason::Busy, text: "another client".to_owned() };
    let point = Some(ResumePoint { client: 1, received: 1 << 40 });
    let resume = |point| LoginMessage::Resume(ResumeRequest { ticket: ticket(), point });
    let resumed = LoginMessage::Resumed { account: "bob".to_owned(), client: 2, input: 3, output: 1 << 60 };
    let zstd = MessageUnit::Zstd { anew: true, raw: 90, payload: &[0, 0x58, 0x41, 0, 0] };
    let seeds = [
        ("start-shell", of(&[LoginMessage::Start(ticket(), request(Program::Shell, true))])),
        (
            "start-command",
            of(&[LoginMessage::Start(ticket(), request(Program::Command(b"ls -l".to_vec()), false))]),
        ),
        (
            "start-subsystem",
            of(&[LoginMessage::Start(ticket(), request(Program::Subsystem(b"sftp".to_vec()), false))]),
        ),
        ("resume", of(&[resume(None), resume(point)])),
        (
            "others",
            of(&[
                LoginMessage::List,
                LoginMessage::Connect { host: b"::1".to_vec(), port: 80 },
                LoginMessage::Agent(ticket()),
            ]),
        ),
        ("typed", typed()),
        (
            "hang-up",
            of(&[LoginMessage::Small(b"exit"), LoginMessage::End(Channel::Input), LoginMessage::HangUp]),
        ),
        ("terminal", conversation(Some(WindowSize::USUAL))),
        ("command", conversation(None)),
        ("refused", of(&[LoginMessage::Refused(refusal)])),
        ("sessions", of(&[LoginMessage::Sessions(vec![listed.clone(), listed])])),
        ("answers", of(&[resumed, LoginMessage::Opened, LoginMessage::Exited(killed)])),
        (
            "forwarded",
            of(&[
                LoginMessage::Unit(Channel::Forwarded, MessageUnit::Stored(b"GET /")),
                LoginMessage::End(Channel::Forwarded),
            ]),
        ),
        ("bad-unit", of(&[LoginMessage::Unit(Channel::Input, zstd)])),
        (
            "bad-window",
            of(&[
                LoginMessage::Small(b"x"),
                LoginMessage::Unit(
                    Channel::Input,
                    MessageUnit::Zstd { anew: false, raw: 1 << 16, payload: b"x" },
                ),
            ]),
        ),
        ("bad-padding", vec![0x11, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]),
        ("bad-length", vec![0x21, 0, 0, 0, 0xff, 0xff, 0x7f]),
        (
            "bad-number",
            vec![0x50, 0, 0, 0, 12, 0x80, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
        ),
        ("unknown", vec![0x70, 0, 0, 0, 1, 0]),
    ];
    seeds.into_iter().map(|(name, bytes)| ("login_message", name, bytes)).collect()
}

/// The window's size, and operations: output in pieces, and what is between them.
fn session(size: [u8; 2], operations: &[(u8, &[u8])]) -> Vec<u8> {
    let mut bytes = size.to_vec();
    for (what, output) in operations {
        if *what > 3 {
            bytes.extend([*what, output[0]]);
            continue;
        }
        for piece in output.chunks(255) {
            bytes.extend([*what, piece.len() as u8]);
            bytes.extend(piece);
        }
    }
    bytes
}

/// Output for terminals.
pub fn screen_seeds() -> Vec<Seed> {
    let lines: Vec<u8> = (0..120)
        .flat_map(|line| format!("line {line} of \x1b[3{}mmany\x1b[m\r\n", line % 8).into_bytes())
        .collect();
    let wide = "一二三 e\u{301} ┌─┐ é".repeat(20).into_bytes();
    let looks = b"\x1b[1;2;3;4;7;31;44mA\x1b[38;5;200;48;2;1;2;3mB\x1b[95;103mC\x1b[m\x1b[5;3H\x1b[Kx\x1b[2Jy\x1b[10;10Hz\x1b[1K".repeat(3);
    let modes = b"\x1b[?1h\x1b=\x1b[?2004h\x1b[?1000h\x1b[?1006h\x1b[?25l\x1b[3 q\x1b]2;title\x07\x07\x1b(0lqk\x1b)0\x0eq\x0f\x1b(B\x1b7\x1b[3;9r\x1b[?6h\x1b[2;2Ho";
    let full = b"\x1b[?1049h\x1b[Hvim\x1b[2;5r\x1b[?47l\x1b[?47hagain\x1b[?1049lout\x1b[?1049h";
    let death = b"x\x1b[65535b\x1b[65535;65535H\x1b[65535L\x1b[65535@\x1b[65535P\x1b[65535X\x1b[65535S\x1b[65535T\x1b[0;0r\x1b[9;2r\x1bM\x1bc\x1b[8;65535;65535t\x1bP\x1b_\x1b\\\x1bX\x1b]52;c;\xff\xfe\xc3\xe4\xf0\x90\x80A\xc3\x28";
    let long = [&b"\x1b]0;"[..], &[b'a'; 5000], b"\x07after"].concat();
    let behind = |output: &[u8]| {
        let operations: [(u8, &[u8]); 9] = [
            (0, output),
            (5, &[255]),
            (4, &[0]),
            (0, &lines),
            (0, output),
            (5, &[40]),
            (6, &[100]),
            (0, output),
            (5, &[255]),
        ];
        session([80, 24], &operations)
    };
    let cut = session(
        [20, 5],
        &[
            (0, b"ab\x1b[3"),
            (5, &[9]),
            (4, &[0]),
            (0, &lines),
            (5, &[99]),
            (0, b"1mred\xe4\xb8"),
            (5, &[99]),
            (0, b"\x80\x1b]0;t"),
        ],
    );
    let sizes = session(
        [0, 0],
        &[
            (0, &lines),
            (7, &[1]),
            (5, &[99]),
            (15, &[200]),
            (0, &wide),
            (5, &[99]),
            (4, &[0]),
            (255, &[255]),
            (0, &lines),
            (5, &[1]),
            (5, &[255]),
        ],
    );
    let narrow = session([1, 1], &[(0, &wide), (4, &[0]), (0, &lines), (0, &looks), (5, &[255])]);
    let seeds = [
        ("lines", behind(&lines)),
        ("wide", behind(&wide)),
        ("looks", behind(&looks)),
        ("modes", behind(modes)),
        ("full-screen", behind(full)),
        ("death", behind(death)),
        ("long-string", behind(&long)),
        ("cut", cut),
        ("sizes", sizes),
        ("narrow", narrow),
    ];
    seeds.into_iter().map(|(name, bytes)| ("login_screen", name, bytes)).collect()
}
