//! Tests of overrides and sweeps.

use serde_json::json;

use super::*;

/// Texts that live as long as the tests do.
fn texts() -> &'static Texts {
    Box::leak(Box::default())
}

fn document(text: &str) -> Document<'static> {
    Document::parse(texts(), Text { name: "e.toml".into(), text: text.into(), folder: None }).unwrap()
}

fn value(document: &Document<'_>) -> serde_json::Value {
    document.to().unwrap()
}

#[test]
fn cells_come_in_written_order() {
    let doc = document("[sweep]\n\"service.b\" = [true, false]\n\"network.a\" = [1, 2, 3]\n");
    let axes = axes(&doc).unwrap();
    let cells: Vec<_> = (0..6).map(|i| cell(&doc, texts(), &axes, i).unwrap().1).collect();
    assert_eq!(json!(cells[0]), json!({"service.b": true, "network.a": 1}));
    assert_eq!(json!(cells[1]), json!({"service.b": true, "network.a": 2}));
    assert_eq!(json!(cells[3]), json!({"service.b": false, "network.a": 1}));
    let (last, _) = cell(&doc, texts(), &axes, 5).unwrap();
    assert_eq!(value(&last)["service"], json!({"b": false}));
    assert_eq!(value(&last)["network"], json!({"a": 3}));
}

#[test]
fn choosing_a_swept_value_is_no_change() {
    let mut doc = document("[sweep]\n\"service.b\" = [1, 2]\n\"network.a\" = [\"1s\"]\n");
    let written = axes(&doc).unwrap();
    let texts = ["service.b=2", "network.a=3s", "seed=4"].map(str::to_owned);
    set(&mut doc, &texts).unwrap();
    assert_eq!(changes(&texts, &written, &axes(&doc).unwrap()), ["network.a=3s", "seed=4"]);
}

#[test]
fn policies_are_reached_by_label() {
    let text = "[[policy]]\nlatin-square = { order = 2 }\n[[policy]]\nrandom = {}\nlabel = \"r\"\n\
                [sweep]\n\"policy.latin-square.order\" = [3]\n\"policy.r.x.y\" = [\"s\"]\n";
    let doc = document(text);
    let (doc, _) = cell(&doc, texts(), &axes(&doc).unwrap(), 0).unwrap();
    assert_eq!(
        value(&doc)["policy"],
        json!([{"latin-square": {"order": 3}}, {"random": {"x": {"y": "s"}}, "label": "r"}])
    );
}

#[test]
fn elements_of_lists_are_reached_by_name_or_number() {
    let text = "[[workload.mix.class]]\nname = \"batch\"\nweight = 1\nstages = [{ tasks = 2 }, { tasks = 3 }]\n\
                [[workload.mix.class]]\nname = \"web\"\n[sweep]\n\"workload.mix.class.batch.weight\" = [4, 5]\n";
    let mut doc = document(text);
    let given = ["workload.mix.class.web.weight=7", "workload.mix.class.0.stages.1.tasks=9"];
    set(&mut doc, &given.map(String::from)).unwrap();
    let (doc, _) = cell(&doc, texts(), &axes(&doc).unwrap(), 1).unwrap();
    let class = &value(&doc)["workload"]["mix"]["class"];
    assert_eq!(class[0], json!({"name": "batch", "weight": 5, "stages": [{"tasks": 2}, {"tasks": 9}]}));
    assert_eq!(class[1], json!({"name": "web", "weight": 7}));
    for (given, words) in [
        ("workload.mix.class.bacth.weight=1", "did you mean `batch`?"),
        ("workload.mix.class.zzz.weight=1", "(`batch` or `web`) or a number from 0 to 1"),
        ("workload.mix.class.2.weight=1", "no element of `class` is called `2`"),
        ("workload.mix.class.web=1", "needs the name of one of its keys"),
    ] {
        let error = set(&mut document(text), &[given.to_owned()]).unwrap_err().to_string();
        assert!(error.contains(words) && error.contains("--set:1:1"), "{given}: {error}");
    }
}

#[test]
fn overrides_replace_add_and_pin() {
    let mut doc = document("seed = 1\n[sweep]\n\"service.a\" = [1, 2]\n");
    let given = ["seed=7", "network.one_way=5ms", "service.a=2", "service.b = [1, 2]"];
    set(&mut doc, &given.map(String::from)).unwrap();
    assert_eq!(value(&doc)["seed"], 7);
    assert_eq!(value(&doc)["network"]["one_way"], "5ms");
    assert_eq!(value(&doc)["service"]["b"], json!([1, 2]));
    let axes = axes(&doc).unwrap();
    assert_eq!(axes[0].values.len(), 1);
    assert_eq!(cell(&doc, texts(), &axes, 0).unwrap().1["service.a"], json!(2));
}

/// Values 0 and 1 of a key, of which 0 comes with another key and an own value of a third.
const ROWS: &str = "[service]\nc = 1\n[sweep]\n\"service.a\" = [{ \"service.a\" = 0, \"service.b\" = 7, \
                    \"service.c\" = 8 }, 1]\n\"service.d\" = [1, 2]\n";

fn service_in_cells(doc: &Document<'_>) -> Vec<(Cell, serde_json::Value)> {
    let axes = axes(doc).unwrap();
    let count = axes.iter().map(|axis| axis.values.len()).product();
    let of = |index| {
        let (document, cell) = cell(doc, Box::leak(Box::default()), &axes, index).unwrap();
        (cell, value(&document)["service"].clone())
    };
    (0..count).map(of).collect()
}

