//! The receiver's half: lost payloads out of repair symbols.
//!
//! Each symbol is an equation whose unknowns are the payloads that it covers and that did not come. The equations are kept in
//! reduced row echelon form: each has a pivot, an unknown that no other equation has. An equation with its pivot alone is solved.

use strait_clock::Time;
use strait_scheduler::Budget;
use strait_wire::symbol::{self, RepairSymbol, SOURCE_HEADER_LEN};
use strait_wire::{Esn, Protocol};

use super::galois::{add_scaled, coefficient, inverse, scale};
use super::window::SourceWindow;
use super::{SOURCE_MAX, SPAN};

/// Unknowns that equations tell apart: two windows of a symbol, as an older one may hold back what a newer one also covers.
const UNKNOWNS: usize = 2 * SPAN;
/// Equations that are kept: the longest burst that half of a window's numbers can repair. It bounds an elimination.
const EQUATIONS: usize = SPAN / 2;
/// Bytes of symbols and payloads that are multiplied for a peer, each second and at once. A processor does 1.4 GB a second (measured),
/// so that this is a fourteenth of its time. 100 Mbit/s with 1 % loss take a quarter of that.
const WORK: u64 = 100_000_000;
const WORK_BURST: u64 = 10_000_000;

/// Why a repair symbol is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SymbolRefused {
    /// It is no symbol, contradicts what arrived, or covers what cannot be.
    Malformed,
    /// What it covers is too old.
    Late,
    /// The peer's symbols cost more work than it may.
    OverBudget,
}

/// What arrived as source symbols, and the equations for what did not.
#[derive(Debug)]
pub(crate) struct SymbolDecoder {
    window: SourceWindow,
    equations: Vec<Equation>,
    /// Equations that are not in use, with their memory.
    spare: Vec<Equation>,
    /// Numbers that were recovered and not taken yet.
    recovered: Vec<u64>,
    /// The highest number of a symbol.
    newest: u64,
    /// The first number that came: what came before it is not known here.
    first: Option<u64>,
    work: Budget,
}

/// A sum of unknown source symbols, and what it is.
#[derive(Debug)]
struct Equation {
    /// The factor of each unknown, by its number modulo [`UNKNOWNS`].
    factors: [u8; UNKNOWNS],
    /// An unknown that no other equation has.
    pivot: u64,
    /// The lowest number of its unknowns, or one below that.
    start: u64,
    sum: Vec<u8>,
}

impl SymbolDecoder {
    pub(crate) fn new() -> SymbolDecoder {
        SymbolDecoder {
            window: SourceWindow::new(),
            equations: Vec::new(),
            spare: Vec::new(),
            recovered: Vec::new(),
            newest: 0,
            first: None,
            work: Budget::new(WORK, WORK_BURST),
        }
    }

    /// A payload came under `number`.
    pub(crate) fn arrived(&mut self, number: Esn, next: Protocol, payload: &[u8], now: Time) {
        self.first.get_or_insert(number.0);
        if self.window.put(number.0, next, payload, now) && !self.equations.is_empty() {
            self.learn(number.0, now);
        }
    }

    /// A repair symbol came under `number`. What it recovers is given by [`SymbolDecoder::take`].
    ///
    /// # Errors
    /// [`SymbolRefused`] when it is of no use.
    pub(crate) fn symbol(&mut self, number: Esn, payload: &[u8], now: Time) -> Result<(), SymbolRefused> {
        let read = RepairSymbol::parse(payload).map_err(|_| SymbolRefused::Malformed)?;
        if read.symbol.len() > SOURCE_MAX {
            return Err(SymbolRefused::Malformed);
        }
        if number.0.saturating_add(SPAN as u64) <= self.newest {
            return Err(SymbolRefused::Late);
        }
        self.newest = self.newest.max(number.0);
        self.forget_old();
        let (mut known, mut unknown) = (0, 0);
        for source in read.numbers(number.0) {
            match self.window.get(source) {
                Some(bytes) if bytes.len() > read.symbol.len() => return Err(SymbolRefused::Malformed),
                Some(_) => known += 1,
                None if self.is_past(source) => return Err(SymbolRefused::Late),
                None => unknown += 1,
            }
        }
        if unknown == 0 {
            return Ok(());
        }
        if !self.work.take(self.cost(known, read.symbol.len()), now) {
            return Err(SymbolRefused::OverBudget);
        }
        let equation = self.equation(number.0, &read);
        self.add(equation, now)
    }

    /// The next payload that was recovered.
    pub(crate) fn take(&mut self) -> Option<(Esn, Protocol, &[u8])> {
        let number = self.recovered.pop()?;
        let (next, payload) = symbol::source_payload(self.window.get(number)?).ok()?;
        Some((Esn(number), next, payload))
    }

    /// Whether a source came and is not here any more, or would have come before anything was kept.
    fn is_past(&self, source: u64) -> bool {
        self.window.is_past(source) || self.first.is_none_or(|first| source < first)
    }

    /// Bytes that are multiplied at most for a symbol of `len` bytes that covers so many known payloads. The sums of the equations
    /// that it meets may be longer than the symbol itself, and each has its factors.
    fn cost(&self, known: usize, len: usize) -> u64 {
        let longest = self.equations.iter().map(|equation| equation.sum.len()).fold(len, usize::max);
        let passes = 2 * self.equations.len() + 1;
        (known * len + passes * (longest + UNKNOWNS)) as u64
    }

