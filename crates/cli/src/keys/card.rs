//! `keys card`: what a node says of itself to peers that it never shakes hands with.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use strait_compress::Codec;
use strait_keying::sessionless::{CARD_TEXT_MAX, CardName, EpochLength, KemKey, KeyCard, key_name};
use strait_keying::{Capabilities, PayloadFormat, PrivateKey};
use strait_node::config::{Config, kem_key_file, measured};
use strait_scheduler::LinkRate;

use super::{FILE_MAX, read_private, read_text, write_new};
use crate::failure::{CommandResult, Failure};
use crate::flags;
use crate::output::{line, note, print};
use crate::units::bytes;

const DAY: u64 = 86_400;
/// How far back a card is valid, as clocks differ: headers are taken from clocks that are an epoch off, an hour or some.
const BACK: u64 = DAY;
/// A file with a card, and some room for white space; more than this is another file.
const CARD_FILE_MAX: u64 = CARD_TEXT_MAX as u64 + 64;

/// Prints a card of this node, or what a card says.
pub(super) fn run(flags: &flags::KeysCard) -> CommandResult {
    if flags.show {
        let card = parse(&flags.file)?;
        let now = now()?;
        if flags.json {
            line(format_args!("{:#}", as_json(&card, now)))?;
        } else {
            print(as_text(&card, now)?.as_bytes())?;
        }
        return Ok(());
    }
    line(make(flags, now()?)?)?;
    Ok(())
}

/// A node's keys, and what it can.
struct Own {
    identity: PrivateKey,
    /// The file with the private key.
    file: PathBuf,
    kem: Option<KemKey>,
    epoch: EpochLength,
    capabilities: Capabilities,
}

fn make(flags: &flags::KeysCard, now: u64) -> Result<String, Failure> {
    let file = Path::new(&flags.file);
    let name = match &flags.name {
        Some(name) => name.parse::<CardName>(),
        None => file.file_stem().unwrap_or_default().to_string_lossy().parse(),
    };
    let name = name.map_err(|error| {
        Failure::new(format!("the name on the card {error}")).remedy("give one with `--name NAME`")
    })?;
    let own = own(file)?;
    let kem = match (flags.without_ml_kem, own.kem) {
        (true, _) => None,
        (false, Some(kem)) => Some(kem),
        (false, None) => Some(make_kem(&kem_key_file(&own.file))?),
    };
    let card = KeyCard {
        name,
        key: own.identity.public(),
        kem: kem.map(|kem| kem.public().clone()),
        valid: (now.saturating_sub(BACK), now + u64::from(flags.days) * DAY),
        epoch: own.epoch,
        capabilities: own.capabilities,
    };
    Ok(card.sign(&own.identity))
}

/// What is in a configuration and the files it names, or beside a private key.
fn own(file: &Path) -> Result<Own, Failure> {
    if let Ok(identity) = read_text(file, FILE_MAX).and_then(|_| read_private(file)) {
        let capabilities = measured(Capabilities::typical());
        let kem = read_kem(&kem_key_file(file))?;
        let epoch = EpochLength::default();
        return Ok(Own { identity, file: file.to_owned(), kem, epoch, capabilities });
    }
    let config = Config::load(file).map_err(Failure::new)?;
    let none = || {
        Failure::new(format!("{} names no private key", file.display()))
            .remedy("set `private_key_file` in `[node]`")
    };
    let identity = config.private_key().map_err(Failure::new)?.ok_or_else(none)?;
    let kem = config.kem_key().map_err(Failure::new)?;
    let typical = Capabilities::typical();
    let capabilities = measured(config.capabilities(typical.ranking, typical.expansion));
    let epoch = epoch(&config)?;
    let file = config.node.private_key_file.ok_or_else(none)?;
    Ok(Own { identity, file, kem, epoch, capabilities })
}

/// The length of an epoch, which is the same with all peers.
fn epoch(config: &Config) -> Result<EpochLength, Failure> {
    let mut lengths = config.peers.iter().filter_map(|peer| Some(peer.sessionless.as_ref()?.epoch));
    let first = lengths.next().unwrap_or_default();
    if lengths.all(|length| length == first) {
        return Ok(first);
    }
    Err(Failure::new("the peers have different epochs, and a card has one")
        .remedy("set `epoch` alike in all `[[peer]]`"))
}

/// The ML-KEM key in a file; nothing where there is none.
fn read_kem(path: &Path) -> Result<Option<KemKey>, Failure> {
    if !path.exists() {
        return Ok(None);
    }
    let text = read_text(path, CARD_FILE_MAX)?;
    let key = text.parse().map_err(|error| {
        Failure::new(format!("{} {error}", path.display()))
            .remedy("move it away; the next card gets a new one")
    });
    key.map(Some)
}

