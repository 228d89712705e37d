//! The files of an experiment, each of which is read from the disk once.
//!
//! The files can be packed and sent to a machine that does not have them. There, names are looked up only in the pack:
//! a name that was not packed does not exist, even if the disk has it.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Cursor, Read};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ring::digest::{Context, SHA256};
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::guard::guard;

/// Environment variable that lists folders with traces, separated by colons.
const FOLDERS: &str = "VOLARY_TRACES";
/// Limit on texts that are read whole, bytes: profiles, topologies, lists of values. A workload trace is streamed
/// instead.
pub const LONGEST_TEXT: u64 = 16 << 20;
/// Limit on the total size of packed files, bytes.
pub const LARGEST_PACK: u64 = 1 << 30;

/// Limit on the texts that are kept in results, bytes.
const LONGEST_KEPT: usize = 1 << 18;

/// Files by the names that the experiment uses. Clones share their contents.
#[derive(Clone, Debug)]
pub struct Files(Arc<Store>);

#[derive(Debug)]
struct Store {
    /// Whether other files may be read from the disk.
    disk: bool,
    /// Folders that are searched for traces, besides the experiment's folder.
    folders: Vec<PathBuf>,
    /// The contents read so far; `None` if a file was streamed from the disk, which keeps no content.
    held: Mutex<BTreeMap<PathBuf, Option<Arc<[u8]>>>>,
}

/// Files to send, made by [`Files::pack`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Pack {
    /// Folders that are searched for traces, besides the experiment's folder.
    #[serde(deserialize_with = "few")]
    pub folders: Vec<PathBuf>,
    /// Files, each with the name that the experiment uses and its content.
    #[serde(deserialize_with = "few")]
    pub files: Vec<(PathBuf, Vec<u8>)>,
}

/// Limit on the number of texts or files of one kind in an experiment. An empty entry takes a byte on the wire, but at
/// least twenty-four bytes in memory.
const MOST_ENTRIES: usize = 10_000;

/// Reads a list of at most [`MOST_ENTRIES`].
pub(crate) fn few<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    struct Few<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Few<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "at most {MOST_ENTRIES} entries")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Vec<T>, A::Error> {
            let mut all = Vec::new();
            while let Some(entry) = entries.next_element()? {
                if all.len() == MOST_ENTRIES {
                    return Err(A::Error::invalid_length(MOST_ENTRIES + 1, &self));
                }
                all.push(entry);
            }
            Ok(all)
        }
    }
    from.deserialize_seq(Few(PhantomData))
}

/// A file that an experiment was read from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileSum {
    /// Name of the file, as the experiment uses it.
    pub name: PathBuf,
    /// SHA-256 of the content, in hexadecimal; null if the file could not be read again.
    pub sha256: Option<String>,
    /// The content of the experiment file or another text of at most 256 KiB; absent for traces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl Files {
    /// The files of the disk; traces are also searched in the folders of `VOLARY_TRACES`.
    pub fn of_disk() -> Self {
        let listed = std::env::var_os(FOLDERS).unwrap_or_default();
        let folders = std::env::split_paths(&listed).filter(|path| !path.as_os_str().is_empty());
        Self::new(true, folders.collect(), BTreeMap::new())
    }

    /// The files of a pack only.
    pub fn of_pack(pack: Pack) -> Self {
        let held = pack.files.into_iter().map(|(name, bytes)| (name, Some(bytes.into())));
        Self::new(false, pack.folders, held.collect())
    }

    fn new(disk: bool, folders: Vec<PathBuf>, held: BTreeMap<PathBuf, Option<Arc<[u8]>>>) -> Self {
        Self(Arc::new(Store { disk, folders, held: Mutex::new(held) }))
    }

    /// Folders that are searched for traces, besides the experiment's folder.
    pub fn folders(&self) -> &[PathBuf] {
        &self.0.folders
    }

    /// Sets the content of `name` for later reads.
    pub fn hold(&self, name: &Path, bytes: &[u8]) {
        self.remember(name, Some(bytes.into()));
    }

    /// The content of a file, read now or before. All readers see the same bytes, even if the file changes on disk.
    ///
    /// # Errors
    /// When the file does not exist, cannot be read, or is longer than [`LONGEST_TEXT`].
    pub fn whole(&self, name: &Path) -> io::Result<Arc<[u8]>> {
        let bytes = match self.known(name) {
            Some(Some(bytes)) => bytes,
            Some(None) | None => {
                let mut bytes = Vec::new();
                self.file(name)?.take(LONGEST_TEXT + 1).read_to_end(&mut bytes)?;
                bytes.into()
            }
        };
        if bytes.len() as u64 > LONGEST_TEXT {
            return Err(too_large(format!("it is longer than {} MiB", LONGEST_TEXT >> 20)));
        }
        self.remember(name, Some(Arc::clone(&bytes)));
        Ok(bytes)
    }

    /// A reader from the start of a file of any length.
    ///
    /// # Errors
    /// When the file does not exist or cannot be opened.
    pub fn stream(&self, name: &Path) -> io::Result<Box<dyn Read>> {
        if let Some(Some(bytes)) = self.known(name) {
            return Ok(Box::new(Cursor::new(bytes)));
        }
        let file = self.file(name)?;
        self.remember(name, None);
        Ok(Box::new(file))
    }

    /// Whether a file of this name exists.
    pub fn has(&self, name: &Path) -> bool {
        self.known(name).is_some() || (self.0.disk && name.exists())
    }

    /// The names in the folder of a file, for remedies; `None` if the folder does not exist.
    pub fn beside(&self, name: &Path) -> Option<Vec<String>> {
        let folder = name.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        if !self.0.disk || !folder.is_dir() {
            return None;
        }
        let entries = fs::read_dir(folder).into_iter().flatten();
        let name =
            |entry: io::Result<fs::DirEntry>| Some(entry.ok()?.file_name().to_string_lossy().into_owned());
        Some(entries.filter_map(name).collect())
    }

    /// Packs every file that was requested and exists; streamed files are read again.
    ///
    /// # Errors
    /// The name of a file that can no longer be read, whose name is not UTF-8, or whose size makes the pack exceed
    /// [`LARGEST_PACK`].
    pub fn pack(&self) -> Result<Pack, (PathBuf, io::Error)> {
        let held = guard(&self.0.held).clone();
        let mut pack = Pack { folders: self.0.folders.clone(), files: Vec::new() };
        let mut room = LARGEST_PACK;
        for (name, held) in held {
            if name.to_str().is_none() {
                let why = io::Error::new(io::ErrorKind::InvalidFilename, "its name is not UTF-8");
                return Err((name, why));
            }
            let mut bytes = Vec::new();
            match held {
                Some(held) => bytes.extend_from_slice(&held),
                None => {
                    let read = self.file(&name).and_then(|file| file.take(room + 1).read_to_end(&mut bytes));
                    read.map_err(|why| (name.clone(), why))?;
                }
            }
            match room.checked_sub(bytes.len() as u64) {
                Some(left) => room = left,
                None => {
                    let why = format!("the files of the experiment exceed {} MiB", LARGEST_PACK >> 20);
                    return Err((name, too_large(why)));
                }
            }
            pack.files.push((name, bytes));
        }
        Ok(pack)
    }

    /// Every file that was read, in order of names. Streamed files are read again.
    pub fn sums(&self) -> Vec<FileSum> {
        let held = guard(&self.0.held).clone();
        let sum = |(name, held): (PathBuf, Option<Arc<[u8]>>)| {
            let sha256 = match &held {
                Some(bytes) => sha256(Cursor::new(bytes)),
                None => self.file(&name).and_then(sha256),
            };
            let text = held.filter(|bytes| bytes.len() <= LONGEST_KEPT);
            let text = text.and_then(|bytes| String::from_utf8(bytes.to_vec()).ok());
            FileSum { name, sha256: sha256.ok(), text }
        };
        held.into_iter().map(sum).collect()
    }

    fn file(&self, name: &Path) -> io::Result<File> {
        if !self.0.disk {
            return Err(io::ErrorKind::NotFound.into());
        }
        let kind = fs::metadata(name)?.file_type();
        if kind.is_file() || kind.is_dir() {
            return File::open(name);
        }
        // A pipe may never have a writer, a device may never end.
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is a pipe or device; copy its content into a file",
        ))
    }

    fn known(&self, name: &Path) -> Option<Option<Arc<[u8]>>> {
        guard(&self.0.held).get(name).cloned()
    }

    fn remember(&self, name: &Path, held: Option<Arc<[u8]>>) {
        guard(&self.0.held).insert(name.to_owned(), held);
    }
}

