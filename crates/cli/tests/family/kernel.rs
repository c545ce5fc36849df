//! What makes a Linux kernel the other side of an agreement: text for the guest's shell, mostly for ip-xfrm(8).

mod tests;

use std::fmt::Write;
use std::net::IpAddr;

use serde_json::json;
use strait_crypto::{Cipher, Integrity, Suite};
use strait_testbed::Guest;

use crate::agreement::{Agreement, Direction, INSIDE, Layer, PORT};
use crate::case::{Ah, Esp, Mode};

/// Packets that are not compressed are let in, too: the kernel sends small ones so, and so may its peer.
const OPTIONAL: &str = " level use";

/// How long the kernel waits for more packets before it sends a bundle, in microseconds: long enough for those that a test
/// sends in one go.
const BUNDLING: u32 = 20_000;

/// What a guest needs once: the inside addresses, and a way to those of the near host.
pub(crate) fn preparation() -> String {
    let [(near_v4, near_v6), (guest_v4, guest_v6)] = INSIDE;
    batch(&format!(
        "address add {guest_v4}/32 dev lo\naddress add {guest_v6}/128 dev lo nodad\n\
         route add {near_v4}/32 dev vec0 src {guest_v4}\nroute add {near_v6}/128 dev vec0 src {guest_v6}\n"
    ))
}

/// What the guest's kernel has counted of IPsec's errors.
pub(crate) fn statistics(guest: &mut Guest) -> String {
    let counted = guest.run("grep -v '\\b0$' /proc/net/xfrm_stat || true");
    counted.map_or_else(|error| error.to_string(), |it| format!("the guest's kernel counts {it:?}"))
}

/// Makes the guest forget what was agreed on before and take this.
pub(crate) fn configuration(agreement: &Agreement) -> String {
    let mut lines = "xfrm state flush\nxfrm policy flush\n".to_owned();
    if agreement.case.udp {
        // The carrier itself, or transport mode would ask for ESP around it as well. IKE daemons say so socket by socket.
        for direction in [Direction::ToGuest, Direction::FromGuest] {
            let ((source, destination), way) = (agreement.outer(direction), way(direction));
            writeln!(
                lines,
                "xfrm policy add src {source} dst {destination} proto udp sport {PORT} dport {PORT} dir {way} priority 1"
            )
            .unwrap();
        }
    }
    if let Mode::Aggfrag(size) = agreement.case.mode {
        return batch(&lines) + &iptfs(agreement, size);
    }
    for direction in [Direction::ToGuest, Direction::FromGuest] {
        let protocols = protocols(agreement, direction);
        for (number, protocol) in (1..).zip(&protocols) {
            let ((source, destination), mode) = (agreement.outer(direction), mode(agreement, number));
            write!(
                lines,
                "xfrm state add src {source} dst {destination} {} reqid {number} mode {mode}{}",
                protocol.name, protocol.words
            )
            .unwrap();
            // Packets of both versions go into one tunnel, and what is around it is asked whether it takes them, too.
            let flags = (agreement.case.mode == Mode::Tunnel)
                .then_some(&"af-unspec")
                .into_iter()
                .chain(&protocol.flags);
            let flags: String = flags.map(|flag| format!(" {flag}")).collect();
            writeln!(lines, "{}{flags}", if flags.is_empty() { "" } else { " flag" }).unwrap();
        }
        policies(&mut lines, agreement, direction, &protocols);
    }
    batch(&lines)
}

fn batch(lines: &str) -> String {
    format!("ip -batch - <<'end'\n{lines}end\n")
}

/// A protocol of one direction in ip-xfrm(8)'s words.
struct Protocol {
    /// Its name and number.
    name: String,
    /// Its algorithms and what else its state has.
    words: String,
    flags: Vec<&'static str>,
    /// What a policy says about it behind its mode.
    level: &'static str,
}

/// The protocols of one direction, innermost first.
fn protocols(agreement: &Agreement, direction: Direction) -> Vec<Protocol> {
    let case = agreement.case;
    let mut all = Vec::new();
    if case.ipcomp {
        let level = if direction == Direction::ToGuest { OPTIONAL } else { "" };
        let name = format!("proto comp spi {}", crate::agreement::CPI);
        all.push(Protocol { name, words: " comp deflate".to_owned(), flags: Vec::new(), level });
    }
    if let Some(esp) = case.esp {
        let words = esp_words(agreement, direction, esp) + &carrier(agreement);
        all.push(keyed(agreement, direction, Layer::Esp, words, None));
    }
    if let Some(Ah { integrity, padded }) = case.ah {
        let words = integrity_words(agreement, direction, Layer::Ah, integrity);
        // Only over IPv4 there is a choice.
        let aligned = !padded && agreement.outer(direction).0.is_ipv4();
        all.push(keyed(agreement, direction, Layer::Ah, words, aligned.then_some("align4")));
    }
    all
}

