//! The three SET machines against each other, over streams that are only a rate and a delay.

mod buffer;
mod congestion;
mod copies;
mod fairness;
mod farewell;
mod faults;
mod numbers;
mod relay;
mod resume;
mod transfer;
mod world;
