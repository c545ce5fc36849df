//! Output that no terminal expects, through both ends of a session whose streams are lost: both go on, and finish.
//!
//! The input is the window's size, two bytes, and then operations: one byte what, one byte how much, and that many bytes for output.

use core::time::Duration;

use strait_clock::Time;
use strait_login::{
    ClientEvent, ClientOptions, Exit, LoginClient, LoginServer, OutputKind, Program, Request, RequestReader,
    ServerOptions, SessionNumber, SessionRequest, Terminal, Ticket, WindowSize,
};

/// Bytes of input that are used: the model needs some microseconds for each.
const MOST: usize = 8192;

/// A session.
pub fn check(data: &[u8]) {
    let data = &data[..data.len().min(MOST)];
    let Some((&[columns, rows], mut rest)) = data.split_first_chunk::<2>() else { return };
    let size = WindowSize { columns: columns.into(), rows: rows.into(), width: 0, height: 0 };
    let mut session = Session::new(size);
    while let Some((&[what, much], after)) = rest.split_first_chunk::<2>() {
        rest = after;
        let length = usize::from(much).min(rest.len());
        match what % 8 {
            0..=3 => {
                let (output, after) = rest.split_at(length);
                rest = after;
                session.output(output);
            }
            4 => session.lose(),
            5 => session.pass(usize::from(much) * 16),
            6 => session.now += Duration::from_millis(u64::from(much) * 10),
            _ => session.resize(u16::from(much), u16::from(what)),
        }
    }
    session.finish();
}

struct Session {
    client: LoginClient,
    server: LoginServer,
    reader: Option<RequestReader>,
    connected: bool,
    exited: bool,
    now: Time,
}

impl Session {
    fn new(size: WindowSize) -> Session {
        let terminal = Some(Terminal { term: b"xterm".to_vec(), size, modes: Vec::new() });
        let (program, environment) = (Program::Shell, Vec::new());
        let request = SessionRequest { program, terminal, environment, agent: false };
        let (ticket, account) = (Ticket::new(SessionNumber(1), [1; 32]), "alice".to_owned());
        let options =
            ServerOptions { ticket: ticket.clone(), account, terminal: Some(size), rate_bits: None };
        let mut session = Session {
            client: LoginClient::start(ticket.clone(), request, ClientOptions::default()),
            server: LoginServer::new(options, Time::ZERO),
            reader: Some(RequestReader::new()),
            connected: true,
            exited: false,
            now: Time::ZERO,
        };
        session.pass(1 << 16);
        session
    }

    fn output(&mut self, bytes: &[u8]) {
        let room = self.server.output_room();
        self.server.output(OutputKind::Terminal, &bytes[..bytes.len().min(room)], self.now);
    }

    fn lose(&mut self) {
        self.client.stream_lost();
        self.server.stream_lost(self.now);
        self.connected = false;
    }

    fn resize(&mut self, columns: u16, rows: u16) {
        self.client.resize(WindowSize { columns, rows, width: 0, height: 0 });
    }

    /// Passes at most so many bytes each way.
    fn pass(&mut self, room: usize) {
        if !self.connected {
            self.connected = true;
            self.client.reconnect(self.now);
            self.reader = Some(RequestReader::new());
        }
        let mut bytes = Vec::new();
        self.client.send(&mut bytes, room, self.now);
        self.at_server(&bytes);
        while self.server.next_event().is_some() {}
        bytes.clear();
        self.server.send(&mut bytes, room, self.now);
        self.client.received(&bytes, self.now).expect("the server's bytes are right");
        self.at_client();
    }

    fn at_server(&mut self, bytes: &[u8]) {
        let mut rest = bytes.to_vec();
        if let Some(reader) = &mut self.reader {
            let Some((request, after)) = reader.read(bytes).expect("the client asks rightly") else { return };
            self.reader = None;
            rest = after;
            let resume = if let Request::Resume(resume) = &request { Some(resume) } else { None };
            self.server.attach(resume, self.now).expect("the client is where it says");
        }
        self.server.received(&rest, self.now).expect("the client's bytes are right");
    }

    fn at_client(&mut self) {
        while let Some(event) = self.client.next_event() {
            match event {
                ClientEvent::Output { bytes, .. }
                | ClientEvent::Screen(bytes)
                | ClientEvent::Scrollback(bytes) => {
                    self.client.output_taken(bytes.len());
                }
                ClientEvent::Exited(_) => self.exited = true,
                _ => {}
            }
        }
    }

    /// All arrives in the end.
    fn finish(&mut self) {
        // What begins a string that never ends would hold back what follows it.
        self.output(b"\x18");
        self.server.exited(Exit::Status(0));
        for _ in 0..20_000 {
            if self.exited && self.server.finished() {
                return;
            }
            self.pass(1 << 16);
            self.now += Duration::from_millis(50);
        }
        panic!("the session stalls");
    }
}
