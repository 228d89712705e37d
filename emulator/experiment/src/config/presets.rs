//! Presets: the interference profiles that are built into the program.
//!
//! They are the files of `experiments/profiles/`; the folder `profiles` of this crate is a link to it.

use std::io;
use std::path::Path;
use std::sync::LazyLock;

use volary_engine::cores::Interference;

use super::error::{ConfigError, nearest};
use crate::files::Files;

macro_rules! presets {
    ($($name:literal),*) => { [$(Preset { name: $name, text: include_str!(concat!("../../profiles/", $name, ".toml")) }),*] };
}

/// All presets, in order of names.
pub const PRESETS: [Preset; 14] = presets![
    "azure-cache",
    "azure-cpu",
    "bursts",
    "bytedance",
    "calm",
    "greyhound-compute",
    "greyhound-network",
    "greyhound-scale",
    "heavy-tail",
    "markov",
    "noisy-racks",
    "sixteen-fold",
    "table1",
    "tail-at-scale"
];

/// A profile that is built into the program.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// The name, which experiments and commands accept in place of a path.
    pub name: &'static str,
    /// The file: a title of one line, source and assumptions as a comment, and the keys.
    pub text: &'static str,
}

impl Preset {
    /// The title: what the preset models, in one line.
    pub fn title(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches("# ")
    }
}

/// The name of the preset with these keys.
pub(super) fn name_of(table: &Interference) -> Option<&'static str> {
    static TABLES: LazyLock<Vec<Option<Interference>>> =
        LazyLock::new(|| PRESETS.iter().map(|preset| toml::from_str(preset.text).ok()).collect());
    let at = TABLES.iter().position(|preset| preset.as_ref() == Some(table))?;
    Some(PRESETS[at].name)
}

/// Whether this is the name of a preset. If so, adds its text to `files` under that name, so that it is recorded and
/// packed like other files. `./NAME` is a path.
pub(super) fn hold(files: &Files, name: &Path) -> bool {
    let found = PRESETS.iter().find(|preset| name.as_os_str() == preset.name);
    if let Some(preset) = found {
        files.hold(name, preset.text.as_bytes());
    }
    found.is_some()
}

