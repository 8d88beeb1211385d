//! CSS selectors for inlining: names, classes, ids, attributes, combinators, and the
//! pseudo-classes for an element's position. Most other pseudo-classes cannot be inlined.

/// Parts of one selector.
const PARTS_MAX: usize = 20;

/// An element of a document, as selectors see it.
#[derive(Debug)]
pub(super) struct Candidate<'a> {
    pub(super) parent: Option<usize>,
    pub(super) previous: Option<usize>,
    /// The number of preceding siblings.
    pub(super) before: usize,
    pub(super) is_last: bool,
    pub(super) name: &'a str,
    pub(super) attributes: Vec<(&'a str, &'a str)>,
}

/// The number of tests left. An attribute, and 16 bytes of one, cost as much as a test.
pub(super) struct Steps(pub(super) usize);

impl Steps {
    fn take(&mut self, count: usize) -> Option<()> {
        self.0 = self.0.checked_sub(count)?;
        Some(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    Descendant,
    Child,
    Next,
    Later,
}

#[derive(Debug, PartialEq, Eq)]
enum Test<'a> {
    Name(&'a str),
    Attribute(&'a str, char, &'a str),
    Last,
    /// `an+b`: the step and the first position.
    Nth(usize, usize),
}

/// A selector. Its parts are in reverse order.
#[derive(Debug)]
pub(super) struct Selector<'a> {
    parts: Vec<(Vec<Test<'a>>, Relation)>,
    /// The number of ids, of classes and attributes, and of names.
    pub(super) specificity: (usize, usize, usize),
}

impl<'a> Selector<'a> {
    /// Parses a selector. `None` if it is invalid or not supported.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let mut parts = Vec::new();
        let mut rest = text.trim();
        let mut relation = Relation::Descendant;
        while !rest.is_empty() {
            let (tests, after) = compound(rest)?;
            if parts.len() == PARTS_MAX {
                return None;
            }
            parts.push((tests, relation));
            let trimmed = after.trim_start();
            let (next, skip) = match trimmed.as_bytes().first() {
                Some(b'>') => (Relation::Child, 1),
                Some(b'+') => (Relation::Next, 1),
                Some(b'~') => (Relation::Later, 1),
                Some(_) if trimmed.len() == after.len() => return None,
                _ => (Relation::Descendant, 0),
            };
            relation = next;
            rest = trimmed.get(skip..)?.trim_start();
            if rest.is_empty() && skip > 0 {
                return None;
            }
        }
        let tests = || parts.iter().flat_map(|(tests, _)| tests);
        let ids = tests().filter(|test| matches!(test, Test::Attribute("id", '=', _)));
        let ids = ids.count();
        let names = tests().filter(|test| matches!(test, Test::Name(_))).count();
        let specificity = (ids, tests().count() - ids - names, names);
        parts.reverse();
        (!parts.is_empty()).then_some(Self { parts, specificity })
    }

    /// Whether the selector matches an element. `None` if no steps are left.
    pub(super) fn matches(
        &self,
        all: &[Candidate<'_>],
        at: usize,
        steps: &mut Steps,
    ) -> Option<bool> {
        self.matches_from(0, all, at, steps)
    }

    fn matches_from(
        &self,
        part: usize,
        all: &[Candidate<'_>],
        at: usize,
        steps: &mut Steps,
    ) -> Option<bool> {
        steps.take(1)?;
        let (Some((tests, relation)), Some(element)) = (self.parts.get(part), all.get(at)) else {
            return Some(false);
        };
        for test in tests {
            if !test.matches(element, steps)? {
                return Some(false);
            }
        }
        if part + 1 == self.parts.len() {
            return Some(true);
        }
        let is_far = matches!(relation, Relation::Descendant | Relation::Later);
        let step = |element: &Candidate<'_>| match relation {
            Relation::Descendant | Relation::Child => element.parent,
            Relation::Later | Relation::Next => element.previous,
        };
        let mut other = step(element);
        while let Some(at) = other {
            if self.matches_from(part + 1, all, at, steps)? {
                return Some(true);
            }
            other = all.get(at).filter(|_| is_far).and_then(step);
        }
        Some(false)
    }
}

impl Test<'_> {
    fn matches(&self, element: &Candidate<'_>, steps: &mut Steps) -> Option<bool> {
        steps.take(1)?;
        Some(match *self {
            Self::Last => element.is_last,
            Self::Nth(every, first) => {
                let from = (element.before + 1).checked_sub(first);
                from.is_some_and(|from| from.checked_rem(every).unwrap_or(from) == 0)
            }
            Self::Name("*") => true,
            Self::Name(name) => element.name.eq_ignore_ascii_case(name),
            Self::Attribute(name, how, wanted) => {
                steps.take(element.attributes.len())?;
                let mut attributes = element.attributes.iter();
                let found = attributes.find(|(known, _)| known.eq_ignore_ascii_case(name));
                let Some((_, value)) = found else {
                    return Some(false);
                };
                steps.take(value.len() / 16)?;
                match how {
                    '=' => *value == wanted,
                    '~' => value.split_ascii_whitespace().any(|word| word == wanted),
                    '^' => !wanted.is_empty() && value.starts_with(wanted),
                    '$' => !wanted.is_empty() && value.ends_with(wanted),
                    '*' => !wanted.is_empty() && value.contains(wanted),
                    '|' => value
                        .strip_prefix(wanted)
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with('-')),
                    _ => true,
                }
            }
        })
    }
}

