//! Seeds of SSH: what a client says before there are keys, and messages of one that is let in.

use strait_ssh::fields::PutFields;

use super::Seed;

/// A packet in the clear (RFC 4253 section 6).
fn packet(payload: &[u8]) -> Vec<u8> {
    let padding = 4 + (9 + payload.len()).next_multiple_of(8) - (9 + payload.len());
    let mut bytes = Vec::new();
    bytes.put_number(u32::try_from(1 + payload.len() + padding).unwrap());
    bytes.push(u8::try_from(padding).unwrap());
    bytes.extend_from_slice(payload);
    bytes.resize(bytes.len() + padding, 0);
    bytes
}

/// An offer with these ciphers, which is followed by a guess or not.
fn offer(cipher: &str, strict: bool, guess: bool) -> Vec<u8> {
    let mut bytes = [&[20][..], &[5; 16]].concat();
    let exchange = if guess { "sntrup761x25519-sha512,curve25519-sha256" } else { "curve25519-sha256" };
    let exchange = format!("{exchange}{}", if strict { ",kex-strict-c-v00@openssh.com" } else { "" });
    for list in [&exchange, "ssh-ed25519", cipher, cipher, "", "", "none", "none,zlib@openssh.com", "", ""] {
        bytes.put_string(list.as_bytes());
    }
    bytes.put_boolean(guess);
    bytes.put_number(0);
    packet(&bytes)
}

fn public() -> Vec<u8> {
    let mut bytes = vec![30];
    bytes.put_string(&[9; 32]);
    packet(&bytes)
}

