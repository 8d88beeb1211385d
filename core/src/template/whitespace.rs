//! Removes white space around tags: where `~` requests it, and on lines that contain only a
//! block tag or a comment ("standalone" tags). Follows `compiler/whitespace-control.js` of
//! handlebars.js 4.7, which explains the rules.

use super::lexer::{Strip, is_space};
use super::source::{Block, Program, TemplateNode, TextNode};

/// The rules for the white space around a node.
#[derive(Default)]
struct StripRules {
    strip: Strip,
    open_standalone: bool,
    close_standalone: bool,
    is_standalone: bool,
}

/// Trims the texts of a template.
pub(super) fn trim(source: &str, program: &mut Program) {
    Trimmer { source }.program(program, true);
}

struct Trimmer<'s> {
    source: &'s str,
}

/// How much white space is removed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TrimAmount {
    /// Spaces and tabs, and one line break after a tag.
    Line,
    All,
}

impl Trimmer<'_> {
    fn program(&self, program: &mut Program, is_root: bool) {
        let body = &mut program.body;
        for index in 0..body.len() {
            let rules = match &mut body[index] {
                TemplateNode::Text(_) => continue,
                TemplateNode::Comment(strip) => StripRules {
                    strip: *strip,
                    is_standalone: true,
                    ..StripRules::default()
                },
                TemplateNode::Value { strip, .. } => StripRules {
                    strip: *strip,
                    ..StripRules::default()
                },
                TemplateNode::Block(block) => self.block(block),
            };
            let before = self.ends_line(&body[..index], is_root);
            let after = self.begins_line(&body[index + 1..], is_root);
            if rules.strip.close {
                self.trim_first(&mut body[index + 1..], TrimAmount::All);
            }
            if rules.strip.open {
                self.trim_last(&mut body[..index], TrimAmount::All);
            }
            if rules.is_standalone && before && after {
                self.trim_first(&mut body[index + 1..], TrimAmount::Line);
                self.trim_last(&mut body[..index], TrimAmount::Line);
            }
            if rules.open_standalone && before {
                if let TemplateNode::Block(block) = &mut body[index] {
                    self.trim_first(block.first(), TrimAmount::Line);
                }
                self.trim_last(&mut body[..index], TrimAmount::Line);
            }
            if rules.close_standalone && after {
                self.trim_first(&mut body[index + 1..], TrimAmount::Line);
                if let TemplateNode::Block(block) = &mut body[index] {
                    self.trim_last(block.last(), TrimAmount::Line);
                }
            }
        }
    }

    fn block(&self, block: &mut Block) -> StripRules {
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
            (None, None) => return StripRules::default(),
        };
        let rules = StripRules {
            strip: Strip {
                open: open.open,
                close: close.close,
            },
            open_standalone: self.begins_line(program, false),
            close_standalone: self.ends_line(inverse, false),
            is_standalone: false,
        };
        if open.close {
            self.trim_first(program, TrimAmount::All);
        }
        if otherwise.open {
            self.trim_last(program, TrimAmount::All);
        }
        if otherwise.close {
            self.trim_first(inverse, TrimAmount::All);
        }
        if close.open {
            self.trim_last(inverse, TrimAmount::All);
        }
        if self.ends_line(program, false) && self.begins_line(inverse, false) {
            self.trim_last(program, TrimAmount::Line);
            self.trim_first(inverse, TrimAmount::Line);
        }
        rules
    }

    /// Trims a block without `else`.
    fn simple(&self, body: &mut [TemplateNode], open: Strip, close: Strip) -> StripRules {
        let rules = StripRules {
            strip: Strip {
                open: open.open,
                close: close.close,
            },
            open_standalone: self.begins_line(body, false),
            close_standalone: self.ends_line(body, false),
            is_standalone: false,
        };
        if open.close {
            self.trim_first(body, TrimAmount::All);
        }
        if close.open {
            self.trim_last(body, TrimAmount::All);
        }
        rules
    }

    /// Whether only white space separates the end of these nodes from a line start.
    fn ends_line(&self, before: &[TemplateNode], is_root: bool) -> bool {
        let Some(last) = before.last() else {
            return is_root;
        };
        let TemplateNode::Text(text) = last else {
            return false;
        };
        let whole = &self.source[text.whole.clone()];
        let rest = whole.trim_end_matches(is_space);
        whole[rest.len()..].contains('\n') || (is_root && before.len() == 1 && rest.is_empty())
    }

    /// Whether only white space separates the start of these nodes from a line end.
    fn begins_line(&self, after: &[TemplateNode], is_root: bool) -> bool {
        let Some(first) = after.first() else {
            return is_root;
        };
        let TemplateNode::Text(text) = first else {
            return false;
        };
        let whole = &self.source[text.whole.clone()];
        let rest = whole.trim_start_matches(is_space);
        whole[..whole.len() - rest.len()].contains('\n')
            || (is_root && after.len() == 1 && rest.is_empty())
    }

    fn trim_first(&self, nodes: &mut [TemplateNode], amount: TrimAmount) {
        let Some(TemplateNode::Text(TextNode {
            trimmed,
            is_begin_trimmed,
            ..
        })) = nodes.first_mut()
        else {
            return;
        };
        if amount == TrimAmount::Line && *is_begin_trimmed {
            return;
        }
        let text = &self.source[trimmed.clone()];
        let rest = match amount {
            TrimAmount::All => text.trim_start_matches(is_space),
            TrimAmount::Line => {
                let rest = text.trim_start_matches([' ', '\t']);
                let end = rest
                    .strip_prefix("\r\n")
                    .or_else(|| rest.strip_prefix('\n'));
                end.or_else(|| rest.strip_prefix('\r')).unwrap_or(rest)
            }
        };
        *is_begin_trimmed = rest.len() < text.len();
        trimmed.start = trimmed.end - rest.len();
    }

    fn trim_last(&self, nodes: &mut [TemplateNode], amount: TrimAmount) {
        let Some(TemplateNode::Text(TextNode {
            trimmed,
            is_end_trimmed,
            ..
        })) = nodes.last_mut()
        else {
            return;
        };
        if amount == TrimAmount::Line && *is_end_trimmed {
            return;
        }
        let text = &self.source[trimmed.clone()];
        let rest = match amount {
            TrimAmount::All => text.trim_end_matches(is_space),
            TrimAmount::Line => text.trim_end_matches([' ', '\t']),
        };
        *is_end_trimmed = rest.len() < text.len();
        trimmed.end = trimmed.start + rest.len();
    }
}
