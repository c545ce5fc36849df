//! What holds after every operation, and once everything was let through.

use core::sync::atomic::Ordering;

use super::*;

impl DataWorld {
    /// What holds at any time.
    pub(super) fn check(&self) -> Held {
        for site in &self.sites {
            self.model.waiting(site.number, site.dropped(), site.again())?;
            for peer in site.out_peers.iter().filter_map(|peers| peers.last()) {
                let queued = peer.queued.load(Ordering::Relaxed);
                hold(queued <= QUEUED_MAX, || format!("{queued} bytes wait at site {}", site.number))?;
            }
            let opened: u64 = site.in_peers.iter().map(|peer| peer.in_datagrams.get()).sum();
            let (_, fresh) = self.links.arrived(site.number);
            hold(opened <= fresh, || {
                format!("site {} opened {opened} datagrams, and {fresh} came", site.number)
            })?;
        }
        Ok(())
    }

    /// Lets everything through: peers know each other and where they are, workers end their jobs, time passes until
    /// nothing waits. Then the books have to agree to the packet.
    pub(in crate::operations::data) fn settle(&mut self) -> Held {
        for _ in 0..ROUNDS {
            self.reconcile();
            self.work_off()?;
            self.release()?;
            let (next, flies) = (self.next_at(), !self.links.is_empty());
            match next {
                None if !flies && !self.has_jobs() => {
                    self.check_settled()?;
                    self.links.order_again(&mut self.model);
                    return Ok(());
                }
                Some(at) if !flies => self.now = self.now.max(at),
                _ => {}
            }
        }
        Err(format!("something is still due after {ROUNDS} rounds, next at {:?}", self.next_at()))
    }

    /// What the key managers would see to.
    fn reconcile(&mut self) {
        for (from, to) in pairs() {
            self.add_peer(from, to);
        }
        for (from, to) in pairs() {
            let used = self.sites[from].used[to];
            if used.is_none_or(|spi| !self.sites[to].taken[from].contains(&spi)) {
                self.install((from, to), self.settings.payloads, None);
            }
            let address = self.sites[to].outlets.address;
            self.sites[from].place(to, address, self.now);
        }
    }

    /// Workers end their jobs and all datagrams arrive.
    fn work_off(&mut self) -> Held {
        self.collect_all()?;
        for site in 0..SITES {
            while !self.sites[site].outlets.compressions.is_empty() {
                self.sites[site].compress(0, self.now);
            }
        }
        for (from, to) in pairs() {
            self.deliver(Between { from, to }, ALL);
        }
        for site in &mut self.sites {
            site.settle(self.now);
            while !site.outlets.expansions.is_empty() {
                site.expand(0, self.now);
            }
        }
        self.collect_all()
    }

    fn has_jobs(&self) -> bool {
        let outlets = self.sites.iter().map(|site| &site.outlets);
        outlets.into_iter().any(|outlets| !outlets.compressions.is_empty() || !outlets.expansions.is_empty())
    }

    fn check_settled(&self) -> Held {
        self.check()?;
        for site in &self.sites {
            let (number, dropped) = (site.number, site.dropped());
            let waiting = self.model.waiting(number, dropped, site.again())?;
            hold(waiting == 0, || {
                let drops: Vec<_> = site.sending.drops.iter().filter(|(_, count)| *count > 0).collect();
                format!("{waiting} packets of site {number} are neither gone nor counted: {drops:?}")
            })?;
            let (arrived, _) = self.links.arrived(number);
            hold(site.counted() == arrived, || {
                format!("{arrived} datagrams came to site {number}, which counts {}", site.counted())
            })?;
            let counted: u64 = site.in_peers.iter().map(|peer| peer.in_packets.get()).sum();
            let received = self.model.received(number);
            hold(counted == received, || {
                format!("the host of site {number} was given {received} packets, and {counted} are counted")
            })?;
        }
        for (from, to) in pairs() {
            let site = &self.sites[from];
            self.model.all_left((from, to), site.sealed_for(to), site.gone[to])?;
        }
        self.model.all_arrived()
    }
}
