//! Worlds around the real core, in virtual time: recorded sessions of real agents, and simulated ones.

pub mod perturb;
pub mod recordings;
pub mod world;