/// Key exchanges, whole and broken.
pub fn packet_seeds() -> Vec<Seed> {
    let line = b"SSH-2.0-OpenSSH_9.2\r\n";
    let gcm = "aes128-gcm@openssh.com";
    let whole = [&[255][..], line, &offer(gcm, true, false), &public(), &packet(&[21]), &[0; 40]].concat();
    let guessed =
        [&[7][..], line, &offer("aes256-gcm@openssh.com", false, true), &packet(&[30, 1]), &public()]
            .concat();
    let ignored = [&[3][..], line, &packet(&[2, 0, 0, 0, 0]), &offer(gcm, true, false)].concat();
    let mut farewell = vec![1];
    farewell.put_number(11);
    farewell.put_string(b"good bye");
    farewell.put_string(b"");
    let left = [&[99][..], line, &packet(&farewell)].concat();
    let zeros = {
        let mut bytes = vec![30];
        bytes.put_string(&[0; 32]);
        [&[255][..], line, &offer(gcm, false, false), &packet(&bytes)].concat()
    };
    let twice = [&[255][..], line, &offer(gcm, false, false), &offer(gcm, false, false)].concat();
    let early = [&[255][..], line, &public()].concat();
    let keys = [&[255][..], line, &packet(&[21])].concat();
    let other = [&[255][..], line, &offer("aes256-ctr", false, false)].concat();
    let padding = [&[255][..], line, &[0, 0, 0, 12, 12, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
    [
        ("whole", whole),
        ("guessed", guessed),
        ("ignored", ignored),
        ("left", left),
        ("zeros", zeros),
        ("twice", twice),
        ("early", early),
        ("keys", keys),
        ("other-cipher", other),
        ("padding", padding),
        ("not-ssh", b"\x20GET / HTTP/1.1\r\n".to_vec()),
        ("endless-line", [b'a'; 300].to_vec()),
        ("length", [&[255][..], line, &[255; 8]].concat()),
    ]
    .map(|(name, bytes)| ("ssh_packets", name, bytes))
    .to_vec()
}

/// A field of a message.
enum Field {
    Number(u32),
    Text(&'static [u8]),
    Truth(bool),
}
use Field::{Number, Text, Truth};

/// A message behind its length.
fn message(kind: u8, fields: &[Field]) -> Vec<u8> {
    let mut bytes = vec![kind];
    for field in fields {
        match field {
            Number(number) => bytes.put_number(*number),
            Text(text) => bytes.put_string(text),
            Truth(truth) => bytes.put_boolean(*truth),
        }
    }
    [&u16::try_from(bytes.len()).unwrap().to_be_bytes()[..], &bytes].concat()
}

fn open(kind: &'static [u8]) -> Vec<u8> {
    message(90, &[Text(kind), Number(3), Number(100_000), Number(32_768)])
}

fn request(name: &'static [u8], reply: bool, fields: Vec<Field>) -> Vec<u8> {
    message(
        98,
        &[vec![Number(0), Text(name), Truth(reply)], fields].into_iter().flatten().collect::<Vec<_>>(),
    )
}

/// Sessions, forwarded connections, the agent, and what is no channel's.
pub fn message_seeds() -> Vec<Seed> {
    let size = || vec![Number(80), Number(24), Number(0), Number(0)];
    let terminal =
        [vec![Text(b"xterm")], size(), vec![Text(&[53, 0, 0, 0, 1, 0])]].into_iter().flatten().collect();
    let session = [
        open(b"session"),
        request(b"pty-req", true, terminal),
        request(b"env", false, vec![Text(b"LANG"), Text(b"C")]),
        request(b"auth-agent-req@openssh.com", true, vec![]),
        request(b"shell", true, vec![]),
        message(94, &[Number(0), Text(b"ls\r")]),
        request(b"window-change", false, size()),
        request(b"signal", false, vec![Text(b"INT")]),
        request(b"eow@openssh.com", false, vec![]),
        request(b"x11-req", true, vec![]),
        message(93, &[Number(0), Number(5000)]),
        message(95, &[Number(0), Number(1), Text(b"err")]),
        message(96, &[Number(0)]),
        message(97, &[Number(0)]),
    ]
    .concat();
    let exec =
        [open(b"session"), request(b"exec", true, vec![Text(b"true")]), message(96, &[Number(0)])].concat();
    let sftp = [open(b"session"), request(b"subsystem", false, vec![Text(b"sftp")])].concat();
    let tcp = |host: &'static [u8]| {
        message(
            90,
            &[
                Text(b"direct-tcpip"),
                Number(1),
                Number(9),
                Number(9),
                Text(host),
                Number(80),
                Text(b""),
                Number(1),
            ],
        )
    };
    let forwards =
        [tcp(b"a"), tcp(b"ab"), tcp(b"abc"), tcp(b"abcd"), message(94, &[Number(1), Text(b"GET /")])];
    // The request of the agent has a length that makes the server ask for a channel.
    let agent = [
        open(b"session"),
        request(b"auth-agent-req@openssh.com", true, vec![Text(b"")]),
        request(b"auth-agent-req@openssh.com", true, vec![Truth(true)]),
        request(b"auth-agent-req@openssh.com", true, vec![Truth(true), Truth(true)]),
        request(b"auth-agent-req@openssh.com", true, vec![Truth(true), Truth(true), Truth(true)]),
    ]
    .concat();
    let answered = [
        &agent[..],
        &message(91, &[Number(1), Number(8), Number(70), Number(7)]),
        &message(99, &[Number(0)]),
    ];
    let failed = [&agent[..], &message(92, &[Number(1), Number(1), Text(b"no"), Text(b"")])];
    let others = [
        open(b"x11"),
        open(b"direct-streamlocal@openssh.com"),
        open(b"other"),
        message(80, &[Text(b"tcpip-forward"), Truth(true), Text(b""), Number(0)]),
        message(80, &[Text(b"keepalive@openssh.com"), Truth(true)]),
        message(82, &[]),
    ];
    let flood: Vec<u8> = (0..66).flat_map(|_| open(b"session")).collect();
    let grown = [open(b"session"), message(93, &[Number(0), Number(u32::MAX)])];
    let seeds: Vec<(&'static str, Vec<u8>)> = vec![
        ("session", session),
        ("exec", exec),
        ("sftp", sftp),
        ("forwards", forwards.concat()),
        ("agent", answered.concat()),
        ("no-agent", failed.concat()),
        ("others", others.concat()),
        ("flood", flood),
        ("grown", grown.concat()),
        ("no-channel", message(94, &[Number(9), Text(b"x")])),
        ("unknown", message(127, &[])),
    ];
    seeds.into_iter().map(|(name, bytes)| ("ssh_messages", name, bytes)).collect()
}
