//! Tests of the three SET machines together, over streams with only a rate and a delay.

mod buffer;
mod congestion;
mod copies;
mod fairness;
mod farewell;
mod faults;
mod numbers;
mod phases;
mod relay;
mod resume;
mod transfer;
mod world;
