//! `show`: what running tunnels do.

pub(crate) mod text;

use strait_node::client;

use crate::failure::{CommandResult, Failure};
use crate::flags;
use crate::output::print;
use crate::running::{self, refused};

/// Shows the named tunnel, or all that are running.
pub(crate) fn show(flags: &flags::Show) -> CommandResult {
    if flags.json {
        // Always one report: programs name the tunnel when several are running.
        let interface = running::which(&flags.which)?;
        let report = client::show(&interface).map_err(refused)?;
        let json = serde_json::to_string_pretty(&report)
            .map_err(|error| Failure::new(format!("cannot write the report as JSON: {error}")))?;
        return print(format!("{json}\n").as_bytes());
    }
    let interfaces = match &flags.which.tunnel {
        Some(_) => vec![running::which(&flags.which)?],
        None => running::all()?,
    };
    let render = if flags.engines { text::engines::render } else { text::render };
    let shown = interfaces
        .iter()
        .map(|interface| client::show(interface).map(|report| render(&report)).map_err(refused))
        .collect::<Result<Vec<String>, Failure>>()?;
    print(shown.join("\n").as_bytes())
}
