//! A transfer in virtual time: a sender, a link and a receiver, each at work on a chunk of its own.

/// Bytes of the payload that go from stage to stage at once: what the programs read at once.
pub(super) const CHUNK: usize = 64 * 1024;
/// Chunks of a transfer, 1 GiB: the post's took 10 to 30 minutes, so that how it begins and ends does not show.
pub(super) const CHUNKS: u64 = 16 * 1024;

/// Seconds that one chunk of the payload takes at each stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct StageSeconds {
    /// On one core of the sender: it reads, compresses and encrypts one chunk after the other.
    pub(super) sender: f64,
    /// On the link, after compression.
    pub(super) link: f64,
    /// On one core of the receiver: it decrypts what TLS encrypted, and writes.
    pub(super) receiver: f64,
}

impl StageSeconds {
    /// From times a byte of the payload on both cores, bytes on the wire for each of them, and a link in bit/s.
    pub(super) fn of([sender, receiver]: [f64; 2], wire: f64, link: f64) -> StageSeconds {
        let chunk = CHUNK as f64;
        StageSeconds { sender: sender * chunk, link: wire * chunk * 8.0 / link, receiver: receiver * chunk }
    }

    /// The slowest stage.
    fn slowest(self) -> f64 {
        self.sender.max(self.link).max(self.receiver)
    }

    /// Seconds of a transfer of so many equal chunks: the first passes all stages, then one comes out as often as the slowest stage
    /// takes.
    pub(super) fn transfer(self, chunks: u64) -> f64 {
        if chunks == 0 {
            return 0.0;
        }
        self.sender + self.link + self.receiver + (chunks - 1) as f64 * self.slowest()
    }

    /// Payload in bit/s over a transfer of [`CHUNKS`].
    pub(super) fn rate(self) -> f64 {
        CHUNKS as f64 * CHUNK as f64 * 8.0 / self.transfer(CHUNKS)
    }

    /// Shares of that time in which the sender's core and the receiver's are at work.
    pub(super) fn loads(self) -> [f64; 2] {
        let took = self.transfer(CHUNKS);
        [self.sender, self.receiver].map(|stage| stage * CHUNKS as f64 / took)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a stage does is begun when the stage has done the last one and the stage before has done this one.
    fn simulated(chunks: u64, stages: StageSeconds) -> f64 {
        let mut free = [0.0_f64; 3];
        for _ in 0..chunks {
            let mut done = 0.0_f64;
            for (free, takes) in free.iter_mut().zip([stages.sender, stages.link, stages.receiver]) {
                done = done.max(*free) + takes;
                *free = done;
            }
        }
        free[2]
    }

    #[test]
    fn the_first_chunk_passes_all_stages_and_the_slowest_sets_the_pace() {
        let stages = StageSeconds { sender: 2.0, link: 5.0, receiver: 1.0 };
        assert_eq!(stages.transfer(0), 0.0);
        assert_eq!(stages.transfer(1), 8.0);
        assert_eq!(stages.transfer(4), 8.0 + 3.0 * 5.0);
        for slowest in 0..3 {
            let mut seconds = [0.5, 0.25, 0.125];
            seconds[slowest] = 3.0;
            let stages = StageSeconds { sender: seconds[0], link: seconds[1], receiver: seconds[2] };
            assert_eq!(stages.transfer(100), simulated(100, stages), "{seconds:?}");
        }
    }

    #[test]
    fn by_hand() {
        // 100 Mbit/s without compression: 64 KiB take 5.24288 ms. A processor with 8 ns a byte needs a tenth of that.
        let stages = StageSeconds::of([8e-9, 4e-9], 1.0, 100e6);
        assert!((stages.link - 5.242_88e-3).abs() < 1e-12 && (stages.sender - 0.524_288e-3).abs() < 1e-12);
        assert!((stages.rate() / 100e6 - 1.0).abs() < 1e-4);
        let [sender, receiver] = stages.loads();
        assert!((sender - 0.1).abs() < 1e-4 && (receiver - 0.05).abs() < 1e-4);
        // A tenth of the bytes: now the sender's 800 ns a byte are the slowest, 10 Mbit/s.
        let stages = StageSeconds::of([800e-9, 0.0], 0.1, 100e6);
        assert!((stages.rate() / 10e6 - 1.0).abs() < 1e-4);
        assert!((stages.loads()[0] - 1.0).abs() < 1e-4);
        // 0.1 Mbit/s and a tenth of the bytes: ten times as fast.
        assert!((StageSeconds::of([8e-9, 4e-9], 0.1, 1e5).rate() / 1e6 - 1.0).abs() < 1e-3);
    }
}