/// Adds the most similar preset to the error of a profile that cannot be read, unless its name looks like a path.
pub(super) fn suggested(error: ConfigError, name: &Path) -> ConfigError {
    let plain = name.to_str().filter(|name| !name.contains(['/', '.']));
    match (error, plain) {
        (ConfigError::Read { path, why, .. }, Some(name)) if why.kind() == io::ErrorKind::NotFound => {
            let near = nearest(name, PRESETS.iter().map(|preset| preset.name));
            let near = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
            let help = format!("it is no preset either; {near}`volary profile list` has all presets");
            ConfigError::Read { path, why, help }
        }
        (error, _) => error,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::env;
    use std::io::Read;

    use volary_actors::base::Span;
    use volary_engine::cores::show::Show;
    use volary_engine::cores::summary::BurstSummary;

    use super::*;
    use crate::workload::decompress;

    /// Probabilities of the compared quantiles.
    const SHARES: [f64; 6] = [0.001, 0.01, 0.1, 0.5, 0.9, 0.99];

    /// The summary that `volary profile show` prints, for 300 nodes and 30,000 s.
    fn shown(preset: &str) -> BurstSummary {
        let profile = crate::config::profile(Path::new(preset)).unwrap_or_else(|error| panic!("{error}"));
        Show { units: 300, until: Span::from_secs(30_000), seed: 1 }.summary(&profile)
    }

    /// Compares quantiles relative to the median within 1 %, and the share below 0.9 of the median.
    fn assert_near(preset: &str, quantiles: &[f64], below: f64) {
        let shown = shown(preset);
        let median = shown.speed.iter().find(|(share, _)| *share == 0.5).unwrap().1;
        for ((share, speed), expected) in shown.speed.iter().zip(quantiles) {
            let found = speed / median;
            assert!((found / expected - 1.0).abs() < 0.01, "{preset}, {share}: {found}, measured {expected}");
        }
        assert_eq!(shown.speed.len(), quantiles.len());
        let found = shown.below_nine_tenths;
        assert!((found - below).abs() < 0.003, "{preset}: {found} below 0.9, measured {below}");
    }

    #[test]
    fn a_profile_with_the_keys_of_a_preset_has_the_name_of_the_preset() {
        for preset in PRESETS {
            let profile = crate::config::profile(Path::new(preset.name)).unwrap();
            assert_eq!(name_of(&profile.table), Some(preset.name));
        }
        assert_eq!(name_of(&Interference::default()), None);
    }

    #[test]
    fn presets_of_azure_have_the_quantiles_that_their_heads_state() {
        for name in ["azure-cache", "azure-cpu"] {
            let text = PRESETS.iter().find(|preset| preset.name == name).unwrap().text;
            let line = text.lines().find_map(|line| line.strip_prefix("# p0.1 ")).unwrap();
            let (quantiles, below) = line.trim_end_matches('.').split_once("; below 0.9: ").unwrap();
            let quantiles = quantiles.split(", ").map(|pair| pair.split(' ').next_back().unwrap());
            let quantiles: Vec<f64> = quantiles.map(|number| number.parse().unwrap()).collect();
            assert_near(name, &quantiles, below.parse().unwrap());
        }
    }

    /// The data set is in the folder `azure-noise` of one of the folders of `VOLARY_TRACES`, plain or compressed.
    #[test]
    #[ignore = "reads published traces: set VOLARY_TRACES"]
    fn published_traces_of_azure_have_the_quantiles_of_their_presets() {
        let folders = env::var_os("VOLARY_TRACES").expect("set VOLARY_TRACES to the folder of the traces");
        for name in ["cache", "cpu"] {
            let files = env::split_paths(&folders).flat_map(|folder| {
                ["", ".xz"]
                    .map(|packed| folder.join(format!("azure-noise/d8s_v5_westus2_{name}.csv{packed}")))
            });
            let file = files.into_iter().find(|file| file.exists()).expect("the data set is there");
            let mut text = String::new();
            let mut content = decompress(std::fs::File::open(file).unwrap()).unwrap();
            content.read_to_string(&mut text).unwrap();
            let mut machines: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
            for line in text.lines().skip(1) {
                let cells: Vec<&str> = line.split(',').collect();
                machines.entry(cells[3]).or_default().push(cells[0].parse().unwrap());
            }
            let mut pooled: Vec<f64> = Vec::new();
            for samples in machines.values_mut() {
                samples.sort_by(f64::total_cmp);
                let median = samples[samples.len() / 2];
                pooled.extend(samples.iter().map(|speed| speed / median));
            }
            pooled.sort_by(f64::total_cmp);
            assert!(pooled.len() > 20_000, "{}", pooled.len());
            let quantiles = SHARES.map(|share| pooled[(share * pooled.len() as f64) as usize]);
            let below = pooled.partition_point(|speed| *speed < 0.9) as f64 / pooled.len() as f64;
            assert_near(&format!("azure-{name}"), &quantiles, below);
        }
    }

    #[test]
    fn every_file_of_the_folder_is_a_preset_with_title_source_and_process() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("profiles");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let files = files.filter(|path| path.extension().is_some_and(|kind| kind == "toml"));
        let files: BTreeSet<String> =
            files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
        assert_eq!(
            files.into_iter().collect::<Vec<_>>(),
            PRESETS.map(|preset| preset.name),
            "names in order"
        );
        for preset in PRESETS {
            let title = preset.title();
            assert!(title.ends_with('.') && title.len() < 110, "{}: {title}", preset.name);
            let states = |word: &str| preset.text.contains(word);
            let measured = ["\n# Source: ", "\n# Measured: ", "\n# Assumed: ", "\n# It cannot say: "];
            let made_up = states("# Made up, not measured.") || ["calm", "table1"].contains(&preset.name);
            assert!(made_up || measured.into_iter().all(states), "{}", preset.name);
            crate::config::profile(Path::new(preset.name)).unwrap_or_else(|error| panic!("{error}"));
        }
    }
}
