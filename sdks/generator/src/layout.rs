//! Lays out texts and nested values in lines of a width: a list stands on one line if it fits, else each item on its own.

/// A value, or a piece of code with values in it.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    Text(String),
    List {
        open: String,
        items: Vec<Node>,
        close: String,
    },
}

/// How a language writes lists.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    /// What an inner line begins with.
    pub(crate) indent: &'static str,
    /// What stands within the brackets of a list on one line: a space, or nothing.
    pub(crate) padding: &'static str,
    /// The longest line, in characters.
    pub(crate) width: usize,
    /// Whether the last argument of a call keeps its bracket beside that of the call.
    pub(crate) hugs: bool,
    /// Whether the values of fields on successive lines stand below each other.
    pub(crate) aligns: bool,
}

/// A list with each item on a line of its own.
fn broken(open: &str, items: &[Node], close: &str, style: Style, depth: usize) -> String {
    if style.hugs
        && let Some((
            Node::List {
                open: inner_open,
                items: inner,
                close: inner_close,
            },
            texts,
        )) = items.split_last()
        && open.ends_with('(')
        && texts.iter().all(|item| matches!(item, Node::Text(_)))
    {
        let texts: String = texts
            .iter()
            .map(|text| format!("{}, ", text.flat(style)))
            .collect();
        let last = broken(inner_open, inner, inner_close, style, depth);
        return format!("{open}{texts}{last}{close}");
    }
    let inner = style.indent.repeat(depth + 1);
    let mut items: Vec<String> = items
        .iter()
        .map(|item| item.render(style, depth + 1))
        .collect();
    if style.aligns {
        align(&mut items);
    }
    let lines: String = items
        .iter()
        .map(|item| format!("{inner}{item},\n"))
        .collect();
    format!("{open}\n{lines}{}{close}", style.indent.repeat(depth))
}

/// Pads successive fields of one line each so that their values stand below each other.
fn align(items: &mut [String]) {
    let key = |item: &String| {
        item.find(": ")
            .filter(|_| !item.contains('\n'))
            .map(|end| end + 1)
    };
    for run in items.chunk_by_mut(|first, second| key(first).is_some() && key(second).is_some()) {
        let width = run.iter().filter_map(key).max().unwrap_or_default();
        for item in run {
            if let Some(end) = key(item) {
                item.insert_str(end, &" ".repeat(width - end));
            }
        }
    }
}

impl Node {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(crate) fn list(
        open: impl Into<String>,
        items: Vec<Self>,
        close: impl Into<String>,
    ) -> Self {
        let (open, close) = (open.into(), close.into());
        Self::List { open, items, close }
    }

    /// The same with a text before it, such as the name of a field.
    pub(crate) fn after(self, prefix: &str) -> Self {
        match self {
            Self::Text(text) => Self::Text(format!("{prefix}{text}")),
            Self::List { open, items, close } => Self::List {
                open: format!("{prefix}{open}"),
                items,
                close,
            },
        }
    }

    /// The same with a text behind it.
    pub(crate) fn before(self, suffix: &str) -> Self {
        match self {
            Self::Text(text) => Self::Text(format!("{text}{suffix}")),
            Self::List { open, items, close } => Self::List {
                open,
                items,
                close: format!("{close}{suffix}"),
            },
        }
    }

    /// The text, whose first line begins after `depth` indents.
    pub(crate) fn render(&self, style: Style, depth: usize) -> String {
        let flat = self.flat(style);
        // A comma may follow.
        let is_short = flat.chars().count() + depth * style.indent.len().max(2) < style.width
            && !flat.contains('\n');
        match self {
            Self::Text(text) => text.clone(),
            Self::List { items, .. } if is_short || items.is_empty() => flat,
            Self::List { open, items, close } => broken(open, items, close, style, depth),
        }
    }

    fn flat(&self, style: Style) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::List { open, items, close } => {
                let items: Vec<String> = items.iter().map(|item| item.flat(style)).collect();
                let padding = if open.ends_with('{') && !items.is_empty() {
                    style.padding
                } else {
                    ""
                };
                format!("{open}{padding}{}{padding}{close}", items.join(", "))
            }
        }
    }
}

/// Fills the lines of each paragraph anew. Items of lists and tags begin a line.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut open = false;
    for source in text.lines().map(str::trim) {
        if source.is_empty() {
            // One empty line between paragraphs, however many the text has.
            if lines.last().is_some_and(|line| !line.is_empty()) {
                lines.push(String::new());
            }
            open = false;
            continue;
        }
        if source.starts_with(['-', '@', '|']) {
            open = false;
        }
        for word in source.split_whitespace() {
            match lines.last_mut() {
                Some(line) if open && line.chars().count() + 1 + word.chars().count() <= width => {
                    line.push(' ');
                    line.push_str(word);
                }
                _ => lines.push(word.to_owned()),
            }
            open = true;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLE: Style = Style {
        indent: "  ",
        padding: " ",
        width: 20,
        hugs: true,
        aligns: false,
    };

    #[test]
    fn what_fits_stands_on_one_line() {
        let pair = Node::list("{", vec![Node::text("1").after("a: ")], "}");
        assert_eq!(pair.clone().after("f: ").render(STYLE, 0), "f: { a: 1 }");
        let call = Node::list("call(", vec![pair], ")");
        assert_eq!(call.render(STYLE, 0), "call({ a: 1 })");
        assert_eq!(Node::list("{", vec![], "}").render(STYLE, 0), "{}");
    }

    #[test]
    fn what_does_not_fit_is_broken() {
        let fields =
            ["first", "second", "third"].map(|name| Node::text("1").after(&format!("{name}: ")));
        let object = Node::list("{", fields.to_vec(), "}");
        assert_eq!(
            Node::list("call(", vec![object], ");").render(STYLE, 0),
            "call({\n  first: 1,\n  second: 1,\n  third: 1,\n});"
        );
    }

    #[test]
    fn values_stand_below_each_other_where_the_language_wants_it() {
        let fields = ["a: 1", "long: 2", "b: \"x: y\""].map(Node::text);
        let style = Style {
            aligns: true,
            width: 10,
            ..STYLE
        };
        assert_eq!(
            Node::list("T{", fields.to_vec(), "}").render(style, 0),
            "T{\n  a:    1,\n  long: 2,\n  b:    \"x: y\",\n}"
        );
    }
}
