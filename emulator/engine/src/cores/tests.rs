//! Tests of finish times, compared with calculated values, with a slow integration, and with each other.

use std::collections::BTreeSet;
use std::path::Path;

use proptest::prelude::*;
use volary_actors::base::{CoreSet, Span, Time};
use volary_netem::Windows;

use super::config::TraceRow;
use super::*;

/// Parses a profile from the text of its file.
fn profile(text: &str) -> Profile {
    toml::from_str::<Interference>(text).unwrap().resolve().unwrap()
}

fn cores(text: &str, count: u32) -> Cores {
    Cores::new(Some(&profile(text)), CoreTable::equal(count, 1), Windows::default(), 7)
}

fn seconds(s: f64) -> Span {
    Span::from_secs_f64(s)
}

fn at(s: f64) -> Time {
    Time(seconds(s).0)
}

const TABLE_1: &str = r#"scripted = { slot = "1s", rows = [[0,1,1,1],[0,0,1,0],[0,1,0,0]], slowdown = 2.0 }"#;

const ALL: [&str; 11] = [
    r#"bernoulli = { slot = "100ms", probability = 0.3, slowdown = 3.0 }"#,
    r#"bernoulli = { slot = "7ms", probability = 0.5, slowdown = { uniform = { low = 1.0, high = 9.0 } } }"#,
    r#"markov = { slot = "50ms", p_on = 0.1, p_off = 0.3, slowdown = 4.0 }"#,
    r#"markov = { slot = "50ms", p_on = 1.0, p_off = 0.5, slowdown = { lognormal = { median = 2.0, sigma = 1.0 } } }"#,
    r#"renewal = { gap = { exponential = { mean = "1s" } }, burst = { pareto = { scale = "100ms", shape = 1.5 } }, slowdown = 2.5 }"#,
    r#"renewal = { gap = { empirical = { values = ["0s", "30ms"] } }, burst = "20ms", slowdown = 2.0 }"#,
    TABLE_1,
    r#"scripted = { slot = "300ms", rows = [[1,0],[1,1,0]], slowdown = 5.0, repeat = true }"#,
    "trace.rows = [{ unit = 0, start = \"1s\", end = \"2s\", slowdown = 3.0 }, { unit = 1, start = \"100ms\", end = \"1h\", slowdown = 1.5 }]",
    "trace = { repeat = true, rows = [{ unit = 0, start = \"70ms\", end = \"2s\", slowdown = 3.0 }, { unit = 1, start = \"100ms\", end = \"900ms\", slowdown = 1.5 }] }",
    "trace = { spread = true, repeat = true, rows = [{ unit = 0, start = \"70ms\", end = \"2s\", slowdown = 3.0 }] }",
];

#[test]
fn copies_under_table_1_finish_at_times_calculated_by_hand() {
    let mut cores = cores(TABLE_1, 4);
    for (core, two, three) in [(0, 3.0, 4.5), (1, 2.0, 3.5), (2, 2.5, 3.5), (3, 2.0, 3.0)] {
        for (work, due) in [(2.0, two), (3.0, three)] {
            assert_eq!(cores.start(core, Time::ZERO, seconds(work)), at(due), "work {work} on core {core}");
            cores.finished(core, at(due));
        }
    }
    assert_eq!(cores.start(0, at(0.5), seconds(0.75)), at(1.5), "half in slot 0, a quarter in slot 1");
    assert_eq!(cores.left(0, at(1.25)), seconds(0.125));
    let bursts: Vec<_> = cores.bursts(0, Time::ZERO, Time::MAX).collect();
    assert_eq!(bursts, [Burst { start: at(1.0), end: at(4.0), slowdown: 2.0 }]);
    assert_eq!((cores.rate(0, at(0.9)), cores.rate(0, at(1.0)), cores.rate(0, at(4.0))), (1.0, 0.5, 1.0));
}

