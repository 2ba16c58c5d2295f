//! System calls: `+0...0.2 read(4, ..., 1000) = -1 EAGAIN (Try again)`.

use super::Parser;
use crate::lexer::Kind;
use crate::outcome::{Step, Stop};
use crate::script::{Call, Value};

impl Parser<'_> {
    pub(super) fn call(&mut self) -> Step<Call> {
        let end = match self.peek() {
            Some(Kind::Ellipsis) => {
                self.at += 1;
                Some(self.seconds()?)
            }
            _ => None,
        };
        let name = self.word("the name of a system call")?;
        self.expect('(')?;
        let args = self.values(')')?;
        self.expect('=')?;
        let result = self.value()?;
        let errno = match self.peek() {
            Some(Kind::Word(word)) => {
                let word = word.clone();
                self.at += 1;
                Some(word)
            }
            _ => None,
        };
        self.note()?;
        Ok(Call { end, name, args, result, errno })
    }

    /// Skips a remark in parentheses.
    fn note(&mut self) -> Step {
        if !self.accept('(') {
            return Ok(());
        }
        let mut depth = 1;
        while depth > 0 {
            match self.peek() {
                Some(Kind::Mark('(')) => depth += 1,
                Some(Kind::Mark(')')) => depth -= 1,
                Some(_) => {}
                None => return Err(self.unexpected("`)`")),
            }
            self.at += 1;
        }
        Ok(())
    }

    /// Values separated by commas, and `close`.
    fn values(&mut self, close: char) -> Step<Vec<Value>> {
        let mut values = Vec::new();
        if self.accept(close) {
            return Ok(values);
        }
        loop {
            values.push(self.value()?);
            if self.accept(close) {
                return Ok(values);
            }
            if !self.accept(',') {
                return Err(self.unexpected(&format!("`,` or `{close}`")));
            }
        }
    }

    fn value(&mut self) -> Step<Value> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Stop::invalid(self.line(), "values are nested too deeply"));
        }
        let first = self.simple()?;
        let mut all = vec![first];
        while self.accept('|') {
            all.push(self.simple()?);
        }
        self.depth -= 1;
        Ok(match (all.len(), all.pop()) {
            (1, Some(only)) => only,
            (_, last) => {
                all.extend(last);
                Value::Or(all)
            }
        })
    }

    fn simple(&mut self) -> Step<Value> {
        let value = match self.peek() {
            Some(Kind::Ellipsis) => Value::Any,
            Some(Kind::Int { value, .. }) => Value::Int(*value),
            Some(Kind::Text(text)) => {
                let text = text.clone();
                self.at += 1;
                // A string may be abbreviated.
                if self.peek() == Some(&Kind::Ellipsis) {
                    self.at += 1;
                }
                return Ok(Value::Text(text));
            }
            Some(Kind::Word(_)) => {
                let word = self.word("a constant")?;
                return Ok(if self.accept('(') {
                    Value::Apply(word, self.values(')')?)
                } else {
                    Value::Word(word)
                });
            }
            Some(Kind::Mark('[')) => {
                self.at += 1;
                return Ok(Value::List(self.values(']')?));
            }
            Some(Kind::Mark('{')) => {
                self.at += 1;
                return self.fields();
            }
            _ => return Err(self.unexpected("a value")),
        };
        self.at += 1;
        Ok(value)
    }

    /// `{name=value, name(...)=value, value}`.
    fn fields(&mut self) -> Step<Value> {
        let mut fields = Vec::new();
        loop {
            let value = self.value()?;
            let field = if self.accept('=') {
                match value {
                    Value::Word(name) | Value::Apply(name, _) => (Some(name), self.value()?),
                    _ => return Err(self.unexpected("a name before `=`")),
                }
            } else {
                (None, value)
            };
            fields.push(field);
            if self.accept('}') {
                return Ok(Value::Fields(fields));
            }
            if !self.accept(',') {
                return Err(self.unexpected("`,` or `}`"));
            }
        }
    }
}

/// Limit of the nesting depth of values.
const DEEPEST: usize = 32;