/// A new ML-KEM key in a new file.
fn make_kem(path: &Path) -> Result<KemKey, Failure> {
    let failed = |error| Failure::new(format!("the ML-KEM key that was made {error}"));
    let key = KemKey::generate().map_err(failed)?;
    write_new(path, 0o600, &[key.expose_line().map_err(failed)?.as_bytes(), b"\n"])?;
    note(format_args!(
        "ML-KEM key: {} (new; readable by you only; never leaves this machine)",
        path.display()
    ));
    Ok(key)
}

/// The card in a line, or in the file with this name.
fn parse(given: &str) -> Result<KeyCard, Failure> {
    let is_line = given.trim_start().starts_with("strait-card");
    let text = if is_line {
        given.to_owned()
    } else {
        read_text(Path::new(given), CARD_FILE_MAX)?.as_str().to_owned()
    };
    let what = if is_line { "the line" } else { given };
    text.parse().map_err(|error| {
        Failure::new(format!("{what} {error}"))
            .remedy("have its node print another one with `strait keys card`")
    })
}

fn now() -> Result<u64, Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_err(|_| Failure::new("this machine's clock is before 1970").remedy("set it"))?;
    Ok(now.as_secs())
}

/// Whether a card is valid at `now`, in a word.
fn validity(card: &KeyCard, now: u64) -> &'static str {
    match card.valid {
        (from, _) if now < from => "not yet valid",
        (_, until) if now > until => "expired",
        _ => "valid",
    }
}

/// A time of a card; one that no calendar has is said as it is.
fn date(seconds: u64) -> String {
    let known = i64::try_from(seconds).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    known.map_or_else(|| format!("{seconds} s after 1970"), |at| at.to_string())
}

fn suites(capabilities: &Capabilities) -> Vec<&'static str> {
    let fastest_first = capabilities.ranking.order().into_iter();
    fastest_first.filter(|suite| capabilities.suites.contains(*suite)).map(|suite| suite.name()).collect()
}

fn codecs(capabilities: &Capabilities) -> Vec<&'static str> {
    capabilities.codecs.iter().filter(|codec| *codec != Codec::None).map(Codec::name).collect()
}

fn payloads(capabilities: &Capabilities) -> &'static str {
    match capabilities.format {
        PayloadFormat::Strait => "bundles and Strait blocks",
        PayloadFormat::Standard => "packets only",
    }
}

fn as_text(card: &KeyCard, now: u64) -> Result<String, Failure> {
    use std::fmt::Write as _;
    let can = &card.capabilities;
    let down = match can.down {
        LinkRate::Unpaced => "not given".to_owned(),
        LinkRate::Auto => "found out".to_owned(),
        LinkRate::Given(rate) => rate.to_string(),
    };
    let kem = if card.kem.is_some() { "ML-KEM-768" } else { "none: not safe from a quantum computer" };
    let (from, until) = (date(card.valid.0), date(card.valid.1));
    let rows = [
        ("name", card.name.as_str().to_owned()),
        ("public key", card.key.to_string()),
        ("in headers", hex(key_name(&card.key).bytes())),
        ("second key", kem.to_owned()),
        ("valid", format!("{from} to {until}: {}", validity(card, now))),
        ("epoch", format!("{} s", card.epoch.seconds())),
        ("suites", suites(can).join(", ")),
        ("payloads", payloads(can).to_owned()),
        ("codecs", codecs(can).join(", ")),
        ("largest block", bytes(u64::from(can.block_cap))),
        ("inner MTU", can.inner_mtu.to_string()),
        ("rate in", down),
        ("signature", "right: the holder of the public key wrote this".to_owned()),
    ];
    let mut text = String::new();
    for (what, value) in rows {
        writeln!(text, "{what:<14} {value}").map_err(Failure::new)?;
    }
    Ok(text)
}

fn as_json(card: &KeyCard, now: u64) -> Value {
    let can = &card.capabilities;
    json!({
        "name": card.name.as_str(),
        "public_key": card.key.to_string(),
        "header_name": hex(key_name(&card.key).bytes()),
        "ml_kem": card.kem.is_some(),
        "valid_from": card.valid.0,
        "valid_until": card.valid.1,
        "validity": validity(card, now),
        "epoch_seconds": card.epoch.seconds(),
        "suites": suites(can),
        "payloads": payloads(can),
        "codecs": codecs(can),
        "block_bytes": can.block_cap,
        "inner_mtu": can.inner_mtu,
        "down_bits_per_second": can.down.given().map(strait_scheduler::Rate::bits),
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
