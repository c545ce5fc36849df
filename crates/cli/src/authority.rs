//! `authority`: signs certificates and revocation lists, and puts them into directories.
//!
//! ```text
//! DIR/authority.key      the key, for its owner only             folder.rs
//! DIR/authority.pub      its public half, for configurations
//! DIR/certificates/N     certificate N, a line of text
//! DIR/revocations        the newest revocation list
//! DIR/serial             the next serial number
//! ```

mod folder;
mod publish;
#[cfg(test)]
mod tests;

use std::io::Read;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use strait_keying::directory::{Certificate, CertificateTerms};
use strait_keying::sessionless::{CARD_TEXT_MAX, KeyCard};

use crate::failure::{CommandResult, Failure};
use crate::flags::{
    Authority, AuthorityCommand, AuthorityInit, AuthorityList, AuthorityRenew, AuthorityRevoke, AuthoritySign,
};
use crate::output;
use crate::table::{Side, TextTable};
use folder::AuthorityFolder;

/// How far the clocks of nodes may be behind that of the authority.
const EARLIER: u64 = 600;
const DAY: u64 = 86_400;

/// Runs a command.
pub(crate) fn run(flags: &Authority) -> CommandResult {
    match &flags.command {
        AuthorityCommand::Init(flags) => init(flags),
        AuthorityCommand::Sign(flags) => sign(flags),
        AuthorityCommand::Revoke(flags) => revoke(flags),
        AuthorityCommand::Renew(flags) => renew(flags),
        AuthorityCommand::List(flags) => list(flags),
        AuthorityCommand::Publish(flags) => publish::publish(flags),
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn init(flags: &AuthorityInit) -> CommandResult {
    let folder = AuthorityFolder::make(&flags.dir, now())?;
    let public = folder.public().to_string();
    say(flags.json, &json!({ "authority": public, "list": 1 }), || {
        format!(
            "private key: {} (readable by you only; who has it can admit nodes)\nauthority:   {public}\n",
            flags.dir.join(folder::KEY).display()
        )
    })
}

fn sign(flags: &AuthoritySign) -> CommandResult {
    let folder = AuthorityFolder::open(&flags.dir)?;
    let certificate = issue(&folder, flags, &card_text(&flags.card)?, now())?;
    let file = folder.certificate_file(certificate.serial());
    say(flags.json, &described(&certificate, "good"), || {
        let terms = certificate.terms();
        format!("certificate {} for {}: {}\n", terms.serial, terms.name.as_str(), file.display())
    })
}

/// A new certificate, in the folder.
fn issue(
    folder: &AuthorityFolder,
    flags: &AuthoritySign,
    text: &str,
    now: u64,
) -> Result<Certificate, Failure> {
    let card: KeyCard = text.parse().map_err(|error| Failure::new(format!("what was given {error}")))?;
    if !(card.valid.0..=card.valid.1).contains(&now) {
        return Err(Failure::new("the card is not valid now").remedy("have the node make another one"));
    }
    let name = flags.name.as_ref().map_or(Ok(card.name.clone()), |name| {
        name.parse().map_err(|error| Failure::new(format!("the name {error}")))
    })?;
    let mut networks = flags.allowed_ips.clone();
    networks.sort_unstable();
    networks.dedup();
    if let Some(net) = networks.iter().find(|net| net.trunc() != **net) {
        return Err(Failure::new(format!("{net} has bits behind its prefix")).remedy(format!(
            "write {}, or {}/{}",
            net.trunc(),
            net.addr(),
            net.max_prefix_len()
        )));
    }
    let list = folder.list()?;
    for other in folder.certificates()? {
        let is_good = now <= other.valid().1 && !list.has(other.serial());
        if !is_good || *other.key() == card.key {
            continue;
        }
        let remedy = format!("revoke it, or give the node another one; {} has it", other.serial());
        if other.terms().name == name {
            return Err(Failure::new(format!("another node is called {}", name.as_str())).remedy(remedy));
        }
        if let Some(net) = other.terms().networks.iter().find(|net| networks.contains(net)) {
            return Err(Failure::new(format!("another node has {net}")).remedy(remedy));
        }
    }
    let valid = (now.saturating_sub(EARLIER), now.saturating_add(u64::from(flags.days) * DAY));
    let endpoint = flags.endpoint.clone();
    folder.sign(&CertificateTerms { serial: 0, name, networks, valid, endpoint }, text)
}

/// A card in a file, or on standard input.
fn card_text(path: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let most = u64::try_from(CARD_TEXT_MAX).unwrap_or(0) + 2;
    let read = if path == Path::new("-") {
        std::io::stdin().take(most).read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(most).read_to_string(&mut text))
    };
    read.map_err(Failure::doing(format!("read the card in {}", path.display())))?;
    Ok(text)
}

fn revoke(flags: &AuthorityRevoke) -> CommandResult {
    let folder = AuthorityFolder::open(&flags.dir)?;
    let (number, revoked) = add_revoked(&folder, &flags.which, now())?;
    say(flags.json, &json!({ "list": number, "revoked": revoked }), || {
        let serials: Vec<String> = revoked.iter().map(u64::to_string).collect();
        format!("revoked {}; list {number} has to be published\n", serials.join(", "))
    })
}

/// A new list with these certificates on it; those that were good before.
fn add_revoked(folder: &AuthorityFolder, which: &[String], now: u64) -> Result<(u64, Vec<u64>), Failure> {
    let list = folder.list()?;
    let certificates = folder.certificates()?;
    let mut revoked = Vec::new();
    for one in which {
        let meant = |certificate: &&Certificate| {
            certificate.terms().name.as_str() == one || certificate.serial().to_string() == *one
        };
        let found: Vec<u64> = certificates.iter().filter(meant).map(Certificate::serial).collect();
        if found.is_empty() {
            return Err(Failure::new(format!("no certificate is called {one}"))
                .remedy("`strait authority list` shows them"));
        }
        revoked.extend(found.into_iter().filter(|serial| !list.has(*serial)));
    }
    revoked.sort_unstable();
    revoked.dedup();
    if revoked.is_empty() {
        return Err(Failure::new("these are revoked already"));
    }
    Ok((folder.renew(&revoked, now)?, revoked))
}

fn renew(flags: &AuthorityRenew) -> CommandResult {
    let number = AuthorityFolder::open(&flags.dir)?.renew(&[], now())?;
    say(flags.json, &json!({ "list": number }), || format!("list {number} has to be published\n"))
}

fn list(flags: &AuthorityList) -> CommandResult {
    let folder = AuthorityFolder::open(&flags.dir)?;
    let (list, now) = (folder.list()?, now());
    let certificates = folder.certificates()?;
    let state = |certificate: &Certificate| match certificate.valid() {
        _ if list.has(certificate.serial()) => "revoked",
        (_, until) if now > until => "expired",
        _ => "good",
    };
    if flags.json {
        let rows: Vec<Value> = certificates.iter().map(|one| described(one, state(one))).collect();
        let issued = list.issued();
        let all = json!({
            "authority": folder.public().to_string(), "list": list.number(), "issued": issued, "certificates": rows,
        });
        return output::print(format!("{all}\n").as_bytes());
    }
    let mut table =
        TextTable::new(["serial", "name", "state", "until", "allowed_ips", "endpoint"]).side(0, Side::Right);
    for column in 1..6 {
        table = table.side(column, Side::Left);
    }
    for one in &certificates {
        let terms = one.terms();
        let networks: Vec<String> = terms.networks.iter().map(ToString::to_string).collect();
        table.row([
            terms.serial.to_string(),
            terms.name.as_str().to_owned(),
            state(one).to_owned(),
            day(one.valid().1),
            networks.join(" "),
            terms.endpoint.clone().unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    let text = if table.is_empty() { "no certificates\n".to_owned() } else { table.render(0) };
    output::print(text.as_bytes())
}

/// A day, as people write it, of seconds since 1970.
fn day(seconds: u64) -> String {
    let at = i64::try_from(seconds).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    at.map_or_else(|| "never".to_owned(), |at| at.strftime("%Y-%m-%d").to_string())
}

fn described(certificate: &Certificate, state: &str) -> Value {
    let terms = certificate.terms();
    let networks: Vec<String> = terms.networks.iter().map(ToString::to_string).collect();
    let (from, until) = certificate.valid();
    json!({
        "serial": terms.serial, "name": terms.name.as_str(), "public_key": certificate.key().to_string(),
        "allowed_ips": networks, "endpoint": terms.endpoint, "from": from, "until": until, "state": state,
        "certificate": certificate.to_text(),
    })
}

fn say(as_json: bool, value: &Value, text: impl FnOnce() -> String) -> CommandResult {
    let text = if as_json { format!("{value}\n") } else { text() };
    output::print(text.as_bytes())
}
