//! HTML fragments of the page.

/// Escapes text for HTML elements and attributes; characters that HTML cannot represent become
/// spaces.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            '\n' => escaped.push('\n'),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Escapes text, and formats text between backticks as code.
pub(super) fn prose(text: &str) -> String {
    let pieces: Vec<&str> = text.split('`').collect();
    // An unpaired backtick stands for itself.
    let (paired, rest) = if pieces.len() % 2 == 1 {
        (&pieces[..], None)
    } else {
        (&pieces[..pieces.len() - 1], pieces.last())
    };
    let mut html = String::new();
    for (i, piece) in paired.iter().enumerate() {
        html += &if i % 2 == 1 { format!("<code>{}</code>", escaped(piece)) } else { escaped(piece) };
    }
    if let Some(rest) = rest {
        html += &format!("`{}", escaped(rest));
    }
    html
}

/// Commands, one per line.
pub(super) fn commands(all: &[String]) -> String {
    format!("<pre class=\"scroll command\"><code>{}</code></pre>\n", escaped(&all.join("\n")))
}

/// Whether a cell contains a number, or a text about one, and is right-aligned.
pub(super) fn is_number(cell: &str) -> bool {
    let mut chars = cell.chars().skip_while(|c| matches!(c, '+' | '-' | '–'));
    chars.next().is_none_or(|c| c.is_ascii_digit())
}

/// A table that scrolls in its own container.
pub(super) fn table(class: &str, head: &[String], rows: &[Vec<String>]) -> String {
    let mut text = format!("<div class=\"scroll\" tabindex=\"0\">\n<table class=\"{class}\">\n<thead><tr>");
    let to_the_right = |column: usize| {
        let cells = || rows.iter().filter_map(|row| row.get(column));
        column > 0 && cells().all(|cell| is_number(cell)) && cells().count() > 0
    };
    let right: Vec<bool> = (0..head.len()).map(to_the_right).collect();
    let class_of = |column: usize| if right.get(column) == Some(&true) { " class=\"number\"" } else { "" };
    for (i, cell) in head.iter().enumerate() {
        text += &format!("<th scope=\"col\"{}>{}</th>", class_of(i), prose(cell));
    }
    text += "</tr></thead>\n<tbody>\n";
    for row in rows {
        text += "<tr>";
        for (i, cell) in row.iter().enumerate() {
            text += &match i {
                0 => format!("<th scope=\"row\">{}</th>", prose(cell)),
                _ => format!("<td{}>{}</td>", class_of(i), prose(cell)),
            };
        }
        text += "</tr>\n";
    }
    text + "</tbody>\n</table>\n</div>\n"
}