/// Parses the tests up to the next combinator. Also returns the rest of the text.
fn compound(text: &str) -> Option<(Vec<Test<'_>>, &str)> {
    let mut tests = Vec::new();
    let mut rest = text;
    loop {
        let after = rest.get(1..).unwrap_or_default();
        match rest.as_bytes().first() {
            Some(b'*') => {
                tests.push(Test::Name("*"));
                rest = after;
            }
            Some(sign @ (b'.' | b'#')) => {
                let (name, after) = identifier(after)?;
                tests.push(match sign {
                    b'.' => Test::Attribute("class", '~', name),
                    _ => Test::Attribute("id", '=', name),
                });
                rest = after;
            }
            Some(b'[') => {
                let (inner, after) = after.split_once(']')?;
                tests.push(attribute(inner)?);
                rest = after;
            }
            Some(b':') => {
                let (test, after) = pseudo_class(after)?;
                tests.push(test);
                rest = after;
            }
            _ => match identifier(rest) {
                Some((name, after)) if tests.is_empty() => {
                    tests.push(Test::Name(name));
                    rest = after;
                }
                _ => return (!tests.is_empty()).then_some((tests, rest)),
            },
        }
    }
}

fn pseudo_class(text: &str) -> Option<(Test<'_>, &str)> {
    let (name, after) = identifier(text)?;
    match name {
        "first-child" => Some((Test::Nth(0, 1), after)),
        "last-child" => Some((Test::Last, after)),
        "nth-child" => {
            let (which, after) = after.strip_prefix('(')?.split_once(')')?;
            let test = match which.trim() {
                "odd" => Test::Nth(2, 1),
                "even" => Test::Nth(2, 2),
                which => match which.split_once('n') {
                    None => Test::Nth(0, which.parse().ok()?),
                    Some((every, "")) => Test::Nth(every.parse().ok()?, every.parse().ok()?),
                    Some((every, first)) => {
                        let first = first.trim().strip_prefix('+')?.trim();
                        Test::Nth(every.parse().ok()?, first.parse().ok()?)
                    }
                },
            };
            Some((test, after))
        }
        _ => None,
    }
}

fn attribute(inner: &str) -> Option<Test<'_>> {
    let (name, after) = identifier(inner.trim())?;
    let after = after.trim_start();
    let Some((how, value)) = after.split_once('=') else {
        return after.is_empty().then_some(Test::Attribute(name, ' ', ""));
    };
    let how = how.chars().next().unwrap_or('=');
    let value = value.trim();
    let unquoted = ['"', '\'']
        .iter()
        .find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
    let value = unquoted.unwrap_or(value);
    "=~^$*|"
        .contains(how)
        .then_some(Test::Attribute(name, how, value))
}

fn identifier(text: &str) -> Option<(&str, &str)> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_') || !c.is_ascii();
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_match_their_elements() {
        let element = |parent, previous: Option<usize>, name, attributes| Candidate {
            parent,
            previous,
            before: usize::from(previous.is_some()),
            is_last: name != "P",
            name,
            attributes,
        };
        let all = [
            element(None, None, "div", vec![("class", "a b"), ("id", "x")]),
            element(Some(0), None, "P", vec![("data-n", "abc")]),
            element(Some(0), Some(1), "p", vec![]),
            element(Some(2), None, "b", vec![]),
        ];
        for (selector, selected) in [
            ("div", vec![0]),
            ("*", vec![0, 1, 2, 3]),
            (".a.b#x", vec![0]),
            (".a b", vec![3]),
            (".a > b", vec![]),
            ("div>p>b", vec![3]),
            ("p + p", vec![2]),
            ("p ~ p b", vec![3]),
            ("[data-n]", vec![1]),
            ("p[data-n^='ab']", vec![1]),
            ("p[data-n=ab]", vec![]),
            ("p:first-child", vec![1]),
            ("p:last-child", vec![2]),
            ("p:nth-child(2)", vec![2]),
            ("p:nth-child(odd)", vec![1]),
            ("p:nth-child(2n)", vec![2]),
            ("p:nth-child(3n+1) ~ p", vec![2]),
        ] {
            let parsed = Selector::parse(selector).unwrap();
            let found: Vec<_> = (0..all.len())
                .filter(|at| parsed.matches(&all, *at, &mut Steps(1_000)).unwrap())
                .collect();
            assert_eq!(found, selected, "{selector}");
        }
        for unknown in [
            "",
            "a:hover",
            "a:nth-child(n",
            "a:nth-child(-1)",
            "a >",
            "> a",
            "a{",
            ".",
        ] {
            assert!(Selector::parse(unknown).is_none(), "{unknown}");
        }
    }
}