#[test]
fn a_value_of_a_sweep_sets_other_keys_in_its_cells_only() {
    let found = service_in_cells(&document(ROWS));
    let worlds: Vec<_> = found.iter().map(|(_, world)| world.clone()).collect();
    assert_eq!(worlds[0], json!({"a": 0, "b": 7, "c": 8, "d": 1}));
    assert_eq!(worlds[1], json!({"a": 0, "b": 7, "c": 8, "d": 2}));
    assert_eq!(worlds[2], json!({"a": 1, "c": 1, "d": 1}));
    let names: Vec<_> = found.iter().map(|(cell, _)| json!(cell)).collect();
    assert_eq!(names[0], json!({"service.a": 0, "service.d": 1}), "the swept keys name a cell");
    assert_eq!(
        companions(&axes(&document(ROWS)).unwrap()),
        ["service.a = 0 sets service.b = 7, service.c = 8"]
    );
}

#[test]
fn overrides_choose_a_value_with_its_further_keys_and_take_precedence_over_these() {
    let cells = |given: &[&str]| {
        let mut doc = document(ROWS);
        set(&mut doc, &given.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()).unwrap();
        service_in_cells(&doc).into_iter().map(|(_, world)| world).collect::<Vec<_>>()
    };
    assert_eq!(cells(&["service.a=0.0", "service.d=1"]), [json!({"a": 0, "b": 7, "c": 8, "d": 1})]);
    assert_eq!(cells(&["service.a=1", "service.d=1"]), [json!({"a": 1, "c": 1, "d": 1})]);
    assert_eq!(cells(&["service.a=5", "service.d=1"]), [json!({"a": 5, "c": 1, "d": 1})]);
    let both = [json!({"a": 0, "b": 7, "c": 9, "d": 1}), json!({"a": 1, "c": 9, "d": 1})];
    assert_eq!(cells(&["service.c=9", "service.d=1"]), both);
}

#[test]
fn an_override_that_gives_a_swept_key_in_a_table_or_a_part_of_it_is_refused() {
    for text in ["service={ a = 1 }", "service.a.b=1"] {
        let mut document = document("[service]\na = 1\n[sweep]\n\"service.a\" = [1, 2]");
        let error = set(&mut document, &[text.to_owned()]).unwrap_err().to_string();
        assert!(error.contains("`service.a` is swept") && error.contains("--set service.a=…"), "{error}");
    }
    let mut emptied = document(ROWS);
    set(&mut emptied, &["service={ b = 5 }".to_owned()]).unwrap();
    let worlds: Vec<_> = service_in_cells(&emptied).into_iter().map(|(_, world)| world).collect();
    assert_eq!(worlds[0], json!({"a": 0, "b": 5, "c": 8, "d": 1}));
    assert_eq!(worlds[3], json!({"a": 1, "b": 5, "d": 2}));
}

#[test]
fn mistakes_are_located() {
    let cases = [
        ("[sweep]\nservice.a = [1]", "2:1", "quote the whole key"),
        ("[sweep]\n\"service.a\" = 1", "2:15", "a list"),
        ("[sweep]\n\"service.a\" = []", "2:15", "empty list"),
        ("[sweep]\n\"servce.a\" = [1]", "2:1", "did you mean `service`?"),
        ("[sweep]\n\"seed\" = [1]", "2:1", "dotted key"),
        ("[sweep]\n\"run.speed\" = [1]", "2:1", "cannot be swept"),
        ("sweep = 3", "1:9", "`sweep` is a number"),
        ("[sweep]\n\"service.a\" = [{ service.a = 1 }]", "2:16", "quote the whole key"),
        ("[sweep]\n\"service.a\" = [{ \"service.a\" = 1, b = 2 }]", "2:35", "`b` is not a dotted key"),
        ("[sweep]\n\"service.a\" = [{ \"service.a\" = 1, \"run.b\" = 2 }]", "2:35", "cannot be swept"),
        ("[sweep]\n\"service.a\" = [{ \"service.a\" = 1 }, 1.0]", "2:37", "occurs twice"),
        (
            "[sweep]\n\"service.a\" = [{ \"service.a\" = 1, \"service.b\" = 2 }]\n\"service.b\" = [1]",
            "2:49",
            "sets `service.b` twice",
        ),
        (
            "[sweep]\n\"service.a.b\" = [{ \"service.a.b\" = 1, \"service.a\" = 2 }]",
            "2:53",
            "sets `service.a` twice",
        ),
        ("[sweep]\n\"service.a\" = [1]\n\"service.a.b\" = [1]", "2:1", "sets `service.a` twice"),
        ("[sweep]\n\"service.a\" = [{ \"service.b\" = 1 }]", "2:16", "has no `service.a`"),
    ];
    for (text, place, words) in cases {
        let error = axes(&document(text)).unwrap_err().to_string();
        assert!(error.contains(&format!("e.toml:{place}")) && error.contains(words), "{text}: {error}");
    }
    let doc = document("[network]\none_way = \"5ms\"\n[sweep]\n\"network.one_way.gamma.mean\" = [\"1ms\"]");
    let error = cell(&doc, texts(), &axes(&doc).unwrap(), 0).unwrap_err().to_string();
    assert!(error.contains("e.toml:4:1") && error.contains("`one_way` is a string"), "{error}");
}

#[test]
fn bad_overrides_point_into_the_option() {
    for (text, place, words) in [
        ("seed", "--set:1:1", "needs a key and a value"),
        ("a..b=1", "--set:1:1", "not a dotted key"),
        ("seed=[1", "--set:1:8", "TOML"),
        ("=1", "--set:1:1", "not a dotted key"),
        ("policy.x.y=1", "--set:1:1", "no [[policy]] has the label `x`"),
    ] {
        let error = set(&mut document("seed = 1"), &[text.to_owned()]).unwrap_err().to_string();
        assert!(error.contains(place) && error.contains(words), "{text}: {error}");
    }
}