#[test]
fn finish_times_agree_with_a_slow_integration() {
    let step = Span::from_millis(1);
    for text in ALL {
        let mut cores = cores(text, 3);
        for core in 0..3 {
            let (start, work) = (at(0.4321), seconds(3.21));
            let due = cores.start(core, start, work);
            let (mut t, mut done) = (start, 0.0);
            while done < work.as_secs_f64() {
                // The rate in the middle of a step is taken for the whole step. Stretches begin and end at steps, or
                // rarely enough between them; only bursts of the Pareto distribution do not.
                done += cores.rate(core, t + Span(step.0 / 2)) * step.as_secs_f64();
                t += step;
            }
            let apart = (t.as_secs_f64() - due.as_secs_f64()).abs();
            assert!(apart < 0.02, "{text}: core {core} is done at {due}, not at {t}");
        }
    }
}

#[test]
fn bursts_agree_with_rates() {
    for text in ALL {
        let cores = cores(text, 2);
        for core in 0..2 {
            let mut previous = Time::ZERO;
            for burst in cores.bursts(core, Time::ZERO, at(20.0)) {
                assert!(previous <= burst.start && burst.start < burst.end, "{text}: {burst:?}");
                for (t, rate) in [(burst.start, 1.0 / burst.slowdown), (previous, 1.0)] {
                    // Two adjacent bursts of different slowdown leave no healthy time between them.
                    if rate < 1.0 || previous < burst.start {
                        assert_eq!(cores.rate(core, t), rate, "{text}: core {core} at {t}");
                    }
                }
                previous = burst.end;
            }
        }
    }
}

#[test]
fn earlier_queries_do_not_change_finish_times() {
    for text in ALL {
        let mut used = cores(text, 2);
        for n in 0..200 {
            let start = at(f64::from(n) * 0.5);
            let due = used.start(1, start, seconds(0.3));
            let fresh = cores(text, 2).start(1, start, seconds(0.3));
            assert_eq!(due, fresh, "{text}: copy {n}");
            if n % 2 == 0 {
                used.finished(1, due)
            } else {
                assert!(used.stop(1, start + seconds(0.1)) > Span::ZERO)
            }
        }
        let earlier = used.start(1, at(0.2), seconds(1.0));
        assert_eq!(earlier, cores(text, 2).start(1, at(0.2), seconds(1.0)), "{text}: back in time");
    }
}

#[test]
fn strides_over_slots_give_the_results_of_single_slots() {
    // A uniform distribution of a single value is constant, but it is evaluated slot by slot.
    let text = |slowdown: &str| {
        format!("bernoulli = {{ slot = \"10ms\", probability = 0.4, slowdown = {slowdown} }}")
    };
    let (mut strides, mut steps) =
        (cores(&text("3.7"), 2), cores(&text("{ uniform = { low = 3.7, high = 3.7 } }"), 2));
    for n in 0u32..120 {
        let (start, work) = (at(f64::from(n) * 0.377), Span(u64::pow(u64::from(n), 3) * 123_457));
        let due = strides.start(0, start, work);
        assert_eq!(due, steps.start(0, start, work), "work {work} from {start}");
        let middle = Time(u64::midpoint(start.0, due.0));
        assert_eq!(strides.stop(0, middle), steps.stop(0, middle), "work {work} from {start} to {middle}");
    }
}

#[test]
fn cores_share_a_process_exactly_if_they_share_a_unit() {
    let text = r#"bernoulli = { slot = "10ms", probability = 0.5, slowdown = 2.0 }"#;
    let table = || CoreTable::equal(4, 2).with_racks(vec![0, 0, 1, 1]);
    let seen = |scope: &str, core: u32| -> Vec<Burst> {
        let profile = profile(&format!("scope = \"{scope}\"\n{text}"));
        Cores::new(Some(&profile), table(), Windows::default(), 1).bursts(core, Time::ZERO, at(1.0)).collect()
    };
    for (scope, other, same) in
        [("core", 1, false), ("node", 1, true), ("node", 2, false), ("rack", 2, true), ("rack", 4, false)]
    {
        assert_eq!(seen(scope, 0) == seen(scope, other), same, "{scope}: cores 0 and {other}");
    }
}

