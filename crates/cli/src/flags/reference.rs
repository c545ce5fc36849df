//! `docs/reference/cli.md` beside the commands and flags.

use std::collections::BTreeSet;

use clap::{Arg, Command, CommandFactory};
use strait_testdata::reference::rows;

use super::StraitFlags;

/// Commands whose flags the page leaves to their own help.
const ELSEWHERE: [&str; 4] = ["broker", "demo", "directory", "lab"];

/// An argument as the page names it: the long flag, or the name of its value.
fn name(argument: &Arg) -> String {
    let value =
        || argument.get_value_names().and_then(|names| names.first()).map(|name| name.replace('|', "/"));
    argument.get_long().map(|long| format!("--{long}")).or_else(value).unwrap_or_default()
}

/// Every command without commands below it, by its heading in the page.
fn leaves(command: &Command, heading: &str) -> Vec<(String, Command)> {
    let heading = format!("{heading} {}", command.get_name());
    if command.has_subcommands() {
        return command.get_subcommands().flat_map(|below| leaves(below, &heading)).collect();
    }
    vec![(heading, command.clone())]
}

fn documented(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|it| !["help", "version"].contains(&it.get_id().as_str()))
}

#[test]
fn every_command_and_flag_has_a_line_in_the_reference_and_every_line_a_flag() {
    let program = StraitFlags::command();
    let mut known = BTreeSet::new();
    for command in program.get_subcommands() {
        known.insert(("Commands".to_owned(), command.get_name().to_owned()));
        if !ELSEWHERE.contains(&command.get_name()) {
            for (heading, leaf) in leaves(command, "strait") {
                known.extend(documented(&leaf).map(|argument| (heading.clone(), name(argument))));
            }
        }
    }
    let lines = rows("cli.md").into_iter();
    let lines: BTreeSet<_> =
        lines.filter_map(|row| Some((row.heading.clone(), row.name()?.to_owned()))).collect();
    let lines =
        lines.into_iter().filter(|(heading, _)| !["Exit codes", "Environment"].contains(&heading.as_str()));
    assert_eq!(known, lines.collect());
}

#[test]
fn defaults_and_choices_are_in_the_reference() {
    let lines = rows("cli.md");
    let program = StraitFlags::command();
    let commands = program.get_subcommands().filter(|it| !ELSEWHERE.contains(&it.get_name()));
    for (heading, command) in commands.flat_map(|command| leaves(command, "strait")) {
        for argument in documented(&command).filter(|it| it.get_action().takes_values()) {
            let name = name(argument);
            let line = lines.iter().find(|row| row.heading == heading && row.name() == Some(&name)).unwrap();
            let line = line.cells.join(" | ");
            let defaults = argument.get_default_values().iter().map(|it| it.to_string_lossy().into_owned());
            let choices = argument.get_possible_values().into_iter().map(|it| it.get_name().to_owned());
            for word in defaults.chain(choices) {
                assert!(line.contains(&word), "{word} of {name} is not in: {line}");
            }
        }
    }
}
