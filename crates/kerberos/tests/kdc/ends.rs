//! One end as a process: frames on standard input and output, and how it ended as one line on standard error.

use std::io::{self, Read, Write};

use strait_kerberos::{
    Acceptor, AcceptorOptions, Binding, Delegated, Initiator, InitiatorOptions, KerberosError,
    KerberosRefusal, ServiceName, Step, TokenFrame, TokenReader, local_account,
};

/// What an end is told: its arguments, in order.
#[derive(Clone, Debug)]
pub(crate) struct EndSettings {
    /// `strait@HOST`, or a principal, which has a slash.
    pub(crate) service: String,
    /// Of the initiator the cache of tickets, of the acceptor the keytab.
    pub(crate) store: String,
    /// Every byte of the binding.
    pub(crate) binding: u8,
    /// Flags: `delegate`, `unbound`; or for the acceptor the cache for what was delegated.
    pub(crate) extra: String,
}

impl EndSettings {
    pub(crate) fn arguments(&self) -> [String; 4] {
        [self.service.clone(), self.store.clone(), self.binding.to_string(), self.extra.clone()]
    }
}

fn read() -> Option<TokenFrame> {
    let mut reader = TokenReader::default();
    let mut byte = [0];
    loop {
        if io::stdin().read(&mut byte).unwrap() == 0 {
            return None;
        }
        if let Some(frame) = reader.read(&mut &byte[..]).unwrap() {
            return Some(frame);
        }
    }
}

fn write(frame: &TokenFrame) {
    let mut bytes = Vec::new();
    frame.write(&mut bytes).unwrap();
    // The other end may have gone already.
    let _ = io::stdout().write_all(&bytes).and_then(|()| io::stdout().flush());
}

/// Plays the role.
pub(crate) fn run(role: &str, arguments: &[String]) {
    let [name, store, binding, extra] = arguments else { panic!("arguments: {arguments:?}") };
    let binding = Binding::new([binding.parse().unwrap(); 32]);
    let ended = match role {
        "initiate" => {
            let options = InitiatorOptions {
                service: ServiceName::parse(name),
                delegate: extra.contains("delegate"),
                cache: Some(store.clone()),
                danger_unbound: extra.contains("unbound"),
            };
            initiate(&options, &binding)
        }
        _ => {
            let options = AcceptorOptions {
                service: ServiceName::parse(name),
                keytab: Some(format!("FILE:{store}")),
                replay: None,
            };
            accept(&options, &binding, extra)
        }
    };
    match ended {
        Ok(text) => eprintln!("done {text}"),
        Err(refusal) => {
            eprintln!("refused {:?} {refusal}", refusal.error.problem());
            write(&TokenFrame::Refused(refusal.token.unwrap_or_default()));
        }
    }
}

fn initiate(options: &InitiatorOptions, binding: &Binding) -> Result<String, KerberosRefusal> {
    let mut end = Initiator::new(options, binding)?;
    let mut step = end.step(None)?;
    loop {
        match step {
            Step::GoOn(token) => write(&TokenFrame::Token(token)),
            Step::Done(token) => {
                token.into_iter().for_each(|token| write(&TokenFrame::Token(token)));
                return Ok(format!("{:?}", read()));
            }
        }
        step = match read() {
            Some(TokenFrame::Token(token)) => end.step(Some(&token))?,
            Some(TokenFrame::Refused(token)) if !token.is_empty() => end.step(Some(&token))?,
            _ => return Err(KerberosError::NotMutual.into()),
        };
    }
}

fn accept(options: &AcceptorOptions, binding: &Binding, cache: &str) -> Result<String, KerberosRefusal> {
    let mut end = Acceptor::new(options, binding)?;
    loop {
        let Some(TokenFrame::Token(token)) = read() else { return Err(KerberosError::Over.into()) };
        match end.step(&token)? {
            Step::GoOn(token) => write(&TokenFrame::Token(token)),
            Step::Done(token) => {
                token.into_iter().for_each(|token| write(&TokenFrame::Token(token)));
                break;
            }
        }
    }
    write(&TokenFrame::Accepted);
    let peer = end.peer().unwrap();
    if let Some(delegated) = &peer.delegated {
        Delegated::import(&delegated.export()?)?.store(cache)?;
    }
    let account = local_account(&peer.principal);
    Ok(format!("{} {account:?} delegated={}", peer.principal, peer.delegated.is_some()))
}
