//! `authority publish`: good certificates and the newest list, to each directory.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use strait_keying::directory::{Answer, Certificate, Question};
use strait_node::directory::DirectoryConnection;

use super::folder::AuthorityFolder;
use super::{now, say};
use crate::failure::{CommandResult, Failure};
use crate::flags::AuthorityPublish;
use crate::output::note;
use crate::silence::AnswerLine;

/// How long a directory may take for each step: it may wait for its disk, for etcd, and for what this host may ask in a second.
const PATIENCE: Duration = Duration::from_secs(30);
/// Certificates that are on their way at once: what a directory keeps in one transaction.
const WINDOW: usize = 64;

pub(super) fn publish(flags: &AuthorityPublish) -> CommandResult {
    let folder = AuthorityFolder::open(&flags.dir)?;
    let (list, now) = (folder.list()?, now());
    let certificates = folder.certificates()?;
    let good: Vec<&Certificate> =
        certificates.iter().filter(|one| now <= one.valid().1 && !list.has(one.serial())).collect();
    let list_bytes = list.as_bytes();
    let (mut rows, mut failed): (Vec<Value>, _) = (Vec::new(), None);
    for server in &flags.servers {
        let heard = Mutex::new(Instant::now());
        let silent = || heard.lock().map(|at| at.elapsed()).unwrap_or_default();
        let publish = || to(server, list_bytes, &good, &heard);
        match AnswerLine::new().during(server, silent, publish) {
            Ok(refused) => {
                let taken = good.len() - refused.len();
                refused.iter().for_each(|(serial, words)| {
                    note(format_args!("strait: {server} refuses certificate {serial}: {words}"));
                });
                let serials: Vec<u64> = refused.iter().map(|(serial, _)| *serial).collect();
                rows.push(
                    json!({ "server": server, "list": list.number(), "taken": taken, "refused": serials }),
                );
            }
            Err(failure) => {
                note(format_args!("strait: {server}: {failure}"));
                rows.push(json!({ "server": server, "error": failure.to_string() }));
                failed = Some(Failure::new("not all directories have what was signed"));
            }
        }
    }
    say(flags.json, &Value::from(rows.clone()), || {
        rows.iter()
            .filter(|row| row.get("error").is_none())
            .map(|row| {
                let server = row["server"].as_str().unwrap_or_default();
                format!("{server} has list {} and {} certificates\n", row["list"], row["taken"])
            })
            .collect()
    })?;
    failed.map_or(Ok(()), Err)
}

/// Publishes to one directory; returns what it refused of the certificates, with its words. Each answer is noted in `heard`.
fn to(
    server: &str,
    list: &[u8],
    certificates: &[&Certificate],
    heard: &Mutex<Instant>,
) -> Result<Vec<(u64, String)>, Failure> {
    let note_answer = || {
        if let Ok(mut at) = heard.lock() {
            *at = Instant::now();
        }
    };
    let mut directory =
        DirectoryConnection::open(server, PATIENCE).map_err(Failure::doing("reach the directory"))?;
    // The list first, so that no revoked certificate is taken meanwhile.
    directory.ask(&Question::PutList(list.into())).map_err(Failure::new)?;
    note_answer();
    let mut refused = Vec::new();
    for some in certificates.chunks(WINDOW) {
        for one in some {
            let said = directory.say(&Question::PutCertificate(one.as_bytes().into()));
            said.map_err(Failure::doing("write to the directory"))?;
        }
        for one in some {
            let answer = directory.hear().map_err(Failure::new)?;
            note_answer();
            match answer {
                Answer::Stored => {}
                Answer::Refused(words) => refused.push((one.serial(), words)),
                _ => return Err(Failure::new("the directory answered something else than it was asked")),
            }
        }
    }
    Ok(refused)
}
