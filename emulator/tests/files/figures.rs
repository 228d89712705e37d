//! Tests of `volary plot`, and of the table of results at a given width.

use std::fs;

use crate::common::binary::{EXPERIMENT, command, expect, expect_of, folder, refuses_all};

const SWEEP: &str = "[sweep]\n\"cluster.nodes\" = [6, 8, 10]\n\
                     \"service.demand\" = [{ exponential = { mean = \"100ms\" } }, \"50000us\"]\n";

/// Width and height of a PNG, px.
fn pixels(png: &[u8]) -> (u32, u32) {
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    // 11 811 pixels per metre are 300 pixels per inch.
    assert!(&png[37..41] == b"pHYs" && (number(41), number(45), png[49]) == (11_811, 11_811, 1));
    (number(16), number(20))
}

#[test]
fn plot_writes_every_kind_of_figure_as_a_file() {
    let folder = folder();
    let here = folder.path();
    fs::write(
        here.join("e.toml"),
        format!("{EXPERIMENT}\n{SWEEP}\n[report]\ncharts = [\"makespan_s / jobs.submitted\"]\n"),
    )
    .unwrap();
    expect(here, "run e.toml --quiet --out r", 0);
    let svg = |args: &str| {
        expect(here, &format!("plot r {args} --out f.svg"), 0);
        let svg = fs::read_to_string(here.join("f.svg")).unwrap();
        assert!(
            svg.starts_with("<svg xmlns=") && !svg.contains("var(--") && !svg.contains("NaN"),
            "{args}: {svg}"
        );
        svg
    };
    for what in ["cdf", "ccdf", "percentiles", "sweep", "heat"] {
        let found = svg(&format!("--what {what}"));
        assert!(found.contains("width=\"3.5in\"") && found.contains("sparrow"), "{what}: {found}");
        // The first policy has the same colour as in the report.
        assert!(what == "heat" || found.contains("#0072b2"), "{what}: {found}");
    }
    let shows = |args: &str, words: [&str; 2]| {
        let found = svg(args);
        assert!(words.iter().all(|words| found.contains(words)), "{args}: {words:?}\n{found}");
        found
    };
    // The key with the most values is along the axis; each value of the other key has a panel.
    shows("", [">response time, p99: demand = exponential 100ms</text>", ">number of nodes</text>"]);
    shows("", ["demand = 50000us</text>", ">response time, p99"]);
    shows(
        "--number response_s.p99/response_s.p50 --number mean --at demand=50ms --x-title machines",
        [">machines</text>", ">response_s.p99/response_s.p50</text>"],
    );
    let report = fs::read_to_string(here.join("r/report.html")).unwrap();
    assert!(report.contains(">makespan_s / jobs.submitted: demand = "), "a chart of the experiment's own");
    shows("--by policy --y-title seconds", ["p99, sparrow</text>", ">seconds</text>"]);
    shows("--over demand --at nodes=8 --number mean", [">exponential 100ms</text>", ">50000us</text>"]);
    let alone = shows(
        "--policy sparrow --width double --number wait-p99",
        [">demand = 50000us</text>", "width=\"7.16in\""],
    );
    assert!(!alone.contains("random"), "{alone}");
    let timeline = svg("--what timeline --at nodes=6 --at demand=50ms --window 1s..2s");
    assert!(timeline.contains(">core 0</text>") && !timeline.contains(">0</text>"), "{timeline}");
    for job in ["slowest", "median", "0"] {
        let found = svg(&format!("--what job --at nodes=6 --at demand=50ms --job {job}"));
        let said = if job == "0" { ": job 0" } else { job };
        assert!(
            found.contains(said) && found.contains(">response ") && found.contains("task 0, core"),
            "{found}"
        );
    }
    expect(here, "plot r --what cdf --at nodes=8 --out f.pdf --width double", 0);
    let pdf = fs::read(here.join("f.pdf")).unwrap();
    let holds = |bytes: &[u8]| pdf.windows(bytes.len()).any(|window| window == bytes);
    // 7.16 inches are 515.5 points.
    assert!(
        pdf.starts_with(b"%PDF-") && holds(b"/MediaBox [0 0 515.5"),
        "{}",
        String::from_utf8_lossy(&pdf[..600])
    );
    assert!(!holds(b"/Font"), "letters are outlines");
    expect(here, "plot r --what cdf --at nodes=8 --out again.pdf --width double", 0);
    assert!(fs::read(here.join("again.pdf")).unwrap() == pdf, "the same figure has the same bytes");
    expect(here, "plot r --what cdf --at nodes=8 --out f.png", 0);
    let (width, height) = pixels(&fs::read(here.join("f.png")).unwrap());
    assert!(width == 1_050 && height > 1_000, "{width} × {height} are not 3.5 inches by two panels");
}

