//! What a session that does nothing takes: memory at both ends, and bytes on the link.

use std::collections::BTreeSet;
use std::time::Duration;

use strait_lab::measure::{RunValues, settle};
use strait_sim::LossModel;
use strait_testbed::interrupt;
use strait_testbed::outside::quoted;

use super::stage::{LoginStage, PROMPT};
use super::way::LoginWay;
use crate::content::sample_log;
use crate::error::Error;
use crate::files::{all, own_memory, tree};
use crate::paths::ThinPath;
use crate::report::{BenchSection, progress};
use crate::stage::BenchSetup;
use crate::target::Target;

const LINK: ThinPath = ThinPath { megabits: Some(100.0), rtt: None, loss: LossModel::None };
/// MiB at each end for a session beside the first.
const MEMORY: Target = Target::AtMost(16.0);
/// Bytes that an idle session sends.
const BYTES: Target = Target::AtMost(0.0);
/// Sessions, each after output.
const SESSIONS: usize = 8;
const LOG: usize = 2_000_000;
const PATIENCE: Duration = Duration::from_secs(60);
/// Until what belongs to a session's beginning has been acknowledged; then it is looked at for so long.
const CALM: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_secs(50);
const WAYS: [LoginWay; 3] = [LoginWay::Strait, LoginWay::Ssh, LoginWay::Mosh];

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let (count, look) = setting.effort.pick((SESSIONS, LOOK), (2, Duration::from_secs(10)));
    let title = format!(
        "{count} shells at once, each after {:.0} MB of output, {LINK}; then {} s without a keystroke",
        LOG as f64 / 1e6,
        look.as_secs()
    );
    let mut section = BenchSection::new("login: idle", title, &WAYS.map(LoginWay::name));
    section.notes.push(
        "memory that is a process's own (RssAnon and RssShmem), of all of a program's processes at both ends, without terminals and shells"
            .to_owned(),
    );
    let stage = LoginStage::set(setting, LINK)?;
    let log = stage.file("log");
    std::fs::write(&log, sample_log(LOG)).map_err(Error::doing("write a log"))?;
    let mut memory: [RunValues; WAYS.len()] = Default::default();
    let mut bytes: [RunValues; WAYS.len()] = Default::default();
    for (at, way) in WAYS.into_iter().enumerate() {
        if let Some(why) = stage.missing(way) {
            section.notes.push(why);
            continue;
        }
        // mosh's server has one port here.
        let count = if way == LoginWay::Mosh { 1 } else { count };
        section.before.push(settle()?);
        let others = all();
        let before = used(&stage, &others);
        let mut logins = Vec::new();
        for _ in 0..count {
            let mut login = stage.shell(way)?;
            login.terminal.type_in(&format!("cat {}\n", quoted(&log.display().to_string())))?;
            login.terminal.wait_for(PROMPT, PATIENCE)?;
            logins.push(login);
        }
        interrupt::pause(CALM)?;
        let each = (used(&stage, &others) - before) / count as f64;
        progress(section.name, 1, way.name(), each, "MiB");
        memory[at].push(each);
        let crossed = stage.hosts.link.traffic()?;
        interrupt::pause(look)?;
        let since = stage.hosts.link.traffic()?.since(crossed);
        bytes[at].push((since.there.bytes + since.back.bytes) as f64);
    }
    section.judge("Strait: memory a session, both ends, MiB", memory[0].clone(), MEMORY);
    section.judge("Strait: bytes on the link while idle", bytes[0].clone(), BYTES);
    section.row("memory a session, both ends, MiB", memory);
    section.row("bytes on the link while idle", bytes);
    Ok(section)
}

/// MiB of the daemons, the sshd and all that was started since there were `before`.
fn used(stage: &LoginStage, before: &BTreeSet<u32>) -> f64 {
    let mut pids: BTreeSet<u32> = all().difference(before).copied().collect();
    stage.daemons.iter().for_each(|daemon| pids.extend(tree(daemon.pid())));
    own_memory(&pids, &["strait", "ssh", "mosh"])
}
