//! The subset of shell syntax that scripts use.

/// The commands of `text` as words, with quotes removed and `$((a*b))` evaluated.
pub(super) fn commands(text: &str) -> Vec<Vec<String>> {
    let text = text.replace("\\\n", " ");
    let mut all = Vec::new();
    for line in text.lines() {
        let mut words = Words::default();
        let mut quote = None;
        for c in line.chars() {
            match (quote, c) {
                (Some(open), _) if c == open => quote = None,
                (None, '"' | '\'') => {
                    quote = Some(c);
                    words.begin();
                }
                (None, '#') if words.current.is_none() => break,
                (None, ';') => {
                    words.end();
                    all.push(std::mem::take(&mut words.done));
                }
                (None, c) if c.is_whitespace() => words.end(),
                (_, c) => words.begin().push(c),
            }
        }
        words.end();
        all.push(words.done);
    }
    all.retain(|words| !words.is_empty());
    all
}

#[derive(Default)]
struct Words {
    done: Vec<String>,
    current: Option<String>,
}

impl Words {
    fn begin(&mut self) -> &mut String {
        self.current.get_or_insert_default()
    }

    fn end(&mut self) {
        if let Some(word) = self.current.take() {
            self.done.push(word);
        }
    }
}

/// The numbers of a value: `4096 $((256*1024)) 4194304`.
pub(super) fn numbers(text: &str) -> Option<Vec<u64>> {
    text.split_whitespace().map(number).collect()
}

fn number(word: &str) -> Option<u64> {
    let product = word.strip_prefix("$((").and_then(|rest| rest.strip_suffix("))")).unwrap_or(word);
    product.split('*').try_fold(1_u64, |all, factor| {
        let factor = factor.trim();
        let value = match factor.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok()?,
            None => factor.parse().ok()?,
        };
        all.checked_mul(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_numbers() {
        let all = commands("a b=\"1 $((2*3))\" # c\n; d \\\n e");
        assert_eq!(all, [vec!["a", "b=1 $((2*3))"], vec!["d", "e"]]);
        assert_eq!(numbers("1 $((2*3)) 0x10"), Some(vec![1, 6, 16]));
        assert_eq!(numbers("x"), None);
    }
}
