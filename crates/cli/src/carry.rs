//! `carry`: transfers on a stick.

use std::collections::BTreeMap;

use strait_keying::PublicKey;
use strait_node::config::PeerKeys;
use strait_terminal::output::print;
use strait_terminal::units::{bytes, counted};
use strait_transfer::arrival::{ArrivalPermission, ArrivalPlace};
use strait_transfer::carry::{CarryReport, StickVisit};
use strait_transfer::path::Printable;
use strait_transfer::sealed::{DeliveryOutcome, DeliveryReceipt, EntryFailure, Manifest};

use crate::configuration::load;
use crate::failure::{CommandResult, Failure};
use crate::outbox::OutboxHome;
use crate::{flags, outbox};

/// Visits a stick: takes receipts, reads what is for this node, writes what waits.
pub(crate) fn run(flags: &flags::Carry) -> CommandResult {
    let OutboxHome { key: node, folder, .. } = OutboxHome::of(&flags.file, flags.outbox.as_deref())?;
    let peers: BTreeMap<PublicKey, String> = load(&flags.file)?
        .peers
        .iter()
        .filter_map(|peer| match &peer.keys {
            PeerKeys::Session { public_key, .. } => Some((*public_key, peer.name.clone())),
            PeerKeys::Manual(_) => None,
        })
        .collect();
    if !flags.stick.is_dir() {
        return Err(Failure::new(format!("{} is not a folder", flags.stick.display()))
            .remedy("name the folder where the stick is mounted"));
    }
    let mut outbox = outbox::open(&folder, &node)?;
    let into = flags.into.clone();
    let permit = move |_: &Manifest| match &into {
        Some(folder) => ArrivalPermission::Take(ArrivalPlace::open_to_all(folder.clone())),
        None => ArrivalPermission::Leave("it is for this node; `--into FOLDER` takes it".to_owned()),
    };
    let mut carrier = StickVisit {
        node: &node,
        peers: &peers,
        permit: &permit,
        random: outbox::random()?,
        now: outbox::now(),
    };
    let report = carrier.run(&flags.stick, &mut outbox).map_err(outbox::refused)?;
    let text = if flags.json { json(&report)? } else { words(&report, &peers) };
    print(text.as_bytes())?;
    let problems = report.problems.len() as u64;
    let lacking = report.delivered.iter().chain(&report.received).filter(|it| !is_whole(it)).count() as u64;
    let wrong = [(problems, "could not be carried"), (lacking, "did not arrive whole")];
    let wrong: Vec<String> = wrong
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, words)| format!("{} {words}", counted(*count, "transfer")))
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(Failure::new(wrong.join(", "))) }
}

fn is_whole(receipt: &DeliveryReceipt) -> bool {
    receipt.outcome == DeliveryOutcome::Whole
}

fn words(report: &CarryReport, peers: &BTreeMap<PublicKey, String>) -> String {
    let mut text = String::new();
    let name = |key: &PublicKey| peers.get(key).cloned().unwrap_or_else(|| key.to_string());
    for receipt in &report.delivered {
        text += &format!(
            "{}  delivered to {}: {}\n",
            receipt.transfer,
            name(&receipt.receiver),
            outcome(receipt)
        );
    }
    for receipt in &report.received {
        text +=
            &format!("{}  received from {}: {}\n", receipt.transfer, name(&receipt.sender), outcome(receipt));
    }
    for (id, size) in &report.written {
        text += &format!("{id}  written, {}\n", bytes(*size));
    }
    for id in &report.there {
        text += &format!("{id}  is on the stick already\n");
    }
    for (id, why) in &report.problems {
        // What a stranger wrote may be in it.
        text += &format!("{id}  {}\n", why.escape_debug());
    }
    if report.others > 0 {
        text += &format!("{} for others\n", counted(report.others, "transfer"));
    }
    if text.is_empty() { "nothing to carry\n".to_owned() } else { text }
}

/// How a transfer ended, in words.
pub(crate) fn outcome(receipt: &DeliveryReceipt) -> String {
    let arrived = format!("{}, {}", entries(receipt.entries), bytes(receipt.bytes));
    match receipt.outcome {
        DeliveryOutcome::Whole => arrived,
        DeliveryOutcome::Partly => {
            let names = EntryFailure::list(&receipt.failures, receipt.failed);
            format!("{arrived}; {} failed: {names}", entries(receipt.failed))
        }
        DeliveryOutcome::Refused => {
            let reason = receipt.failures.first().map_or("", |failure| &failure.reason);
            format!("refused: {}", reason.escape_debug())
        }
    }
}

fn entries(count: u64) -> String {
    if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") }
}

/// A receipt for programs.
pub(crate) fn receipt_json(receipt: &DeliveryReceipt) -> serde_json::Value {
    let outcome = match receipt.outcome {
        DeliveryOutcome::Whole => "whole",
        DeliveryOutcome::Partly => "partly",
        DeliveryOutcome::Refused => "refused",
    };
    let DeliveryReceipt { entries, bytes, failed, .. } = receipt;
    let failures = receipt.failures.iter().map(
        |EntryFailure { path, reason }| serde_json::json!({"path": Printable(path).to_string(), "reason": reason}),
    );
    serde_json::json!({
        "transfer": receipt.transfer.to_string(),
        "sender": receipt.sender.to_string(),
        "receiver": receipt.receiver.to_string(),
        "outcome": outcome,
        "entries": entries,
        "bytes": bytes,
        "failed": failed,
        "failures": failures.collect::<Vec<_>>(),
    })
}

fn json(report: &CarryReport) -> Result<String, Failure> {
    let written = report
        .written
        .iter()
        .map(|(id, bytes)| serde_json::json!({ "transfer": id.to_string(), "bytes": bytes }));
    let problems = report
        .problems
        .iter()
        .map(|(id, why)| serde_json::json!({ "transfer": id.to_string(), "reason": why }));
    let whole = serde_json::json!({
        "delivered": report.delivered.iter().map(receipt_json).collect::<Vec<_>>(),
        "received": report.received.iter().map(receipt_json).collect::<Vec<_>>(),
        "written": written.collect::<Vec<_>>(),
        "there": report.there.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "others": report.others,
        "problems": problems.collect::<Vec<_>>(),
    });
    let text = serde_json::to_string_pretty(&whole)
        .map_err(|error| Failure::new(format!("cannot write the report as JSON: {error}")))?;
    Ok(text + "\n")
}
