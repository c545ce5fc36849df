//! The two sites' configurations, written as a person would write them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use strait_keying::PublicKey;
use strait_scheduler::Rate;

use super::stage::Way;
use crate::failure::Failure;
use crate::keys;

/// The method that the demonstration compresses with.
const CODEC: &str = "zstd-3";

/// Ethernet's header, which the link's token bucket counts with every datagram.
const OVERHEAD: u8 = 14;

/// The daemons pace themselves at this many thousandths of the link's rate: just under it, so that the queue stands
/// with them and not in the link.
const PACE: u64 = 995;

/// One site: who it is, inside and outside the tunnel.
#[derive(Clone, Debug)]
pub(super) struct Site {
    /// Its name.
    pub(super) name: &'static str,
    /// Its number inside the tunnel: 10.77.0.`number` and fd77::`number`.
    pub(super) number: u8,
    /// Where it is reached outside.
    pub(super) outside: SocketAddr,
    /// Its folder.
    pub(super) folder: PathBuf,
    public: PublicKey,
}

impl Site {
    /// Makes the site's folder and key.
    pub(super) fn create(
        name: &'static str,
        number: u8,
        outside: SocketAddr,
        parent: &Path,
    ) -> Result<Site, Failure> {
        let folder = parent.join(name);
        std::fs::create_dir(&folder).map_err(Failure::doing(format!("make {}", folder.display())))?;
        let public = keys::make(&folder.join(format!("{name}.key")))?;
        Ok(Site { name, number, outside, folder, public })
    }

    /// Writes the configuration for one way of moving files, and says where it is.
    pub(super) fn write(&self, peer: &Site, link: Rate, way: Way) -> Result<PathBuf, Failure> {
        let path = self.folder.join(format!("{}-{}.toml", self.name, way.word()));
        std::fs::write(&path, self.text(peer, link, way))
            .map_err(Failure::doing(format!("write {}", path.display())))?;
        Ok(path)
    }

    fn text(&self, peer: &Site, link: Rate, way: Way) -> String {
        let pace = link.bits() * PACE / 1000;
        let mut text = format!(
            "[node]\n\
             private_key_file = \"{name}.key\"\n\
             address = [\"10.77.0.{number}/24\", \"fd77::{number}/64\"]\n\
             listen = {port}\n\
             interface = \"strait0\"\n\
             \n\
             [link]\n\
             up = \"{pace}bit\"\n\
             down = \"{pace}bit\"\n\
             overhead = {OVERHEAD}\n\
             \n\
             [[peer]]\n\
             name = \"{peer_name}\"\n\
             public_key = \"{peer_key}\"\n\
             endpoint = \"{peer_outside}\"\n\
             allowed_ips = [\"10.77.0.{peer_number}/32\", \"fd77::{peer_number}/128\"]\n",
            name = self.name,
            number = self.number,
            port = self.outside.port(),
            peer_name = peer.name,
            peer_key = peer.public,
            peer_outside = peer.outside,
            peer_number = peer.number,
        );
        if way == Way::Compressed {
            text.push_str(&format!(
                "\n\
                 [[compress]]\n\
                 from = \"10.77.0.{}/32\"\n\
                 to = \"10.77.0.{}/32\"\n\
                 domain = \"demo\"\n\
                 codec = \"{CODEC}\"\n",
                self.number, peer.number
            ));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strait_node::config::Config;
    use strait_testbed::Workdir;

    #[test]
    fn what_is_written_is_a_legal_configuration() {
        let dir = Workdir::create().unwrap();
        let site = |name, number, outside: &str| {
            Site::create(name, number, outside.parse().unwrap(), dir.path()).unwrap()
        };
        let (a, b) = (site("site-a", 1, "198.18.0.1:51820"), site("site-b", 2, "[fd00:18::2]:51820"));
        let link = "1.5Mbit".parse().unwrap();
        for way in [Way::Tunnel, Way::Compressed] {
            for (one, other) in [(&a, &b), (&b, &a)] {
                let config = Config::load(&one.write(other, link, way).unwrap()).unwrap();
                assert_eq!(config.link.up.map(Rate::bits), Some(1_492_500));
                assert_eq!(config.domains.len(), usize::from(way == Way::Compressed));
            }
        }
    }
}
