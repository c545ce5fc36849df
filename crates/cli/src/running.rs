//! `up`, `down` and `reload`: tunnels that run.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use strait_node::background::{self, BackgroundError};
use strait_node::client::{self, ClientError};
use strait_node::daemon::{ServiceMains, StartError};
use strait_node::direct::DirectError;
use strait_node::private_daemon::own_configuration;
use strait_node::tun::TunError;
use strait_node::{daemon, logging, network, runtime};

use crate::failure::{Code, CommandResult, Failure};
use crate::flags::{self, LogForm};
use crate::output::line;
use crate::{configuration, files, login};

/// How long a daemon may take to end that ends by itself while it is asked, and how often it is looked for.
const ENDING: Duration = Duration::from_secs(10);
const AGAIN: Duration = Duration::from_millis(50);
/// Where the system keeps logs (hier(7)).
const LOG_FOLDER: &str = "/var/log";

/// Starts a tunnel.
pub(crate) fn up(flags: &flags::Up) -> CommandResult {
    if flags.foreground { foreground(flags) } else { in_background(flags) }
}

fn foreground(flags: &flags::Up) -> CommandResult {
    let form = match flags.log {
        LogForm::Text => logging::Form::Text,
        LogForm::Json => logging::Form::Json,
    };
    logging::start(form).map_err(Failure::new)?;
    daemon::run_with(
        &flags.file,
        ServiceMains {
            files: files::service(&flags.file),
            login: login::service(&flags.file),
            // A broker is another program's.
            broker: None,
        },
    )
    .map_err(|error| {
        let code = code(&error);
        Failure::new(error).code(code)
    })
}

/// What the system forbids or lacks is told apart from what is wrong with the configuration.
fn code(error: &StartError) -> Code {
    match error {
        StartError::Tun(TunError::Missing | TunError::Forbidden | TunError::Unprivileged { .. })
        | StartError::Direct(DirectError::Unprivileged) => Code::Environment,
        _ => Code::Failed,
    }
}

fn in_background(flags: &flags::Up) -> CommandResult {
    // Read here too, for the interface's name and to tell mistakes where the person is.
    let interface = configuration::load(&flags.file)?.node.interface;
    let log = match &flags.log_file {
        Some(file) => file.clone(),
        None => log_file(&interface)?,
    };
    let form = match flags.log {
        LogForm::Text => "text",
        LogForm::Json => "json",
    };
    let arguments =
        [OsStr::new("up"), flags.file.as_os_str(), "--foreground".as_ref(), "--log".as_ref(), form.as_ref()];
    let process = background::start(&arguments, &log).map_err(|error| {
        // The daemon wrote its failure as this program writes them.
        let said = error.to_string();
        let failure = Failure::new(said.strip_prefix("strait: ").unwrap_or(&said));
        match error {
            BackgroundError::Ended { code: Some(code), .. }
                if code == i32::from(Code::Environment.number()) =>
            {
                failure.code(Code::Environment)
            }
            _ => failure,
        }
    })?;
    line(format_args!("{interface} is up (process {process}, log {})", log.display()))?;
    Ok(())
}

/// The log of a tunnel in the background: the system's place, or beside its socket for who may not write there.
pub(crate) fn log_file(interface: &str) -> Result<PathBuf, Failure> {
    let name = format!("strait-{interface}.log");
    if strait_node::privileges::is_root() && Path::new(LOG_FOLDER).is_dir() {
        return Ok(Path::new(LOG_FOLDER).join(name));
    }
    let folder = runtime::folder().map_err(Failure::new)?;
    runtime::make(&folder).map_err(Failure::new)?;
    Ok(folder.join(name))
}

/// Ends a tunnel.
pub(crate) fn down(flags: &flags::Which) -> CommandResult {
    let interface = match (which(flags), killed()) {
        // A daemon that was killed has left what no other program removes.
        (Err(_), Some(only)) if flags.tunnel.is_none() => only,
        (which, _) => which?,
    };
    let mut answer = client::down(&interface, false);
    // One that ends by itself, or is killed, may still hear the question. What it leaves is known when it is gone.
    let ends = matches!(answer, Err(ClientError::Ended { .. }));
    let asked = Instant::now();
    while matches!(answer, Err(ClientError::Ended { .. })) && asked.elapsed() < ENDING {
        thread::sleep(AGAIN);
        answer = client::down(&interface, false);
    }
    match answer {
        Err(ClientError::NotRunning { .. }) if network::put_back(&interface).is_ok_and(|count| count > 0) => {
            line(format_args!(
                "{interface} was not running; removed what it left: settings, rules and routes"
            ))?;
            return Ok(());
        }
        Err(ClientError::NotRunning { .. }) if ends => {}
        other => other.map_err(refused)?,
    }
    line(format_args!("{interface} is down"))?;
    Ok(())
}

/// The only interface whose daemon was killed and left something, where no tunnel is running.
fn killed() -> Option<String> {
    if client::running().is_ok_and(|running| !running.is_empty()) {
        return None;
    }
    match network::left_behind().ok()?.as_slice() {
        [only] => Some(only.clone()),
        _ => None,
    }
}

