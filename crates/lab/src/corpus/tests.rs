use super::*;
use strait_compress::{Codecs, Method};
use strait_testbed::Workdir;

fn names(corpus: &Corpus) -> Vec<&str> {
    corpus.files.iter().map(|file| file.name.as_str()).collect()
}

/// A folder with files of these lengths.
fn folder(files: &[(&str, usize)]) -> Workdir {
    let dir = Workdir::create().unwrap();
    for (name, len) in files {
        fs::write(dir.path().join(name), name.bytes().cycle().take(*len).collect::<Vec<u8>>()).unwrap();
    }
    dir
}

#[test]
fn generated_files_are_as_many_as_the_papers_and_of_all_kinds() {
    let corpus = Corpus::generated();
    assert_eq!(
        names(&corpus),
        [
            "syslog.log",
            "orders.ndjson",
            "shop.sql",
            "telemetry.csv",
            "handbook.html",
            "scan.pic",
            "gif",
            "random"
        ]
    );
    let mut codecs = Codecs::new();
    let mut out = vec![0; 2 * LEAST];
    let ratios: Vec<f64> = corpus
        .files
        .iter()
        .map(|file| {
            assert_eq!(file.front.len(), LEAST, "{}", file.name);
            LEAST as f64 / codecs.compress(Method::DEFLATE, &file.front, &mut out).unwrap() as f64
        })
        .collect();
    assert!(ratios[..5].iter().all(|ratio| (2.5..9.0).contains(ratio)), "{ratios:?}");
    // The paper's pic is at 21, its gif and its random bytes at 1.00.
    assert!((10.0..40.0).contains(&ratios[5]), "{ratios:?}");
    assert!(ratios[6..].iter().all(|ratio| (0.99..=1.0).contains(ratio)), "{ratios:?}");
    assert_eq!(corpus.files[6].printed, Some(6));
    assert_eq!(corpus.files[7].printed, Some(7));
}

#[test]
fn blocks_are_drawn_from_the_front() {
    let front: Vec<u8> = (0..LEAST).map(|at| (at / 1024) as u8).collect();
    let source = CorpusFile::new("a", &front);
    let (small, middle, large) = (source.drawn(0), source.drawn(1), source.drawn(2));
    assert_eq!((small.len(), middle.len(), large.len()), (40, 10, 1));
    assert!(small.iter().enumerate().all(|(at, block)| *block == [at as u8; 1024]));
    assert!(middle.iter().enumerate().all(|(at, block)| block.len() == 4096 && block[0] == 4 * at as u8));
    assert_eq!(large[0], &front[..]);
    assert_eq!(LEAST, 64_512);
}

#[test]
fn the_papers_files_come_in_its_order_and_with_what_stands_for_the_others() {
    let dir = folder(&[("pic", LEAST), ("book1", LEAST + 9), ("paper1", LEAST), ("obj1", 9), ("SOURCE", 3)]);
    let corpus = Corpus::read(dir.path()).unwrap();
    assert_eq!(names(&corpus), ["book1", "pic", "gif", "random"]);
    assert_eq!(corpus.files.iter().map(|it| it.printed).collect::<Vec<_>>(), [4, 5, 6, 7].map(Some));
    assert!(corpus.notes[0].contains("has no obj2, progl, paper2, trans"), "{:?}", corpus.notes);
    assert!(corpus.notes[1].contains("generated"), "{:?}", corpus.notes);
    fs::write(dir.path().join("map.GIF"), vec![7; LEAST]).unwrap();
    let corpus = Corpus::read(dir.path()).unwrap();
    assert_eq!(corpus.files[2].front, vec![7; LEAST]);
    assert!(corpus.notes[1].contains("map.GIF of the folder"), "{:?}", corpus.notes);
}

#[test]
fn another_folder_gives_every_file_that_is_long_enough() {
    let dir = folder(&[("b.log", LEAST), ("a.csv", 2 * LEAST), ("short", LEAST - 1)]);
    let corpus = Corpus::read(dir.path()).unwrap();
    assert_eq!(names(&corpus), ["a.csv", "b.log"]);
    assert_eq!(corpus.notes, ["left out, shorter than 64512 bytes: short"]);
    // A file that happens to be called as one of the paper's is none of them.
    let dir = folder(&[("random", LEAST)]);
    assert_eq!(Corpus::read(dir.path()).unwrap().files[0].printed, None);
}

#[test]
fn unusable_corpus_error_names_file_and_remedy() {
    let message = |folder: &Path| Corpus::read(folder).unwrap_err().to_string();
    let empty = folder(&[]);
    let said = message(empty.path());
    assert!(said.contains("no file of at least 64512 bytes") && said.contains("no file at all"), "{said}");
    let said = message(&empty.path().join("missing"));
    assert!(said.contains("missing") && said.contains("No such file") && said.contains("--corpus"), "{said}");
    let short = folder(&[("a", 10), ("b", 64_511)]);
    let said = message(short.path());
    assert!(said.contains("its longest, b, has 64511"), "{said}");
    let broken = folder(&[("book1", 100)]);
    let said = message(broken.path());
    assert!(said.contains("book1 has 100 bytes") && said.contains("64512"), "{said}");
    let said = message(&broken.path().join("book1"));
    assert!(said.contains("Not a directory"), "{said}");
}

#[test]
fn the_calgary_corpus() {
    let Some(folder) = strait_testdata::find_or_skip("calgary") else { return };
    let corpus = Corpus::read(&folder).unwrap();
    assert_eq!(names(&corpus), FILES);
    assert!(corpus.files.iter().zip(0..).all(|(file, place)| file.printed == Some(place)));
    assert!(corpus.files[4].front.starts_with(b"<Y 1874>"), "book1 begins with its year");
}
