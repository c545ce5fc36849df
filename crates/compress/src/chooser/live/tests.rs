//! The chooser in virtual time, on a machine and data made up.

use std::net::{IpAddr, Ipv4Addr};

use strait_clock::Random;
use strait_model::BitRate;
use strait_wire::Protocol;

use super::*;
use crate::{Codec, CodecSet, EndpointCosts};

/// What data does: its compressibility relative to text, and how many times longer than calibrated codecs take.
#[derive(Clone, Copy)]
struct Data {
    compressibility: f64,
    slowness: f64,
}

const TEXT: Data = Data { compressibility: 1.0, slowness: 1.0 };
const NOISE: Data = Data { compressibility: 0.0, slowness: 0.5 };

/// Data that the entropy probe takes for text, however well it shrinks.
static PAYLOAD: [u8; 65_000] = [b'a'; 65_000];

struct World {
    chooser: LiveChooser,
    calibration: Calibration,
    now: Time,
    path_cost: PathCost,
    flow: Flow,
    allowed: Allowed,
}

impl World {
    fn new(megabits: Option<f64>) -> World {
        let calibration = Calibration::assumed();
        World {
            chooser: LiveChooser::new(calibration.clone(), 1),
            calibration,
            now: Time::from_millis(5),
            path_cost: path_cost(megabits),
            flow: flow(1),
            allowed: Allowed::Any,
        }
    }

    /// Sends one unit that is `data`, and lets the time pass that the link takes for it; says what it was sent with.
    fn send(&mut self, len: usize, data: Data) -> Method {
        let flow = self.flow;
        let unit = Unit { flow: &flow, to: 7, rule: RuleId { place: 1, edition: 0 }, allowed: self.allowed };
        if !self.chooser.may_shrink(&unit, &PAYLOAD[..len], self.now) {
            self.pass(len);
            return Method::NONE;
        }
        let method = self.chooser.choose(&unit, len, &self.path_cost, self.now);
        let Some(candidate) = nearest(method) else {
            self.pass(len);
            return method;
        };
        let figures = self.calibration.figures()[candidate];
        let [small, large] = figures.ratio.map(|ratio| ratio.get().ln());
        let compressibility =
            small + (large - small) * ((len as f64 / 1_400.0).ln() / (16_384_f64 / 1_400.0).ln());
        let after = (len as f64 / (compressibility * data.compressibility).exp()) as usize;
        let after = Some(after).filter(|after| *after < len);
        let took = Some((due(&figures, len, 0).0 * data.slowness * 1e9) as u64);
        self.pass(after.unwrap_or(len));
        self.chooser.learn(
            &unit,
            &Outcome { method, before: len, of: len, after, took, prefix: 0 },
            self.now,
        );
        method
    }

    fn pass(&mut self, bytes: usize) {
        let bits = self.path_cost.rate.map_or(1e9, BitRate::as_bits);
        self.now += Duration::from_secs_f64(bytes as f64 * 8.0 / bits);
    }

    /// Sends units for a while; the methods used with the units each had.
    fn run(&mut self, span: Duration, len: usize, data: Data) -> Vec<Method> {
        let end = self.now + span;
        let mut methods = Vec::new();
        while self.now < end {
            methods.push(self.send(len, data));
        }
        methods
    }

    fn decision(&self) -> Decision {
        self.chooser.decisions(self.now)[0]
    }
}

fn path_cost(megabits: Option<f64>) -> PathCost {
    PathCost {
        engines: core::num::NonZeroU32::MIN,
        rate: megabits.and_then(BitRate::megabits),
        waiting: true,
        room: 1_400,
        around: 60,
        codecs: CodecSet::ALL,
        only: None,
        prefix: 0,
        ends: EndpointCosts::ALIKE,
    }
}

fn flow(number: u32) -> Flow {
    Flow {
        src: IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + number)),
        dst: IpAddr::V4(Ipv4Addr::from(0xc000_0200 + number)),
        protocol: Protocol::TCP,
        src_port: 40_000,
        dst_port: 443,
    }
}

