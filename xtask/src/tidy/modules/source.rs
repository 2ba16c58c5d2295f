//! Imports, names and items of one file.

use crate::tidy::lexer::{Kind, Token, tokens};
use std::collections::BTreeSet;

/// Keywords before the name of an item.
const ITEMS: [&str; 10] =
    ["struct", "enum", "union", "trait", "fn", "type", "const", "static", "mod", "macro_rules"];

/// A module's path in its crate; empty for the root.
pub(super) type ModulePath = Vec<String>;

/// What one file contributes to the graph.
#[derive(Debug, Default)]
pub(super) struct Source {
    /// Path relative to the repository's root.
    pub(super) file: String,
    /// Module of the file.
    pub(super) module: ModulePath,
    /// Paths in its code.
    pub(super) references: Vec<Reference>,
    /// Names of its items.
    pub(super) defined: BTreeSet<String>,
    /// Identifiers in its code, except in `use` statements.
    pub(super) used: BTreeSet<String>,
    /// Children that exist only for tests.
    pub(super) test_children: BTreeSet<String>,
}

/// A path in code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    /// Segments, from the crate's root if `anchored`, else from the file's own module.
    pub(super) segments: Vec<String>,
    /// Whether the path began with `crate`, `self` or `super`.
    pub(super) anchored: bool,
    pub(super) role: Role,
    pub(super) line: usize,
}

/// Role of a path in code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Role {
    /// In a `use`, under this name.
    Import(String),
    /// In a `pub use`, under this name.
    Reexport(String),
    /// A glob import `use path::*`, public or not.
    Glob(Visibility),
    /// Written out in code.
    Path,
}

/// Visibility of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Visibility {
    Private,
    Public,
}

impl Source {
    /// Parses `text` as the module `module`.
    pub(super) fn read(file: &str, module: ModulePath, text: &str) -> Self {
        let source = Self { file: file.to_owned(), module, ..Self::default() };
        let mut reader = Reader { tokens: tokens(text), at: 0, depth: 0, inline: Vec::new(), source };
        reader.read();
        reader.source
    }
}

/// A pass over the tokens of one file.
struct Reader<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
    /// Number of open braces.
    depth: usize,
    /// Open inline modules, each with the depth outside of it.
    inline: Vec<(String, usize)>,
    source: Source,
}