/// A table of arguments, status, and words that the message must contain.
const REFUSED: &str = "
plan r | 2 | it is a folder; name an experiment file in it
plan e.toml --seed -1 | 2 | '-1' for '--seed <N>': write a whole number from 0 to 18446744073709551615
plan e.toml --set cluster.nodes=5000000000 | 2 | `cluster.nodes` | at least zero, up to 4294967295
run e.toml --pace 0 | 2 | `0` is not a number from
run e.toml --pace 5 --runtime local | 2 | --pace applies only to runs in virtual time | run.speed
plot r --out f.jpg | 2 | --out f.jpg | .svg, .pdf or .png
plot r --what pie | 2 | expected `cdf`, `ccdf`
plot r --what percentile | 2 | did you mean `percentiles`?
plot r --what staleness | 2 | --what staleness: no policy of the run has observed caches
plot r --what sweep | 2 | --what sweep: the run has one cell
plot r --number response_s.p98 | 2 | --number: unknown number `p98`
plot r --what coverage | 2 | --what coverage: no run has delivered an update
plot r --number p98 | 2 | no column is named `p98`; did you mean `p9 | `help` instead of a name lists all
plot r --number p50,p99 | 2 | ; give --number once for each of several numbers
plot r --number regret --what heat | 2 | no run has the number `regret`
plot r --policy sparow | 2 | --policy sparow | did you mean `sparrow`
plot r --what cdf --number p50 | 2 | --number: the figure cdf does not use this option; `sweep` and `heat` can
plot r --over nodes | 2 | --over: the figure cdf does not use this option; `sweep` can
plot r --at load=1 | 2 | --at load: the run has no swept keys
plot r --job median | 2 | --job: the figure cdf does not use this option; `job` can
plot r --what job --job 4000000 | 2 | the run has no job 4000000
plot lost --what job | 2 | no finished job has recorded executions
plot r --what job --job fastest | 2 | expected a number, `slowest` or `median`
plot r --window 1s..2s | 2 | --window: the figure cdf does not use this option; `timeline` can
plot r --what timeline --window 100h..101h | 2 | no copy is recorded at these times | run.record.timeline
plot r --what timeline --window 2s..1s | 2 | begins at or after its end
plot e.toml | 2 | not a study directory
run e.toml --columns p50,regrett | 2 | --columns: no column is named `regrett`; did you mean `regret`?
run e.toml --columns p50,short.p99 | 2 | --columns: the run has no class short; it has none
report r --columns | 2 | --columns
plot lost --what percentiles --out f.svg | 2 | --what percentiles: no job has finished
";

const GOSSIP: &str = "title = \"g\"\nseed = 1\ncluster.nodes = 20\nnetwork.one_way = \"10ms\"\n\
    [workload.gossip]\nupdates.every = \"1s\"\nduration = \"20s\"\ndrain = \"10s\"\n\
    [[policy]]\npush = {}\n[[policy]]\nflood = {}\n";

#[test]
fn a_sweep_of_detectors_shows_numbers_of_detection_by_default() {
    let folder = folder();
    let here = folder.path();
    let sweep = "title = \"d\"\ncluster.nodes = 8\nnetwork.one_way = \"10ms\"\nworkload.gossip.duration = \"20s\"\n\
                 policy = [{ swim = {} }]\n[sweep]\n\"network.loss\" = [0.1, 0.3]\n";
    fs::write(here.join("d.toml"), sweep).unwrap();
    expect(here, "run d.toml --quiet --out d", 0);
    expect(here, "plot d --out f.svg", 0);
    assert!(fs::read_to_string(here.join("f.svg")).unwrap().contains(">false deaths"));
    let report = fs::read_to_string(here.join("d/report.html")).unwrap();
    assert!(report.contains("id=\"sweep\"") && !report.contains("response time, p50"));
    fs::write(here.join("n.toml"), format!("{EXPERIMENT}[run]\nuntil = \"1us\"\n")).unwrap();
    expect(here, "run n.toml --quiet --out none", 0);
    refuses_all(here, "plot none --what sweep | 2 | no job finished, and nothing of gossip was measured");
    let charts = r#"run d.toml --set report.charts=["false-deaths"] | 2 | write the key of this column: `detection.false_deaths`"#;
    refuses_all(here, charts);
}

#[test]
fn coverage_is_plotted_beside_measured_times() {
    let folder = folder();
    let here = folder.path();
    fs::write(here.join("g.toml"), GOSSIP).unwrap();
    fs::write(here.join("lab.txt"), "5ms\n20 ms\n0.1s\n").unwrap();
    expect(here, "run g.toml --quiet --out g", 0);
    let policies = &["push", "flood"][..];
    for (args, curves) in [("", policies), ("--what coverage --beside lab.txt", &["push", "flood", "lab"])] {
        expect(here, &format!("plot g {args} --out f.svg"), 0);
        let svg = fs::read_to_string(here.join("f.svg")).unwrap();
        assert!(svg.contains(">share of members</text>") && svg.contains(">Coverage</text>"));
        assert!(!svg.contains("NaN") && !svg.contains("Response time"));
        assert_eq!(svg.matches("stroke-linejoin=\"round\"").count(), 2 * curves.len(), "each has a key");
        assert!(curves.iter().all(|curve| svg.contains(&format!(">{curve}</text>"))), "{args}");
    }
    expect(
        here,
        "plot g --what sweep --number gossip.delivery_s.p50 --over gossip.version_age.mean --out f.svg",
        0,
    );
    let svg = fs::read_to_string(here.join("f.svg")).unwrap();
    assert!(svg.contains(" against ") && svg.matches("<circle").count() == policies.len(), "{svg}");
    expect(here, "plot g --what staleness --out f.svg", 0);
    let svg = fs::read_to_string(here.join("f.svg")).unwrap();
    let ages = ["Age of synchronisation", "Version age", "Age of information"];
    assert!(ages.iter().all(|age| svg.contains(&format!(">{age}</text>"))) && !svg.contains("NaN"));
    assert!(!svg.contains("Error of the caches"), "gossip has no errors");
    let report = fs::read_to_string(here.join("g/report.html")).unwrap();
    assert!(ages.iter().all(|age| report.contains(age)));
    assert!(report.contains("time since the update") && !report.contains("The slowest jobs"));
    fs::write(here.join("wrong.txt"), "5ms\n20\n").unwrap();
    fs::write(here.join("empty.txt"), "").unwrap();
    let refused = "
plot g --what coverage --beside none.txt | 2 | --beside none.txt: No such file
plot g --what coverage --beside wrong.txt | 2 | --beside wrong.txt: line 2: `20` has no unit of time | such as 518ms
plot g --what coverage --beside empty.txt | 2 | --beside empty.txt: the file holds no time | such as 518ms
plot g --what cdf --beside lab.txt | 2 | --beside: the figure cdf does not use this option; `coverage` can
";
    refuses_all(here, refused);
}

#[test]
fn figures_without_data_are_refused() {
    let folder = folder();
    expect(folder.path(), "run e.toml --quiet --out r", 0);
    expect(folder.path(), "run e.toml --set network.loss=1 --quiet --out lost", 3);
    refuses_all(folder.path(), REFUSED);
    assert!(!folder.path().join("f.jpg").exists());
}

#[test]
fn the_table_fits_a_given_width() {
    let folder = folder();
    let here = folder.path();
    expect(here, "run e.toml --quiet --repeat 3 --out r", 0);
    let table = |width: &str, args: &str| {
        expect_of(command(here).env("COLUMNS", width).args(format!("report r{args}").split_whitespace()), 0).0
    };
    for width in [80, 160] {
        let shown = table(&width.to_string(), "");
        let longest = shown.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(longest <= width && longest > width / 2, "{longest}:\n{shown}");
        let is_cut = shown.replace("\n  ", " ").contains("too wide for this terminal");
        assert!(width == 160 || is_cut, "{shown}");
        assert!(shown.contains("p50, p99 and mean are response times of jobs"), "{shown}");
    }
    fs::write(here.join("t.tr"), "0 2 1.5 1 2\n1 1 3 3\n").unwrap();
    for width in [40, 80] {
        for args in ["plan e.toml", "policies", "policies sparrow", "compare r r", "trace describe t.tr"] {
            let mut command = command(here);
            let command = command.env("COLUMNS", width.to_string()).args(args.split(' '));
            let (shown, _) = expect_of(command, 0);
            let long = shown.lines().find(|line| {
                let words = line.split_whitespace().count();
                line.chars().count() > width && words > 1
            });
            assert_eq!(long, None, "{args}:\n{shown}");
        }
    }
    let asked = table("200", " --columns P90,wait-p99,short.p99");
    let heading = asked.lines().find(|line| line.contains("policy")).unwrap().replace(' ', "");
    assert_eq!(heading, "│policy┆p90┆waitp99┆short.p99│");
    assert!(asked.contains("--columns: the run has no class short; it has none"), "{asked}");
    let (listed, _) = expect(here, "report r --columns help", 0);
    assert_eq!(expect(here, "plot r --number help", 0).0, listed);
    assert!(listed.contains("  regret p99") || listed.contains("  regret-p99"), "{listed}");
}