#[test]
fn the_window_and_the_affected_share_bound_interference() {
    let text = r#"
        from = "1s"
        until = "3s"
        bernoulli = { slot = "100ms", probability = 1.0, slowdown = 4.0 }"#;
    let mut windowed = cores(text, 1);
    assert_eq!(windowed.start(0, Time::ZERO, seconds(0.9)), at(0.9));
    windowed.finished(0, at(0.9));
    assert_eq!(windowed.start(0, at(0.5), seconds(1.25)), at(3.25), "0.5 before, 2 / 4 inside, 0.25 after");
    assert_eq!(windowed.left(0, at(2.0)), seconds(0.5));
    windowed.stop(0, at(2.0));
    assert_eq!(windowed.start(0, at(3.0), seconds(1.0)), at(4.0));
    let bursts: Vec<_> = windowed.bursts(0, Time::ZERO, Time::MAX).collect();
    assert_eq!(bursts, [Burst { start: at(1.0), end: at(3.0), slowdown: 4.0 }]);

    let some =
        cores("affected = 0.25\nbernoulli = { slot = \"100ms\", probability = 1.0, slowdown = 4.0 }", 10_000);
    let affected = (0..10_000).filter(|&core| some.rate(core, Time::ZERO) < 1.0).count();
    assert!((2_350..2_650).contains(&affected), "{affected} of 10000 cores, 2500 ± 43 expected");
}

#[test]
fn speeds_and_pauses_change_finish_times() {
    let pauses = [(0, at(1.0), at(2.0)), (0, at(3.0), at(3.5)), (1, at(5.0), Time::MAX)];
    let pauses = Windows::new(pauses, 2);
    let table = CoreTable::equal(2, 2).with_speeds(vec![1.0, 2.0, 1.0, 4.0]);
    let mut cores = Cores::new(None, table, pauses, 1);
    assert_eq!(cores.start(0, Time::ZERO, seconds(2.5)), at(4.0), "two pauses on the way");
    assert_eq!(cores.start(1, at(1.5), seconds(2.0)), at(3.0), "starts in a pause");
    assert_eq!(cores.start(3, Time::ZERO, seconds(4.0)), at(1.0));
    assert_eq!(cores.start(2, at(4.5), seconds(1.0)), Time::MAX, "stands still for good");
    assert_eq!((cores.left(0, at(1.7)), cores.left(0, at(2.5))), (seconds(1.5), seconds(1.0)));
    assert_eq!((cores.rate(0, at(1.5)), cores.rate(1, at(2.0))), (0.0, 2.0));
    assert_eq!(cores.stop(2, at(9.0)), seconds(0.5));
}

#[test]
fn a_preempted_copy_occupies_its_core_for_the_preemption_time() {
    let slow = r#"scripted = { slot = "1s", rows = [[0,0,1,1]], slowdown = 2.0 }"#;
    for (text, due) in [(None, 3.75), (Some(slow), 4.75)] {
        let profile = text.map(profile);
        let new = Cores::new(profile.as_ref(), CoreTable::equal(1, 1), Windows::default(), 7);
        let mut cores = new.with_preemption(seconds(0.25));
        cores.start(0, Time::ZERO, seconds(9.0));
        assert_eq!(cores.preempt(0, at(1.0)), seconds(8.0));
        assert_eq!(cores.start(0, at(1.0), seconds(2.5)), at(due), "a quarter of a second later");
        assert_eq!((cores.left(0, at(1.2)), cores.left(0, at(2.0))), (seconds(2.5), seconds(1.75)));
        cores.finished(0, at(due));
        assert_eq!(cores.start(0, at(7.0), seconds(1.0)), at(8.0), "only what was preempted takes time");
    }
}

#[test]
#[should_panic(expected = "never finishes")]
fn a_copy_that_never_ends_cannot_be_finished() {
    let pauses = Windows::new([(0, at(1.0), Time::MAX)], 1);
    let mut cores = Cores::new(None, CoreTable::equal(1, 1), pauses, 1);
    assert_eq!(cores.start(0, Time::ZERO, seconds(2.0)), Time::MAX);
    cores.finished(0, Time::MAX);
}

#[test]
#[should_panic(expected = "runs a copy already")]
fn a_busy_core_rejects_a_second_copy() {
    let mut cores = cores(TABLE_1, 1);
    cores.start(0, Time::ZERO, seconds(1.0));
    cores.start(0, at(0.5), seconds(1.0));
}

