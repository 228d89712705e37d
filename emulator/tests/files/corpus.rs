//! Replays the corpus of the fuzz targets: what once broke a parser stays mended.

use std::fs;
use std::path::Path;

#[path = "../../fuzz/targets.rs"]
mod targets;

/// Reads one input.
type Target = fn(&[u8]);

#[test]
fn the_corpus_breaks_nothing() {
    let all: [(&str, Target); 7] = [
        ("experiment", targets::experiment),
        ("trace", targets::trace),
        ("topology", targets::topology),
        ("claim", targets::claim),
        ("interference", targets::interference),
        ("inputs", targets::inputs),
        ("wire", targets::wire),
    ];
    for (name, target) in all {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name);
        let inputs: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(!inputs.is_empty(), "{name} has no corpus");
        for input in inputs {
            eprintln!("{}", input.display());
            target(&fs::read(&input).unwrap());
        }
    }
}
