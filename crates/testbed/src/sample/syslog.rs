//! A collector's log of several hosts, in traditional syslog form (RFC 3164).

use strait_clock::Random;

use super::date::{Moment, START};
use super::phrase::{any, between, favour, inside_address, once_in, outside_address, zipf};
use super::vocabulary::{AGENTS, HOSTS, PATHS, USERS};

/// What a line can be about, the most frequent first.
const SOURCES: [fn(&mut Random) -> String; 8] = [web, firewall, sshd, dhcp, mail, cron, systemd, kernel];

/// About `size` bytes of log lines, ending with a whole line.
pub(super) fn write(random: &mut Random, size: usize) -> Vec<u8> {
    let mut out = String::with_capacity(size + 512);
    let mut now = START * 1000;
    while out.len() < size {
        now += random.below(1400);
        let host = favour(random, &HOSTS);
        let line = SOURCES.get(zipf(random, SOURCES.len())).map(|write| write(random)).unwrap_or_default();
        out.push_str(&format!("{} {host} {line}\n", Moment::from_unix(now / 1000).syslog()));
    }
    out.into_bytes()
}

fn web(random: &mut Random) -> String {
    let status = [200, 200, 200, 304, 404, 302, 500][zipf(random, 7)];
    let path = favour(random, &PATHS);
    let query = if once_in(random, 3) { format!("?page={}", zipf(random, 90)) } else { String::new() };
    format!(
        "nginx: {} - {} \"GET {path}{query} HTTP/1.1\" {status} {} \"-\" \"{}\" rt=0.{:03}",
        inside_address(random),
        if once_in(random, 3) { favour(random, &USERS) } else { "-" },
        between(random, 180, 48_000),
        favour(random, &AGENTS),
        zipf(random, 900),
    )
}

fn firewall(random: &mut Random) -> String {
    format!(
        "kernel: [{}.{:06}] nft drop: IN=wan0 OUT= MAC=52:54:00:1b:9a:07:00:1c:73:00:00:99:08:00 SRC={} DST=198.51.100.7 \
         LEN={} TOS=0x00 PREC=0x00 TTL={} ID={} PROTO=TCP SPT={} DPT={} WINDOW={} SYN",
        between(random, 481_000, 482_999),
        random.below(1_000_000),
        outside_address(random),
        [40, 60, 52, 44][zipf(random, 4)],
        between(random, 40, 58),
        random.below(65_536),
        between(random, 1_024, 65_536),
        [23, 22, 445, 3389, 8080, 5060, 1433][zipf(random, 7)],
        [65_535, 1_024, 29_200, 14_600][zipf(random, 4)],
    )
}

fn sshd(random: &mut Random) -> String {
    let pid = between(random, 900, 32_000);
    let user = favour(random, &USERS);
    let port = between(random, 32_768, 61_000);
    match random.below(4) {
        0 => format!(
            "sshd[{pid}]: Failed password for invalid user {user} from {} port {port} ssh2",
            outside_address(random)
        ),
        1 => format!(
            "sshd[{pid}]: Accepted publickey for {user} from {} port {port} ssh2: ED25519 SHA256:{:016x}{:016x}",
            inside_address(random),
            random.next_u64(),
            random.next_u64()
        ),
        2 => format!(
            "sshd[{pid}]: pam_unix(sshd:session): session opened for user {user}(uid={}) by (uid=0)",
            1000 + zipf(random, 24)
        ),
        _ => format!("sshd[{pid}]: Connection closed by {} port {port} [preauth]", outside_address(random)),
    }
}

fn dhcp(random: &mut Random) -> String {
    let address = inside_address(random);
    let mac = format!("3c:07:54:{:02x}:{:02x}:{:02x}", zipf(random, 6), zipf(random, 256), random.below(256));
    match random.below(3) {
        0 => format!("dhcpd: DHCPDISCOVER from {mac} via lan0"),
        1 => format!("dhcpd: DHCPREQUEST for {address} from {mac} via lan0"),
        _ => format!("dhcpd: DHCPACK on {address} to {mac} via lan0"),
    }
}

fn mail(random: &mut Random) -> String {
    let id = format!("{:010X}", random.next_u64() >> 24);
    let (from, to) = (favour(random, &USERS), favour(random, &USERS));
    format!(
        "postfix/smtp[{}]: {id}: to=<{to}@intra.example>, orig_to=<{from}>, relay=mail.intra.example[10.1.0.25]:25, \
         delay={}.{}, delays=0.0{}/0.01/0.{:02}/0.{:02}, dsn=2.0.0, status=sent (250 2.0.0 Ok: queued as {:010X})",
        between(random, 900, 32_000),
        zipf(random, 9),
        random.below(10),
        random.below(10),
        random.below(100),
        random.below(100),
        random.next_u64() >> 24,
    )
}

fn cron(random: &mut Random) -> String {
    let job = any(
        random,
        &[
            "/usr/lib/sysstat/sa1 1 1",
            "test -x /usr/sbin/anacron || run-parts --report /etc/cron.daily",
            "/opt/site-sync/bin/sync --quiet --since=15m",
            "/usr/local/bin/check-raid | logger -t raid",
        ],
    );
    format!("CRON[{}]: ({}) CMD ({job})", between(random, 900, 32_000), favour(random, &USERS))
}

fn systemd(random: &mut Random) -> String {
    let unit = any(
        random,
        &["logrotate", "apt-daily", "site-sync", "fstrim", "man-db", "certbot", "smartd", "pg-backup"],
    );
    match random.below(3) {
        0 => format!("systemd[1]: Starting {unit}.service..."),
        1 => format!("systemd[1]: {unit}.service: Deactivated successfully."),
        _ => format!(
            "systemd[1]: {unit}.service: Consumed {}.{:03}s CPU time.",
            zipf(random, 60),
            random.below(1000)
        ),
    }
}

fn kernel(random: &mut Random) -> String {
    format!(
        "kernel: [{}.{:06}] {} (err_mask=0x{:x})",
        between(random, 481_000, 482_999),
        random.below(1_000_000),
        any(
            random,
            &[
                "usb 2-1.4: reset high-speed USB device number 5 using xhci_hcd",
                "ata3.00: failed command: READ FPDMA QUEUED",
                "eth0: Link is Up - 1Gbps/Full - flow control rx/tx",
                "EXT4-fs (sdb1): re-mounted. Quota mode: none.",
                "perf: interrupt took too long, lowering kernel.perf_event_max_sample_rate",
            ],
        ),
        random.below(16),
    )
}
