//! Resolves the attributes of an element with the defaults of the head. The precedence is
//! mjml's: the element's own attributes, those that a class of its parent sets for the
//! element's name, those of its classes, the defaults for its name, `mj-all`. Attributes
//! inherited from a parent rank before `mj-all`. The compiler implements that, so for
//! elements that inherit, `mj-all` is left to the compiler.

use std::collections::HashMap;

use super::reader::Element;

/// Bytes of all attributes, including the defaults that each element repeats.
const BYTES_MAX: usize = 4 << 20;
/// Number of all attributes, including the defaults that each element repeats.
const COUNT_MAX: usize = 100_000;

/// Elements that inherit attributes from their parent.
const INHERITING: [&str; 5] = [
    "mj-accordion-element",
    "mj-accordion-text",
    "mj-accordion-title",
    "mj-carousel-image",
    "mj-social-element",
];

/// Names and values.
type List<'a> = Vec<(&'a str, &'a str)>;

/// Attributes in the order of their first occurrence, without duplicates.
struct DefaultAttributes<'a, V> {
    list: Vec<(&'a str, V)>,
    indexes: HashMap<&'a str, usize>,
}

impl<V> Default for DefaultAttributes<'_, V> {
    fn default() -> Self {
        Self {
            list: Vec::new(),
            indexes: HashMap::new(),
        }
    }
}

impl<'a, V> DefaultAttributes<'a, V> {
    fn put(&mut self, name: &'a str, value: V) {
        let index = *self.indexes.entry(name).or_insert(self.list.len());
        match self.list.get_mut(index) {
            Some(existing) => existing.1 = value,
            None => self.list.push((name, value)),
        }
    }
}

/// The defaults of a head.
#[derive(Default)]
pub(super) struct Defaults<'a> {
    all: DefaultAttributes<'a, &'a str>,
    by_element: HashMap<String, DefaultAttributes<'a, &'a str>>,
    classes: HashMap<&'a str, DefaultAttributes<'a, &'a str>>,
    within: HashMap<&'a str, HashMap<String, List<'a>>>,
    spent: Spent,
}

/// The attributes of all elements so far.
#[derive(Default)]
struct Spent {
    attributes: usize,
    bytes: usize,
}

impl Spent {
    fn take(&mut self, attributes: usize, bytes: usize) -> Result<(), String> {
        self.attributes += attributes;
        self.bytes += bytes;
        if self.attributes > COUNT_MAX {
            return Err(format!(
                "with those that they inherit, elements have more than {COUNT_MAX} attributes"
            ));
        }
        if self.bytes > BYTES_MAX {
            return Err(format!(
                "with those that they inherit, elements have more than {BYTES_MAX} bytes of attributes"
            ));
        }
        Ok(())
    }
}

impl<'a> Defaults<'a> {
    /// Adds the defaults of an `mj-attributes` element.
    pub(super) fn add(&mut self, attributes: &Element<'a>) {
        for child in attributes.elements() {
            let own = || child.attributes.iter().copied();
            match child.name.as_str() {
                "mj-all" => own().for_each(|(name, value)| self.all.put(name, value)),
                "mj-class" => {
                    let Some(class) = child.attribute("name") else {
                        continue;
                    };
                    let target = self.classes.entry(class).or_default();
                    let named = own().filter(|(name, _)| *name != "name");
                    named.for_each(|(name, value)| target.put(name, value));
                    for within in child.elements() {
                        let by_element = self.within.entry(class).or_default();
                        by_element.insert(within.name.clone(), within.attributes.clone());
                    }
                }
                _ => {
                    let target = self.by_element.entry(child.name.clone()).or_default();
                    own().for_each(|(name, value)| target.put(name, value));
                }
            }
        }
    }

    /// The attributes of `mj-all`.
    pub(super) fn all(&self) -> &[(&'a str, &'a str)] {
        &self.all.list
    }

    /// The attributes of an element whose parent has these classes.
    ///
    /// # Errors
    /// All elements together have too many attributes.
    pub(super) fn resolve(
        &mut self,
        element: &Element<'a>,
        parent_classes: &'a str,
    ) -> Result<Vec<(&'a str, String)>, String> {
        let classes = element.attribute("mj-class").unwrap_or_default();
        self.spent.take(0, classes.len() + parent_classes.len())?;
        let mut resolved = DefaultAttributes::default();
        let mut put = |name: &'a str, value: &str| {
            self.spent.take(1, name.len() + value.len())?;
            resolved.put(name, value.to_owned());
            Ok::<(), String>(())
        };
        if !INHERITING.contains(&element.name.as_str()) {
            for (name, value) in &self.all.list {
                put(name, value)?;
            }
        }
        let defaults = self.by_element.get(&element.name);
        for (name, value) in defaults.into_iter().flat_map(|defaults| &defaults.list) {
            put(name, value)?;
        }
        // The CSS classes of several MJML classes are joined.
        let mut css_classes = String::new();
        for class in classes
            .split(' ')
            .filter_map(|class| self.classes.get(class))
        {
            for (name, value) in &class.list {
                if *name == "css-class" {
                    css_classes.push_str(if css_classes.is_empty() { "" } else { " " });
                    css_classes.push_str(value);
                    put(name, &css_classes)?;
                } else {
                    put(name, value)?;
                }
            }
        }
        for class in parent_classes.split(' ') {
            let within = self.within.get(class);
            let within = within.and_then(|within| within.get(&element.name));
            for (name, value) in within.into_iter().flatten() {
                put(name, value)?;
            }
        }
        for (name, value) in &element.attributes {
            put(name, value)?;
        }
        let mut attributes = resolved.list;
        attributes.retain(|(name, _)| *name != "mj-class");
        Ok(attributes)
    }
}
