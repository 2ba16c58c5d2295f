//! Moments as text: RFC 3339 in UTC, to the second.

use std::fmt;
use std::str::FromStr;

use anabranch_net::set::unix_time;

use crate::gateway::positive;

/// Seconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Expiry(pub(super) u64);

const DAY: u64 = 86_400;

/// Days of 400 years, after which the calendar repeats.
const ERA: i64 = 146_097;

/// Days since 1970-01-01 of a date. The year begins in March here, so that the leap day is its last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month < 3 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * ERA + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Year, month and day of a day since 1970-01-01.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let (day, month) = (of_year - (153 * month + 2) / 5 + 1, (month + 2) % 12 + 1);
    (era * 400 + year + i64::from(month < 3), month, day)
}

/// The numbers of a text of this pattern, in which each `#` is a digit.
fn numbers<const N: usize>(text: &str, pattern: &str) -> Option<[i64; N]> {
    let fits = text.len() == pattern.len()
        && text
            .bytes()
            .zip(pattern.bytes())
            .all(|(c, p)| if p == b'#' { c.is_ascii_digit() } else { c == p });
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok());
    let all = std::array::from_fn(|_| numbers.next().unwrap_or(0));
    fits.then_some(all)
}

fn moment(text: &str) -> Option<u64> {
    let [year, month, day, hour, minute, second] = numbers(text, "####-##-##T##:##:##Z")
        .or_else(|| numbers(text, "####-##-##").map(|[year, month, day]| [year, month, day, 0, 0, 0]))?;
    let days = days(year, month, day);
    let is_one = date(days) == (year, month, day) && hour < 24 && minute < 60 && second < 60;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    u64::try_from(seconds).ok().filter(|_| is_one)
}

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
                positive(text)
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
        let of_day = self.0 % DAY;
        // 64 bits of seconds are more years than a date has digits for.
        let (year, month, day) = date((self.0 / DAY) as i64);
        let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
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
