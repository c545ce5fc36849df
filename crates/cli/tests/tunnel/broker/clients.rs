//! Many clients at once, of which half are killed at random.

use std::fs;
use std::time::Duration;

use strait_clock::Random;
use strait_testbed::{Extra, PostClient, Site};

use super::{Scene, allowed_with_broker};
use crate::files::noise;

/// Clients here; `make bench BENCH="--only broker --part clients"` has 200.
const CLIENTS: u16 = 16;
/// Each client's link, in kbit/s, and its file in bytes: 6 s.
const LINK: usize = 100;
const FILE: usize = 75_000;
/// The latest moment of a kill.
const LATEST: u64 = 6_000;
/// How long all may take.
const PATIENCE: Duration = Duration::from_secs(180);

#[test]
fn half_of_many_clients_are_killed_and_every_acknowledged_object_is_there_whole() {
    if !allowed_with_broker() {
        return;
    }
    let seed = std::env::var("STRAIT_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or_else(|| u64::from(std::process::id()));
    println!("STRAIT_SEED={seed}");
    let mut random = Random::new(seed);
    let mut scene = Scene::idle();
    let link = format!("up = \"{LINK}kbit\"\ndown = \"{LINK}kbit\"\n");
    let mut clients: Vec<PostClient> = (1..=CLIENTS)
        .map(|number| {
            let content = noise(FILE, u32::from(number));
            let at = Duration::from_millis(random.below(LATEST));
            let client = PostClient::create(&scene.post, scene.dir.path(), number, &content, &link).unwrap();
            client.killed_at(number.is_multiple_of(2).then_some(at))
        })
        .collect();
    let sites: Vec<&Site> = clients.iter().map(PostClient::site).chain([&scene.post.receiver]).collect();
    let config = scene.post.configure_broker_for(&sites, &scene.store(), "").unwrap();
    scene.broker = Some(scene.post.start_broker(&config).unwrap());

    PostClient::put_all(&scene.post, &mut clients, true, PATIENCE).unwrap();
    let said = || clients.iter().map(PostClient::said).collect::<Vec<_>>().join("----\n");
    let acknowledged = clients.iter().filter(|client| client.is_acknowledged()).count();
    assert!(acknowledged >= usize::from(CLIENTS) / 2, "{acknowledged}: {}\n{}", said(), scene.logs());
    let senders: Vec<&Site> = clients.iter().map(PostClient::site).collect();
    let config = scene.post.configure_receiver_of(&senders, Extra::default()).unwrap();
    scene.receiver = Some(scene.post.receiver.start(&config, "run").unwrap());
    scene.good(scene.fetch());
    let whole = |scene: &Scene, client: &PostClient| {
        let name = client.file().file_name().unwrap();
        fs::read(scene.here().join(name)).is_ok_and(|bytes| bytes == fs::read(client.file()).unwrap())
    };
    for client in clients.iter().filter(|client| client.is_acknowledged()) {
        assert!(whole(&scene, client), "{}: {}", client.site().name(), client.said());
    }

    // Those that were killed go on.
    let mut again: Vec<PostClient> = clients.into_iter().filter(|client| !client.is_acknowledged()).collect();
    PostClient::put_all(&scene.post, &mut again, false, PATIENCE).unwrap();
    scene.good(scene.fetch());
    for client in &again {
        assert!(
            client.is_acknowledged() && whole(&scene, client),
            "{}: {}",
            client.site().name(),
            client.said()
        );
    }
}
