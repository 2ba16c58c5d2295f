//! Suggestions for misspelled words, and lists of known words for messages.

use std::fmt::Display;

/// The known word closest to `word`, if any is similar. Of equally close words, the first.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(1) + 1;
    let scored = known.into_iter().map(|k| (distance(&word.to_lowercase(), &k.to_lowercase()), k));
    scored.filter(|(d, _)| *d <= limit).min_by_key(|(d, _)| *d).map(|(_, k)| k)
}

/// A hint with the known word closest to `word`, if any is similar.
pub fn did_you_mean<W: AsRef<str>>(word: &str, known: impl IntoIterator<Item = W>) -> Option<String> {
    let known: Vec<W> = known.into_iter().collect();
    nearest(word, known.iter().map(AsRef::as_ref)).map(|near| format!("did you mean `{near}`?"))
}

/// The words in backticks, separated by commas.
pub fn quoted<W: Display>(words: impl IntoIterator<Item = W>) -> String {
    words.into_iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// Edit distance: insertions, deletions, replacements and swaps of adjacent characters.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            table[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replaced = table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let one = replaced.min(table[i - 1][j] + 1).min(table[i][j - 1] + 1);
                let swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                if swap { one.min(table[i - 2][j - 2] + 1) } else { one }
            };
        }
    }
    table[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_near() {
        let known = ["rate", "delay", "queue", "mtu", "loss"];
        assert_eq!(nearest("dealy", known), Some("delay"));
        assert_eq!(nearest("Rates", known), Some("rate"));
        assert_eq!(nearest("bandwidth", known), None);
    }
}
