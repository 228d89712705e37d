//! The command `volary profile record`.

use std::fmt::Write as _;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use clap::Args;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use volary_actors::base::Span;
use volary_engine::cores::Interference;
use volary_engine::cores::config::{BurstTrace, TraceRow};
use volary_engine::cores::show::Show;
use volary_experiment::config::error::listed;
use volary_experiment::config::file::Kernel;
use volary_experiment::files::LONGEST_TEXT;
use volary_experiment::number::percent;
use volary_hosts::executor::{CpuId, CpuRecording, Recorder, free_cpus};

use super::output::{print_folded, print_note, write_file};

/// Record the interference on this machine as a trace for `[interference.trace]`: the slowdown of an always busy kernel
/// on each CPU over time, alone or beside a command.
///
/// The healthy speed of each CPU is measured first, for four seconds, before the command starts. Ctrl-C ends the
/// recording and keeps what was recorded.
#[derive(Debug, Args)]
pub(super) struct RecordOptions {
    /// The CPUs, such as `0,2-5`; by default all that this process may use. The first is core 0 of the trace.
    #[arg(long, value_name = "LIST", value_parser = super::agent::cpus)]
    cpus: Option<Box<[CpuId]>>,
    /// The kernel that measures the CPUs: `hash` is arithmetic, `memory` streams through memory, `cache` accesses a
    /// mebibyte at random.
    #[arg(long, value_name = "KERNEL", value_parser = kernel, default_value = "hash")]
    kernel: Kernel,
    /// Length of the recording.
    #[arg(long = "for", value_name = "SPAN", default_value = "30s")]
    lasting: Span,
    /// Length of a sample, from 10ms.
    #[arg(long, value_name = "SPAN", default_value = "100ms")]
    window: Span,
    /// A shell command that runs in the foreground during the recording, and is ended with it.
    #[arg(long, value_name = "COMMAND")]
    beside: Option<String>,
    /// The file of the trace.
    #[arg(long, value_name = "FILE", default_value = "recorded.csv")]
    out: PathBuf,
    /// Also draw the speed of each CPU over time, as .svg, .pdf or .png.
    #[cfg(feature = "figures")]
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
}

/// Shortest window, in which a CPU's scheduler has switched between programs a few times.
const SHORTEST: Span = Span::from_millis(10);
/// Limit on the number of windows of all CPUs: a line of the trace has at most 40 bytes.
const MOST: u64 = LONGEST_TEXT / 40;
/// Slowdowns below this are ignored: clocks of CPUs vary as much by themselves.
const FLOOR: f64 = 1.1;
/// A CPU's interference is reported if the CPU lost at least this share of its work.
const FOUND: f64 = 0.01;
/// Noise floor above which a note warns that the noise before the recording hides slowdowns.
const NOISY: f64 = 1.3;
/// A note warns if other programs had a CPU for more than this share of the time before the recording.
const BUSY: f64 = 0.05;
/// Time that a command has to end after SIGTERM, before it is killed.
const GRACE: Duration = Duration::from_secs(2);

fn kernel(text: &str) -> Result<Kernel, String> {
    let names = Kernel::BURNING.map(|kernel| kernel.to_string());
    let found = Kernel::BURNING.into_iter().find(|kernel| kernel.to_string() == text);
    found.ok_or_else(|| format!("expected {}", listed(names.iter().map(String::as_str))))
}