#[test]
fn markov_runs_have_geometric_lengths() {
    let text = r#"markov = { slot = "1ms", p_on = 0.1, p_off = 0.25, slowdown = 2.0 }"#;
    let cores = cores(text, 2_000);
    let (mut bursts, mut slots, mut single, mut first) = (0.0, 0.0, 0.0, 0.0);
    for core in 0..2_000 {
        first += f64::from(u8::from(cores.rate(core, Time::ZERO) < 1.0));
        // Without the first and last burst, which the window may have cut.
        let seen: Vec<_> = cores.bursts(core, Time(1), at(2.0)).collect();
        for burst in &seen[1..seen.len() - 1] {
            bursts += 1.0;
            slots += burst.length().as_secs_f64() * 1e3;
            single += f64::from(u8::from(burst.length() == Span::from_millis(1)));
        }
    }
    assert!((slots / bursts - 4.0).abs() < 0.05, "mean burst {} slots, expected 4", slots / bursts);
    assert!((single / bursts - 0.25).abs() < 0.01, "{} bursts of one slot", single / bursts);
    assert!((first / 2_000.0 - 0.2857).abs() < 0.05, "{} start degraded, expected 2 / 7", first / 2_000.0);
}

fn any_cores() -> impl Strategy<Value = (usize, f64, bool)> {
    (0..ALL.len(), prop_oneof![Just(1.0), 0.1f64..5.0], any::<bool>())
}

fn build((which, speed, paused): (usize, f64, bool)) -> Cores {
    let pauses = [(0.3, 0.7), (1.0, 1.001), (2.5, 4.0)].map(|(a, b)| (0, at(a), at(b)));
    Cores::new(
        Some(&profile(ALL[which])),
        CoreTable::equal(2, 1).with_speeds(vec![speed; 2]),
        Windows::new(pauses.into_iter().filter(|_| paused), 2),
        3,
    )
}

proptest! {
    #[test]
    fn a_stop_and_a_resumption_do_not_delay_a_copy(
        kind in any_cores(),
        start in 0u64..5_000_000_000,
        work in 0u64..3_000_000_000,
        share in 0.0f64..1.0,
    ) {
        let mut cores = build(kind);
        let (start, work) = (Time(start), Span(work));
        let due = cores.start(0, start, work);
        prop_assert_eq!(cores.left(0, due), Span::ZERO);
        if due > start {
            prop_assert!(cores.left(0, Time(due.0 - 1)) > Span::ZERO, "finished before {due}");
        }
        // A copy that is stopped anywhere and resumed finishes when it would have without the stop. The work left is
        // rounded up to the nanosecond, which costs at most σ / speed of time, plus a pause in the worst case.
        let middle = Time(start.0 + ((due.0 - start.0) as f64 * share) as u64);
        let left = cores.stop(0, middle);
        let again = cores.start(0, middle, left);
        prop_assert!(again >= due, "{again} before {due}");
        let rate = cores.rate(0, Time(due.0.saturating_sub(1))).min(cores.rate(0, due));
        let slack = if rate > 0.0 { (1.0 / rate).ceil() as u64 + 1 } else { 1_500_000_002 };
        prop_assert!(again.0 - due.0 <= slack, "{again} long after {due}");
    }

    #[test]
    fn more_work_and_later_starts_never_finish_earlier(
        kind in any_cores(),
        start in 0u64..5_000_000_000,
        later in 0u64..1_000_000,
        work in 0u64..3_000_000_000,
        more in 0u64..1_000_000,
    ) {
        let mut cores = build(kind);
        let mut due = |start, work| {
            let due = cores.start(0, Time(start), Span(work));
            cores.stop(0, Time(start));
            due
        };
        prop_assert!(due(start, work) <= due(start, work + more));
        prop_assert!(due(start, work) <= due(start + later, work));
    }
}

