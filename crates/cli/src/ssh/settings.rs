//! The lines for `ssh_config`.

use std::fmt::Write;
use std::process::{Command, Stdio};

use super::known::Known;
use crate::failure::{Code, CommandResult, Failure};
use crate::flags::{KerberosFlags, SshFlags};

/// Prints a block for each peer that is named, or for all.
pub(super) fn print(flags: &SshFlags, known: &Known) -> CommandResult {
    let program = std::env::current_exe().map_err(Failure::doing("find this program's own file"))?;
    let program =
        program.to_str().filter(|path| !path.contains(['"', '\'', '%', '\\', '\n'])).ok_or_else(|| {
            Failure::new("the path of this program has characters that ssh_config cannot have")
                .remedy("copy the program to another folder")
                .code(Code::Environment)
        })?;
    let mut named: Vec<(Option<&str>, &str)> = Vec::new();
    for peer in &flags.peers {
        let (user, host) =
            peer.rsplit_once('@').map_or((None, peer.as_str()), |(user, host)| (Some(user), host));
        named.push((user, &known.peer(host)?.name));
    }
    if named.is_empty() {
        // A peer without a name is called by its key, which no one types.
        named.extend(known.peers().iter().map(|it| (None, it.name.as_str())).filter(|(_, it)| is_host(it)));
    }
    if named.is_empty() {
        return Err(
            Failure::new("the configuration has no peer with a name").remedy("add a [[peer]] with a `name`")
        );
    }
    let warns = warns();
    let blocks: Vec<String> =
        named.iter().map(|(user, name)| block(program, flags, (*user, name), warns)).collect();
    crate::output::print(blocks.join("\n").as_bytes())
}

/// Whether `ssh` takes it for a host, and a shell for one word.
fn is_host(name: &str) -> bool {
    let plain = |it: char| it.is_ascii_alphanumeric() || ".-_".contains(it);
    !name.is_empty() && !name.starts_with('-') && name.chars().all(plain)
}

/// Flags for tickets, as they were given.
fn tickets(flags: &KerberosFlags) -> String {
    let service = flags.kerberos.as_ref().map(|service| match service.as_str() {
        "" => " --kerberos".to_owned(),
        service => format!(" \"--kerberos={service}\""),
    });
    service.unwrap_or_default() + if flags.delegate { " --delegate" } else { "" }
}

/// The lines for one peer.
fn block(program: &str, flags: &SshFlags, peer: (Option<&str>, &str), warns: bool) -> String {
    let (user, name) = peer;
    let tunnel = flags.tunnel.as_ref().map_or_else(String::new, |tunnel| format!(" --tunnel \"{tunnel}\""));
    let command = format!("\"{program}\" ssh{tunnel}");
    let tickets = tickets(&flags.kerberos);
    let mut text = format!("Host {name}\n");
    if let Some(user) = user {
        let _ = writeln!(text, "    User {user}");
    }
    for line in [
        &format!("ProxyCommand {command}{tickets} %h"),
        // The key that is shown is told here, and nowhere else: a file of known hosts has another host under this name at most.
        &format!("KnownHostsCommand {command} --known-hosts %H"),
        "UserKnownHostsFile none",
        "GlobalKnownHostsFile none",
        "StrictHostKeyChecking yes",
        "HostKeyAlgorithms ssh-ed25519",
        "UpdateHostKeys no",
        // Nor does the DNS tell it.
        "VerifyHostKeyDNS no",
        // Programs at the peer would see and type into the user's display; strait refuses it, too.
        "ForwardX11 no",
        // Bytes are compressed before they are encrypted for the way; before that they would only be hidden.
        "Compression no",
        // A name of a peer is not one of the DNS.
        "CanonicalizeHostname no",
    ] {
        let _ = writeln!(text, "    {line}");
    }
    if warns {
        // What is between ssh and this program stays on the host.
        let _ = writeln!(text, "    WarnWeakCrypto no");
    }
    text
}

/// Returns true if the `ssh` of this host knows the setting for warnings (OpenSSH 10.1). One that does not ends at it, in blocks of other
/// hosts as well: `IgnoreUnknown` counts only where its own block does.
fn warns() -> bool {
    let version = Command::new("ssh").args(["-o", "WarnWeakCrypto=no", "-V"]).stdin(Stdio::null()).output();
    version.is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_names_the_program_twice_and_what_was_asked_for() {
        let flags = |tunnel: Option<&str>, kerberos: Option<&str>, delegate| SshFlags {
            peers: Vec::new(),
            config: true,
            known_hosts: None,
            kerberos: KerberosFlags { kerberos: kerberos.map(str::to_owned), delegate },
            tunnel: tunnel.map(str::to_owned),
        };
        let plain = flags(Some("strait1"), None, false);
        let text = block("/opt/my programs/strait", &plain, (Some("alice"), "site-b"), true);
        let command = r#""/opt/my programs/strait" ssh --tunnel "strait1""#;
        assert!(text.starts_with("Host site-b\n    User alice\n"), "{text}");
        assert!(text.contains(&format!("    ProxyCommand {command} %h\n")), "{text}");
        assert!(text.contains(&format!("    KnownHostsCommand {command} --known-hosts %H\n")), "{text}");
        for line in ["StrictHostKeyChecking yes", "VerifyHostKeyDNS no", "ForwardX11 no", "WarnWeakCrypto no"]
        {
            assert!(text.contains(&format!("    {line}\n")), "{text}");
        }
        assert!(!block("/usr/bin/strait", &flags(None, None, false), (None, "b"), false).contains("User "));
        let text = block("s", &flags(None, Some("host@b.example"), true), (None, "b"), false);
        let command = r#"    ProxyCommand "s" ssh "--kerberos=host@b.example" --delegate %h"#;
        assert!(text.contains(command), "{text}");
        assert!(block("s", &flags(None, Some(""), false), (None, "b"), false).contains("ssh --kerberos %h"));
    }

    #[test]
    fn a_key_is_no_host() {
        for (name, host) in
            [("site-b", true), ("b_1.x", true), ("", false), ("-b", false), ("a b", false), ("x/+=", false)]
        {
            assert_eq!(is_host(name), host, "{name}");
        }
    }
}
