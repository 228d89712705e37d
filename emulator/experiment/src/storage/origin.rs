//! The origin of results: the program, the machine, and the files that the experiment was read from.

use std::fs;
use std::num::NonZero;

use serde::{Deserialize, Serialize};

use crate::files::FileSum;

/// The commit that the program was built from, stated by this variable of the build's environment.
const COMMIT: Option<&str> = option_env!("VOLARY_COMMIT");

/// What one process that filled a study directory was, and read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Provenance {
    /// Version of the program.
    pub version: String,
    /// The commit it was built from; null if the build did not state it in `VOLARY_COMMIT`.
    pub commit: Option<String>,
    pub machine: Machine,
    /// The experiment file and every file that it names, in order of names.
    pub files: Vec<FileSum>,
}

/// The machine that the process ran on; on hosts that of the controller.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// Processors that the process may use.
    pub cores: usize,
    /// Model of the first processor; null if the system does not say.
    pub cpu: Option<String>,
    /// Release of the Linux kernel; null elsewhere.
    pub kernel: Option<String>,
    /// Operating system and architecture, such as `linux x86_64`.
    pub platform: String,
}

impl Provenance {
    /// This process, with the files that it has read.
    pub fn here(files: Vec<FileSum>) -> Self {
        let (version, commit) = (env!("CARGO_PKG_VERSION").to_owned(), COMMIT.map(str::to_owned));
        Self { version, commit, machine: Machine::here(), files }
    }
}

impl Machine {
    fn here() -> Self {
        let read = |path: &str| fs::read_to_string(path).ok();
        Self {
            cores: std::thread::available_parallelism().map_or(1, NonZero::get),
            cpu: read("/proc/cpuinfo").and_then(|text| model(&text)),
            kernel: read("/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned()),
            platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        }
    }

    /// The machine in a line.
    pub fn says(&self) -> String {
        let cpu = self.cpu.as_deref().unwrap_or("processors of an unknown model");
        let kernel = self.kernel.as_ref().map_or_else(String::new, |release| format!(", kernel {release}"));
        format!("{} × {cpu}, {}{kernel}", self.cores, self.platform)
    }
}

/// The model of the first processor in the text of `/proc/cpuinfo`.
fn model(cpuinfo: &str) -> Option<String> {
    let lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    let mut models = lines.filter(|(key, _)| key.trim() == "model name");
    models.next().map(|(_, model)| model.trim().to_owned()).filter(|model| !model.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_that_of_the_first_processor() {
        let text = "processor\t: 0\nmodel\t\t: 85\nmodel name\t: Fast CPU @ 2.00GHz\n\nmodel name\t: other\n";
        assert_eq!(model(text).as_deref(), Some("Fast CPU @ 2.00GHz"));
        assert_eq!(model("processor\t: 0\nCPU part\t: 0xd0c\n"), None);
        let machine =
            Machine { cores: 2, cpu: None, kernel: Some("6.1".into()), platform: "linux x86_64".into() };
        assert_eq!(machine.says(), "2 × processors of an unknown model, linux x86_64, kernel 6.1");
    }
}