#[test]
fn traces_are_read_from_files_or_rows_and_errors_name_the_line() {
    let load = |text: &str| {
        let table = Interference {
            trace: Some(config::BurstTrace {
                file: Some("bursts.csv".into()),
                ..config::BurstTrace::default()
            }),
            ..Interference::default()
        };
        let read = |path: &Path| {
            assert_eq!(path, Path::new("folder/bursts.csv"));
            Ok(text.as_bytes().into())
        };
        table.load(Path::new("folder"), read).map_err(|e| e.to_string())
    };
    let rows = load("# unit start end slowdown\n1, 0.5, 1.5, 2\n0 2 3 4.5 # blanks do as well\n\n").unwrap();
    let row =
        |unit, start, end, slowdown| TraceRow { unit, start: seconds(start), end: seconds(end), slowdown };
    assert_eq!(rows.table.trace.as_ref().unwrap().rows, [row(0, 2.0, 3.0, 4.5), row(1, 0.5, 1.5, 2.0)]);
    let again: Interference = toml::from_str(&toml::to_string(&rows.table).unwrap()).unwrap();
    assert_eq!(again.resolve().unwrap(), rows, "the loaded table needs no file");

    for (text, place, what) in [
        ("0 1 2\n", "bursts.csv:1:", "found 3 fields"),
        ("# c\n0 1 2 2\n0 x 2 2\n", "bursts.csv:3:", "start_s `x`"),
        ("0 2 1 2\n", "bursts.csv:1:", "not after its start"),
        ("0 1 2 0.5\n", "bursts.csv:1:", "below 1"),
        ("-1 1 2 2\n", "bursts.csv:1:", "unit `-1`"),
        ("0 1 3 2\n1 1 3 2\n0 2 4 2\n", "bursts.csv:3:", "line or row 1"),
        ("# nothing\n", "bursts.csv", "no burst"),
    ] {
        let error = load(text).unwrap_err();
        assert!(error.contains(place) && error.contains(what), "{text:?}: {error}");
    }
}

/// The CPUs of a recorded machine are reused for all cores in turn, also for the cores of an injection or a host.
#[test]
fn units_of_a_spread_trace_stand_for_the_cores_in_turn() {
    let row = |unit: u32, slowdown: u32| {
        format!("{{ unit = {unit}, start = \"0s\", end = \"9s\", slowdown = {slowdown} }}")
    };
    let spread = format!("trace = {{ spread = true, rows = [{}, {}] }}", row(0, 2), row(2, 4));
    let rates = |cores: &Cores| (0..7).map(|core| cores.rate(core, at(1.0))).collect::<Vec<_>>();
    let whole = cores(&spread, 7);
    assert_eq!(rates(&whole), [0.5, 1.0, 0.25, 0.5, 1.0, 0.25, 0.5]);
    let mut part = Cores::new(None, CoreTable::equal(7, 1), Windows::default(), 7);
    let cores = "2-5".parse().unwrap();
    part.inject(&Injection { profile: profile(&spread), seed: 1, cores, from: Time::ZERO, until: Time::MAX });
    assert_eq!(rates(&part), [1.0, 1.0, 0.25, 0.5, 1.0, 0.25, 1.0]);
    let run = RunLength { least: seconds(5.0), most: seconds(5.0) };
    assert_eq!(profile(&spread).trace_gaps(whole.table(), run), [], "every core has a unit");
}

/// Each turn stands for another machine with the noise of the recorded one, and begins at a random time of the trace.
#[test]
fn each_turn_of_a_repeated_trace_begins_at_its_own_time() {
    let row = |unit: u32, start: u32| {
        format!("{{ unit = {unit}, start = \"{start}s\", end = \"{}s\", slowdown = 2 }}", start + 1)
    };
    let rows = [row(0, 2), row(1, 3), row(1, 9)].join(",");
    let cores = cores(&format!("trace = {{ spread = true, repeat = true, rows = [{rows}] }}"), 40);
    let bursts = |core| cores.bursts(core, Time::ZERO, at(40.0)).collect::<Vec<_>>();
    // The first burst that the time 0 does not cut.
    let begins =
        |core| bursts(core).iter().map(|burst| burst.start).find(|start| *start > Time::ZERO).unwrap();
    assert_eq!((begins(0), begins(1)), (at(2.0), at(3.0)), "the first turn is the recording");
    let phases: BTreeSet<_> = (0..20).map(|turn| begins(2 * turn).0 % 10_000_000_000).collect();
    assert_eq!(phases.len(), 20);
    for turn in 0..20 {
        let (first, second) = (bursts(2 * turn), bursts(2 * turn + 1));
        let whole = |burst: &&Burst| burst.start > Time::ZERO && burst.end < at(40.0);
        assert!(first.iter().filter(whole).all(|burst| burst.length() == seconds(1.0)));
        let after = |burst: &&Burst| {
            burst.end + seconds(1.0) >= at(40.0) || second.iter().any(|other| other.start == burst.end)
        };
        assert!(first.iter().filter(whole).all(|burst| after(&burst)), "the units of a turn stay together");
        let degraded: f64 = first.iter().map(|burst| burst.length().as_secs_f64()).sum();
        assert!((degraded - 4.0).abs() < 1e-6, "turn {turn}: {degraded} of 40 s");
    }
}

