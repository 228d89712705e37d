//! The `[cluster]` section and the topology file it names; errors carry their position.

use std::path::Path;

use volary_engine::scenario::{Cluster, ClusterError, ClusterSection};
use volary_engine::workload::Service;
use volary_netem::TopologyFile;
use volary_netem::topology::Topology;

use super::document::{Document, Texts};
use super::error::ConfigError;
use super::explain;
use super::include::{self, located};
use super::kind::FileKind;
use crate::files::Files;

/// Resolves `[cluster]` and reads its topology.
pub(super) fn resolve(
    files: &Files,
    document: &Document<'_>,
    section: &ClusterSection,
    service: &Service,
    seed: u64,
) -> Result<Cluster, ConfigError> {
    section.check().map_err(|error| explain::key(document, &error))?;
    let texts = Texts::default();
    let topology = read_topology(&texts, files, document)?;
    let (file, topology) = topology.unzip();
    Cluster::new(section, topology, service, seed).map_err(|error| match error {
        ClusterError::Key(error) => explain::key(document, &error),
        ClusterError::Topology(error) => explain::netem(file.as_ref().unwrap_or(document), &error),
    })
}

/// Reports a conflict between `[network]` and the links of a topology in the file that contains the key.
pub(super) fn refused(files: &Files, document: &Document<'_>, error: &volary_netem::Error) -> ConfigError {
    match read_topology(&Texts::default(), files, document) {
        Ok(Some((topology, _))) if !error.key.starts_with("network") => explain::netem(&topology, error),
        Ok(_) => explain::netem(document, error),
        Err(unreadable) => unreadable,
    }
}

/// The topology file with its document, if one is named. The path is relative to the file that names it.
fn read_topology<'t>(
    texts: &'t Texts,
    files: &Files,
    document: &Document<'_>,
) -> Result<Option<(Document<'t>, TopologyFile)>, ConfigError> {
    let Some((_, node)) = document.find(&["cluster", "topology"]) else { return Ok(None) };
    let span = node.span();
    let path = document.folder(&span).join(node.get_ref().as_str().unwrap_or_default());
    let mut file = Document::read(texts, files, &path).map_err(|error| located(document, &span, error))?;
    FileKind::Topology.expect_in(&file.root, file.name(), document, &span)?;
    include::values(files, &mut file)?;
    let topology = file.to()?;
    Ok(Some((file, topology)))
}

/// Reads and resolves a topology file without an experiment.
///
/// # Errors
/// When it cannot be read, parsed or built.
pub fn topology(path: &Path, seed: u64) -> Result<Topology, ConfigError> {
    let (files, texts) = (Files::of_disk(), Texts::default());
    let (document, file) = include::open::<TopologyFile>(&texts, &files, path, FileKind::Topology)?;
    file.resolve(seed).map_err(|error| explain::netem(&document, &error))
}
