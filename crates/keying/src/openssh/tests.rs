//! Files that `ssh-keygen` of OpenSSH 9.2 wrote, made for these tests and used nowhere else.

use proptest::prelude::*;

use super::*;

/// `ssh-keygen -t ed25519 -N "" -C user@host`.
const PRIVATE: &str = "\
-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW
QyNTUxOQAAACBjYIu7b2jGBTYq36QbelBWiYR/lh2vhM2KQUrXXjK3rwAAAJAH7ChIB+wo
SAAAAAtzc2gtZWQyNTUxOQAAACBjYIu7b2jGBTYq36QbelBWiYR/lh2vhM2KQUrXXjK3rw
AAAECgpV973SysXFSyMwLPpaX+g6YiMb43KefYyrLKnxgPtmNgi7tvaMYFNirfpBt6UFaJ
hH+WHa+EzYpBStdeMrevAAAACXVzZXJAaG9zdAECAwQ=
-----END OPENSSH PRIVATE KEY-----
";
const PUBLIC: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGNgi7tvaMYFNirfpBt6UFaJhH+WHa+EzYpBStdeMrev user@host";
/// The same with a passphrase.
const PROTECTED: &str = "\
-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAACmFlczI1Ni1jdHIAAAAGYmNyeXB0AAAAGAAAABCWtS9O8O
liNjJsECvolBiMAAAAEAAAAAEAAAAzAAAAC3NzaC1lZDI1NTE5AAAAIDkmhL9cyT4hLRYk
iUSKNMJUr71CNTTvuhb+xhTR7VodAAAAkI4xcuYLIvfZip8VMx4hCxjnr3nPg+WvJNVmf9
a1u+XCvcAgiaFf3mt/wIY5n5mb8bTecsz+rtu/q74fosNkAM3YbUHx+iPl2mUkPmPnqoCm
MON+1wBAZutnNTo0j62Ldy1t9tXhq9AOpxioLm4N0JLZaZ0hd6TwCMlXd7wsfkX8ZZEN0N
AcPJLHNTTdhatbcQ==
-----END OPENSSH PRIVATE KEY-----
";
/// `ssh-keygen -t ecdsa -N ""`.
const ECDSA: &str = "\
-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAaAAAABNlY2RzYS
1zaGEyLW5pc3RwMjU2AAAACG5pc3RwMjU2AAAAQQQYZvdfGWUH9IkI7R8cK92ECxQp5SGD
MSQSRu30uT2Ealgc/VfEluoTqdXPFgQH4mLEikx/7n9hWi+BoIYXqwtoAAAAoLtnqHG7Z6
hxAAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBBhm918ZZQf0iQjt
Hxwr3YQLFCnlIYMxJBJG7fS5PYRqWBz9V8SW6hOp1c8WBAfiYsSKTH/uf2FaL4GghherC2
gAAAAhAPbryPF6dZmLl2ROJAiFgYCU4oMFHjJ8c7Jp4Rcd2JslAAAAB3Jvb3RAdm0=
-----END OPENSSH PRIVATE KEY-----
";
const ECDSA_PUBLIC: &str = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBBhm918ZZQf0iQjtHxwr3YQLFCnlIYMxJBJG7fS5PYRqWBz9V8SW6hOp1c8WBAfiYsSKTH/uf2FaL4GghherC2g= root@vm";
/// The check number of [`PRIVATE`].
const CHECK: u32 = 0x07ec_2848;

#[test]
fn a_file_of_ssh_keygen_is_read_and_written_as_it_was() {
    let key = PrivateKey::from_openssh(PRIVATE).unwrap();
    assert_eq!(key.public(), PublicKey::from_openssh(PUBLIC).unwrap());
    assert_eq!(key.public().to_openssh("user@host"), PUBLIC);
    assert_eq!(key.to_openssh(CHECK, "user@host").as_str(), PRIVATE);
}

#[test]
fn other_keys_are_refused_with_a_reason() {
    assert_eq!(PrivateKey::from_openssh(PROTECTED).unwrap_err(), Passphrase);
    assert_eq!(PrivateKey::from_openssh(ECDSA).unwrap_err(), OtherKind);
    assert_eq!(PublicKey::from_openssh(ECDSA_PUBLIC).unwrap_err(), OtherKind);
    assert_eq!(PublicKey::from_openssh("ssh-rsa AAAA").unwrap_err(), OtherKind);
    assert!(matches!(PublicKey::from_openssh("from=\"a\" ssh-ed25519 AAAA"), Err(Malformed(_))));
}

#[test]
fn every_cut_and_every_changed_byte_of_a_file_is_refused_or_harmless() {
    let expected = PrivateKey::from_openssh(PRIVATE).unwrap().public();
    for len in 0..PRIVATE.trim_end().len() {
        assert!(PrivateKey::from_openssh(&PRIVATE[..len]).is_err(), "{len}");
    }
    for len in 0..PUBLIC.len() - " user@host".len() {
        assert!(PublicKey::from_openssh(&PUBLIC[..len]).is_err(), "{len}");
    }
    for at in 0..PRIVATE.len() {
        let mut bytes = PRIVATE.as_bytes().to_vec();
        bytes[at] = if bytes[at] == b'B' { b'C' } else { b'B' };
        // What is not refused is the comment.
        if let Ok(key) = PrivateKey::from_openssh(core::str::from_utf8(&bytes).unwrap()) {
            assert_eq!(key.public(), expected, "{at}");
        }
    }
}

#[test]
fn a_comment_cannot_begin_a_line_of_its_own() {
    let public = PublicKey::from_openssh(PUBLIC).unwrap();
    assert_eq!(public.to_openssh("a\nssh-ed25519 b").lines().count(), 1);
}

proptest! {
    #[test]
    fn keys_round_trip(seed: [u8; 32], check: u32, comment in "[a-z@. ]{0,100}") {
        let key = PrivateKey::generate(&seed);
        let again = PrivateKey::from_openssh(&key.to_openssh(check, &comment)).unwrap();
        prop_assert_eq!(again.expose_seed(), &seed);
        prop_assert_eq!(PublicKey::from_openssh(&key.public().to_openssh(&comment)), Ok(key.public()));
    }

    #[test]
    fn any_text_is_read_or_refused(text: String) {
        let _ = (PrivateKey::from_openssh(&text), PublicKey::from_openssh(&text));
    }
}