#[test]
fn errors_of_profiles_name_the_key_and_the_line() {
    for (text, words) in [
        ("\nbernoulli = { slot = \"0s\", probability = 0.1, slowdown = 2 }", &["line 2", "slot"][..]),
        ("bernoulli = { slot = \"1s\", probability = 1.1, slowdown = 2 }", &["line 1", "1.1", "from 0 to 1"]),
        ("bernoulli = { slot = \"1s\", probability = 0.1, slowdown = 0.5 }", &["0.5", "at least 1"]),
        ("bernoulli = { slot = \"1s\", probability = 0.1, slowdwn = 2 }", &["slowdwn", "slowdown"]),
        ("scripted = { slot = \"1s\", rows = [[0],[1,2]], slowdown = 2 }", &["row 1, slot 1 is 2"]),
        ("scope = \"nodes\"", &["nodes", "node"]),
    ] {
        let error = toml::from_str::<Interference>(text).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{text}: {error}");
    }
    for (text, words) in [
        ("scope = \"node\"", "exactly one"),
        (&format!("{TABLE_1}\n{}", ALL[0]), "exactly one"),
        (&format!("profile = \"x.toml\"\n{}", ALL[0]), "not both"),
        (
            "renewal = { gap = \"1s\", burst = \"1s\", slowdown = { empirical = { file = \"s.txt\" } } }",
            "not read",
        ),
        ("renewal = { gap = \"0s\", burst = \"0s\", slowdown = 2 }", "less than 1us"),
        (&format!("from = \"2s\"\nuntil = \"1s\"\n{}", ALL[0]), "not earlier than"),
    ] {
        let table: Interference = toml::from_str(text).unwrap();
        let error = table.resolve().unwrap_err().to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}

#[test]
fn the_effect_is_the_sum_of_the_bursts() {
    let text = r#"scripted = { slot = "1s", rows = [[0,1,1,1],[0,0,1,0]], slowdown = 4 }"#;
    let mut cores = cores(text, 4);
    // Four of sixteen seconds are degraded.
    let (effect, counted) = cores.effect(Time::ZERO + Span::from_secs(4)).unwrap();
    assert_eq!((effect.degraded, counted), (0.25, 4));
    assert!((effect.throughput - (1.0 - 0.25 * 0.75)).abs() < 1e-12);
    assert_eq!(cores.effect(Time::ZERO), None, "no time, no share");
    cores.inject(&Injection {
        profile: profile(r#"trace.rows = [{ unit = 2, start = "0s", end = "9s", slowdown = 2 }]"#),
        seed: 1,
        cores: CoreSet::below(4),
        from: Time::ZERO,
        until: Time::MAX,
    });
    let injected = cores.effect(Time::ZERO + Span::from_secs(4)).unwrap().0;
    assert_eq!((injected.degraded, injected.throughput), (0.25, 0.875), "one core of four, at half speed");
    assert_eq!(Cores::new(None, CoreTable::equal(4, 1), Windows::default(), 7).effect(Time::MAX), None);
}

/// A run with many slots is estimated from some of its cores.
#[test]
fn the_effect_of_many_slots_is_estimated_from_some_cores() {
    let cores = cores(r#"bernoulli = { slot = "10ms", probability = 0.3, slowdown = 3.0 }"#, 1_000);
    let (effect, counted) = cores.effect(Time::ZERO + Span::from_secs(100)).unwrap();
    assert_eq!(counted, 100);
    assert!((effect.degraded - 0.3).abs() < 0.003, "{effect:?}");
    assert_eq!(cores.effect(Time::ZERO + Span::from_secs(100_000)), None);
}
