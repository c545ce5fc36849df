//! Scapy as a peer: it seals packets and opens those of others.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use strait_testbed::outside::PYTHON;

use crate::agreement::{Agreement, Direction};
use crate::lines::Lines;

/// How long an answer may take; the first one includes scapy's start.
const PATIENCE: Duration = Duration::from_secs(60);

/// Scapy, running.
pub(crate) struct Scapy(Lines);

/// What scapy found in datagrams.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The packets that were protected.
    pub(crate) packets: Vec<Vec<u8>>,
    /// What was taken off each datagram, outermost first.
    pub(crate) layers: Vec<Vec<String>>,
    /// The lower half of each datagram's sequence number, where it has one.
    pub(crate) numbers: Vec<Option<u32>>,
}

impl Scapy {
    pub(crate) fn start() -> Scapy {
        Scapy(Lines::start(Command::new(PYTHON), "family.py", &[]))
    }

    /// Datagrams with `packets` in them, numbered from `number` on; its upper half is that of all of them.
    ///
    /// # Errors
    /// Why scapy cannot make them.
    pub(crate) fn seal(
        &mut self,
        agreement: &Agreement,
        direction: Direction,
        packets: &[Vec<u8>],
        number: u64,
    ) -> Result<Vec<Vec<u8>>, String> {
        let (high, low) = halves(number);
        let association = agreement.association(direction, high);
        let packets: Vec<String> = packets.iter().map(|packet| hex(packet)).collect();
        let answer = self.ask(&json!({"association": association, "seal": packets, "number": low}))?;
        Ok(packets_of(&answer["datagrams"]))
    }

    /// What is in `datagrams`, whose sequence numbers all have this upper half.
    ///
    /// # Errors
    /// What is wrong with one of them.
    pub(crate) fn open(
        &mut self,
        agreement: &Agreement,
        direction: Direction,
        datagrams: &[Vec<u8>],
        high: u32,
    ) -> Result<Opened, String> {
        let association = agreement.association(direction, high);
        let datagrams: Vec<String> = datagrams.iter().map(|datagram| hex(datagram)).collect();
        let answer = self.ask(&json!({"association": association, "open": datagrams}))?;
        let found = answer["datagrams"].as_array().unwrap();
        let layers = |it: &Value| it["layers"].as_array().unwrap().iter().map(text).collect();
        let number = |it: &Value| it["number"].as_u64().map(|number| u32::try_from(number).unwrap());
        Ok(Opened {
            packets: packets_of(&answer["packets"]),
            layers: found.iter().map(layers).collect(),
            numbers: found.iter().map(number).collect(),
        })
    }

    fn ask(&mut self, request: &Value) -> Result<Value, String> {
        self.0.send(&request.to_string());
        let answer: Value =
            serde_json::from_str(&self.0.receive(PATIENCE).expect("scapy is silent")).unwrap();
        answer.get("error").map_or(Ok(answer.clone()), |error| Err(text(error)))
    }
}

fn halves(number: u64) -> (u32, u32) {
    (u32::try_from(number >> 32).unwrap(), u32::try_from(number & u64::from(u32::MAX)).unwrap())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn packets_of(list: &Value) -> Vec<Vec<u8>> {
    list.as_array().unwrap().iter().map(|packet| unhex(packet.as_str().unwrap())).collect()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}