    /// What a symbol says of the unknown sources that it covers.
    fn equation(&mut self, number: u64, read: &RepairSymbol<'_>) -> Equation {
        let mut equation = self.spare.pop().unwrap_or_else(Equation::new);
        equation.factors.fill(0);
        equation.start = number.saturating_sub(SPAN as u64);
        equation.sum.clear();
        equation.sum.extend_from_slice(read.symbol);
        for source in read.numbers(number) {
            let factor = coefficient(source, number);
            match self.window.get(source) {
                Some(bytes) => add_scaled(&mut equation.sum, bytes, factor),
                None => equation.set_factor(source, factor),
            }
        }
        equation
    }

    /// Adds an equation to the others, and solves what can be solved.
    fn add(&mut self, mut equation: Equation, now: Time) -> Result<(), SymbolRefused> {
        for other in &self.equations {
            equation.eliminate(other);
        }
        let Some(pivot) = equation.oldest() else {
            // It says nothing new. What is left of the sum has to be nothing as well.
            let agrees = equation.sum.iter().all(|byte| *byte == 0);
            self.spare.push(equation);
            return if agrees { Ok(()) } else { Err(SymbolRefused::Malformed) };
        };
        equation.make_pivot(pivot);
        for other in &mut self.equations {
            other.eliminate(&equation);
        }
        if self.equations.len() >= EQUATIONS {
            self.spare.push(self.equations.remove(0));
        }
        self.equations.push(equation);
        self.solve(now)
    }

    /// Takes out the equations that have one unknown left.
    fn solve(&mut self, now: Time) -> Result<(), SymbolRefused> {
        let mut result = Ok(());
        let SymbolDecoder { window, equations, spare, recovered, .. } = self;
        for equation in equations.extract_if(.., |equation| equation.is_solved()) {
            match symbol::source_payload(&equation.sum) {
                Ok((_, payload)) => {
                    let (symbol, _) = equation.sum.split_at(SOURCE_HEADER_LEN + payload.len());
                    if window.put_symbol(equation.pivot, [symbol, &[]], now) {
                        recovered.push(equation.pivot);
                    }
                }
                Err(_) => result = Err(SymbolRefused::Malformed),
            }
            spare.push(equation);
        }
        result
    }

    /// The source `number` is no longer unknown.
    fn learn(&mut self, number: u64, now: Time) {
        while let Some(at) = self.equations.iter().position(|equation| equation.factor(number) != 0) {
            let mut equation = self.equations.remove(at);
            let factor = equation.factor(number);
            equation.set_factor(number, 0);
            let known = self.window.get(number).unwrap_or_default();
            let fits = known.len() <= equation.sum.len();
            if fits {
                add_scaled(&mut equation.sum, known, factor);
            }
            if fits {
                // Without this unknown it may need another pivot, or be solved.
                let _ = self.add(equation, now);
            } else {
                self.spare.push(equation);
            }
        }
    }

    /// Gives up equations with unknowns that a new one could confuse with its own.
    fn forget_old(&mut self) {
        let newest = self.newest;
        let SymbolDecoder { equations, spare, .. } = self;
        spare.extend(
            equations.extract_if(.., |equation| equation.start.saturating_add(UNKNOWNS as u64) <= newest),
        );
    }
}

impl Equation {
    const fn new() -> Equation {
        Equation { factors: [0; UNKNOWNS], pivot: 0, start: 0, sum: Vec::new() }
    }

    /// The factor of an unknown; numbers out of the range of this equation share places with some in it.
    fn factor(&self, number: u64) -> u8 {
        let is_here = number.checked_sub(self.start).is_some_and(|above| above < UNKNOWNS as u64);
        self.factors.get(column(number)).copied().filter(|_| is_here).unwrap_or(0)
    }

    fn set_factor(&mut self, number: u64, factor: u8) {
        if let Some(place) = self.factors.get_mut(column(number)) {
            *place = factor;
        }
    }

    /// Its unknown with the lowest number.
    fn oldest(&self) -> Option<u64> {
        (self.start..self.start.saturating_add(UNKNOWNS as u64)).find(|number| self.factor(*number) != 0)
    }

    /// Whether the pivot is its only unknown.
    fn is_solved(&self) -> bool {
        self.factors.iter().filter(|factor| **factor != 0).count() == 1
    }

    /// Makes `pivot`, one of its unknowns, the pivot, with the factor 1.
    fn make_pivot(&mut self, pivot: u64) {
        let factor = inverse(self.factor(pivot));
        (self.pivot, self.start) = (pivot, pivot);
        scale(&mut self.factors, factor);
        scale(&mut self.sum, factor);
    }

    /// Subtracts as much of `other` as its pivot goes.
    fn eliminate(&mut self, other: &Equation) {
        let factor = self.factor(other.pivot);
        if factor == 0 {
            return;
        }
        self.start = self.start.min(other.start);
        add_scaled(&mut self.factors, &other.factors, factor);
        if self.sum.len() < other.sum.len() {
            self.sum.resize(other.sum.len(), 0);
        }
        add_scaled(&mut self.sum, &other.sum, factor);
        self.start = self.oldest().unwrap_or(self.start);
    }
}

/// The place of an unknown's factor.
const fn column(number: u64) -> usize {
    (number % UNKNOWNS as u64) as usize
}
