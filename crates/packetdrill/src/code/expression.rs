//! Parses and evaluates expressions in one pass.

use std::collections::BTreeMap;

use super::Trouble;
use super::figures::Figures;

/// A value. Python's `/` yields fractions.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub(crate) struct Number(pub(crate) f64);

impl Number {
    pub(super) fn is_true(self) -> bool {
        self.0 != 0.0
    }
}

impl From<bool> for Number {
    fn from(value: bool) -> Self {
        Self(f64::from(u8::from(value)))
    }
}

#[derive(Clone, PartialEq, Debug)]
enum Token {
    Number(f64),
    Name(String),
    Text,
    Mark(&'static str),
}

/// Parses and evaluates one expression.
pub(super) struct Parser<'a> {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    variables: &'a BTreeMap<String, Number>,
    figures: &'a Figures<'a>,
    used: Vec<String>,
}

type Value = Result<Number, Trouble>;

impl<'a> Parser<'a> {
    pub(super) fn new(
        text: &str,
        variables: &'a BTreeMap<String, Number>,
        figures: &'a Figures<'a>,
    ) -> Result<Self, Trouble> {
        Ok(Self { tokens: tokens(text)?, at: 0, depth: 0, variables, figures, used: Vec::new() })
    }

    pub(super) fn is_done(&self) -> bool {
        self.at == self.tokens.len()
    }

    /// The names read so far, with their values.
    pub(super) fn used(&self) -> &[String] {
        &self.used
    }

    pub(super) fn accept(&mut self, mark: &str) -> bool {
        let found = match self.tokens.get(self.at) {
            Some(Token::Mark(found)) => *found == mark,
            Some(Token::Name(name)) => name == mark,
            _ => false,
        };
        self.at += usize::from(found);
        found
    }

    /// `or`, the operator of lowest precedence.
    pub(super) fn expression(&mut self) -> Value {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Trouble::Wrong("the expression is nested too deeply".to_owned()));
        }
        let mut value = self.conjunction()?;
        while self.accept("or") {
            let other = self.conjunction()?;
            value = if value.is_true() { value } else { other };
        }
        self.depth -= 1;
        Ok(value)
    }

    fn conjunction(&mut self) -> Value {
        let mut value = self.negation()?;
        while self.accept("and") {
            let other = self.negation()?;
            value = if value.is_true() { other } else { value };
        }
        Ok(value)
    }

    fn negation(&mut self) -> Value {
        let mut nots = 0;
        while self.accept("not") {
            nots += 1;
        }
        let value = self.comparison()?;
        Ok(match nots {
            0 => value,
            n => Number::from(value.is_true() == (n % 2 == 0)),
        })
    }

    /// Comparisons are chained: `a < b <= c` is true if both are.
    fn comparison(&mut self) -> Value {
        let mut left = self.binary(0)?;
        let mut all = None;
        while let Some(op) = ["==", "!=", "<=", ">=", "<", ">"].into_iter().find(|op| self.accept(op)) {
            let right = self.binary(0)?;
            let holds = match op {
                "==" => left == right,
                "!=" => left != right,
                "<=" => left <= right,
                ">=" => left >= right,
                "<" => left < right,
                _ => left > right,
            };
            all = Some(all.unwrap_or(true) && holds);
            left = right;
        }
        Ok(all.map_or(left, Number::from))
    }

    fn binary(&mut self, level: usize) -> Value {
        let Some(ops) = LEVELS.get(level) else { return self.unary() };
        let mut value = self.binary(level + 1)?;
        while let Some(op) = ops.iter().find(|op| self.accept(op)) {
            let other = self.binary(level + 1)?;
            value = arithmetic(op, value, other)?;
        }
        Ok(value)
    }

    fn unary(&mut self) -> Value {
        let mut sign = 1.0;
        while let Some(op) = ["-", "+"].into_iter().find(|op| self.accept(op)) {
            sign *= if op == "-" { -1.0 } else { 1.0 };
        }
        Ok(Number(sign * self.primary()?.0))
    }

    fn primary(&mut self) -> Value {
        if self.accept("(") {
            let value = self.expression()?;
            return if self.accept(")") { Ok(value) } else { Err(Trouble::Wrong("expected `)`".to_owned())) };
        }
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        match token {
            Some(Token::Number(value)) => Ok(Number(value)),
            Some(Token::Name(name)) if self.accept("(") => self.function(&name),
            Some(Token::Name(name)) => self.name(name),
            Some(Token::Text) => Err(Trouble::Unknown("strings in a Python expression".to_owned())),
            Some(Token::Mark(mark)) => Err(Trouble::Wrong(format!("expected a value, found `{mark}`"))),
            None => Err(Trouble::Wrong("the expression has no end".to_owned())),
        }
    }

    fn name(&mut self, name: String) -> Value {
        let value = match name.as_str() {
            "True" => Some(Number(1.0)),
            "False" | "None" => Some(Number(0.0)),
            _ => self.variables.get(&name).copied().or_else(|| self.figures.value(&name).map(Number)),
        };
        let value = value.ok_or_else(|| Trouble::Unknown(format!("`{name}` is not a known figure")))?;
        self.used.push(format!("{name} is {}", value.0));
        Ok(value)
    }

    fn function(&mut self, name: &str) -> Value {
        let mut values = Vec::new();
        while !self.accept(")") {
            values.push(self.expression()?.0);
            if !self.accept(",") && !matches!(self.tokens.get(self.at), Some(Token::Mark(")"))) {
                return Err(Trouble::Wrong("expected `,` or `)`".to_owned()));
            }
        }
        match (name, &values[..]) {
            ("abs", [value]) => Ok(Number(value.abs())),
            ("int", [value]) => Ok(Number(value.trunc())),
            ("round", [value]) => Ok(Number(value.round())),
            ("float", [value]) => Ok(Number(*value)),
            ("min", [first, rest @ ..]) => Ok(Number(rest.iter().fold(*first, |a, b| a.min(*b)))),
            ("max", [first, rest @ ..]) => Ok(Number(rest.iter().fold(*first, |a, b| a.max(*b)))),
            _ => Err(Trouble::Unknown(format!("the Python function `{name}`"))),
        }
    }
}

