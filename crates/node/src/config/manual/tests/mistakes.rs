//! What can be wrong, and what is said of it.

use super::*;

/// What a mistake is made in.
#[derive(Clone, Copy)]
enum Base {
    Gcm,
    Bare,
    /// Neither ESP nor AH.
    Alone,
    /// The same in UDP.
    UdpAlone,
}

impl Base {
    fn text(self) -> String {
        let alone = |text: String| text.split("counter_file").next().unwrap().to_owned();
        match self {
            Base::Gcm => gcm(),
            Base::Bare => bare(),
            Base::Alone => alone(bare()),
            Base::UdpAlone => alone(gcm()),
        }
    }
}

/// What is written instead of what, where `AH` stands for a whole section of it, and what has to be said.
type Mistake = (Base, &'static [(&'static str, &'static str)], &'static str);

const MISTAKES: &[Mistake] = &[
    (
        Base::Gcm,
        &[(IN, "0x0001")],
        "14:10: `key_in` has 2 bytes; aes-128-gcm takes 20 (key and then salt), which is 40 hex digits after 0x",
    ),
    (
        Base::Gcm,
        &[(IN, "000102030405060708090a0b0c0d0e0f10111213")],
        "14:10: `key_in` is hex without `0x` in front, and without it would be read as base64; write hex digits after 0x, or base64",
    ),
    (
        Base::Gcm,
        &[(IN, "0x12g4")],
        "14:10: `key_in` is not hex: character 5 is not one of 0-9 and a-f; write hex digits after 0x, or base64",
    ),
    (
        Base::Gcm,
        &[(IN, OUT)],
        "15:11: this is the same key as in line 14: aes-128-gcm is broken when two senders use one key; make a key for each direction and each peer",
    ),
    (
        Base::Gcm,
        &[("key_in =", "key_in_file = \"x\"\nkey_in =")],
        "14:15: give either `key_in` or `key_in_file`, not both",
    ),
    (
        Base::Gcm,
        &[("key_in = \"0x000102030405060708090a0b0c0d0e0f10111213\"\n", "")],
        "10:1: [peer.manual.esp] needs `key_in_file`, for example key_in_file = \"gateway-in.key\", or key_in = \"0x...\"",
    ),
    (
        Base::Gcm,
        &[("key_in = \"0x000102030405060708090a0b0c0d0e0f10111213\"", "key_in_file = \"in.key\"")],
        "14:15: the key file was not read",
    ),
    (
        Base::Gcm,
        &[("aes-128-gcm", "aes-gcm")],
        "13:9: unknown suite `aes-gcm`: write one of aes-128-gcm, aes-256-gcm, chacha20-poly1305 or aes-128-gcm-12",
    ),
    (
        Base::Gcm,
        &[("0x04000001", "0x10000001")],
        "11:10: over UDP `spi_in` must be between 0x04000000 and 0x0fffffff, which tells ESP from the control channel; choose one at both ends",
    ),
    (
        Base::Bare,
        &[("0x04000001", "255")],
        "13:10: SPIs from 0 to 255 are reserved (RFC 4303 section 2.1); choose 256 or above for `spi_in`",
    ),
    (
        Base::Bare,
        &[("0x3000", "0x100000000")],
        "14:11: `spi_out` must be between 0 and 4294967295, not 0x100000000",
    ),
    (
        Base::Gcm,
        &[("counter_file = \"gateway.counter\"\n", "")],
        "8:1: a `suite` is broken when a sequence number is used twice, also after a restart; name a file that keeps the number: counter_file = \"gateway.counter\"",
    ),
    (
        Base::Gcm,
        &[("name = \"gateway\"\n", "")],
        "4:1: [[peer]] needs `name`, for example name = \"gateway\"",
    ),
    (
        Base::Gcm,
        &[("listen = 4500\n", "")],
        "7:1: `carrier = \"udp\"` needs a fixed port, which the peer sends to: set `listen` in [node], for example listen = 4500",
    ),
    (
        Base::Gcm,
        &[("192.0.2.2:4500", "gateway.example:4500")],
        "6:12: with manual keys `endpoint` must be an IP address, not the name gateway.example:4500",
    ),
    (
        Base::Gcm,
        &[("endpoint = \"192.0.2.2:4500\"\n", "")],
        "7:1: with manual keys the peer needs `endpoint`; without it, the peer is answered where its newest packet came from, which after a restart can be an old one that an attacker sends again: allow that with `danger_roaming = true`",
    ),
    (
        Base::Bare,
        &[("\"192.0.2.2\"", "\"192.0.2.2:4500\"")],
        "6:12: with carrier \"ip\" there is no port; write \"192.0.2.2\"",
    ),
    (
        Base::Bare,
        &[("local = \"192.0.2.1\"\n", "")],
        "8:1: [peer.manual] needs `local`, for example local = \"192.0.2.1\", the local outer address",
    ),
    (
        Base::Bare,
        &[("192.0.2.1", "2001:db8::1")],
        "10:9: `local` 2001:db8::1 and `endpoint` 192.0.2.2 are of different address families",
    ),
    (
        Base::Gcm,
        &[("[peer.manual]", "[peer.manual]\nlocal = \"192.0.2.1\"")],
        "9:9: `local` has no effect here: it is only for carrier = \"ip\" and transport mode; leave it out",
    ),
    (
        Base::Gcm,
        &[("[peer.manual]", "[peer.manual]\nouter_fragmentation = true")],
        "9:23: `outer_fragmentation` has no effect here: UDP datagrams are never fragmented; leave it out",
    ),
    (
        Base::Bare,
        &[("[peer.manual]", "keepalive = \"25s\"\n[peer.manual]")],
        "8:13: `keepalive` has no effect here: keepalives need UDP, not `carrier = \"ip\"`; leave it out",
    ),
    (
        Base::Bare,
        &[("[peer.manual]", "payloads = \"standard\"\n[peer.manual]")],
        "8:12: `payloads` has no effect here: [peer.manual] sets the payloads; leave it out",
    ),
    (
        Base::Bare,
        &[("[peer.manual]", "repair = \"auto\"\n[peer.manual]")],
        "8:10: `repair` has no effect here: losses are repaired between nodes with session keys only; leave it out",
    ),
    (
        Base::Bare,
        &[("name =", "public_key = \"x\"\nname =")],
        "5:14: a peer has either a `public_key` (session keys) or [peer.manual] (manual keys), not both",
    ),
    (
        Base::Bare,
        &[("carrier", "mode = \"transport\"\ncarrier")],
        "7:16: in transport mode `allowed_ips` is the address of the endpoint, 192.0.2.2; leave it out, or use mode = \"tunnel\"",
    ),
    (
        Base::Bare,
        &[("carrier = \"ip\"", "carrier = \"tcp\"")],
        "9:11: `carrier` cannot be `tcp`; known are udp, ip",
    ),
    (
        Base::Bare,
        &[("[peer.manual]", "[peer.manual]\nesn = 64")],
        "9:7: `esn` must be true or false, not a whole number",
    ),
    (
        Base::Bare,
        &[("[peer.manual]", "[peer.manual]\nipcomp = \"zstd\"")],
        "9:10: `ipcomp` cannot be `zstd`; known are deflate, lzs",
    ),
    (
        Base::Bare,
        &[("[peer.manual]", "[peer.manual]\nipcomp = \"deflate\"\ncpi_in = 3")],
        "10:10: `cpi_in` must be the well-known CPI of deflate (2) or 256 and above (RFC 3173 section 3.3), not lzs",
    ),
    (
        Base::Bare,
        &[("[peer.manual]", "[peer.manual]\ncpi_out = 300")],
        "9:11: `cpi_out` has no effect here: it is only for `ipcomp`; leave it out",
    ),
    (
        Base::Bare,
        &[("[peer.manual]", "[peer.manual]\naggfrag = true\nipcomp = \"lzs\"")],
        "10:10: `ipcomp` has no effect here: AGGFRAG payloads are not compressed; leave it out",
    ),
    (
        Base::Bare,
        &[(
            "allowed_ips = [\"10.88.0.2/32\"]\n[peer.manual]",
            "[peer.manual]\naggfrag = true\nmode = \"transport\"",
        )],
        "8:11: AGGFRAG payloads carry whole IP packets inside ESP (RFC 9347): `aggfrag` needs mode = \"tunnel\"",
    ),
    (
        Base::Bare,
        &[("suite = \"aes-128-gcm\"", "cipher = \"aes-128-cbc\"")],
        "12:1: without `integrity` packets are not authenticated; add it, or [peer.manual.ah], or use a `suite`",
    ),
    (
        Base::Bare,
        &[("suite = \"aes-128-gcm\"", "integrity = \"hmac-sha-257\"\ncipher = \"aes-128-cbc\"")],
        "15:13: unknown integrity algorithm `hmac-sha-257`: write one of hmac-sha-256-128, hmac-sha-384-192, hmac-sha-512-256, hmac-sha-1-96 or hmac-md5-96",
    ),
    (
        Base::Bare,
        &[("suite", "cipher = \"null\"\nsuite")],
        "12:1: [peer.manual.esp] takes either `suite`, for example suite = \"aes-128-gcm\", or `cipher` and `integrity`, for example cipher = \"aes-128-cbc\" and integrity = \"hmac-sha-256-128\"",
    ),
    (
        Base::Bare,
        &[("suite = \"aes-128-gcm\"\n", "")],
        "12:1: [peer.manual.esp] takes either `suite`, for example suite = \"aes-128-gcm\", or `cipher` and `integrity`, for example cipher = \"aes-128-cbc\" and integrity = \"hmac-sha-256-128\"",
    ),
    (
        Base::Bare,
        &[("spi_in", "iv = \"implicit\"\nspi_in")],
        "13:1: unknown key `iv` in [peer.manual.esp]; known are spi_in, spi_out, suite, cipher, integrity, key_in, key_in_file, key_out, key_out_file, integrity_key_in, integrity_key_in_file, integrity_key_out, integrity_key_out_file",
    ),
    (
        Base::Gcm,
        &[("[peer.manual.esp]", "AH[peer.manual.esp]")],
        "10:1: UDP carries ESP only (RFC 3948); leave AH out, or use carrier = \"ip\"",
    ),
    (Base::Alone, &[], "8:1: [peer.manual] needs [peer.manual.esp], [peer.manual.ah] or both"),
    (
        Base::Alone,
        &[("local", "ipcomp = \"deflate\"\nlocal")],
        "8:1: IPComp alone neither encrypts nor authenticates; add [peer.manual.esp], or allow it with `danger_plain = true`",
    ),
    (
        Base::UdpAlone,
        &[("[peer.manual]", "[peer.manual]\nipcomp = \"deflate\"")],
        "8:1: UDP carries ESP only (RFC 3948); add [peer.manual.esp], or use carrier = \"ip\"",
    ),
    (
        Base::Alone,
        &[("local", "ipcomp = \"deflate\"\ndanger_plain = true\nesn = false\nlocal")],
        "12:7: `esn` has no effect here: IPComp alone has no sequence numbers; leave it out",
    ),
    (
        Base::Alone,
        &[("local = \"192.0.2.1\"\n", "local = \"192.0.2.1\"\nAH"), ("hmac-sha-256-128", "hmac-md5-96")],
        "14:13: `hmac-md5-96` is broken; if the peer supports nothing better, allow it with `danger_legacy = true` in [peer.manual]",
    ),
    (
        Base::Bare,
        &[
            ("192.0.2.1", "2001:db8::1"),
            ("192.0.2.2", "2001:db8::2"),
            ("[peer.manual.esp]", "AHalign4 = true\n[peer.manual.esp]"),
        ],
        "18:10: `align4` has no effect here: IPv6 headers are always aligned to 8 bytes; leave it out",
    ),
    (
        Base::Bare,
        &[("[peer.manual]", "mtuu = 7\n[peer.manual]")],
        "8:1: unknown key `mtuu` in [[peer]]; did you mean `mtu`?",
    ),
    (
        Base::Bare,
        &[("[peer.manual]", "[peer.manual]\naggfrak = true")],
        "9:1: unknown key `aggfrak` in [peer.manual]; did you mean `aggfrag`?",
    ),
];