pub(super) fn main(options: &RecordOptions) -> anyhow::Result<ExitCode> {
    let cpus = options.cpus.clone().unwrap_or_else(|| free_cpus().into());
    let RecordOptions { lasting, window, .. } = options;
    if *window < SHORTEST || window > lasting {
        return Err(anyhow!(
            "--window {window}: write a time from {SHORTEST} to {lasting}, the length of the recording"
        ));
    }
    if lasting.0 / window.0 * cpus.len() as u64 > MOST {
        return Err(anyhow!(
            "--for {lasting}: more than {MOST} windows of all CPUs, so the trace could exceed the {} MiB that can be \
             read\n  = help: record a shorter time, fewer CPUs, or longer windows",
            LONGEST_TEXT >> 20
        ));
    }
    #[cfg(feature = "figures")]
    let picture = options
        .picture
        .as_deref()
        .map(|path| Ok::<_, anyhow::Error>((path, super::plot::Format::of("--picture", path)?)));
    #[cfg(feature = "figures")]
    let picture = picture.transpose()?;
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    ctrlc::set_handler(move || stopped.store(true, Ordering::Relaxed))?;
    let recorder = Recorder::start(options.kernel, &cpus, Duration::from_nanos(window.0), &stop)?;
    if stop.load(Ordering::Relaxed) {
        return Err(anyhow!("interrupted before the recording began"));
    }
    let nice = recorder.nice();
    print_note(&format!("recording for {lasting}; Ctrl-C ends it, and keeps what is recorded"))?;
    let mut beside = options.beside.as_deref().map(Beside::start).transpose()?;
    let mut ended = None;
    let recordings = recorder.record(Duration::from_nanos(lasting.0), || {
        ended = ended.or_else(|| beside.as_mut().and_then(Beside::ended));
        ended.is_some()
    });
    drop(beside);
    let found = Findings::of(&recordings).ok_or_else(|| without_windows(options, ended))?;
    for note in notes(options, &recordings, nice, ended) {
        print_note(&format!("note: {note}"))?;
    }
    #[cfg(feature = "figures")]
    if let Some((path, format)) = picture {
        write_file(path, &format.bytes(&figure(&recordings), 7.16)?)?;
    }
    let limits = limits(options, &recordings);
    let most = (0..found.units).map(|unit| found.lost(unit)).fold(0.0, f64::max);
    if most < FOUND {
        print_folded(&format!(
            "nothing found in {:.1} s: no CPU lost more than {} of its work to slowdowns above {}; less than 1 % is no \
             finding, so no trace is written\n{}",
            found.until.as_secs_f64(),
            percent(most),
            found.floors,
            limits
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    write_file(&options.out, found.trace(options, &cpus).as_bytes())?;
    print_folded(&found.text(options, &limits)?)?;
    Ok(ExitCode::SUCCESS)
}

/// The command beside which CPUs are measured; its process group is ended when this is dropped.
struct Beside(Child);

impl Beside {
    fn start(command: &str) -> anyhow::Result<Self> {
        let child = Command::new("sh")
            .args(["-c", command])
            // Ctrl-C ends the recording, which ends the command.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(io::stderr())
            .spawn()
            .context("--beside: cannot start a shell")?;
        Ok(Self(child))
    }

    /// The status of the command once it has ended.
    fn ended(&mut self) -> Option<ExitStatus> {
        // A child that cannot be waited for is gone.
        self.0.try_wait().unwrap_or_else(|_| Some(ExitStatus::from_raw(0)))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let group = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        let end = |signal| group.map(|group| kill_process_group(group, signal));
        let asked = Instant::now();
        // Fails if all processes of the group have ended.
        let _ = end(Signal::TERM);
        // The shell belongs to the group until it has been waited for.
        let left = |beside: &mut Self| {
            beside.ended().is_none() || group.is_some_and(|group| test_kill_process_group(group).is_ok())
        };
        while left(self) && asked.elapsed() < GRACE {
            std::thread::sleep(Duration::from_millis(10));
        }
        if left(self) {
            let _ = end(Signal::KILL);
            let _ = self.0.wait();
        }
    }
}

/// The findings of a recording, as rows of a trace.
struct Findings {
    rows: Vec<TraceRow>,
    units: u32,
    until: Span,
    /// Slowdown below which samples are considered healthy, as text: one for all CPUs, or the smallest and the largest.
    floors: String,
    /// Share of the time in which other programs had the CPUs, or a CPU quota withheld them.
    taken: f64,
}

impl Findings {
    /// The findings of the recordings; `None` if a CPU has no sample.
    fn of(recordings: &[CpuRecording]) -> Option<Self> {
        let span = |time: Duration| Span(time.as_nanos() as u64);
        let until = recordings.iter().map(|cpu| cpu.samples.last().map(|sample| span(sample.until)));
        // All CPUs are recorded to the same time; the last window of one may be missing.
        let until = until.min().flatten()?;
        let mut rows = Vec::new();
        for (unit, cpu) in (0..).zip(recordings) {
            let floor = floor(cpu);
            for sample in &cpu.samples {
                let (start, end) = (span(sample.from), span(sample.until).min(until));
                let slowdown =
                    if sample.slowdown < floor { 1.0 } else { (sample.slowdown * 1e3).round() / 1e3 };
                if start < end {
                    rows.push(TraceRow { unit, start, end, slowdown });
                }
            }
        }
        let taken = recordings.iter().map(|cpu| cpu.taken).sum::<f64>() / recordings.len() as f64;
        let least = recordings.iter().map(floor).fold(f64::INFINITY, f64::min);
        let most = recordings.iter().map(floor).fold(FLOOR, f64::max);
        let (least, most) = (format!("{least:.2}"), format!("{most:.2}"));
        let floors = if least == most { most } else { format!("{least} to {most}, by CPU,") };
        Some(Self { rows, units: recordings.len() as u32, until, floors, taken })
    }

    /// Share of the work of a CPU that was lost.
    fn lost(&self, unit: u32) -> f64 {
        let length = |row: &TraceRow| row.end.as_secs_f64() - row.start.as_secs_f64();
        let rows = self.rows.iter().filter(|row| row.unit == unit);
        rows.map(|row| length(row) * (1.0 - 1.0 / row.slowdown)).sum::<f64>() / self.until.as_secs_f64()
    }

    /// The file of the trace: a sample wherever the slowdown of a core changes, and one at its end.
    fn trace(&self, options: &RecordOptions, cpus: &[CpuId]) -> String {
        let cpus: Vec<String> = cpus.iter().map(ToString::to_string).collect();
        let mut text =
            format!("# Recorded with the kernel {} in windows of {}", options.kernel, options.window);
        if let Some(command) = &options.beside {
            let _ = write!(text, ", beside: {}", command.replace('\n', " "));
        }
        let _ = write!(text, ".\n# Cores from 0 on are CPUs {}.\ntime,core,slowdown\n", cpus.join(", "));
        for rows in self.rows.chunk_by(|a, b| a.unit == b.unit) {
            let mut last = 0.0;
            for row in rows.iter().filter(|row| std::mem::replace(&mut last, row.slowdown) != row.slowdown) {
                let _ = writeln!(text, "{:.6},{},{}", row.start.as_secs_f64(), row.unit, row.slowdown);
            }
            let end = rows.last().map_or(Span::ZERO, |row| row.end);
            let _ = writeln!(text, "{:.6},{},1", end.as_secs_f64(), rows[0].unit);
        }
        text
    }

    /// Timeline, summary, and limits of the recording, as text.
    fn text(&self, options: &RecordOptions, limits: &str) -> anyhow::Result<String> {
        let trace = BurstTrace { rows: self.rows.clone(), ..BurstTrace::default() };
        let profile = Interference { trace: Some(trace), ..Interference::default() }.resolve()?;
        let shown = Show { units: self.units, until: self.until, seed: 0 }.text(&profile);
        // A trace has no seed.
        let mut text = shown.trim_start_matches("seed 0, ").to_owned();
        let (taken, floors, file) = (percent(self.taken), &self.floors, options.out.display());
        let _ = write!(
            text,
            "other programs or a CPU quota took the CPUs for {taken} of the time; slowdowns below {floors} are \
             ignored, as CPUs vary that much by themselves\n{limits}\n{file} is the trace: [interference] trace = {{ file = \"{file}\", repeat = true }}\n"
        );
        Ok(text)
    }
}

/// The slowdown of a CPU below which a sample is considered healthy.
fn floor(cpu: &CpuRecording) -> f64 {
    cpu.noise.max(FLOOR)
}

/// The error of a recording without a single window.
fn without_windows(options: &RecordOptions, ended: Option<ExitStatus>) -> anyhow::Error {
    let command = options.beside.as_deref().unwrap_or_default();
    match ended {
        None => anyhow!("interrupted before the first window ended"),
        Some(status) if status.success() => anyhow!(
            "--beside: `{command}` ended before the first window did, so that nothing is recorded\n  = help: the command \
             must stay in the foreground: leave out a `&` at its end"
        ),
        Some(status) => anyhow!(
            "--beside: `{command}` failed ({status}) before the first window ended, so that nothing is recorded"
        ),
    }
}

/// The healthy speeds and the limits of a recording, as text.
fn limits(options: &RecordOptions, recordings: &[CpuRecording]) -> String {
    let mut speeds: Vec<f64> = recordings.iter().map(|cpu| cpu.rounds_per_s / 1e6).collect();
    speeds.sort_by(f64::total_cmp);
    format!(
        "healthy speeds, measured before the recording: the slowest {:.4} and the fastest {:.4} million rounds of the \
         kernel {} a second; compare them with other machines, as a CPU that was slow even then looks healthy\nthe recording cannot see bursts shorter than the {} that a sample averages, networks and disks, and effects on \
         programs that have another priority or sleep at times: the kernel was always busy",
        speeds.first().copied().unwrap_or_default(),
        speeds.last().copied().unwrap_or_default(),
        options.kernel,
        options.window
    )
}

/// Notes on the reasons why a recording is doubtful, or shorter than requested.
fn notes(
    options: &RecordOptions,
    recordings: &[CpuRecording],
    nice: i32,
    ended: Option<ExitStatus>,
) -> Vec<String> {
    let mut notes = Vec::new();
    if nice != 0 {
        let share = if nice > 0 { "larger" } else { "smaller" };
        notes.push(format!(
            "the CPUs were measured at nice {nice}, as this process may not set nice 0: programs at nice 0 had a {share} \
             share of a CPU than the recorder"
        ));
    }
    let before = recordings.iter().map(|cpu| cpu.taken_before).fold(0.0, f64::max);
    if before > BUSY {
        notes.push(format!(
            "other programs or a CPU quota took up to {} of a CPU before the recording: if the programs also used caches or memory, the healthy \
             speed was measured too low, and the slowdowns too",
            percent(before)
        ));
    }
    for cpu in recordings.iter().filter(|cpu| floor(cpu) > NOISY) {
        let (cpu, floor) = (cpu.cpu, floor(cpu));
        notes.push(format!(
            "CPU {cpu} varied before the recording, so slowdowns below {floor:.2} are not found"
        ));
    }
    if free_cpus().len() == 1 {
        notes.push(
            "this process may use only one CPU, which it shares with everything else: whatever runs beside the recorder \
             slows it down"
                .to_owned(),
        );
    }
    if let Some(status) = ended {
        let end = recordings.iter().filter_map(|cpu| cpu.samples.last()).map(|sample| sample.until).max();
        let end = end.unwrap_or_default().as_secs_f64();
        notes.push(format!("the command ended after {end:.1} s ({status}), and the recording with it"));
    } else if let Some(sample) = recordings.first().and_then(|cpu| cpu.samples.last())
        && sample.until.as_nanos() < u128::from(options.lasting.0)
    {
        notes.push(format!("interrupted after {:.1} s", sample.until.as_secs_f64()));
    }
    notes
}

/// The speed of each CPU over time.
#[cfg(feature = "figures")]
fn figure(recordings: &[CpuRecording]) -> volary_report::chart::svg::Picture {
    use volary_report::chart::line::{Plot, PlotAxis, Series};
    use volary_report::chart::scale::{AxisScale, TickUnit};

    let series = recordings.iter().enumerate().map(|(colour, cpu)| Series {
        label: format!("CPU {}", cpu.cpu),
        colour,
        points: cpu.samples.iter().map(|sample| (sample.from.as_secs_f64(), 1.0 / sample.slowdown)).collect(),
        steps: true,
        ..Series::default()
    });
    let speed = PlotAxis::new("speed, before the recording = 1", AxisScale::Linear, TickUnit::Number);
    Plot {
        title: "Speed of CPUs".to_owned(),
        x: PlotAxis::new("time", AxisScale::Linear, TickUnit::Seconds),
        y: PlotAxis { range: Some((0.0, 1.2)), ..speed },
        series: series.collect(),
        size: (720.0, 300.0),
    }
    .picture()
}

#[cfg(test)]
mod tests {
    use volary_hosts::executor::SlowdownSample;

    use super::*;

    fn options(words: &[&str]) -> RecordOptions {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            options: RecordOptions,
        }
        <Line as clap::Parser>::parse_from([&["record"], words].concat()).options
    }

    fn recording(cpu: u16, slowdowns: &[f64], noise: f64) -> CpuRecording {
        let sample = |(i, slowdown): (u64, &f64)| SlowdownSample {
            from: Duration::from_millis(100 * i),
            until: Duration::from_millis(100 * (i + 1)),
            slowdown: *slowdown,
        };
        let samples = (0..).zip(slowdowns).map(sample).collect();
        CpuRecording { cpu: CpuId(cpu), rounds_per_s: 1e6, samples, noise, taken_before: 0.0, taken: 0.0 }
    }

    #[test]
    fn noise_is_ignored_and_one_slow_sample_in_fifty_is_found() {
        let mut quiet = [1.02, 0.97, 1.09, 1.0].repeat(25);
        let found = |slowdowns: &[f64], noise| Findings::of(&[recording(0, slowdowns, noise)]).unwrap();
        assert_eq!(found(&quiet, 1.03).lost(0), 0.0);
        quiet[7] = 1.3;
        assert!(found(&quiet, 1.03).lost(0) < FOUND, "one in a hundred");
        quiet[8..18].fill(1.3);
        assert!(found(&quiet, 1.03).lost(0) > FOUND);
        assert_eq!(found(&quiet, 1.31).lost(0), 0.0, "the CPU varied as much before");
        assert!(Findings::of(&[recording(0, &[], 1.0)]).is_none());
        let both = Findings::of(&[recording(0, &[2.0; 9], 2.5), recording(1, &[2.0; 9], 1.0)]).unwrap();
        assert_eq!((both.lost(0), both.lost(1)), (0.0, 0.5), "only the first varied as much before");
        assert_eq!(both.floors, "1.10 to 2.50, by CPU,");
    }

    #[test]
    fn a_command_that_ends_before_the_first_window_is_not_reported_as_an_interruption() {
        let asked = options(&["--beside", "./load &"]);
        let text = |status: Option<i32>| {
            without_windows(&asked, status.map(|code| ExitStatus::from_raw(code << 8))).to_string()
        };
        assert!(text(None).contains("interrupted"), "{}", text(None));
        assert!(text(Some(0)).contains("must stay in the foreground"), "{}", text(Some(0)));
        assert!(text(Some(127)).contains("exit status: 127"), "{}", text(Some(127)));
    }

    /// The shell ends at once; its child takes half a second after the signal to write a file.
    #[test]
    fn background_processes_of_a_command_have_time_to_end() {
        let folder = tempfile::tempdir().unwrap();
        let (ready, word) = (folder.path().join("ready"), folder.path().join("word"));
        let (at, to) = (ready.display(), word.display());
        let script = format!(
            "(trap 'sleep 0.5; echo done > {to}; exit' TERM; echo > {at}; while :; do sleep 0.05; done) &"
        );
        let mut beside = Beside::start(&script).unwrap();
        while !ready.exists() || beside.ended().is_none() {
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(beside);
        assert!(word.exists());
    }

    /// The trace loses the same share of work as the recording, and the text states the healthy speeds and the limits.
    #[test]
    fn the_trace_loses_the_same_share_of_work_as_the_recording() {
        let slow = [2.0, 2.0, 1.0, 4.0, 1.05];
        let faster = CpuRecording { rounds_per_s: 2e6, ..recording(5, &[1.0; 5], 1.0) };
        let recordings = [recording(3, &slow, 1.0), faster];
        let found = Findings::of(&recordings).unwrap();
        assert!((found.lost(0) - (0.5 + 0.5 + 0.75) / 5.0).abs() < 1e-12, "{}", found.lost(0));
        assert_eq!(found.lost(1), 0.0);
        let asked = options(&["--beside", "make -j", "--kernel", "cache"]);
        let text = found.trace(&asked, &[CpuId(3), CpuId(5)]);
        assert!(
            text.contains("kernel cache") && text.contains("beside: make -j") && text.contains("CPUs 3, 5"),
            "{text}"
        );
        let rows = "time,core,slowdown\n0.000000,0,2\n0.200000,0,1\n0.300000,0,4\n0.400000,0,1\n0.500000,0,1\n\
                    0.000000,1,1\n0.500000,1,1\n";
        assert!(text.ends_with(rows), "{text}");
        let table: Interference = Interference {
            trace: Some(BurstTrace { file: Some("t".into()), ..BurstTrace::default() }),
            ..Interference::default()
        };
        let profile = table.load(std::path::Path::new(""), |_| Ok(text.into_bytes().into())).unwrap();
        let show = Show { units: 2, until: Span::from_millis(500), seed: 1 };
        assert!((show.summary(&profile).work_lost - found.lost(0) / 2.0).abs() < 1e-9);
        let text = found.text(&asked, &limits(&asked, &recordings)).unwrap();
        for part in [
            "work lost 17.50 %",
            "slowest 1.0000 and the fastest 2.0000 million rounds of the kernel cache",
            "cannot see bursts shorter than the 100ms",
            "[interference] trace = {",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert!(!text.contains("seed"), "{text}");
    }

    #[test]
    fn a_doubtful_recording_is_annotated() {
        let asked = options(&[]);
        let mut one = recording(0, &[1.0; 300], 1.0);
        let one_cpu = usize::from(free_cpus().len() == 1);
        assert_eq!(notes(&asked, &[one.clone()], 0, None).len(), one_cpu, "nothing else to say");
        one.samples.truncate(50);
        one.taken_before = 0.4;
        one.noise = 1.4;
        let text = notes(&asked, &[one.clone()], 5, None).join("\n");
        for part in [
            "at nice 5",
            "a larger share",
            "of a CPU before",
            "interrupted after 5.0 s",
            "below 1.40 are not found",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        let text = notes(&asked, &[one], -5, Some(ExitStatus::from_raw(124 << 8))).join("\n");
        for part in ["at nice -5", "a smaller share", "ended after 5.0 s (exit status: 124)"] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }
}
