//! Expiry of a manifest: a date, or a duration from now.

use std::fmt;
use std::str::FromStr;

use anabranch_net::set::unix_time;
use anabranch_units::Span;

use crate::calendar::{DAY, moment, rfc3339};

/// Seconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Expiry(pub(super) u64);

impl FromStr for Expiry {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(moment) = moment(text) {
            return Ok(Self(moment));
        }
        let days = text.strip_suffix('d').and_then(|days| days.trim_end().parse::<u32>().ok());
        let span = match days {
            Some(days) if days > 0 => u64::from(days) * DAY,
            _ => {
                Span::positive(text)
                    .map_err(|_| {
                        "expected a date such as 2027-01-31 or a time from now such as \"90 d\"".to_owned()
                    })?
                    .as_nanos()
                    / 1_000_000_000
            }
        };
        Ok(Self(unix_time().as_secs() + span))
    }
}

impl fmt::Display for Expiry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}Z", rfc3339(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_calendar() {
        for (text, seconds) in [
            ("1970-01-01", 0),
            ("2000-02-29T23:59:59Z", 951_868_799),
            ("2016-06-14T23:59:59Z", 1_465_948_799),
            ("2038-01-19T03:14:08Z", 1 << 31),
            ("2100-03-01", 4_107_542_400),
            ("9999-12-31T23:59:59Z", 253_402_300_799),
        ] {
            assert_eq!(text.parse(), Ok(Expiry(seconds)), "{text}");
            assert!(Expiry(seconds).to_string().starts_with(text), "{text}");
        }
        for day in 0..200_000 {
            let moment = Expiry(day * DAY + 5);
            assert_eq!(moment.to_string().parse(), Ok(moment));
        }
        assert!(!Expiry(u64::MAX).to_string().is_empty());
    }

    #[test]
    fn spans_count_from_now_and_nonsense_is_refused() {
        let now = unix_time().as_secs();
        for (text, seconds) in [("90 d", 90 * DAY), ("1d", DAY), ("2 h", 7_200)] {
            let Expiry(end) = text.parse().unwrap();
            assert!((now + seconds..now + seconds + 5).contains(&end), "{text}");
        }
        for wrong in [
            "",
            "d",
            "0 d",
            "-1 d",
            "2027-02-29",
            "2027-13-01",
            "2027-1-1",
            "2027-01-01T24:00:00Z",
            "1969-12-31",
        ] {
            assert!(wrong.parse::<Expiry>().is_err(), "{wrong}");
        }
    }
}
