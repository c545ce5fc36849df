//! Every message reads as it was written, and nothing else does.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::{LoginError, Program, RefusedReason, ResumePoint, SessionNumber, Terminal};

fn text(most: usize) -> impl Strategy<Value = String> {
    vec(prop_oneof![prop::char::range(' ', '~'), prop::char::range('¡', 'ÿ')], 0..most)
        .prop_map(|characters| characters.into_iter().collect())
}

fn words(least: usize, most: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![1..=60_u8, 62..=255_u8], least..most)
}

fn ticket() -> impl Strategy<Value = Ticket> {
    any::<(u64, [u8; 32])>().prop_map(|(number, secret)| Ticket::new(SessionNumber(number), secret))
}

fn size() -> impl Strategy<Value = WindowSize> {
    any::<[u16; 4]>().prop_map(|[columns, rows, width, height]| WindowSize { columns, rows, width, height })
}

fn terminal() -> impl Strategy<Value = Terminal> {
    let modes = prop_oneof![
        Just(Vec::new()),
        vec((1..160_u8, any::<[u8; 4]>()), 0..5).prop_map(|all| {
            let coded = all.into_iter().flat_map(|(opcode, value)| [&[opcode][..], &value].concat());
            coded.chain([0]).collect()
        })
    ];
    (words(0, 20), size(), modes).prop_map(|(term, size, modes)| Terminal { term, size, modes })
}

fn start() -> impl Strategy<Value = SessionRequest> {
    let program = prop_oneof![
        Just(Program::Shell),
        words(0, 60).prop_map(Program::Command),
        words(1, 20).prop_map(Program::Subsystem),
    ];
    let environment = vec((words(1, 9), words(0, 9)), 0..4);
    (program, prop::option::of(terminal()), environment, any::<bool>()).prop_map(
        |(program, terminal, environment, agent)| SessionRequest { program, terminal, environment, agent },
    )
}

fn exit() -> impl Strategy<Value = Exit> {
    prop_oneof![
        any::<u8>().prop_map(Exit::Status),
        ("[A-Z0-9]{1,16}", any::<bool>(), text(50)).prop_map(|(name, core_dumped, message)| Exit::Signal {
            name,
            core_dumped,
            message
        }),
    ]
}

fn request() -> impl Strategy<Value = LoginMessage<'static>> {
    let point = any::<Option<(u32, u64)>>()
        .prop_map(|point| point.map(|(client, received)| ResumePoint { client, received }));
    prop_oneof![
        (ticket(), start()).prop_map(|(ticket, request)| LoginMessage::Start(ticket, request)),
        (ticket(), point).prop_map(|(ticket, point)| LoginMessage::Resume(ResumeRequest { ticket, point })),
        Just(LoginMessage::List),
        (words(1, 30), any::<u16>()).prop_map(|(host, port)| LoginMessage::Connect { host, port }),
        ticket().prop_map(LoginMessage::Agent),
    ]
}

fn steering() -> impl Strategy<Value = LoginMessage<'static>> {
    prop_oneof![
        size().prop_map(LoginMessage::Resize),
        prop::sample::select(&SessionSignal::ALL[..]).prop_map(LoginMessage::Signal),
        Just(LoginMessage::Detach),
        Just(LoginMessage::HangUp),
        prop::sample::select(&Channel::ALL[..])
            .prop_filter("it ends", |channel| channel.ends())
            .prop_map(LoginMessage::End),
    ]
}

fn answer() -> impl Strategy<Value = LoginMessage<'static>> {
    let refused = (prop::sample::select(&RefusedReason::ALL[..]), text(60));
    let listed = any::<(u64, u64, u64, bool)>();
    let listed = (listed, text(30)).prop_map(|((number, since, idle, attached), what)| ListedSession {
        number: SessionNumber(number),
        since,
        idle,
        what,
        attached,
    });
    prop_oneof![
        refused.prop_map(|(reason, text)| LoginMessage::Refused(Refusal { reason, text })),
        text(30).prop_map(|account| LoginMessage::Started { account }),
        (text(30), any::<(u32, u64, u64)>()).prop_map(|(account, (client, input, output))| {
            LoginMessage::Resumed { account, client, input, output }
        }),
        vec(listed, 0..4).prop_map(LoginMessage::Sessions),
        any::<(bool, bool)>()
            .prop_map(|(echo, canonical)| LoginMessage::Modes(TerminalModes { echo, canonical })),
        exit().prop_map(LoginMessage::Exited),
        Just(LoginMessage::Opened),
    ]
}

/// The bytes of a message.
fn bytes(message: &LoginMessage<'_>, taken: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.put(taken, &mut bytes);
    bytes
}

