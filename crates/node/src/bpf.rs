//! Programs for the kernel's filters of packets (Linux `Documentation/networking/filter.rst`) and of system calls
//! (`Documentation/userspace-api/seccomp_filter.rst`), with names for the places that they go on at.

use libc::sock_filter;

/// A place further down in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label(usize);

/// One step, its place not known yet.
#[derive(Clone, Copy, Debug)]
enum FilterStep {
    Do(u32, u32),
    /// Goes on there if the accumulator is this, with the next step otherwise.
    Equal(u32, Label),
    /// The other way round.
    Differs(u32, Label),
    Goto(Label),
    Here(Label),
}

/// A program in the making. `A` is its accumulator, `X` its index.
#[derive(Debug, Default)]
pub(crate) struct Program {
    steps: Vec<FilterStep>,
    labels: usize,
}

/// A few steps that are always used together have a name here and no other.
impl Program {
    /// A new place, to be given a position later by [`Program::here`].
    pub(crate) fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels)
    }

    /// What follows is at `label`.
    pub(crate) fn here(&mut self, label: Label) {
        self.steps.push(FilterStep::Here(label));
    }

    /// Goes on at `label` if A is `k`.
    pub(crate) fn equal(&mut self, k: u32, label: Label) {
        self.steps.push(FilterStep::Equal(k, label));
    }

    /// Goes on at `label` if A is not `k`.
    pub(crate) fn differs(&mut self, k: u32, label: Label) {
        self.steps.push(FilterStep::Differs(k, label));
    }

    /// Goes on at `label`.
    pub(crate) fn goto(&mut self, label: Label) {
        self.steps.push(FilterStep::Goto(label));
    }

    /// A keeps only these bits.
    pub(crate) fn mask(&mut self, bits: u32) {
        self.add(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, bits);
    }

    /// Ends, taking this many bytes of the packet; for a system call, with what becomes of it.
    pub(crate) fn take(&mut self, bytes: u32) {
        self.add(libc::BPF_RET | libc::BPF_K, bytes);
    }

    /// A becomes the 32 bits at byte `at`, or one of the kernel's own figures.
    pub(crate) fn load_word(&mut self, at: u32) {
        self.add(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, at);
    }

    /// A becomes the 16 bits at byte `at`.
    pub(crate) fn load_half(&mut self, at: u32) {
        self.add(libc::BPF_LD | libc::BPF_H | libc::BPF_ABS, at);
    }

    /// A becomes the byte at `at`.
    pub(crate) fn load_byte(&mut self, at: u32) {
        self.add(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, at);
    }

    /// A becomes the byte at X and `beyond`.
    pub(crate) fn load_byte_at_x(&mut self, beyond: u32) {
        self.add(libc::BPF_LD | libc::BPF_B | libc::BPF_IND, beyond);
    }

    /// A becomes `k`.
    pub(crate) fn load_number(&mut self, k: u32) {
        self.add(libc::BPF_LD | libc::BPF_IMM, k);
    }

    /// A becomes what was kept at `slot`.
    pub(crate) fn recall(&mut self, slot: u32) {
        self.add(libc::BPF_LD | libc::BPF_MEM, slot);
    }

    /// Keeps A at `slot`.
    pub(crate) fn keep(&mut self, slot: u32) {
        self.add(libc::BPF_ST, slot);
    }

    /// X becomes `k`.
    pub(crate) fn set_x(&mut self, k: u32) {
        self.add(libc::BPF_LDX | libc::BPF_W | libc::BPF_IMM, k);
    }

    /// X becomes the length of the IPv4 header that the packet begins with.
    pub(crate) fn set_x_to_v4_header_len(&mut self) {
        self.add(libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH, 0);
    }

    /// X moves on by (A + 1) times 2 to the power of `shift`; A becomes X.
    pub(crate) fn advance_x(&mut self, shift: u32) {
        self.add(libc::BPF_ALU | libc::BPF_ADD | libc::BPF_K, 1);
        self.add(libc::BPF_ALU | libc::BPF_LSH | libc::BPF_K, shift);
        self.add(libc::BPF_ALU | libc::BPF_ADD | libc::BPF_X, 0);
        self.add(libc::BPF_MISC | libc::BPF_TAX, 0);
    }

    fn add(&mut self, code: u32, k: u32) {
        self.steps.push(FilterStep::Do(code, k));
    }

    /// The program as the kernel takes it; none when it has more than the 4,096 steps it takes (`BPF_MAXINSNS`), or
    /// a test that leads further than 255 steps.
    pub(crate) fn finish(self) -> Option<Vec<sock_filter>> {
        let mut places = vec![0; self.labels + 1];
        let mut at = 0_usize;
        for step in &self.steps {
            match step {
                FilterStep::Here(Label(label)) => *places.get_mut(*label)? = at,
                _ => at += 1,
            }
        }
        let mut program = Vec::with_capacity(at);
        for step in self.steps {
            let next = program.len() + 1;
            let distance = |Label(label): Label| places.get(label).and_then(|place| place.checked_sub(next));
            let near = |label| distance(label).and_then(|distance| u8::try_from(distance).ok());
            let test = u16::try_from(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K).ok()?;
            program.push(match step {
                FilterStep::Here(_) => continue,
                FilterStep::Do(code, k) => sock_filter { code: u16::try_from(code).ok()?, jt: 0, jf: 0, k },
                FilterStep::Equal(k, label) => sock_filter { code: test, jt: near(label)?, jf: 0, k },
                FilterStep::Differs(k, label) => sock_filter { code: test, jt: 0, jf: near(label)?, k },
                FilterStep::Goto(label) => {
                    let code = u16::try_from(libc::BPF_JMP | libc::BPF_JA).ok()?;
                    sock_filter { code, jt: 0, jf: 0, k: u32::try_from(distance(label)?).ok()? }
                }
            });
        }
        (program.len() <= MOST).then_some(program)
    }
}

/// `linux/bpf_common.h`.
const MOST: usize = 4096;
