//! Segments as text in tcpdump's style: `S. 1000:1000 ack 501 win 65535 <mss 1460,sackOK>`.
//!
//! Flags are `S F R P U E W`, `.` for ACK, and `-` for none. The range counts payload bytes only.
//! The ECN bits of the IP header follow as `ecn ect0`, `ecn ect1` or `ecn ce`. The payload is not
//! written: each byte follows from its sequence number ([`octets`]).

use std::fmt::Write;

use anabranch_core::segment::{Ecn, Flags, Options, SackBlock, SackBlocks, Segment, SeqNumber, Timestamps};
use bytes::Bytes;

/// Bytes of a test stream: each is the low byte of its sequence number, so that overlapping
/// segments agree.
pub fn octets(seq: SeqNumber, n: usize) -> Bytes {
    (0..n as u32).map(|i| (seq + i).0 as u8).collect::<Vec<_>>().into()
}

/// Formats a segment.
pub fn format(segment: &Segment) -> String {
    let mut out = String::new();
    let flags = std::format!("{:?}", segment.flags);
    let end = segment.seq + segment.payload.len() as u32;
    let flags = if flags.is_empty() { "-" } else { &flags };
    let mut put = |text: std::fmt::Arguments<'_>| out.write_fmt(text).expect("a String takes everything");
    put(format_args!("{flags} {}:{end}", segment.seq));
    if segment.flags.contains(Flags::ACK) {
        put(format_args!(" ack {}", segment.ack));
    }
    put(format_args!(" win {}", segment.window));
    if let Some((name, _)) = CODEPOINTS.iter().find(|(_, ecn)| *ecn == segment.ecn) {
        put(format_args!(" ecn {name}"));
    }
    let options = format_options(&segment.options);
    if !options.is_empty() {
        put(format_args!(" <{options}>"));
    }
    out
}

fn format_options(options: &Options) -> String {
    let mut parts = Vec::new();
    parts.extend(options.mss.map(|mss| std::format!("mss {mss}")));
    parts.extend(options.window_scale.map(|shift| std::format!("wscale {shift}")));
    parts.extend(options.sack_permitted.then(|| "sackOK".to_owned()));
    parts.extend(options.timestamps.map(|t| std::format!("ts {} ecr {}", t.value, t.echo)));
    if !options.sack.is_empty() {
        let blocks = options.sack.as_slice().iter();
        let blocks: Vec<_> = blocks.map(|b| std::format!("{}:{}", b.left, b.right)).collect();
        parts.push(std::format!("sack {}", blocks.join(" ")));
    }
    parts.join(",")
}

/// Parses a segment.
///
/// # Errors
/// The part of the text that was not understood.
pub fn parse(text: &str) -> Result<Segment, String> {
    let (head, options) = match text.split_once('<') {
        Some((head, rest)) => (head, rest.trim_end().strip_suffix('>').ok_or("'<' without '>'")?),
        None => (text, ""),
    };
    let mut words = head.split_whitespace();
    let flags = parse_flags(words.next().ok_or("flags expected")?)?;
    let (seq, end) = parse_range(words.next().ok_or("range expected")?)?;
    let mut segment = Segment { seq, flags, window: 65_535, ..Segment::default() };
    segment.payload = octets(seq, end.0.wrapping_sub(seq.0) as usize);
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| std::format!("'{word}' needs a number"))?;
        match word {
            "ack" => segment.ack = SeqNumber(number(value)?),
            "win" => segment.window = number(value)?,
            "ecn" => {
                let found = CODEPOINTS.iter().find(|(name, _)| *name == value);
                segment.ecn = found.ok_or_else(|| std::format!("'{value}' is no ECN codepoint"))?.1;
            }
            _ => return Err(std::format!("'{word}' is neither ack, win nor ecn")),
        }
    }
    for option in options.split(',').filter(|o| !o.is_empty()) {
        parse_option(option.trim(), &mut segment.options)?;
    }
    Ok(segment)
}

fn parse_flags(text: &str) -> Result<Flags, String> {
    let mut flags = Flags::default();
    for letter in text.chars().filter(|c| *c != '-') {
        flags = flags.with(match letter {
            'S' => Flags::SYN,
            'F' => Flags::FIN,
            'R' => Flags::RST,
            'P' => Flags::PSH,
            'U' => Flags::URG,
            'E' => Flags::ECE,
            'W' => Flags::CWR,
            '.' => Flags::ACK,
            other => return Err(std::format!("'{other}' is no flag")),
        });
    }
    Ok(flags)
}

fn parse_option(text: &str, options: &mut Options) -> Result<(), String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        ["mss", n] => options.mss = Some(number(n)?),
        ["wscale", n] => options.window_scale = Some(number(n)?),
        ["sackOK"] => options.sack_permitted = true,
        ["ts", value, "ecr", echo] => {
            options.timestamps = Some(Timestamps { value: number(value)?, echo: number(echo)? });
        }
        ["sack", blocks @ ..] => {
            let parsed: Result<Vec<_>, _> = blocks.iter().map(|b| parse_range(b)).collect();
            let blocks = parsed?.into_iter().map(|(left, right)| SackBlock { left, right });
            options.sack = SackBlocks::from_iter(blocks);
        }
        _ => return Err(std::format!("'{text}' is no option")),
    }
    Ok(())
}

fn parse_range(text: &str) -> Result<(SeqNumber, SeqNumber), String> {
    let (left, right) = text.split_once(':').ok_or_else(|| std::format!("'{text}' is no range"))?;
    Ok((SeqNumber(number(left)?), SeqNumber(number(right)?)))
}

fn number<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| std::format!("'{text}' is no number that fits here"))
}

const CODEPOINTS: [(&str, Ecn); 3] = [("ect0", Ecn::Ect0), ("ect1", Ecn::Ect1), ("ce", Ecn::Ce)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_segment_agree() {
        for text in [
            "S 1000:1000 win 65535 <mss 1460,wscale 7,sackOK,ts 1 ecr 0>",
            "P. 4294967295:9 ack 501 win 10",
            ". 1:1 ack 2 win 3 <sack 10:20 30:40>",
            "- 1:1 win 0",
            "EW. 1:9 ack 2 win 3 ecn ce <ts 1 ecr 0>",
        ] {
            assert_eq!(format(&parse(text).unwrap()), text);
        }
        assert!(parse("X 1:1").is_err());
        assert!(parse(". 1:1 wim 3").is_err());
    }
}
