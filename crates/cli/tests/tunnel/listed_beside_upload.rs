//! What a person asks for waits for no upload to the same peer, on a link on which a few buffers are half a minute.

use std::fs;

use strait_scheduler::Rate;
use strait_testbed::{Extra, LinkSpec, TwoHosts};

use crate::files::{Ending, noise};
use crate::pair::{Pair, allowed, eventually};

/// Bits a second.
const LINK: u64 = 32_000;
/// What daemons know of it: a little less, so that the queue is theirs.
const KNOWN: &str = "[link]\nup = \"30kbit\"\ndown = \"30kbit\"\noverhead = 14\n";
/// Bytes of the upload that have crossed the link when its buffers are full.
const UNDER_WAY: u64 = 20_000;
/// Bytes that may cross the link, both ways, from the command's begin to its end: 15 s of the link, of which a busy machine may take
/// most. A window of QUIC that is shared and full takes 120,000.
const MOST: u64 = 60_000;

#[test]
fn a_folder_is_listed_before_an_upload_has_gone_on_for_long() {
    if !allowed() {
        return;
    }
    let mut pair = Pair::idle(TwoHosts::direct(LinkSpec::thin(Rate::from_bits(LINK).unwrap())).unwrap());
    let [here, inbox] = ["here", "inbox"].map(|name| pair.dir.path().join(name));
    for folder in [&here, &inbox] {
        fs::create_dir(folder).unwrap();
    }
    fs::write(here.join("large"), noise(2_000_000, 5)).unwrap();
    let rights = "read = [\"site-a\"]\nwrite = [\"site-a\"]\nowner = \"root\"\n";
    let folder = format!("{KNOWN}[[folder]]\nname = \"inbox\"\npath = \"{}\"\n{rights}", inbox.display());
    pair.start(0, Extra { sections: KNOWN, ..Extra::default() });
    pair.start(1, Extra { sections: &folder, ..Extra::default() });
    pair.wait_for_session();

    let crossed = || pair.hosts.link.traffic().unwrap().bytes();
    let before = crossed();
    let mut upload = pair.daemon(0).command(&["send", "large", "site-b"]);
    let mut upload = Ending(upload.current_dir(&here).spawn().unwrap());
    eventually("the upload is under way", || crossed() > before + UNDER_WAY);
    for target in ["site-b:", "site-b:inbox"] {
        let begun = crossed();
        let listed = pair.daemon(0).command(&["ls", target, "--json"]).output().unwrap();
        let took = crossed() - begun;
        assert!(listed.status.success(), "{}", pair.logs());
        println!("{took} bytes crossed the link while {target} was listed");
        assert!(took < MOST, "{took} of {MOST} bytes: it waited for the upload");
    }
    assert!(upload.0.try_wait().unwrap().is_none(), "the upload goes on");
}