#[test]
fn mistakes_have_their_messages() {
    for (base, changes, expected) in MISTAKES {
        let change = |text: String, (from, to): &(&str, &str)| with(&text, from, &to.replace("AH", AH));
        let text = changes.iter().fold(base.text(), change);
        assert_eq!(complaint(&text).0, *expected, "in\n{text}");
    }
}

/// A section of AH that is right.
const AH: &str = "[peer.manual.ah]\nspi_in = 300\nspi_out = 301\nintegrity = \"hmac-sha-256-128\"\n\
    key_in = \"0x0000000000000000000000000000000000000000000000000000000000000001\"\n\
    key_out = \"0x0000000000000000000000000000000000000000000000000000000000000002\"\n";

#[test]
fn ciphers_that_protect_nothing() {
    let text = |cipher: &str, len: usize, more: &str| {
        let text = with(&bare(), "suite = \"aes-128-gcm\"", &format!("cipher = \"{cipher}\""));
        let text = with(&text, IN, &format!("0x{}", "01".repeat(len)));
        let text = with(&text, OUT, &format!("0x{}", "02".repeat(len)));
        with(&text, "counter_file", &format!("{more}counter_file")) + AH
    };
    assert!(parse(&text("aes-256-cbc", 32, "")).is_ok(), "AH vouches");
    let (said, others) = complaint(&text("des-cbc", 8, ""));
    assert!(said.contains("`des-cbc` is broken") && others == 0, "{said}");
    assert!(parse(&text("des-cbc", 8, "danger_legacy = true\n")).is_ok());
    let (said, others) = complaint(&text("rc4-128", 16, "danger_legacy = true\n"));
    assert!(said.contains("with the same key stream") && others == 0, "{said}");
}