/// The SHA-256 of all bytes of a reader, in hexadecimal.
fn sha256(mut from: impl Read) -> io::Result<String> {
    let (mut context, mut buffer) = (Context::new(&SHA256), vec![0; 1 << 16]);
    loop {
        match from.read(&mut buffer)? {
            0 => break,
            count => context.update(&buffer[..count]),
        }
    }
    Ok(context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn too_large(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(files: &Files, name: &Path) -> String {
        String::from_utf8(files.whole(name).unwrap().to_vec()).unwrap()
    }

    #[test]
    fn files_that_were_read_can_be_packed() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b, c, large] = ["a", "b", "c", "large"].map(|name| folder.path().join(name));
        for file in [&a, &b, &c] {
            fs::write(file, file.file_name().unwrap().as_encoded_bytes()).unwrap();
        }
        fs::write(&large, vec![b' '; LONGEST_TEXT as usize + 1]).unwrap();
        let files = Files::of_disk();
        assert_eq!(text(&files, &a), "a");
        fs::write(&a, "changed").unwrap();
        assert_eq!(text(&files, &a), "a", "a file changed while it was used");
        let mut streamed = String::new();
        files.stream(&b).unwrap().read_to_string(&mut streamed).unwrap();
        assert_eq!(streamed, "b");
        assert!(files.has(&c), "a file exists before it is read");
        assert_eq!(files.whole(&large).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(files.whole(Path::new("/dev/zero")).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        files.hold(Path::new("made"), b"up");

        let sums = files.sums();
        let sum = |name: &Path| sums.iter().find(|sum| sum.name == name).unwrap();
        let of_a = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";
        assert_eq!(sum(&a).sha256.as_deref(), Some(of_a), "the checksum is of the content that was read");
        assert_eq!(sum(&a).text.as_deref(), Some("a"));
        let of_b = "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d";
        assert_eq!((sum(&b).sha256.as_deref(), &sum(&b).text), (Some(of_b), &None), "a stream has no text");

        let pack = files.pack().unwrap();
        assert_eq!(pack.files.len(), 3, "{:?}", pack.files);
        assert!(pack.files.contains(&("made".into(), b"up".to_vec())));
        let packed = Files::of_pack(pack);
        assert_eq!((text(&packed, &a), text(&packed, &b)), ("a".to_owned(), "b".to_owned()));
        // The disk has the file, but the pack does not, so it does not exist here.
        assert!(!packed.has(&c) && packed.stream(&c).is_err() && packed.whole(&c).is_err());
        assert_eq!(packed.whole(&c).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(packed.beside(&c).is_none(), "a pack must not list folders");
    }
}
