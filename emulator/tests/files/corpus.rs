//! Replay of the corpus of the fuzz targets: inputs that once broke a parser must stay harmless.

use std::path::{Path, PathBuf};
use std::{env, fs};

use volary_actors::base::CoreSet;
use volary_actors::base::{Span, Time};
use volary_experiment::codec::{self, Batch};
use volary_hosts::cluster::protocol::{
    InjectReply, InjectRequest, InjectionPlan, InjectionShare, InjectorMessage, Refusal,
};

#[path = "../../fuzz/targets.rs"]
pub(crate) mod targets;

/// A function that parses one input.
type Target = fn(&[u8]);

/// The paths of the inputs of a target.
fn inputs(target: &str) -> Vec<PathBuf> {
    let inputs = fs::read_dir(corpus(target)).unwrap();
    inputs.map(|entry| entry.unwrap().path()).collect()
}

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target)
}

#[test]
fn parsers_do_not_panic_on_the_corpus() {
    let all: [(&str, Target); 11] = [
        ("experiment", targets::experiment),
        ("trace", targets::trace),
        ("table", targets::table),
        ("graph", targets::graph),
        ("topology", targets::topology),
        ("claim", targets::claim),
        ("interference", targets::interference),
        ("inputs", targets::inputs),
        ("runs", targets::runs),
        ("wire", targets::wire),
        ("reports", targets::reports),
    ];
    for (name, target) in all {
        let inputs = inputs(name);
        assert!(!inputs.is_empty(), "{name} has no corpus");
        for input in inputs {
            eprintln!("{}", input.display());
            target(&fs::read(&input).unwrap());
        }
    }
}

/// A line in the form that is sent to the socket of injectors.
fn line<T: serde::Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).unwrap()
}

/// Seeds of the messages of injection: one for each variant, and damaged messages.
fn injection_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let cores: CoreSet = "0-5,8".parse().unwrap();
    let request = InjectRequest {
        profile: "scope = \"core\"".to_owned(),
        seed: Some(9),
        targets: vec!["node:3".to_owned(), "rack:9-1".to_owned()],
        cores: cores.clone(),
        hosts: vec!["h1".to_owned()],
        lasting: Some(Span::from_secs(2)),
        dry_run: true,
        all_policies: true,
    };
    let plan = InjectionPlan {
        run: "sparrow-3".to_owned(),
        policy: "sparrow".to_owned(),
        run_seed: 3,
        seed: 9,
        cores: cores.clone(),
        from: Time(300_000_000),
        until: Time::MAX,
        lacking: vec!["random, seed 3".to_owned()],
        outline: vec![(4, 2, 0), (1, 1, 1)],
    };
    let share = InjectionShare {
        host: "h1".to_owned(),
        cores,
        from: Time(300_000_000),
        until: Some(Time(400_000_000)),
        ended: "its time was over".to_owned(),
    };
    let request = line(&InjectorMessage::Request(Box::new(request)));
    let planned = line(&InjectReply::Planned(Box::new(plan.clone())));
    let mut bad_cores = request.clone();
    let at = bad_cores.windows(5).position(|text| text == b"0-5,8").unwrap();
    bad_cores[at..at + 5].copy_from_slice(b"5-3,8");
    vec![
        ("injector-request", request),
        ("injector-end", line(&InjectorMessage::End)),
        ("injector-bad-cores", bad_cores),
        ("reply-cut", planned[..planned.len() / 2].to_vec()),
        ("reply-planned", planned),
        ("reply-begun", line(&InjectReply::Begun(Box::new(plan), vec![share.clone()]))),
        ("reply-over", line(&InjectReply::Over(vec![share]))),
        ("reply-refused", line(&InjectReply::Refused(Refusal::Invalid, "no such node".to_owned()))),
    ]
}

/// Each seed equals the encoding by the current code, and decodes unless its name states a damage.
/// `VOLARY_UPDATE_CORPUS=1` writes the seeds again; seeds of other versions then get the current version.
#[test]
fn seeds_of_messages_decode_as_their_names_state() {
    const DAMAGE: [&str; 11] = [
        "-bad-",
        "-cut",
        "-impossible",
        "-long",
        "-many",
        "-no-",
        "-trailing",
        "-unknown",
        "empty",
        "oversize",
        "version",
    ];
    for (name, bytes) in injection_seeds() {
        let path = corpus("wire").join(name);
        if env::var_os("VOLARY_UPDATE_CORPUS").is_some() {
            fs::write(&path, &bytes).unwrap();
        }
        assert_eq!(fs::read(&path).ok(), Some(bytes), "{name}: run this with VOLARY_UPDATE_CORPUS=1");
    }
    for path in inputs("wire") {
        let (name, mut data) = (path.file_name().unwrap().to_str().unwrap(), fs::read(&path).unwrap());
        let kind = name.split('-').next().unwrap();
        if env::var_os("VOLARY_UPDATE_CORPUS").is_some()
            && !["empty", "oversize", "version", "injector", "reply"].contains(&kind)
        {
            data[0] = codec::PROTOCOL as u8;
            fs::write(&path, &data).unwrap();
        }
        let json = |error: serde_json::Error| error.to_string();
        let decoded = match kind {
            "value" => codec::decode::<(String, Vec<(u32, Option<f64>)>, Vec<u8>)>(&data)
                .map(drop)
                .map_err(|error| error.to_string()),
            "injector" => serde_json::from_slice::<InjectorMessage>(&data).map(drop).map_err(json),
            "reply" => serde_json::from_slice::<InjectReply>(&data).map(drop).map_err(json),
            _ => Batch::open(&data)
                .and_then(|batch| batch.read(|parcel| parcel.to.0 < u32::MAX, &mut Vec::new()))
                .map_err(|error| error.to_string()),
        };
        let damaged = DAMAGE.iter().any(|damage| name.contains(damage));
        assert_eq!(decoded.is_err(), damaged, "{name}: {decoded:?}");
    }
}
