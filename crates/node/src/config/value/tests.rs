use super::*;

#[test]
fn durations() {
    for (text, millis) in [
        ("25s", 25_000),
        ("500ms", 500),
        ("1h30m", 5_400_000),
        ("1h 30min", 5_400_000),
        ("2d", 172_800_000),
        ("0s", 0),
    ] {
        assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
    }
    for text in [
        "",
        "25",
        "s",
        "-1s",
        "1.5h",
        "1 s",
        "1y",
        "s1",
        "99999999999999999999s",
        "18446744073709551615d",
        "1hé",
    ] {
        assert!(duration(text).is_err(), "{text}");
    }
}

#[test]
fn sizes() {
    for (text, bytes) in
        [("64MiB", 64 << 20), ("10GB", 10_000_000_000), ("1 kB", 1000), ("4096", 4096), ("0B", 0)]
    {
        assert_eq!(size(text), Ok(bytes), "{text}");
    }
    for text in ["", "MiB", "-1", "1.5GB", "1XB", "99999999999TiB", "1 GiB s"] {
        assert!(size(text).is_err(), "{text}");
    }
}

#[test]
fn networks() {
    for (text, net) in [
        ("10.77.0.0/24", "10.77.0.0/24"),
        ("10.77.0.1", "10.77.0.1/32"),
        ("fd77::1", "fd77::1/128"),
        ("::/0", "::/0"),
    ] {
        assert_eq!(network(text).unwrap().to_string(), net);
    }
    for text in ["", "10.77.0.1/33", "10.77.0/24", "fd77::/129", "/24", "10.0.0.0/-1", "localhost"] {
        assert!(network(text).is_err() && address(text).is_err(), "{text}");
    }
    assert_eq!(address("10.77.0.1/24").unwrap().to_string(), "10.77.0.1/24");
}

#[test]
fn endpoints() {
    for good in
        ["192.0.2.1:51820", "[2001:db8::1]:1", "vpn.example.net:51820", "a:65535", "under_score.de.:9"]
    {
        assert_eq!(good.parse::<Endpoint>().map(|endpoint| endpoint.to_string()), Ok(good.to_owned()));
    }
    let mapped: Endpoint = "[::ffff:192.0.2.1]:7".parse().unwrap();
    assert_eq!(mapped.to_string(), "192.0.2.1:7");
    for (bad, why) in [
        ("192.0.2.1", "`192.0.2.1` has no port; write \"192.0.2.1:51820\""),
        ("[2001:db8::1]", "`[2001:db8::1]` has no port; write \"[2001:db8::1]:51820\""),
        ("2001:db8::1", "an IPv6 endpoint is written in brackets: \"[2001:db8::1]:51820\""),
        ("2001:db8::1:51820", "an IPv6 endpoint is written in brackets: \"[2001:db8::1]:51820\""),
        ("host:0", "`0` is not a port; write a number between 1 and 65535"),
        ("host:70000", "`70000` is not a port; write a number between 1 and 65535"),
        ("192.0.2.300:9", "`192.0.2.300` is neither an IP address nor a host name"),
        ("-a.example:9", "`-a.example` is neither an IP address nor a host name"),
        (":9", "`` is neither an IP address nor a host name"),
        ("0.0.0.0:9", "0.0.0.0 is not the address of a host"),
        ("[ff02::1]:9", "ff02::1 is not the address of a host"),
    ] {
        assert_eq!(bad.parse::<Endpoint>().unwrap_err().to_string(), why, "{bad}");
    }
}

#[test]
fn hosts() {
    for (text, address) in
        [("192.0.2.1", "192.0.2.1"), ("[2001:db8::1]", "2001:db8::1"), ("::ffff:192.0.2.1", "192.0.2.1")]
    {
        assert_eq!(host(text).map(|address| address.to_string()), Ok(address.to_owned()));
    }
    for (bad, why) in [
        ("192.0.2.1:4500", "with carrier \"ip\" there is no port; write \"192.0.2.1\""),
        ("[2001:db8::1]:4500", "with carrier \"ip\" there is no port; write \"2001:db8::1\""),
        (
            "host.example",
            "`host.example` is not an IP address; write for example \"192.0.2.1\" or \"2001:db8::1\"",
        ),
        (
            "255.255.255.256",
            "`255.255.255.256` is not an IP address; write for example \"192.0.2.1\" or \"2001:db8::1\"",
        ),
        ("::", ":: is not the address of a host"),
        ("fe80::1", "fe80::1 is a link-local address; write a global one"),
    ] {
        assert_eq!(host(bad).unwrap_err().to_string(), why, "{bad}");
    }
}

#[test]
fn port_ranges() {
    assert_eq!(ports("514"), Ok(514..=514));
    assert_eq!(ports("8000-8100"), Ok(8000..=8100));
    assert_eq!(ports("1-65535"), Ok(1..=65535));
    for bad in ["", "0", "65536", "2-1", "a", "1-2-3", "-5"] {
        assert!(ports(bad).is_err(), "{bad}");
    }
}
