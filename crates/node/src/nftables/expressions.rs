//! The expressions of a rule: what is loaded into a register, what it is compared with, what happens then.

use super::NftAttributes;

/// The register that expressions hand values over in (`NFT_REG_1`), and that of the verdict (`NFT_REG_VERDICT`).
const REGISTER: u32 = 1;
const VERDICT: u32 = 0;
/// `NFT_CMP_EQ` and `NFT_CMP_NEQ`.
const EQUAL: u32 = 0;
const NOT_EQUAL: u32 = 1;
/// Length of an interface's name in a register (`IFNAMSIZ`).
const NAME_BYTES: usize = libc::IFNAMSIZ;

/// What a packet is known by beside its bytes: `NFT_META_MARK`, `NFT_META_IIFNAME`, `NFT_META_OIFNAME`,
/// `NFT_META_NFPROTO`, `NFT_META_L4PROTO`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum NftMeta {
    Mark = 3,
    InterfaceIn = 6,
    InterfaceOut = 7,
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

/// The expressions of a rule, in order. Each condition ends the rule for packets that do not meet it.
#[derive(Clone, Debug, Default)]
pub(crate) struct NftExpressions(NftAttributes);

impl NftExpressions {
    pub(crate) fn new() -> NftExpressions {
        NftExpressions::default()
    }

    /// With one more expression.
    pub(crate) fn then(self, name: &str, data: &NftAttributes) -> NftExpressions {
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
        let len = u32::try_from(mask.len()).unwrap_or(u32::MAX);
        let data = |bytes: &[u8]| NftAttributes::new().bytes(1, bytes);
        let registers = NftAttributes::new().number(1, REGISTER).number(2, REGISTER).number(3, len);
        let bitwise = registers.nested(4, &data(mask)).nested(5, &data(&vec![0; mask.len()]));
        self.payload(header, offset, value.len()).then("bitwise", &bitwise).compare(EQUAL, value)
    }

    /// Compares what the expression before has loaded; for those that are not here.
    pub(crate) fn differs(self, value: &[u8]) -> NftExpressions {
        self.compare(NOT_EQUAL, value)
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

    fn compare(self, operation: u32, with: &[u8]) -> NftExpressions {
        let value = NftAttributes::new().bytes(1, with);
        self.then("cmp", &NftAttributes::new().number(1, REGISTER).number(2, operation).nested(3, &value))
    }
}

/// An interface's name as a register has it.
pub(crate) fn interface_name(name: &str) -> [u8; NAME_BYTES] {
    let mut register = [0; NAME_BYTES];
    register.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from);
    register
}
