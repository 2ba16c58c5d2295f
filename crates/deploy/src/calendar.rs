//! Dates and times in UTC, in the proleptic Gregorian calendar (RFC 3339).

/// Seconds per day.
pub(crate) const DAY: u64 = 86_400;

/// Days in 400 years, the period of the calendar.
const ERA: i64 = 146_097;

/// Days since 1970-01-01 of a date. The year starts in March here, so that the leap day is its last
/// day.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month < 3 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * ERA + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Year, month and day of a number of days since 1970-01-01.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let (day, month) = (of_year - (153 * month + 2) / 5 + 1, (month + 2) % 12 + 1);
    (era * 400 + year + i64::from(month < 3), month, day)
}

/// Parses a text that matches the pattern, in which each `#` is a digit, into its numbers.
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

/// Seconds since 1970 of a UTC date, or of a UTC date and time such as 2027-01-31T12:00:00Z.
pub(crate) fn moment(text: &str) -> Option<u64> {
    let [year, month, day, hour, minute, second] = numbers(text, "####-##-##T##:##:##Z")
        .or_else(|| numbers(text, "####-##-##").map(|[year, month, day]| [year, month, day, 0, 0, 0]))?;
    let days = days(year, month, day);
    let is_one = date(days) == (year, month, day) && hour < 24 && minute < 60 && second < 60;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    u64::try_from(seconds).ok().filter(|_| is_one)
}

/// Formats seconds since 1970 as date and time (RFC 3339), without the zone.
pub(crate) fn rfc3339(seconds: u64) -> String {
    let of_day = seconds % DAY;
    // The cast cannot overflow: 2^64 seconds are fewer than 2^48 days. A year after 9999 prints
    // with more than four digits.
    let (year, month, day) = date((seconds / DAY) as i64);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}