/// Has a tunnel read its configuration again.
pub(crate) fn reload(flags: &flags::Which) -> CommandResult {
    let interface = which(flags)?;
    let changes = client::reload(&interface).map_err(refused)?;
    line(format_args!("{interface} reloaded its configuration: {changes}"))?;
    if !changes.need_restart.is_empty() {
        line("restart the tunnel to take them over")?;
    }
    Ok(())
}

/// The interface of the tunnel that is meant: the named one, that of the named file, or the only one.
pub(crate) fn which(flags: &flags::Which) -> Result<String, Failure> {
    if let Some(config) = configuration::named(flags.tunnel.as_deref())? {
        return Ok(config.node.interface);
    }
    match &flags.tunnel {
        Some(name) => Ok(name.clone()),
        None => match all()?.as_slice() {
            [only] => Ok(only.clone()),
            several => Err(ambiguous(several).remedy("name one of them")),
        },
    }
}

/// The node that carries a stream.
#[derive(Clone, Debug)]
pub(crate) enum CarryingNode {
    /// A daemon, by its interface.
    Running(String),
    /// This command's own, by its configuration.
    Own(PathBuf),
}

/// The node that carries a stream to `peer`: the daemon that is meant. Where it does not run, one of this command's own, if there is a
/// configuration without a tunnel device for it: the file that is named, or the user's own.
pub(crate) fn carrying(tunnel: Option<&str>, peer: &str) -> Result<CarryingNode, Failure> {
    if let (Some(file), Some(config)) = (tunnel, configuration::named(tunnel)?) {
        let interface = config.node.interface;
        let runs = config.node.tunnel || client::running().is_ok_and(|all| all.contains(&interface));
        return Ok(if runs { CarryingNode::Running(interface) } else { CarryingNode::Own(file.into()) });
    }
    if let Some(interface) = tunnel {
        return Ok(CarryingNode::Running(interface.to_owned()));
    }
    let all = match (all(), own_configuration()) {
        (Err(failure), Some(file)) if failure.number() == Code::NotRunning.number() => {
            return Ok(CarryingNode::Own(file));
        }
        (Err(failure), None) if failure.number() == Code::NotRunning.number() => {
            return Err(failure.also(
                "files and logins go without one: with `tunnel = false` in ~/.config/strait/strait.toml, or in the file that --tunnel names",
            ));
        }
        (all, _) => all?,
    };
    with_peer(&all, peer).map(CarryingNode::Running)
}

/// The interface of the tunnel that is meant by a command about a peer: the named one, that of the named file, the only one, or the only
/// one that has the peer.
pub(crate) fn which_with(tunnel: Option<&str>, peer: &str) -> Result<String, Failure> {
    match tunnel {
        Some(_) => which(&flags::Which { tunnel: tunnel.map(str::to_owned) }),
        None => with_peer(&all()?, peer),
    }
}

fn with_peer(all: &[String], peer: &str) -> Result<String, Failure> {
    let has = |interface: &&String| {
        client::show(interface).is_ok_and(|report| report.peers.iter().any(|it| it.name == peer))
    };
    match all {
        [only] => Ok(only.clone()),
        several => match several.iter().filter(has).collect::<Vec<_>>().as_slice() {
            [only] => Ok((*only).clone()),
            _ => Err(ambiguous(several).remedy("name one of them with --tunnel")),
        },
    }
}

fn ambiguous(several: &[String]) -> Failure {
    Failure::new(format!("several tunnels are running: {}", several.join(", ")))
}

/// The interfaces of all running tunnels; at least one.
pub(crate) fn all() -> Result<Vec<String>, Failure> {
    let interfaces = client::running().map_err(refused)?;
    if interfaces.is_empty() {
        let folder = runtime::folder().map_err(Failure::new)?;
        return Err(not_running(format!("no tunnel is running (no daemon listens in {})", folder.display())));
    }
    Ok(interfaces)
}

fn not_running(cause: String) -> Failure {
    Failure::new(cause)
        .remedy("start one with `strait up FILE`; if one is running, use the user who started it")
        .code(Code::NotRunning)
}

/// Why a daemon did not do what it was asked.
pub(crate) fn refused(error: ClientError) -> Failure {
    match error {
        ClientError::NotRunning { .. } => not_running(error.to_string()),
        ClientError::Ended { .. } => {
            Failure::new(error).remedy("run the same command again when it runs").code(Code::NotRunning)
        }
        ClientError::Forbidden { .. } => Failure::new(error).code(Code::Environment),
        _ => Failure::new(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_listener_is_exit_code_3() {
        let error = ClientError::NotRunning {
            interface: "strait9".to_owned(),
            path: "/run/strait/strait9.sock".into(),
        };
        let failure = refused(error);
        assert!(failure.to_string().contains("strait up"), "{failure}");
        assert_eq!(failure.number(), 3);
    }

    #[test]
    fn a_name_is_an_interface_unless_it_is_a_file() {
        let name = |name: &str| flags::Which { tunnel: Some(name.to_owned()) };
        assert_eq!(which(&name("strait0")).unwrap(), "strait0");
        assert_eq!(which(&name("no-such.toml")).unwrap(), "no-such.toml");
    }
}