/// The binary operators, lowest precedence first.
const LEVELS: &[&[&str]] = &[&["|"], &["^"], &["&"], &["<<", ">>"], &["+", "-"], &["*", "//", "/", "%"]];

/// Limit of nested parentheses.
const DEEPEST: usize = 32;

pub(super) fn arithmetic(op: &str, left: Number, right: Number) -> Value {
    let (a, b) = (left.0, right.0);
    let (whole_a, whole_b) = (a as i64, b as i64);
    if ["/", "//", "%"].contains(&op) && b == 0.0 {
        return Err(Trouble::Wrong("division by zero".to_owned()));
    }
    let shift = u32::try_from(whole_b).unwrap_or(64);
    Ok(Number(match op {
        "|" => (whole_a | whole_b) as f64,
        "^" => (whole_a ^ whole_b) as f64,
        "&" => (whole_a & whole_b) as f64,
        "<<" => whole_a.checked_shl(shift).unwrap_or(0) as f64,
        ">>" => whole_a.checked_shr(shift).unwrap_or(0) as f64,
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "//" => (a / b).floor(),
        "/" => a / b,
        _ => a - b * (a / b).floor(),
    }))
}

fn tokens(text: &str) -> Result<Vec<Token>, Trouble> {
    let mut all = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let word =
            rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.')).unwrap_or(rest.len());
        let n = if first.is_ascii_digit() || first == '.' {
            let (number, n) = (&rest[..word], word);
            let value = match number.strip_prefix("0x") {
                Some(digits) => i64::from_str_radix(digits, 16).ok().map(|value| value as f64),
                None => number.parse().ok(),
            };
            all.push(Token::Number(
                value.ok_or_else(|| Trouble::Wrong(format!("`{number}` is not a number")))?,
            ));
            n
        } else if first.is_ascii_alphabetic() || first == '_' {
            all.push(Token::Name(rest[..word].to_owned()));
            word
        } else if first == '"' || first == '\'' {
            let end =
                rest[1..].find(first).ok_or_else(|| Trouble::Wrong("a string has no end".to_owned()))?;
            all.push(Token::Text);
            end + 2
        } else if let Some(mark) = MARKS.iter().find(|mark| rest.starts_with(**mark)) {
            all.push(Token::Mark(mark));
            mark.len()
        } else {
            return Err(Trouble::Wrong(format!("`{first}` does not belong into an expression")));
        };
        rest = rest[n..].trim_start();
    }
    Ok(all)
}

/// Longer marks first.
const MARKS: &[&str] = &[
    "==", "!=", "<=", ">=", "<<", ">>", "//", "<", ">", "+", "-", "*", "/", "%", "|", "&", "^", "(", ")", ",",
];