/// A message reads as it was written, ends nowhere else, and is refused with a byte more or less in it.
fn check(message: &LoginMessage<'_>, taken: u64) {
    let whole = bytes(message, taken);
    let (frame, length) = MessageFrame::parse(&whole).unwrap().unwrap();
    assert_eq!(length, whole.len());
    assert_eq!(u64::from(frame.ack), taken % (1 << ACK_BITS));
    let again = LoginMessage::parse(frame.head, frame.body).unwrap();
    assert_eq!(bytes(&again, taken), whole);
    assert_eq!(format!("{again:?}"), format!("{message:?}"));
    for end in 0..whole.len() {
        assert_eq!(MessageFrame::parse(&whole[..end]), Ok(None), "it ends at {end}");
    }
    let longer = [frame.body, &[0]].concat();
    let open =
        matches!(message, LoginMessage::Unit(..) | LoginMessage::Start(..) | LoginMessage::Sessions(_));
    assert!(open || LoginMessage::parse(frame.head, &longer).is_err());
}

proptest! {
    #[test]
    fn messages_come_back(
        message in prop_oneof![request(), steering(), answer()], taken in any::<u64>()
    ) {
        check(&message, taken);
    }

    #[test]
    fn bytes_come_back(content in vec(any::<u8>(), 1..200), channel in 0..7_usize, more in 1..9_usize) {
        let channel = Channel::ALL[channel];
        check(&LoginMessage::Unit(channel, MessageUnit::Stored(&content)), 1);
        let raw = content.len() + more;
        check(&LoginMessage::Unit(channel, MessageUnit::Zstd { anew: true, raw, payload: &content }), 1);
        let small = &content[..content.len().min(MAX_SMALL)];
        check(&LoginMessage::Small(small), 1);
        prop_assert_eq!(bytes(&LoginMessage::Small(small), 1).len(), SMALL_LEN);
    }

    #[test]
    fn noise_is_refused_or_comes_back(noise in vec(any::<u8>(), 0..60), head in 0x10..0x70_u8) {
        if let Ok(message) = LoginMessage::parse(head, &noise) {
            let again = bytes(&message, 0);
            let (frame, _) = MessageFrame::parse(&again).unwrap().unwrap();
            prop_assert_eq!((frame.head, frame.body), (head, &noise[..]));
        }
    }

    #[test]
    fn a_stream_reads_the_same_wherever_it_is_cut(
        messages in vec(prop_oneof![request(), steering(), answer()], 0..6), step in 1..40_usize
    ) {
        let mut stream = Vec::new();
        for message in &messages {
            message.put(7, &mut stream);
        }
        let (mut framer, mut seen) = (MessageFramer::new(), Vec::new());
        for piece in stream.chunks(step) {
            framer.push(piece);
            while let Some((ack, message)) = framer.next_message().unwrap() {
                prop_assert_eq!(ack, 7);
                seen.push(format!("{message:?}"));
            }
        }
        prop_assert_eq!(seen, messages.iter().map(|message| format!("{message:?}")).collect::<Vec<_>>());
    }
}

#[test]
fn what_is_out_of_bounds_is_refused_before_it_arrives() {
    // 2^21 - 1 bytes.
    assert_eq!(MessageFrame::parse(&[0x21, 0, 0, 0, 0xff, 0xff, 0x7f]), Err(LoginError::Bound));
    assert_eq!(MessageFrame::parse(&[0x21, 0, 0, 0, 0xff, 0xff, 0xff]), Err(LoginError::Bound));
    assert_eq!(MessageFrame::parse(&[0x21, 0, 0, 0, 0x80, 0]), Err(LoginError::Number));
    let zstd = |raw: u8, payload: usize| {
        LoginMessage::parse(0x21, &[&[1, raw], &vec![0; payload][..]].concat()).err()
    };
    assert_eq!(
        (zstd(9, 8), zstd(9, 9), zstd(9, 0)),
        (None, Some(LoginError::Bound), Some(LoginError::Bound))
    );
    assert!(LoginMessage::parse(0x36, &[]).is_ok());
    assert_eq!(LoginMessage::parse(0x35, &[]).err(), Some(LoginError::Unknown), "no end of scrollback");
    assert_eq!(LoginMessage::parse(0x11, &[1; 12]).err(), Some(LoginError::Long), "padding is zero");
}

#[test]
fn a_request_that_is_too_long_is_not_sent() {
    let request = |program| SessionRequest { program, terminal: None, environment: Vec::new(), agent: false };
    assert_eq!(request(Program::Shell).check(), Ok(()));
    assert_eq!(request(Program::Command(vec![b'x'; 1 << 16])).check(), Err(LoginError::Bound));
    assert_eq!(request(Program::Command(b"a\0b".to_vec())).check(), Err(LoginError::Text));
    assert_eq!(request(Program::Subsystem(Vec::new())).check(), Err(LoginError::Bound));
}