/// A protocol with keys and sequence numbers.
fn keyed(
    agreement: &Agreement,
    direction: Direction,
    layer: Layer,
    words: String,
    flag: Option<&'static str>,
) -> Protocol {
    let name = match layer {
        Layer::Esp => "esp",
        Layer::Ah => "ah",
    };
    Protocol {
        name: format!("proto {name} spi {:#x}", agreement.spi(direction, layer)),
        words: words + " replay-window 32",
        flags: flag.into_iter().chain(agreement.case.esn.then_some("esn")).collect(),
        level: "",
    }
}

fn esp_words(agreement: &Agreement, direction: Direction, esp: Esp) -> String {
    let key = agreement.cipher_key(direction, esp);
    match esp {
        Esp::Combined(suite) => format!(" aead {} 0x{key} {}", suite_name(suite), 8 * suite.icv_len()),
        Esp::Separate(cipher, integrity) => {
            let integrity =
                integrity.map_or(String::new(), |it| integrity_words(agreement, direction, Layer::Esp, it));
            let key = if key.is_empty() { "\"\"".to_owned() } else { format!("0x{key}") };
            format!("{integrity} enc {} {key}", cipher_name(cipher))
        }
    }
}

fn suite_name(suite: Suite) -> &'static str {
    match suite {
        Suite::Aes128Gcm | Suite::Aes256Gcm | Suite::Aes128Gcm12 => "rfc4106(gcm(aes))",
        Suite::ChaCha20Poly1305 => "rfc7539esp(chacha20,poly1305)",
    }
}

fn cipher_name(cipher: Cipher) -> &'static str {
    match cipher {
        Cipher::Null => "ecb(cipher_null)",
        Cipher::Aes128Cbc | Cipher::Aes192Cbc | Cipher::Aes256Cbc => "cbc(aes)",
        Cipher::TripleDesCbc => "cbc(des3_ede)",
        other => panic!("no kernel has {other} for ESP"),
    }
}

fn integrity_words(
    agreement: &Agreement,
    direction: Direction,
    layer: Layer,
    integrity: Integrity,
) -> String {
    let name = match integrity {
        Integrity::HmacSha256_128 => "hmac(sha256)",
        Integrity::HmacSha384_192 => "hmac(sha384)",
        Integrity::HmacSha512_256 => "hmac(sha512)",
        Integrity::HmacSha1_96 => "hmac(sha1)",
        Integrity::HmacMd5_96 => "hmac(md5)",
    };
    let key = agreement.integrity_key(direction, layer, integrity);
    format!(" auth-trunc {name} 0x{key} {}", 8 * integrity.icv_len())
}

fn carrier(agreement: &Agreement) -> String {
    let any = match agreement.outer(Direction::ToGuest).0 {
        IpAddr::V4(_) => "0.0.0.0",
        IpAddr::V6(_) => "::",
    };
    if agreement.case.udp { format!(" encap espinudp {PORT} {PORT} {any}") } else { String::new() }
}

/// The mode of the protocol with this number, counted from the innermost, which is 1.
fn mode(agreement: &Agreement, number: usize) -> &'static str {
    if agreement.case.mode == Mode::Tunnel && number == 1 { "tunnel" } else { "transport" }
}

fn policies(lines: &mut String, agreement: &Agreement, direction: Direction, protocols: &[Protocol]) {
    let (source, destination) = agreement.outer(direction);
    for (from, to) in agreement.protected(direction) {
        let way = way(direction);
        write!(lines, "xfrm policy add src {from} dst {to} dir {way} priority 9").unwrap();
        for (number, protocol) in (1..).zip(protocols) {
            let kind = protocol.name.split(" spi ").next().unwrap();
            let mode = mode(agreement, number);
            write!(
                lines,
                " tmpl src {source} dst {destination} {kind} reqid {number} mode {mode}{}",
                protocol.level
            )
            .unwrap();
        }
        lines.push('\n');
    }
}

fn way(direction: Direction) -> &'static str {
    match direction {
        Direction::ToGuest => "in",
        Direction::FromGuest => "out",
    }
}

/// States and policies in a mode that ip(8) has no word for.
fn iptfs(agreement: &Agreement, size: u16) -> String {
    let Some(esp @ Esp::Combined(suite)) = agreement.case.esp else {
        panic!("bundles are tried with suites")
    };
    let mut command = "/usr/bin/python3 /run/guest/iptfs.py".to_owned();
    for direction in [Direction::ToGuest, Direction::FromGuest] {
        let (source, destination) = agreement.outer(direction);
        let options = match direction {
            Direction::ToGuest => json!({}),
            Direction::FromGuest => json!({"pkt_size": size, "init_delay": BUNDLING}),
        };
        let specification = json!({
            "direction": way(direction),
            "source": source,
            "destination": destination,
            "spi": agreement.spi(direction, Layer::Esp),
            "reqid": 1,
            "algorithm": suite_name(suite),
            "key": agreement.cipher_key(direction, esp),
            "esn": agreement.case.esn,
            "udp": agreement.case.udp.then_some([PORT; 2]),
            "options": options,
            "selectors": agreement.protected(direction),
        });
        write!(command, " '{specification}'").unwrap();
    }
    command + "\n"
}
