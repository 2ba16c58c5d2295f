//! Energy by the state of the radio.

use crate::air::error::ConfigError;
use crate::air::meter::{EnergyUse, STATES, StateTime};

/// Power consumption in each state, in watts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PowerConfig {
    /// Transmitting.
    pub transmit: f64,
    /// Sensing the signals of other stations, for any destination.
    pub receive: f64,
    /// Listening on a clear channel.
    pub listen: f64,
    /// Off.
    pub off: f64,
    /// Sleeping between samples of the channel.
    pub sleep: f64,
}

impl PowerConfig {
    /// TI CC2420 (data sheet SWRS041) at 3.0 V: 17.4 mA transmitting at 0 dBm, 18.8 mA receiving,
    /// 20 nA with its regulator off, 20 µA in power-down mode, which is used for sleep.
    pub const fn cc2420() -> Self {
        Self { transmit: 0.0522, receive: 0.0564, listen: 0.0564, off: 60e-9, sleep: 60e-6 }
    }

    /// Atmel AT86RF215 (data sheet 42415) at 3.0 V below 1 GHz: 64 mA transmitting at 14 dBm, 28 mA
    /// receiving, 30 nA in DEEP_SLEEP, which is used for off and sleep.
    pub const fn at86rf215() -> Self {
        Self { transmit: 0.192, receive: 0.084, listen: 0.084, off: 90e-9, sleep: 90e-9 }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let sound = |watts: f64| (0.0..=100.0).contains(&watts);
        match self.watts().into_iter().all(sound) {
            true => Ok(()),
            false => Err(ConfigError::Range("power", "0 to 100 W")),
        }
    }

    /// Energy and time in each state, from the time in each.
    pub fn energy_use(&self, time: &StateTime) -> EnergyUse {
        EnergyUse::of(time, self.watts())
    }

    fn watts(&self) -> [f64; STATES] {
        [self.transmit, self.receive, self.listen, self.off, self.sleep]
    }
}
