//! Topology files: what machines there are, where they stand, and what joins them.

mod file;

pub use file::{
    Between, FatTree, GraphLink, GraphShape, GroupSpec, LeafSpine, LinkClasses, Placement, Region, Regions,
    Shape, Star, Switch, TopologyFile,
};
