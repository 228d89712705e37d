//! The option `--columns` of `volary trace`.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context;
use clap::Args;
use volary_engine::workload::ColumnNames;
use volary_experiment::config::error::listed;

/// The columns of `.csv` files with names of their own.
#[derive(Debug, Args)]
pub(super) struct ColumnArgs {
    /// Columns of a .csv file, such as user=user_ID,submit=submit_time,run=seconds; times that are numbers count in the
    /// unit that the name ends in (_s, _ms, _us, _ns, _min, _h, _d) or that is stated (run=took:min), otherwise in
    /// seconds. With several traces name the file, once for each file that needs columns: --columns
    /// a.csv:user=who,submit=at,run=took
    #[arg(long = "columns", value_name = "[FILE:]LIST")]
    lists: Vec<FileColumns>,
}

/// The columns of one file.
#[derive(Clone, Debug)]
struct FileColumns {
    /// `None` for the only file.
    file: Option<PathBuf>,
    names: ColumnNames,
}

impl FromStr for FileColumns {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Meanings have no colon, but folders and the names of columns may.
        let first = text.find('=').unwrap_or(text.len());
        let (file, list) = match text[..first].rfind(':') {
            Some(colon) => (Some(text[..colon].into()), &text[colon + 1..]),
            None => (None, text),
        };
        Ok(Self { file, names: list.parse()? })
    }
}

impl ColumnArgs {
    /// The columns of each of the files.
    ///
    /// # Errors When the file of some columns is not clear, or a file has two lists.
    pub(super) fn of_files(&self, files: &[PathBuf]) -> anyhow::Result<Vec<Option<&ColumnNames>>> {
        let mut found = vec![None; files.len()];
        for list in &self.lists {
            let named = list.file_among(files)?;
            for at in (0..files.len()).filter(|&at| files[at] == *named) {
                anyhow::ensure!(
                    found[at].replace(&list.names).is_none(),
                    "--columns: two lists are for {}; write one",
                    named.display()
                );
            }
        }
        Ok(found)
    }

    /// The columns of the only file.
    ///
    /// # Errors
    /// As [`Self::of_files`].
    pub(super) fn of(&self, file: &Path) -> anyhow::Result<Option<&ColumnNames>> {
        Ok(self.of_files(&[file.to_owned()])?[0])
    }
}

impl FileColumns {
    /// Its file: the only one, the one of this path, or else the only one of this name.
    fn file_among<'a>(&self, files: &'a [PathBuf]) -> anyhow::Result<&'a PathBuf> {
        let is_alone = |file: &&PathBuf| files.iter().all(|other| other == *file);
        let Some(name) = &self.file else {
            return files.first().filter(is_alone).context(
                "--columns: with several traces name the file of these columns: --columns FILE:LIST",
            );
        };
        let of_name = || files.iter().filter(|file| file.file_name() == Some(name.as_os_str()));
        let found = files.iter().find(|file| *file == name).or_else(|| of_name().next());
        let Some(found) = found else {
            let known: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
            let known = listed(known.iter().map(String::as_str));
            anyhow::bail!("--columns: no trace here is called `{}`; there is {known}", name.display());
        };
        anyhow::ensure!(
            found == name || of_name().all(|file| file == found),
            "--columns: several traces are called `{}`; write the path of the one that is meant, such as `{}`",
            name.display(),
            found.display()
        );
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(lists: &[&str]) -> ColumnArgs {
        ColumnArgs { lists: lists.iter().map(|list| list.parse().unwrap()).collect() }
    }

    #[test]
    fn each_file_has_columns_of_its_own() {
        let files = ["a.csv", "b/c.csv", "d.tr"].map(PathBuf::from);
        let both = args(&["a.csv:user=x:y", "c.csv:user=z"]);
        let [x, z] = ["user=x:y", "user=z"].map(|list| list.parse::<ColumnNames>().unwrap());
        assert_eq!(both.of_files(&files).unwrap(), [Some(&x), Some(&z), None]);
        assert_eq!(args(&["user=z"]).of(&files[0]).unwrap(), Some(&z));
        let twice = ["a.csv", "a.csv"].map(PathBuf::from);
        assert_eq!(args(&["user=z"]).of_files(&twice).unwrap(), [Some(&z), Some(&z)]);
        let alike = ["b/a.csv", "a.csv"].map(PathBuf::from);
        assert_eq!(args(&["a.csv:user=z"]).of_files(&alike).unwrap(), [None, Some(&z)], "a path goes first");
        let alike = ["b/a.csv", "c/a.csv"].map(PathBuf::from);
        let error = args(&["a.csv:user=z"]).of_files(&alike).unwrap_err().to_string();
        assert!(
            error.contains("several traces are called `a.csv`") && error.contains("`b/a.csv`"),
            "{error}"
        );
        for (lists, part) in [
            (&["user=x"][..], "--columns FILE:LIST"),
            (&["e.csv:user=x"], "called `e.csv`; there is `a.csv`, `b/c.csv` or `d.tr`"),
            (&["a.csv:user=x", "a.csv:run=x"], "two lists are for a.csv"),
        ] {
            let error = args(lists).of_files(&files).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        assert!("a.csv:usr=x".parse::<FileColumns>().unwrap_err().contains("`usr`"));
    }
}
