//! The exchange, in a process that reads tokens of anyone: without rights, and with all that the library needs for a token at hand.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::IntoRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use strait_kerberos::{
    Acceptor, AcceptorOptions, GssProblem, KerberosError, ServiceName, Step, TokenFrame, TokenReader,
    default_keytab,
};

use super::super::folder;
use super::frames::{read, write};
use super::{KerberosDemand, Refused, part};
use crate::privileges;
use crate::process::{ProcessChannel, memory_file};

/// Tokens of a client's at most. Kerberos takes one, or two where the library asks for a second exchange of clocks (RFC 4121).
const TOKENS_MAX: usize = 4;
/// Bytes of a keytab at most.
const KEYTAB_MAX: u64 = 1 << 20;
/// The name of the folder with the record of tokens, before its user: each has its own.
const REPLAY: &str = "replay.";
/// The record of tokens that were taken, in that folder.
const RECORD: &str = "file2:taken";
/// The library's configuration, where the environment names no other.
const KRB5_CONF: &str = "/etc/krb5.conf";
/// Folders with more of it, besides what it includes: where links of distributions lead to, mechanisms, and texts of the library.
const BESIDE: [&str; 3] = ["/etc/crypto-policies", "/etc/gss", "/usr"];

/// Messages of the exchange's process to the monitor.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ExchangeSays {
    /// The first token is there.
    Begun,
    /// The client is this one. A ticket that it passed on is the next message, as the library writes it.
    Proven { principal: String, has_ticket: bool },
    /// The exchange came to nothing.
    Refused(Refused),
}

/// The exchange, in its own process.
pub(super) struct Exchange<'a> {
    pub(super) stream: &'a UnixStream,
    pub(super) demand: &'a KerberosDemand,
    pub(super) monitor: &'a ProcessChannel,
}

impl Exchange<'_> {
    pub(super) fn run(&self) -> io::Result<()> {
        match self.acceptor().and_then(|mut acceptor| self.exchange(&mut acceptor)) {
            Ok((principal, ticket)) => {
                part::tell(self.monitor, &ExchangeSays::Proven { principal, has_ticket: ticket.is_some() })?;
                ticket.map_or(Ok(()), |ticket| self.monitor.send(&ticket, &[]))
            }
            Err(refused) => part::tell(self.monitor, &ExchangeSays::Refused(refused)),
        }
    }

    /// Takes the key along, and gives up everything that the exchange does not need, before a byte of the peer's is read.
    fn acceptor(&self) -> Result<Acceptor, Refused> {
        let key = self.key()?;
        let reader = self.demand.reader;
        folder::enter_own(&format!("{REPLAY}{reader}"), reader).map_err(Refused::here)?;
        privileges::drop_all(reader).map_err(Refused::here)?;
        let options = AcceptorOptions {
            service: ServiceName::parse(&self.demand.service),
            // The library opens the key by its number, for each token.
            keytab: Some(format!("FILE:/proc/self/fd/{}", key.into_raw_fd())),
            replay: Some(RECORD.to_owned()),
        };
        // This loads the library; after that, no code is loaded any more, such as its modules for what tickets say of groups.
        let acceptor = Acceptor::new(&options, &self.demand.binding).map_err(Refused::here)?;
        privileges::confine_reader(&configuration(), Path::new(".")).map_err(Refused::here)?;
        Ok(acceptor)
    }

    /// The bytes of the key's file, in a file that has no name.
    fn key(&self) -> Result<File, Refused> {
        // With root's rights, the library reads no more than root's own configuration, and nothing of a peer's.
        let path = match &self.demand.keytab {
            Some(path) => path.clone(),
            None => {
                let name = default_keytab().map_err(Refused::here)?;
                let path = name.strip_prefix("FILE:").or_else(|| name.strip_prefix("WRFILE:"));
                PathBuf::from(path.unwrap_or(&name))
            }
        };
        let copied = memory_file(c"keytab").and_then(|mut copy| {
            io::copy(&mut File::open(&path)?.take(KEYTAB_MAX), &mut copy)?;
            Ok(copy)
        });
        copied.map_err(|error| Refused::here(format!("cannot read the keytab {}: {error}", path.display())))
    }

    fn exchange(&self, acceptor: &mut Acceptor) -> Result<(String, Option<Vec<u8>>), Refused> {
        self.talk(acceptor)?;
        let peer = acceptor.peer().ok_or(KerberosError::NotMutual)?;
        let ticket = peer.delegated.as_ref().map(|delegated| delegated.export()).transpose()?;
        Ok((peer.principal.clone(), ticket))
    }

    /// Takes tokens until the client has proved who it is.
    fn talk(&self, acceptor: &mut Acceptor) -> Result<(), Refused> {
        let mut reader = TokenReader::default();
        for turn in 0..TOKENS_MAX {
            let TokenFrame::Token(token) = read(self.stream, &mut reader)? else {
                return Err(Refused::new("the client broke the exchange of Kerberos off"));
            };
            if turn == 0 {
                part::tell(self.monitor, &ExchangeSays::Begun)?;
            }
            match acceptor.step(&token) {
                Ok(Step::GoOn(token)) => write(self.stream, &TokenFrame::Token(token))?,
                Ok(Step::Done(token)) => {
                    return token.map_or(Ok(()), |token| {
                        write(self.stream, &TokenFrame::Token(token)).map_err(Refused::from)
                    });
                }
                Err(refusal) => {
                    let is_ours = refusal.error.problem() == Some(GssProblem::NoCredentials);
                    let refused =
                        if is_ours { Refused::here(&refusal.error) } else { Refused::from(refusal.error) };
                    return Err(Refused { token: refusal.token.unwrap_or_default(), ..refused });
                }
            }
        }
        Err(Refused::new("the exchange of Kerberos does not end"))
    }
}

/// The library's configuration, which it reads for each token.
fn configuration() -> Vec<PathBuf> {
    let named = std::env::var_os("KRB5_CONFIG").unwrap_or_else(|| KRB5_CONF.into());
    let files = std::env::split_paths(&named);
    let with_included = files.flat_map(|file| [included(&file), vec![file]].concat());
    with_included.chain(BESIDE.map(PathBuf::from)).filter(|path| path.exists()).collect()
}

/// The files that a file of the configuration includes, and the folders with such files (krb5.conf(5)).
fn included(file: &Path) -> Vec<PathBuf> {
    let text = fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let named = |line: &str| {
        let path = line.strip_prefix("includedir").or_else(|| line.strip_prefix("include"))?;
        Some(PathBuf::from(path.trim()))
    };
    text.lines().filter_map(named).collect()
}
