//! Notes on the tables with the product.

use super::BrokerNetwork;
use super::tables::size;
use crate::steps::Effort;

/// Notes that say what was run, what is shorter than in the post, and what stands for what `put` cannot do.
pub(in crate::broker) fn all() -> Vec<String> {
    let amounts = |effort| BrokerNetwork::ALL.map(|network| network.amount(effort));
    let [(fast_runs, fast), (slow_runs, slow)] = amounts(Effort::Full);
    let [(_, quick_fast), (_, quick_slow)] = amounts(Effort::Quick);
    vec![
        "measured with strait put: three hosts in network namespaces, on each a node without a tunnel: a sender, a broker with its store in a \
         folder, and a receiver. Both links have 100 or 0.1 Mbit/s each way, of Ethernet frames without preamble and checksum, a queue of 300 \
         ms, and no delay; the nodes know the rate. A run is the lab's layers from file to file, a real `strait put --exact-size`, which \
         ends when the broker has the object on its disk, and a real `strait fetch`, whose file is compared. The time of put is that of the \
         layers and of the command, by the clock on the wall: one after the other, as put takes files and no pipe. All three hosts share the \
         processors of this machine"
            .to_owned(),
        format!(
            "shortened: the post's file is not known, and its runs took 10 to 30 minutes. Here what is put has {} over the fast network ({} \
             runs) and, as in the post, a reduced version over the slow one, its first {} ({} runs); with --quick {} and {}, one run each. \
             So the start of commands, the manifest and headers weigh more than in the rows in virtual time, which are of 1 GiB; the less \
             a file has, the more: compressed files over the slow network most of all",
            size(fast), fast_runs, size(slow), slow_runs, size(quick_fast), size(quick_slow),
        ),
        "what stands for what: put always compresses (zstd, where it makes data smaller), always encrypts to the receiver (age v1, \
         ChaCha20-Poly1305), and its connection to the broker is always under TLS 1.3 (QUIC); there are no flags against that. So `none` is \
         without any cipher besides, and `TLS` the same command: what they differ in is chance. `none` and `TLS`, plain: random bytes, as \
         many as the payload has, which put sends as they are. Compressed: the lab's DEFLATE from file to file, which put can hardly make \
         smaller. RC4: no cipher of the product's; the lab encrypts the file with it before put encrypts that. AES: likewise, AES-128-GCM in records \
         of 16 KiB in the place of ECB, whose equal blocks put would compress. `strait put`: the payload as it is, which is what one would do"
            .to_owned(),
    ]
}