#[test]
fn what_must_be_one_peers_only() {
    let text = bare();
    let second = |change: &dyn Fn(String) -> String| {
        let other = text[text.find("[[peer]]").unwrap()..]
            .replace("gateway", "other")
            .replace("10.88.0.2", "10.88.0.3")
            .replace("192.0.2.2", "192.0.2.3")
            .replace("0x04000001", "0x5000")
            .replace("0x0001", "0x4041")
            .replace("0x2021", "0x6061");
        text.clone() + &change(other)
    };
    assert!(parse(&second(&|other| other)).is_ok(), "{}", parse(&second(&|other| other)).unwrap_err());
    assert!(parse(&second(&|other| with(&other, "192.0.2.3", "192.0.2.2"))).is_ok(), "SPIs tell two apart");
    let cases: [(&dyn Fn(String) -> String, &str); 5] = [
        (
            &|other| with(&other, "0x5000", "0x04000001"),
            "27:10: SPI 0x04000001 is already used by the peer in line 13; choose another at both ends",
        ),
        (
            &|other| with(&other, "other.counter", "gateway.counter"),
            "25:16: the counter file is already used by the peer in line 11; give each peer its own",
        ),
        (
            &|other| with(&other, "\"other\"", "\"gateway\""),
            "19:8: the name `gateway` is already used by the peer in line 5",
        ),
        (
            &|other| with(&other, "10.88.0.3", "10.88.0.2"),
            "21:16: 10.88.0.2/32 is already in `allowed_ips` of the peer in line 7; give each network to one peer (a smaller network within a larger one is allowed)",
        ),
        (
            &|other| with(&other, "0x6061", "0x2021"),
            "31:11: this is the same key as in line 17: aes-128-gcm is broken when two senders use one key; make a key for each direction and each peer",
        ),
    ];
    for (change, expected) in cases {
        assert_eq!(complaint(&second(change)), (expected.to_owned(), 0));
    }
    let alone = |name: &str, host: u8| {
        format!(
            "[[peer]]\nname = \"{name}\"\nendpoint = \"192.0.2.2\"\nallowed_ips = \"10.88.0.{host}\"\n[peer.manual]\n\
             carrier = \"ip\"\nlocal = \"192.0.2.1\"\nipcomp = \"deflate\"\ndanger_plain = true\n"
        )
    };
    let said = complaint(&format!("{NODE}{}{}", alone("a", 2), alone("b", 3))).0;
    assert!(
        said.contains("the peer in line 8 already has the endpoint 192.0.2.2 without ESP or AH"),
        "{said}"
    );
}
