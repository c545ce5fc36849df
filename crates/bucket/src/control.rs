//! Orders over a Unix socket: lines of JSON, each answered by one.

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

use crate::faults::{ClockShift, Faults, Rule};

/// The most bytes of one connection's orders.
const MOST: u64 = 1 << 20;

/// What is ordered; what a line does not have stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// The rules from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Vec<Rule>>,
    /// The clock from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockShift>,
}

/// What was counted until an order was carried out.
#[derive(Serialize)]
struct Counted {
    requests: u64,
    met: u64,
}

/// Carries out orders, for as long as the runtime lives.
pub(crate) async fn serve(socket: UnixListener, faults: Faults) {
    while let Ok((stream, _)) = socket.accept().await {
        tokio::spawn(obey(stream, faults.clone()));
    }
}

async fn obey(mut stream: UnixStream, faults: Faults) {
    let (orders, mut answers) = stream.split();
    let mut orders = BufReader::new(orders.take(MOST)).lines();
    while let Ok(Some(line)) = orders.next_line().await {
        let mut answer = carry_out(&line, &faults);
        answer.push('\n');
        if answers.write_all(answer.as_bytes()).await.is_err() {
            break;
        }
    }
}

fn carry_out(line: &str, faults: &Faults) -> String {
    let order: Order = match serde_json::from_str(line) {
        Ok(order) => order,
        Err(error) => return serde_json::json!({ "error": error.to_string() }).to_string(),
    };
    let counted = Counted { requests: faults.requests(), met: faults.met() };
    if let Some(rules) = order.rules {
        faults.set(rules);
    }
    if let Some(clock) = order.clock {
        faults.shift_clock(clock);
    }
    serde_json::json!(counted).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::Fault;

    #[test]
    fn an_order_changes_what_it_names() {
        let faults = Faults::default();
        let line = r#"{"rules": [{"fault": {"status": 500}}], "clock": {"seconds": 60}}"#;
        assert_eq!(carry_out(line, &faults), r#"{"met":0,"requests":0}"#);
        assert_eq!(faults.of("GET", "/"), Some(Fault::Status(500)));
        assert_eq!(carry_out("{}", &faults), r#"{"met":1,"requests":1}"#);
        assert_eq!((faults.of("GET", "/"), faults.clock_seconds()), (Some(Fault::Status(500)), 60));
        assert!(carry_out("{\"rule\": []}", &faults).contains("error"));
    }
}
