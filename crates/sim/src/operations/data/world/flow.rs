//! How packets, datagrams and time go through the world.

use super::*;

impl DataWorld {
    /// The host at one site sends.
    pub(super) fn send(&mut self, Between { from, to }: Between, flow: u8, shape: u8) -> Held {
        for packet in self.traffic.packets((from, to), flow, shape) {
            for piece in &packet.pieces {
                self.model.give((from, to), packet.flow, piece)?;
            }
            self.sites[from].packet(&packet.bytes, &packet.offload, self.now);
        }
        Ok(())
    }

    pub(super) fn send_fragments(&mut self, Between { from, to }: Between, shape: u8) -> Held {
        for fragment in self.traffic.fragments((from, to), shape) {
            self.model.give((from, to), None, &fragment.bytes)?;
            self.sites[from].packet(&fragment.bytes, &fragment.offload, self.now);
        }
        Ok(())
    }

    pub(super) fn send_oddity(&mut self, Between { from, to }: Between, oddity: Oddity, form: u8) {
        let third = SITES - from - to;
        let (bytes, offload) = match oddity {
            Oddity::Malformed => malformed((from, to), form),
            Oddity::Stranger => {
                (misaddressed(from, NodeId::of(from), NodeId(9), form), vnet::Header::default())
            }
            Oddity::Foreign => {
                (misaddressed(from, NodeId::of(third), NodeId::of(to), form), vnet::Header::default())
            }
        };
        self.model.give_oddity(from);
        self.sites[from].packet(&bytes, &offload, self.now);
    }

    /// At most so many datagrams arrive, in as few calls as may be.
    pub(super) fn deliver(&mut self, Between { from, to }: Between, mut count: usize) {
        while count > 0 {
            let site = &mut self.sites[to];
            let where_to = (site.outlets.address, site.taken[from].as_slice());
            let state = (&mut self.model, self.now);
            let Some((brought, taken)) = self.links.bring((from, to), where_to, count, state) else {
                return;
            };
            count -= taken;
            site.datagrams(brought, self.now);
        }
    }

    /// Lets time pass, in which senders do what is due.
    pub(super) fn advance(&mut self, span: Duration) -> Held {
        let end = self.now + span;
        self.release()?;
        while let Some(at) = self.next_at().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.release()?;
        }
        self.now = end;
        self.release()
    }

    /// When a site wants to be called.
    pub(super) fn next_at(&self) -> Option<Time> {
        self.sites.iter().filter_map(|site| site.poll_timeout()).map(|deadline| deadline.at).min()
    }

    /// Everything that may leave does; after that no sender asks for a time that has come.
    pub(super) fn release(&mut self) -> Held {
        for site in 0..SITES {
            self.sites[site].release(self.now);
            self.collect(site)?;
            let due = self.sites[site].poll_timeout();
            hold(due.is_none_or(|deadline| deadline.at > self.now), || {
                format!("site {site} has released what it may at {:?} and asks for {due:?}", self.now)
            })?;
        }
        Ok(())
    }

    pub(super) fn collect_all(&mut self) -> Held {
        (0..SITES).try_for_each(|site| self.collect(site))
    }

    /// Takes what a site's cores gave out where it belongs.
    pub(super) fn collect(&mut self, site: usize) -> Held {
        loop {
            for (datagram, taken) in core::mem::take(&mut self.sites[site].outlets.sent) {
                self.leave(site, datagram, taken)?;
            }
            let orders = core::mem::take(&mut self.sites[site].outlets.orders);
            if orders.is_empty() {
                break;
            }
            for order in orders {
                self.sites[site].order(order, self.now);
            }
        }
        // A repair that comes too late, or that nothing waits for, comes out of its place.
        let repaired = self.settings.repair != RepairTerms::Off && self.model.lost_any();
        let ordered = if repaired { [false; SITES] } else { self.links.ordered(site) };
        for packet in core::mem::take(&mut self.sites[site].outlets.host) {
            self.model.arrives(site, &packet, ordered)?;
        }
        for answer in core::mem::take(&mut self.sites[site].outlets.told) {
            hold(crate::is_intact(&answer), || format!("the host of site {site} was told {answer:02x?}"))?;
        }
        Ok(())
    }

    /// A datagram leaves a site; if the network did not take it, it is lost.
    fn leave(&mut self, from: usize, datagram: SimDatagram, taken: bool) -> Held {
        hold(datagram.outer_len() <= LINK_MTU, || format!("{} bytes left at once", datagram.outer_len()))?;
        let Some(opened) = self.agreed.open(&datagram.bytes, &mut self.model)? else {
            let to = pairs()
                .find(|(here, to)| *here == from && NodeId::of(*to).outer_v4().ip() == datagram.to.ip());
            if let Some(pair) = to.filter(|_| taken) {
                self.links.push(pair, datagram, None);
            }
            return Ok(());
        };
        hold(opened.from == from, || format!("site {from} used an association of site {}", opened.from))?;
        for packet in self.sites[opened.to].witness(&datagram) {
            self.model.leaves(opened.to, &packet, opened.unit)?;
        }
        if taken {
            self.links.push((from, opened.to), datagram, Some(opened));
        } else {
            self.model.units[opened.unit].spoiled = true;
        }
        Ok(())
    }
}