fn changes(methods: &[Method]) -> usize {
    methods.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

#[test]
fn a_rule_without_codec_is_never_tried() {
    let mut world = World::new(Some(1.5));
    world.allowed = Allowed::Nothing;
    assert!(world.run(Duration::from_secs(1), 1_400, TEXT).iter().all(|method| *method == Method::NONE));
}

#[test]
fn slow_links_get_the_best_ratio_and_fast_ones_the_fastest_codec_or_none() {
    let on = |megabits| {
        let mut world = World::new(megabits);
        world.run(Duration::from_secs(1), 65_000, TEXT);
        world.decision()
    };
    let level = |decision: &Decision| nearest(decision.method);
    let (thin, wide) = (on(Some(1.5)), on(Some(700.0)));
    assert_eq!(thin.reason, DecisionReason::Pays);
    let weighed = thin.weighed.unwrap();
    assert!(weighed.pipelined > 2.0 && weighed.limit == strait_model::PipelineSegment::Link, "{weighed:?}");
    assert!(
        level(&thin) > level(&wide) && wide.method != Method::NONE,
        "{} and {}",
        thin.method,
        wide.method
    );
    let open = on(None);
    assert_eq!((open.method, open.reason), (Method::NONE, DecisionReason::TooSlow));
    assert!(open.weighed.unwrap().pipelined < 1.0);
}

#[test]
fn more_engines_make_a_fast_link_worth_compressing_for() {
    let on = |engines| {
        let mut world = World::new(Some(4_000.0));
        world.path_cost.engines = core::num::NonZeroU32::new(engines).unwrap();
        world.run(Duration::from_secs(1), 65_000, TEXT);
        world.decision()
    };
    let (alone, many) = (on(1), on(16));
    assert_eq!((alone.method, alone.reason), (Method::NONE, DecisionReason::TooSlow));
    assert!(many.method != Method::NONE && many.weighed.unwrap().pipelined > 1.0, "{many:?}");
}

#[test]
fn a_link_of_another_rate_is_followed_at_the_next_unit() {
    let mut world = World::new(Some(1.5));
    world.run(Duration::from_secs(3), 65_000, TEXT);
    let thin = world.decision().method;
    world.path_cost = path_cost(Some(1_000.0));
    world.run(Duration::from_millis(50), 65_000, TEXT);
    let wide = world.decision();
    assert_ne!(wide.method, thin);
    assert!(world.now.since(wide.since) <= Duration::from_millis(60));
    world.path_cost = path_cost(Some(1.5));
    world.send(65_000, TEXT);
    assert_eq!(world.decision().method, thin);
}

#[test]
fn what_does_not_shrink_costs_one_try_and_then_one_a_pause_that_doubles() {
    for allowed in [Allowed::Any, Allowed::Only(Method::ZSTD)] {
        let mut world = World::new(Some(100.0));
        world.allowed = allowed;
        let start = world.now;
        let mut tried = Vec::new();
        while world.now.since(start) < Duration::from_secs(5) {
            let at = world.now.since(start).as_millis();
            if world.send(65_000, NOISE) != Method::NONE {
                tried.push(at);
            }
        }
        let pauses: Vec<u128> = tried.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(tried.len() <= 10, "{allowed} {tried:?}");
        assert!(pauses.iter().all(|pause| *pause < 900), "{allowed} {tried:?}");
        assert_eq!(world.decision().reason, DecisionReason::DoesNotShrink, "{allowed}");
    }
}

#[test]
fn data_that_shrinks_again_is_compressed_within_a_second() {
    let mut world = World::new(Some(10.0));
    world.run(Duration::from_secs(20), 1_400, NOISE);
    let turned = world.now;
    while world.send(1_400, TEXT) == Method::NONE {}
    assert!(world.now.since(turned) <= Duration::from_millis(850));
    let after = world.run(Duration::from_secs(1), 1_400, TEXT);
    assert!(after.iter().all(|method| *method != Method::NONE));
}

#[test]
fn random_packets_are_skipped_and_later_text_is_compressed() {
    let mut world = World::new(Some(10.0));
    world.run(Duration::from_secs(1), 65_000, TEXT);
    let mut random = Random::new(1);
    let noise: Vec<u8> = (0..1_400).map(|_| random.next_u64().to_le_bytes()[0]).collect();
    let flow = world.flow;
    let unit = Unit { flow: &flow, to: 7, rule: RuleId { place: 1, edition: 0 }, allowed: Allowed::Any };
    let tried = (0..100).filter(|_| world.chooser.may_shrink(&unit, &noise, world.now)).count();
    assert!(tried <= 2, "{tried} of 100");
    assert_eq!(
        (world.decision().method, world.decision().reason),
        (Method::NONE, DecisionReason::LooksRandom)
    );
    let told = world.chooser.changed().unwrap();
    assert_eq!(told.reason, DecisionReason::LooksRandom);
    let text = b"GET /index.html HTTP/1.1\r\nHost: www.example.org\r\n".repeat(28);
    assert!(world.chooser.may_shrink(&unit, &text, world.now), "the next page is tried whatever came before");
    for _ in 0..30 {
        world.chooser.may_shrink(&unit, &text, world.now);
    }
    assert_eq!(world.decision().reason, DecisionReason::Pays);
}

#[test]
fn noise_in_the_figures_does_not_move_the_choice_to_and_fro() {
    for megabits in [1.5, 30.0, 300.0, 600.0, 1_200.0] {
        let mut world = World::new(Some(megabits));
        let mut random = Random::new(3);
        let mut standing = Vec::new();
        let end = world.now + Duration::from_secs(10);
        while world.now < end {
            let wobble = |random: &mut Random| 0.9 + random.below(200) as f64 / 1_000.0;
            let data = Data { compressibility: wobble(&mut random), slowness: wobble(&mut random) };
            world.send(65_000, data);
            standing.push(world.decision().method);
        }
        assert!(
            changes(&standing) <= 10,
            "{} changes in ten seconds at {megabits} Mbit/s",
            changes(&standing)
        );
    }
}

#[test]
fn data_that_drifts_moves_no_choice_between_codecs_that_it_moves_alike() {
    let mut world = World::new(Some(1.5));
    let mut random = Random::new(5);
    let (mut compressibility, mut told) = (1.0_f64, 0);
    world.run(Duration::from_secs(3), 28_000, TEXT);
    let end = world.now + Duration::from_secs(30);
    while world.now < end {
        compressibility = (compressibility + random.below(100) as f64 / 1_000.0 - 0.05).clamp(0.6, 2.0);
        let wobble = 0.9 + random.below(200) as f64 / 1_000.0;
        world.send(28_000, Data { compressibility: compressibility * wobble, slowness: 1.0 });
        told += usize::from(world.chooser.changed().is_some());
    }
    assert!(told <= 6, "{told} changes in half a minute");
}

#[test]
fn trials_of_other_codecs_cost_less_than_two_percent() {
    let mut world = World::new(Some(100.0));
    world.run(Duration::from_secs(1), 65_000, TEXT);
    let methods = world.run(Duration::from_secs(20), 65_000, TEXT);
    let choice = world.decision().method;
    let others = methods.iter().filter(|method| **method != choice).count();
    assert!(others > 0, "something else is tried now and then");
    // What all units take, beside what they would take with the choice alone.
    let calibration = Calibration::assumed();
    let known = Known::default();
    let scales = Scales {
        calibration: &calibration,
        known: &known,
        load: 1.0,
        path_cost: &world.path_cost,
        len: 65_000,
    };
    let prices = scales.prices();
    let all: f64 = methods.iter().map(|method| prices.of(nearest(*method))).sum();
    let alone = prices.of(nearest(choice)) * methods.len() as f64;
    assert!(
        all <= alone * 1.02,
        "{others} of {} units, {:.2} % longer",
        methods.len(),
        (all / alone - 1.0) * 100.0
    );
}

#[test]
fn a_lone_packet_does_not_stop_the_compression_of_the_bulk() {
    // So fast a link that a small packet alone is not worth it, while bulk is.
    let mut world = World::new(Some(200.0));
    world.run(Duration::from_secs(1), 65_000, TEXT);
    for _ in 0..200 {
        world.path_cost.waiting = false;
        world.send(300, TEXT);
        world.path_cost.waiting = true;
        assert_ne!(world.send(65_000, TEXT), Method::NONE);
    }
}

#[test]
fn small_units_and_large_ones_by_turns_do_not_move_the_choice() {
    let mut world = World::new(Some(1_000.0));
    world.path_cost.waiting = false;
    let mut told = 0;
    for _ in 0..2_000 {
        world.send(1_400, TEXT);
        world.send(16_384, TEXT);
        told += usize::from(world.chooser.changed().is_some());
    }
    assert!(told <= 5, "{told} changes in {:?}", world.now);
}

#[test]
fn what_shrinks_but_does_not_pay_is_tried_at_growing_intervals() {
    let mut world = World::new(Some(300.0));
    world.path_cost.waiting = false;
    let a_little = Data { compressibility: 0.15, slowness: 1.0 };
    world.run(Duration::from_secs(2), 1_400, a_little);
    let methods = world.run(Duration::from_secs(10), 1_400, a_little);
    let tried = methods.iter().filter(|method| **method != Method::NONE).count();
    assert!(tried <= 20, "{tried} in ten seconds");
}

#[test]
fn the_time_of_a_level_that_a_rule_names_is_not_the_machines_load() {
    let mut world = World::new(Some(10.0));
    let flow = world.flow;
    let slowest = Method::at_level(Codec::Zstd, 19).unwrap();
    let unit =
        Unit { flow: &flow, to: 7, rule: RuleId { place: 1, edition: 0 }, allowed: Allowed::Only(slowest) };
    for _ in 0..100 {
        world.now += Duration::from_millis(1);
        let outcome = Outcome {
            method: slowest,
            before: 65_000,
            of: 65_000,
            after: Some(20_000),
            took: Some(40_000_000),
            prefix: 0,
        };
        world.chooser.learn(&unit, &outcome, world.now);
    }
    assert!((world.chooser.load.factor(world.now) - 1.0).abs() < 1e-9);
}

#[test]
fn a_busy_processor_shows_in_the_choice_within_a_second() {
    let mut world = World::new(Some(150.0));
    world.run(Duration::from_secs(2), 65_000, TEXT);
    let quiet = world.decision();
    world.run(Duration::from_secs(1), 65_000, Data { slowness: 10.0, ..TEXT });
    let busy = world.decision();
    assert!(nearest(busy.method) < nearest(quiet.method), "{} then {}", quiet.method, busy.method);
    world.run(Duration::from_millis(1_500), 65_000, TEXT);
    // Level 1 or 3: hardly apart, so whichever came first stays.
    assert!(nearest(world.decision().method) > nearest(busy.method), "{}", world.decision().method);
}

#[test]
fn lone_packet_is_judged_by_arrival_time() {
    let mut world = World::new(Some(1.5));
    world.path_cost.waiting = false;
    world.run(Duration::from_secs(1), 1_400, TEXT);
    let weighed = world.decision().weighed.unwrap();
    assert!(!weighed.throughput && weighed.serial > 1.5, "{weighed:?}");
    assert!((weighed.without.total() / weighed.with.total() - weighed.serial).abs() < 1e-12);
}

#[test]
fn a_new_flow_begins_with_what_its_service_has_shown() {
    let mut world = World::new(Some(10.0));
    world.run(Duration::from_secs(2), 65_000, NOISE);
    world.flow.src_port += 1;
    assert_eq!(world.send(65_000, NOISE), Method::NONE);
    // Another service of the same protocol, too.
    world.flow = flow(9);
    assert_eq!(world.send(65_000, NOISE), Method::NONE);
}

#[test]
fn few_incompressible_packets_do_not_disable_compression() {
    let mut world = World::new(Some(1.5));
    for _ in 0..4 {
        assert_ne!(world.send(110, NOISE), Method::NONE);
    }
}

#[test]
fn codecs_that_the_peer_lacks_are_not_chosen() {
    let mut world = World::new(Some(1.5));
    world.path_cost.codecs = CodecSet::EMPTY.with(Codec::None).with(Codec::Lz4);
    assert_eq!(world.send(65_000, TEXT), Method::LZ4);
    world.path_cost.codecs = CodecSet::EMPTY;
    world.now += HOLDS;
    assert_eq!(world.send(65_000, TEXT), Method::NONE);
    assert_eq!(world.decision().reason, DecisionReason::PeerLacks);
}

#[test]
fn a_slow_peer_counts() {
    let mut world = World::new(Some(50.0));
    world.path_cost.ends.there.expand = [100.0; Codec::ALL.len()];
    world.run(Duration::from_secs(1), 65_000, TEXT);
    let slow = world.decision();
    let mut world = World::new(Some(50.0));
    world.run(Duration::from_secs(1), 65_000, TEXT);
    assert!(nearest(slow.method) < nearest(world.decision().method), "{}", slow.method);
}

#[test]
fn ten_thousand_flows_do_not_push_out_the_one_in_use() {
    let mut world = World::new(Some(1.5));
    let busy = world.flow;
    world.run(Duration::from_secs(2), 65_000, NOISE);
    let begun = world.now;
    for number in 2..10_000 {
        world.flow = flow(number);
        world.send(1_400, TEXT);
        world.flow = busy;
        world.send(65_000, NOISE);
    }
    let decisions = world.chooser.decisions(world.now);
    assert!(decisions.len() <= REPORTED);
    let busy = decisions.iter().find(|it| it.class == Class::Flow(busy)).unwrap();
    assert!(busy.since < begun, "what was known of it was not forgotten: {busy:?}");
    assert!(world.chooser.classes.iter().count() <= CLASSES);
}

#[test]
fn malformed_input_never_panics() {
    let mut world = World::new(Some(1e-300));
    world.path_cost = PathCost { room: 0, around: usize::MAX >> 8, ..world.path_cost };
    for expand in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        world.path_cost.ends.there.expand = [expand; Codec::ALL.len()];
        let flow = world.flow;
        let unit = Unit { flow: &flow, to: 7, rule: RuleId { place: 1, edition: 0 }, allowed: Allowed::Any };
        for len in [0, 1, 70_000, usize::MAX] {
            world.now += HOLDS;
            world.chooser.choose(&unit, len, &world.path_cost, world.now);
            for after in [None, Some(0), Some(usize::MAX)] {
                let outcome = Outcome {
                    method: Method::LZ4,
                    before: len,
                    of: len,
                    after,
                    took: Some(u64::MAX),
                    prefix: 0,
                };
                world.chooser.learn(&unit, &outcome, world.now);
            }
            world.chooser.decisions(Time::MAX);
        }
    }
}
