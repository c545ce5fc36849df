//! The expressions of a rule: what is loaded into a register, what it is compared with, what happens then.

use super::NftAttributes;

/// The register that expressions hand values over in (`NFT_REG_1`), and that of the verdict (`NFT_REG_VERDICT`).
const REGISTER: u32 = 1;
const VERDICT: u32 = 0;
/// `NFT_CMP_EQ` and `NFT_CMP_NEQ`.
const EQUAL: u32 = 0;
const NOT_EQUAL: u32 = 1;
/// `NFT_FIB_RESULT_ADDRTYPE`: what kind of address it is.
const ADDRESS_TYPE: u32 = 3;

/// A property of a packet beside its bytes: `NFT_META_MARK`, `NFT_META_IIF`, `NFT_META_OIF`, `NFT_META_NFPROTO`,
/// `NFT_META_L4PROTO`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum NftMeta {
    Mark = 3,
    InterfaceIn = 4,
    InterfaceOut = 5,
    Family = 15,
    Protocol = 16,
}

/// Where bytes of a packet are counted from: `NFT_PAYLOAD_NETWORK_HEADER`, `NFT_PAYLOAD_TRANSPORT_HEADER`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum NftHeader {
    Network = 1,
    Transport = 2,
}

/// An address of a packet: `NFTA_FIB_F_SADDR`, `NFTA_FIB_F_DADDR`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum NftAddress {
    Source = 1,
    Destination = 2,
}

/// The expressions of a rule, in order. Each condition ends the rule for packets that do not meet it.
#[derive(Clone, Debug, Default)]
pub(crate) struct NftExpressions(NftAttributes);

impl NftExpressions {
    pub(crate) fn new() -> NftExpressions {
        NftExpressions::default()
    }

    /// With one more expression.
    fn then(self, name: &str, data: &NftAttributes) -> NftExpressions {
        NftExpressions(self.0.nested(1, &NftAttributes::new().text(1, name).nested(2, data)))
    }

    /// If a property is `value`, as the register has it.
    pub(crate) fn meta(self, key: NftMeta, value: &[u8]) -> NftExpressions {
        self.load(key).compare(EQUAL, value)
    }

    /// If a property is not `value`.
    pub(crate) fn meta_differs(self, key: NftMeta, value: &[u8]) -> NftExpressions {
        self.load(key).compare(NOT_EQUAL, value)
    }

    /// If the packet is of this family, `NFPROTO_IPV4` or `NFPROTO_IPV6`.
    pub(crate) fn family(self, family: libc::c_int) -> NftExpressions {
        self.meta(NftMeta::Family, &[u8::try_from(family).unwrap_or(u8::MAX)])
    }

    /// If the packet's bytes at `offset` of a header are `value`.
    pub(crate) fn bytes(self, header: NftHeader, offset: u32, value: &[u8]) -> NftExpressions {
        self.payload(header, offset, value.len()).compare(EQUAL, value)
    }

    /// If the packet's bytes at `offset` of a header are `value` where `mask` has ones.
    pub(crate) fn masked(self, header: NftHeader, offset: u32, value: &[u8], mask: &[u8]) -> NftExpressions {
        self.bits(header, offset, mask).compare(EQUAL, value)
    }

    /// If any of the packet's bits at `offset` of a header is set where `mask` has ones.
    pub(crate) fn any(self, header: NftHeader, offset: u32, mask: &[u8]) -> NftExpressions {
        self.bits(header, offset, mask).compare(NOT_EQUAL, &vec![0; mask.len()])
    }

    /// If an address of the packet is one of this host.
    pub(crate) fn local(self, address: NftAddress) -> NftExpressions {
        self.address_type(address).compare(EQUAL, &u32::from(libc::RTN_LOCAL).to_ne_bytes())
    }

    /// If an address of the packet is none of this host.
    pub(crate) fn foreign(self, address: NftAddress) -> NftExpressions {
        self.address_type(address).compare(NOT_EQUAL, &u32::from(libc::RTN_LOCAL).to_ne_bytes())
    }

    /// If no route leads back by the interface that it came in by, as firewalld's rule for IPv6 has it
    /// (`fib saddr . mark . iif oif missing`).
    #[cfg(test)]
    pub(crate) fn no_way_back(self) -> NftExpressions {
        // `NFT_FIB_RESULT_OIF`; `NFTA_FIB_F_SADDR`, `_MARK`, `_IIF`, `_PRESENT`.
        let fib = NftAttributes::new().number(1, REGISTER).number(2, 1).number(3, 1 | 4 | 8 | 32);
        self.then("fib", &fib).compare(EQUAL, &[0])
    }

    /// Then the packet gets this mark, and the next rule has it.
    pub(crate) fn set_mark(self, mark: u32) -> NftAttributes {
        let value = NftAttributes::new().bytes(1, &mark.to_ne_bytes());
        let value = NftAttributes::new().number(1, REGISTER).nested(2, &value);
        let to_mark = NftAttributes::new().number(2, NftMeta::Mark as u32).number(3, REGISTER);
        self.then("immediate", &value).then("meta", &to_mark).0
    }

    /// Then the packet passes.
    pub(crate) fn accept(self) -> NftAttributes {
        self.verdict(1)
    }

    /// Then the packet is counted and dropped.
    pub(crate) fn drop(self) -> NftAttributes {
        self.then("counter", &NftAttributes::new()).verdict(0)
    }

    fn verdict(self, code: u32) -> NftAttributes {
        let verdict = NftAttributes::new().nested(2, &NftAttributes::new().number(1, code));
        self.then("immediate", &NftAttributes::new().number(1, VERDICT).nested(2, &verdict)).0
    }

    fn load(self, key: NftMeta) -> NftExpressions {
        self.then("meta", &NftAttributes::new().number(1, REGISTER).number(2, key as u32))
    }

    fn payload(self, header: NftHeader, offset: u32, len: usize) -> NftExpressions {
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        let from = NftAttributes::new().number(1, REGISTER).number(2, header as u32);
        self.then("payload", &from.number(3, offset).number(4, len))
    }

    fn bits(self, header: NftHeader, offset: u32, mask: &[u8]) -> NftExpressions {
        let len = u32::try_from(mask.len()).unwrap_or(u32::MAX);
        let data = |bytes: &[u8]| NftAttributes::new().bytes(1, bytes);
        let registers = NftAttributes::new().number(1, REGISTER).number(2, REGISTER).number(3, len);
        let bitwise = registers.nested(4, &data(mask)).nested(5, &data(&vec![0; mask.len()]));
        self.payload(header, offset, mask.len()).then("bitwise", &bitwise)
    }

    fn address_type(self, address: NftAddress) -> NftExpressions {
        let fib = NftAttributes::new().number(1, REGISTER).number(2, ADDRESS_TYPE).number(3, address as u32);
        self.then("fib", &fib)
    }

    fn compare(self, operation: u32, with: &[u8]) -> NftExpressions {
        let value = NftAttributes::new().bytes(1, with);
        self.then("cmp", &NftAttributes::new().number(1, REGISTER).number(2, operation).nested(3, &value))
    }
}
