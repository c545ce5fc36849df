//! What a configuration says of the node itself beyond its sections: the keys in its files, and what it tells its peers.

use strait_compress::CodecSet;
use strait_crypto::Ranking;
use strait_ipsec::{CacheList, HistoryTerms, ReportWish};
use strait_keying::sessionless::KemKey;
use strait_keying::{
    Capabilities, DeliveryReporting, DirectEsp, Expansion, LossRepair, PayloadFormat, PresharedToken,
    PrivateKey,
};

use crate::speed::MachineSpeed;
use crate::web::WebToken;

use super::{Config, KeyFileError, kem_key_file, key_file};

impl Config {
    /// Reads the pre-shared token; none when no file is named for it.
    ///
    /// # Errors
    /// [`KeyFileError`] with the remedy.
    pub fn token(&self) -> Result<Option<PresharedToken>, KeyFileError> {
        let read = |path| key_file::read(path, self.access.owner);
        self.node.token_file.as_deref().map(read).transpose()
    }

    /// Reads the token that the page asks for; none when no file is named for it.
    ///
    /// # Errors
    /// [`KeyFileError`] with the remedy.
    pub(crate) fn web_token(&self) -> Result<Option<WebToken>, KeyFileError> {
        let read = |path| key_file::read_web_token(path, self.access.owner);
        self.node.web_token_file.as_deref().map(read).transpose()
    }

    /// Reads the private key, which a configuration never holds; none when no file is named for it.
    ///
    /// # Errors
    /// [`KeyFileError`] with the remedy.
    pub fn private_key(&self) -> Result<Option<PrivateKey>, KeyFileError> {
        let read = |path| key_file::read(path, self.access.owner);
        self.node.private_key_file.as_deref().map(read).transpose()
    }

    /// Reads the ML-KEM key beside the private key; none when there is no such file.
    ///
    /// # Errors
    /// [`KeyFileError`] with the remedy.
    pub fn kem_key(&self) -> Result<Option<KemKey>, KeyFileError> {
        let read = |path| key_file::read_kem(&kem_key_file(path), self.access.owner);
        Ok(self.node.private_key_file.as_deref().map(read).transpose()?.flatten())
    }

    /// What the node tells its peers of itself, in a handshake or on its card; the last two are measured.
    #[must_use]
    pub fn capabilities(&self, ranking: Ranking, expansion: Expansion) -> Capabilities {
        Capabilities {
            suites: self.node.suites,
            ranking,
            codecs: CodecSet::ALL,
            block_cap: self.node.block,
            iv: self.node.iv,
            format: PayloadFormat::Strait,
            inner_mtu: self.node.mtu,
            down: self.link.down,
            delivery: DeliveryReporting::Reported,
            reports: ReportWish::Changes,
            repair: LossRepair::Unpaced,
            history: HistoryTerms { caches: self.cache_list(), ..HistoryTerms::NONE },
            // Not before there are sockets for it.
            direct: DirectEsp::Off,
            lanes: true,
            expansion,
        }
    }

    /// The byte caches of its rules.
    pub(crate) fn cache_list(&self) -> CacheList {
        CacheList::of(self.rules.rules().iter().filter_map(|rule| rule.cache))
    }
}

/// The same with what this machine is measured to do, as a daemon has it at its start.
#[must_use]
pub fn measured(capabilities: Capabilities) -> Capabilities {
    let MachineSpeed { ranking, calibration } = MachineSpeed::of_this_machine();
    Capabilities { ranking, expansion: Expansion::of(&calibration), ..capabilities }
}
