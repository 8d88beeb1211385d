//! Writes the lines of a text: white space collapses, and line breaks are written before the
//! next word, as many as the strongest request for them.
//!
//! Tags of blocks (`{{#if}}`, `{{/each}}`) take no place. Where a line begins with one, it
//! stands alone on its line, because Handlebars removes such lines.

use super::marks::TagRole;

/// The deepest list whose items are indented further.
const INDENT_MAX: usize = 10;

/// What the current line has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineState {
    Empty,
    /// One tag of a block.
    Tag,
    Content,
}

pub(super) struct TextWriter {
    out: String,
    line: LineState,
    /// Line breaks before the next word.
    breaks: usize,
    /// Whether a space comes before the next word of the line.
    has_space: bool,
    /// The lists around the position.
    lists: usize,
    /// What the item that begins here has before its first word.
    bullet: Option<String>,
}

/// What waits to be written before the next word.
#[derive(Clone, Copy)]
pub(super) struct Pending {
    breaks: usize,
    has_space: bool,
}

impl TextWriter {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            out: String::with_capacity(capacity),
            line: LineState::Empty,
            breaks: 0,
            has_space: false,
            lists: 0,
            bullet: None,
        }
    }

    /// What was written from an offset on.
    pub(super) fn since(&self, offset: usize) -> &str {
        &self.out[offset..]
    }

    /// The offset of what is written next.
    pub(super) fn offset(&self) -> usize {
        self.out.len()
    }

    pub(super) fn finish(self) -> String {
        self.out
    }

    /// Text without tags, whose white space collapses.
    pub(super) fn text(&mut self, text: &str) {
        for c in text.chars() {
            if c.is_whitespace() {
                self.space();
            } else {
                self.begin_word();
                self.out.push(c);
            }
        }
    }

    /// Text whose white space stays.
    pub(super) fn preformatted(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '\n' => self.line_break(),
                '\r' => {}
                c => {
                    self.begin_word();
                    self.out.push(c);
                }
            }
        }
    }

    /// A tag, as its marker.
    pub(super) fn tag(&mut self, mark: &str, role: TagRole) {
        if role == TagRole::Value {
            self.begin_word();
            self.out.push_str(mark);
            return;
        }
        if self.bullet.is_some() {
            self.begin_word();
        } else if self.line == LineState::Tag {
            self.new_lines(1);
        } else {
            self.write_pending();
        }
        self.out.push_str(mark);
        if self.line == LineState::Empty {
            self.line = LineState::Tag;
        }
    }

    pub(super) fn space(&mut self) {
        if self.line == LineState::Content && self.breaks == 0 {
            self.has_space = true;
        }
    }

    /// Requests at least so many line breaks before the next word.
    pub(super) fn break_lines(&mut self, breaks: usize) {
        self.has_space = false;
        match self.line {
            LineState::Empty => {}
            LineState::Tag => self.breaks = 1,
            LineState::Content => self.breaks = self.breaks.max(breaks),
        }
    }

    /// One more line break, up to a blank line.
    pub(super) fn line_break(&mut self) {
        self.break_lines((self.breaks + 1).min(2));
    }

    pub(super) fn rule(&mut self) {
        self.break_lines(2);
        self.text("----------");
        self.break_lines(2);
    }

    pub(super) fn begin_list(&mut self) {
        self.break_lines(if self.lists == 0 { 2 } else { 1 });
        self.lists += 1;
    }

    pub(super) fn end_list(&mut self) {
        self.lists = self.lists.saturating_sub(1);
        self.bullet = None;
        self.break_lines(if self.lists == 0 { 2 } else { 1 });
    }

    pub(super) fn begin_item(&mut self, bullet: String) {
        self.break_lines(1);
        self.bullet = Some(bullet);
    }

    pub(super) fn end_item(&mut self) {
        self.bullet = None;
        self.break_lines(1);
    }

    /// Takes away what waits, to write on the line of the last word.
    pub(super) fn take_pending(&mut self) -> Pending {
        let pending = Pending {
            breaks: self.breaks,
            has_space: self.has_space,
        };
        (self.breaks, self.has_space) = (0, false);
        pending
    }

    pub(super) fn put_pending(&mut self, pending: Pending) {
        (self.breaks, self.has_space) = (pending.breaks, pending.has_space);
    }

    fn begin_word(&mut self) {
        self.write_pending();
        let begins_line = self.line == LineState::Empty;
        let bullet = self.bullet.take();
        if begins_line && self.lists > 0 {
            let depth = self.lists.min(INDENT_MAX);
            // The bullet stands in the last step of the indentation.
            let depth = depth - usize::from(bullet.is_some());
            self.out.extend(std::iter::repeat_n("  ", depth));
        }
        if let Some(bullet) = bullet {
            self.out.push_str(&bullet);
        }
        self.line = LineState::Content;
    }

    fn write_pending(&mut self) {
        if self.breaks > 0 {
            self.new_lines(self.breaks);
        } else if self.has_space {
            self.out.push(' ');
        }
        self.has_space = false;
    }

    fn new_lines(&mut self, count: usize) {
        self.out.extend(std::iter::repeat_n('\n', count));
        self.breaks = 0;
        self.line = LineState::Empty;
    }
}
