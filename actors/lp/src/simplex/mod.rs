//! Primal simplex method with generalised upper bounding: group rows are implicit.

mod inverse;
mod method;
mod price;
mod ratio;
mod run;
mod start;
mod state;

pub(crate) use run::{Vertex, maximize};
