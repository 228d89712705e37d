//! Roles.
