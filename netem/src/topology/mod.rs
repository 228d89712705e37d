//! Topology files: machines, their places, and the links between them.
//!
//! A [`TopologyFile`] is the parsed file; [`TopologyFile::resolve`] turns it into a [`Topology`] with each node's
//! cores, speed and place. The links between two endpoints follow from their places. A topology contains no
//! coordinators; their places come from [`Topology::seat`].

mod classes;
mod describe;
mod file;
mod graph;
mod resolve;
mod shape;

pub use describe::{ClassFacts, Facts, GroupFacts};
pub use file::{
    Between, FatTree, GraphLink, GraphShape, GroupSpec, LeafSpine, LinkClasses, Placement, Region, Regions,
    Shape, Star, Switch, TopologyFile,
};
pub use resolve::{SPEEDS, Topology};
