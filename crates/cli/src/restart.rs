//! `restart`: an updated program in the place of a tunnel that runs.

use std::path::PathBuf;

use strait_node::restart::{Restart, RestartError, RunningDaemon};

use crate::failure::{Code, CommandResult, Failure};
use crate::output::{line, tell};
use crate::{flags, running};

/// Restarts a tunnel with another program or configuration, or with what it ran with if the other does not come up.
pub(crate) fn restart(flags: &flags::Restart) -> CommandResult {
    let interface = running::which(&flags.which)?;
    let file = flags.which.tunnel.as_ref().map(PathBuf::from).filter(|file| file.is_file());
    let own = std::env::current_exe().map_err(Failure::doing("find this program"))?;
    let daemon = RunningDaemon::find(&interface).map_err(refused)?;
    let log = running::log_file(&interface)?;
    let restart = Restart::plan(daemon, flags.program.clone(), own, file, log).map_err(refused)?;
    let restart = restart.unless_heard(flags.unless_heard);
    tell(restart.check().map_err(refused)?);
    // Who sits behind this tunnel may see no more than this.
    tell(format_args!(
        "{interface} is restarted now, and goes on without this terminal (log {})",
        restart.log().display()
    ));
    let log = restart.log().display().to_string();
    let outcome = restart.swap().map_err(refused)?;
    if !outcome.is_new {
        return Err(Failure::new(outcome.words).remedy(format!("the log has more: {log}")));
    }
    line(outcome.words)
}

fn refused(error: RestartError) -> Failure {
    match error {
        RestartError::Client(error) => running::refused(error),
        RestartError::Forbidden { .. } => Failure::new(error).code(Code::Environment),
        error => Failure::new(error),
    }
}
