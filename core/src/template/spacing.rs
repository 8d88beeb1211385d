//! Which white space around tags goes: what `~` asks for, and the lines on which a
//! block's tag or a comment stands alone. As in `compiler/whitespace-control.js` of
//! handlebars.js 4.7; the comments say what is done, and that file why.

use super::source::{Block, Program, TemplateNode, TextNode};
use super::tags::{Strip, is_space};

/// What a node asks of the white space around it.
#[derive(Default)]
struct Wish {
    strip: Strip,
    open_alone: bool,
    close_alone: bool,
    is_alone: bool,
}

/// Trims the texts of a whole source.
pub(super) fn trim(source: &str, program: &mut Program) {
    Trimmer { source }.program(program, true);
}

struct Trimmer<'s> {
    source: &'s str,
}

/// How much goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Amount {
    /// Spaces and tabs, and one line's end after a tag.
    Line,
    All,
}

impl Trimmer<'_> {
    fn program(&self, program: &mut Program, is_root: bool) {
        let body = &mut program.body;
        for place in 0..body.len() {
            let wish = match &mut body[place] {
                TemplateNode::TextNode(_) => continue,
                TemplateNode::Comment(strip) => Wish {
                    strip: *strip,
                    is_alone: true,
                    ..Wish::default()
                },
                TemplateNode::Value { strip, .. } => Wish {
                    strip: *strip,
                    ..Wish::default()
                },
                TemplateNode::Block(block) => self.block(block),
            };
            let before = self.ends_line(&body[..place], is_root);
            let after = self.begins_line(&body[place + 1..], is_root);
            if wish.strip.close {
                self.trim_first(&mut body[place + 1..], Amount::All);
            }
            if wish.strip.open {
                self.trim_last(&mut body[..place], Amount::All);
            }
            if wish.is_alone && before && after {
                self.trim_first(&mut body[place + 1..], Amount::Line);
                self.trim_last(&mut body[..place], Amount::Line);
            }
            if wish.open_alone && before {
                if let TemplateNode::Block(block) = &mut body[place] {
                    self.trim_first(block.first(), Amount::Line);
                }
                self.trim_last(&mut body[..place], Amount::Line);
            }
            if wish.close_alone && after {
                self.trim_first(&mut body[place + 1..], Amount::Line);
                if let TemplateNode::Block(block) = &mut body[place] {
                    self.trim_last(block.last(), Amount::Line);
                }
            }
        }
    }

    fn block(&self, block: &mut Block) -> Wish {
        for program in [&mut block.program, &mut block.inverse]
            .into_iter()
            .flatten()
        {
            self.program(program, false);
        }
        let (open, otherwise, close) = (block.open, block.otherwise, block.close);
        let (program, inverse) = match (&mut block.program, &mut block.inverse) {
            (Some(program), Some(inverse)) => (&mut program.body, inverse.unchained()),
            (Some(only), None) | (None, Some(only)) => {
                return self.simple(&mut only.body, open, close);
            }
            (None, None) => return Wish::default(),
        };
        let wish = Wish {
            strip: Strip {
                open: open.open,
                close: close.close,
            },
            open_alone: self.begins_line(program, false),
            close_alone: self.ends_line(inverse, false),
            is_alone: false,
        };
        if open.close {
            self.trim_first(program, Amount::All);
        }
        if otherwise.open {
            self.trim_last(program, Amount::All);
        }
        if otherwise.close {
            self.trim_first(inverse, Amount::All);
        }
        if close.open {
            self.trim_last(inverse, Amount::All);
        }
        if self.ends_line(program, false) && self.begins_line(inverse, false) {
            self.trim_last(program, Amount::Line);
            self.trim_first(inverse, Amount::Line);
        }
        wish
    }

    /// A block of one part.
    fn simple(&self, body: &mut [TemplateNode], open: Strip, close: Strip) -> Wish {
        let wish = Wish {
            strip: Strip {
                open: open.open,
                close: close.close,
            },
            open_alone: self.begins_line(body, false),
            close_alone: self.ends_line(body, false),
            is_alone: false,
        };
        if open.close {
            self.trim_first(body, Amount::All);
        }
        if close.open {
            self.trim_last(body, Amount::All);
        }
        wish
    }

    /// Whether what follows these nodes begins a line, but for white space.
    fn ends_line(&self, before: &[TemplateNode], is_root: bool) -> bool {
        let Some(last) = before.last() else {
            return is_root;
        };
        let TemplateNode::TextNode(text) = last else {
            return false;
        };
        let whole = &self.source[text.whole.clone()];
        let rest = whole.trim_end_matches(is_space);
        whole[rest.len()..].contains('\n') || (is_root && before.len() == 1 && rest.is_empty())
    }

    /// Whether what precedes these nodes ends a line, but for white space.
    fn begins_line(&self, after: &[TemplateNode], is_root: bool) -> bool {
        let Some(first) = after.first() else {
            return is_root;
        };
        let TemplateNode::TextNode(text) = first else {
            return false;
        };
        let whole = &self.source[text.whole.clone()];
        let rest = whole.trim_start_matches(is_space);
        whole[..whole.len() - rest.len()].contains('\n')
            || (is_root && after.len() == 1 && rest.is_empty())
    }

    fn trim_first(&self, nodes: &mut [TemplateNode], amount: Amount) {
        let Some(TemplateNode::TextNode(TextNode {
            kept,
            is_begin_trimmed,
            ..
        })) = nodes.first_mut()
        else {
            return;
        };
        if amount == Amount::Line && *is_begin_trimmed {
            return;
        }
        let text = &self.source[kept.clone()];
        let rest = match amount {
            Amount::All => text.trim_start_matches(is_space),
            Amount::Line => {
                let rest = text.trim_start_matches([' ', '\t']);
                let end = rest
                    .strip_prefix("\r\n")
                    .or_else(|| rest.strip_prefix('\n'));
                end.or_else(|| rest.strip_prefix('\r')).unwrap_or(rest)
            }
        };
        *is_begin_trimmed = rest.len() < text.len();
        kept.start = kept.end - rest.len();
    }

    fn trim_last(&self, nodes: &mut [TemplateNode], amount: Amount) {
        let Some(TemplateNode::TextNode(TextNode {
            kept,
            is_end_trimmed,
            ..
        })) = nodes.last_mut()
        else {
            return;
        };
        if amount == Amount::Line && *is_end_trimmed {
            return;
        }
        let text = &self.source[kept.clone()];
        let rest = match amount {
            Amount::All => text.trim_end_matches(is_space),
            Amount::Line => text.trim_end_matches([' ', '\t']),
        };
        *is_end_trimmed = rest.len() < text.len();
        kept.end = kept.start + rest.len();
    }
}