impl<'a> Reader<'a> {
    fn kind(&self, offset: usize) -> Option<Kind<'a>> {
        self.tokens.get(self.at + offset).map(|token| token.kind)
    }

    fn line(&self) -> usize {
        self.tokens.get(self.at).map_or(0, |token| token.line)
    }

    fn is_punct(&self, offset: usize, c: char) -> bool {
        self.kind(offset) == Some(Kind::Punct(c))
    }

    fn ident(&self, offset: usize) -> Option<&'a str> {
        match self.kind(offset) {
            Some(Kind::Ident(name)) => Some(name),
            _ => None,
        }
    }

    fn read(&mut self) {
        let mut visibility = Visibility::Private;
        while let Some(kind) = self.kind(0) {
            let before = std::mem::replace(&mut visibility, Visibility::Private);
            match kind {
                Kind::Punct('#') => {
                    visibility = before;
                    self.attribute();
                }
                Kind::Ident("pub") => {
                    visibility = Visibility::Public;
                    self.at += 1;
                    if self.is_punct(0, '(')
                        && matches!(self.ident(1), Some("crate" | "super" | "self" | "in"))
                    {
                        self.skip_group();
                    }
                }
                Kind::Ident("use") => self.import(before),
                Kind::Ident(name) => self.name(name),
                Kind::Punct(c) => self.brace(c),
                Kind::PathSep => self.at += 1,
            }
        }
    }

    fn brace(&mut self, c: char) {
        match c {
            '{' => self.depth += 1,
            '}' => {
                self.depth = self.depth.saturating_sub(1);
                self.inline.pop_if(|(_, depth)| *depth == self.depth);
            }
            _ => {}
        }
        self.at += 1;
    }

    /// Reads an attribute. The item after `#[cfg(test)]` is skipped, and `#![cfg(test)]` ends the
    /// file.
    fn attribute(&mut self) {
        let inner = self.is_punct(1, '!');
        self.at += if inner { 2 } else { 1 };
        let only_tests = self.ident(1) == Some("cfg")
            && (self.ident(3) == Some("test") && self.is_punct(4, ')')
                || self.ident(3) == Some("all") && self.ident(5) == Some("test"));
        self.skip_group();
        match (only_tests, inner) {
            (false, _) => {}
            (true, true) => self.at = self.tokens.len(),
            (true, false) => self.skip_item(),
        }
    }

    /// Skips one item, up to its semicolon or the end of its block.
    fn skip_item(&mut self) {
        while let Some(kind) = self.kind(0) {
            match kind {
                Kind::Punct('(' | '[') => self.skip_group(),
                Kind::Punct('{') => return self.skip_group(),
                Kind::Punct(';') => {
                    self.at += 1;
                    return;
                }
                Kind::Ident("mod") if self.is_punct(2, ';') => {
                    self.source.test_children.extend(self.ident(1).map(str::to_owned));
                    self.at += 1;
                }
                _ => self.at += 1,
            }
        }
    }

    /// Skips a bracketed group, if one starts here.
    fn skip_group(&mut self) {
        let mut open = 0;
        while let Some(kind) = self.kind(0) {
            match kind {
                Kind::Punct('(' | '[' | '{') => open += 1,
                Kind::Punct(')' | ']' | '}') => open -= 1,
                _ => {}
            }
            if open <= 0 && !matches!(kind, Kind::Punct(')' | ']' | '}')) {
                return;
            }
            self.at += 1;
            if open <= 0 {
                return;
            }
        }
    }

    /// Reads an identifier in code: an item's name, the start of a path, or another word.
    fn name(&mut self, name: &'a str) {
        if ITEMS.contains(&name) {
            let offset = if name == "macro_rules" { 2 } else { 1 };
            if let Some(item) = self.ident(offset) {
                self.source.defined.insert(item.to_owned());
                if name == "mod" && self.is_punct(2, '{') {
                    self.inline.push((item.to_owned(), self.depth));
                }
                self.at += offset + 1;
                return;
            }
        }
        let line = self.line();
        let mut words = vec![name];
        while self.kind(1) == Some(Kind::PathSep) {
            let Some(next) = self.ident(2) else { break };
            words.push(next);
            self.at += 2;
        }
        self.at += 1;
        self.source.used.extend(words.iter().map(|&word| word.to_owned()));
        if words.len() > 1 {
            self.refer(&words, Role::Path, line);
        }
    }

    /// Reads a `use` with its tree.
    fn import(&mut self, visibility: Visibility) {
        self.at += 1;
        self.branch(&mut Vec::new(), visibility);
        while self.kind(0).is_some() && !self.is_punct(0, ';') {
            self.at += 1;
        }
    }

    /// Reads one branch of a use tree; `prefix` is the path before its brace.
    fn branch(&mut self, prefix: &mut Vec<&'a str>, visibility: Visibility) {
        let (depth, line) = (prefix.len(), self.line());
        while let Some(kind) = self.kind(0) {
            match kind {
                Kind::Ident("as") => break,
                Kind::Ident(word) => prefix.push(word),
                // A leading `::` names an external crate.
                Kind::PathSep if prefix.is_empty() => prefix.push("::"),
                Kind::PathSep => {}
                Kind::Punct('*') => {
                    self.refer(prefix, Role::Glob(visibility), line);
                    self.at += 1;
                    return prefix.truncate(depth);
                }
                Kind::Punct('{') => {
                    self.at += 1;
                    while self.kind(0).is_some() && !self.is_punct(0, '}') {
                        self.branch(prefix, visibility);
                        if self.is_punct(0, ',') {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    return prefix.truncate(depth);
                }
                Kind::Punct(_) => break,
            }
            self.at += 1;
        }
        if prefix.len() > 1 && prefix.last() == Some(&"self") {
            prefix.pop();
        }
        let mut name = prefix.last().copied().unwrap_or_default();
        if self.ident(0) == Some("as") {
            name = self.ident(1).unwrap_or(name);
            self.at += 2;
        }
        let role = match visibility {
            Visibility::Private => Role::Import(name.to_owned()),
            Visibility::Public => Role::Reexport(name.to_owned()),
        };
        self.refer(prefix, role, line);
        prefix.truncate(depth);
    }

    /// Records a path. `crate`, `self` and `super` are resolved; other paths stay relative.
    fn refer(&mut self, words: &[&str], role: Role, line: usize) {
        let mut here = self.source.module.clone();
        here.extend(self.inline.iter().map(|(name, _)| name.clone()));
        let mut anchored = false;
        let mut rest = words;
        while let Some((&first, after)) = rest.split_first() {
            match first {
                "crate" => here.clear(),
                "self" => {}
                "super" => drop(here.pop()),
                _ => break,
            }
            (anchored, rest) = (true, after);
        }
        let own = rest.iter().map(|&word| word.to_owned());
        let segments = if anchored { here.into_iter().chain(own).collect() } else { own.collect() };
        self.source.references.push(Reference { segments, anchored, role, line });
    }
}
