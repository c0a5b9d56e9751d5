//! Deserializes the tree of a scenario with serde, so that each mistake knows its place.
//!
//! serde's own ways to flatten a struct and to choose a variant by a key buffer the values, and a buffered value has
//! lost its place. Here both work on the tree itself:
//!
//! - a *tuple struct* read from a table reads the whole table once for each of its fields, and every key must belong to
//!   one of them: several structs share a table;
//! - an *enum* read from a table takes its variant from the key `kind` (or `name`), its content from the other keys.

use super::document::{Entry, Node, Table, Value};
use super::json_schema::expected_of;
use super::mistake::{Mistake, alternatives};
use super::short_forms::LONG_KEYS;
use serde::de::{self, DeserializeSeed, Expected, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use std::cell::RefCell;
use std::fmt::{self, Display};

/// Deserializes a whole scenario.
pub(super) fn from_node<'de, T: de::Deserialize<'de>>(node: &'de Node) -> Result<T, Mistake> {
    T::deserialize(FromNode { node, label: Label::Root, tag: None, shared: None })
}

/// The way to a node, for messages.
#[derive(Clone, Copy)]
enum Label<'l> {
    Root,
    Key { parent: &'l Label<'l>, key: &'l str },
    Position { parent: &'l Label<'l>, position: usize },
}

impl Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Label::Root => f.write_str("the scenario"),
            Label::Position { parent: Label::Key { key, .. }, position } => write!(f, "[[{key}]] {position}"),
            Label::Position { parent, .. } => parent.fmt(f),
            Label::Key { parent: Label::Root, key } => write!(f, "[{key}]"),
            Label::Key { parent: Label::Key { parent: Label::Root, key: table @ ("link" | "path") }, key } => {
                write!(f, "[{table}.{key}]")
            }
            Label::Key { parent, key: key @ ("up" | "down") } => write!(f, "`{key}` of {parent}"),
            Label::Key { key, .. } => f.write_str(key),
        }
    }
}

/// The keys that name the variant of a table.
const TAGS: [&str; 2] = ["kind", "name"];

/// A node that serde reads.
#[derive(Clone, Copy)]
struct FromNode<'de, 'l> {
    node: &'de Node,
    /// How messages call it.
    label: Label<'l>,
    /// A key that names the variant and is no field of its content.
    tag: Option<&'static str>,
    /// Set while several structs share the table: the fields of those read so far.
    shared: Option<&'l RefCell<Vec<&'static str>>>,
}

impl<'de> FromNode<'de, '_> {
    fn table(&self, expected: &dyn Expected) -> Result<&'de Table, Mistake> {
        match &self.node.value {
            Value::Table(table) => Ok(table),
            other => Err(Mistake::wrong_kind(other, expected)),
        }
    }

    /// The entries but for the one that names the variant.
    fn entries(&self, table: &'de Table) -> impl Iterator<Item = &'de Entry> + use<'de> {
        let tag = self.tag;
        table.entries.iter().filter(move |entry| tag.is_none_or(|tag| entry.key != tag))
    }

    fn check_keys(&self, table: &'de Table, fields: &[&'static str]) -> Result<(), Mistake> {
        let Some(entry) = self.entries(table).find(|entry| !fields.contains(&entry.key.as_str())) else {
            return Ok(());
        };
        let known: Vec<&str> = fields.iter().copied().filter(|field| !LONG_KEYS.contains(field)).collect();
        Err(Mistake::unknown_key(entry.shown(), &known).in_table(&self.label.to_string(), &entry.at))
    }

    fn visit_table<V: Visitor<'de>>(self, table: &'de Table, visitor: V) -> Result<V::Value, Mistake> {
        visitor.visit_map(Entries { entries: self.entries(table).collect(), next: 0, of: &self.label })
    }

    /// Puts what is wrong with the keys of this table in its place.
    fn placed(&self, mistake: Mistake) -> Mistake {
        mistake.in_table(&self.label.to_string(), &self.node.at)
    }
}

impl<'de> de::Deserializer<'de> for FromNode<'de, '_> {
    type Error = Mistake;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        match &self.node.value {
            Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::Integer(n) => visitor.visit_i64(*n),
            Value::Float(x) => visitor.visit_f64(*x),
            Value::Flag(flag) => visitor.visit_bool(*flag),
            Value::List(list) => visitor.visit_seq(Items { list, next: 0, of: &self.label }),
            Value::Table(table) => self.visit_table(table, visitor).map_err(|mistake| self.placed(mistake)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Mistake> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        let table = self.table(&visitor)?;
        match self.shared {
            Some(shared) => shared.borrow_mut().extend(fields),
            None => self.check_keys(table, fields)?,
        }
        let read = self.visit_table(table, visitor);
        read.map_err(|mistake| self.placed(mistake.expecting(|key| expected_of(name, key))))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        parts: usize,
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        let table = self.table(&visitor)?;
        let fields = RefCell::new(Vec::new());
        let value = visitor.visit_seq(Parts { part: FromNode { shared: Some(&fields), ..self }, left: parts })?;
        self.check_keys(table, &fields.borrow())?;
        Ok(value)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        let table = match &self.node.value {
            Value::Text(word) if variants.contains(&word.as_str()) => {
                return visitor.visit_enum(IntoDeserializer::<Mistake>::into_deserializer(word.as_str()));
            }
            Value::Text(word) => return Err(Mistake::word(word, None, variants)),
            Value::Table(table) => table,
            other => return Err(Mistake::wrong_kind(other, &visitor)),
        };
        let Some((tag, entry)) = TAGS.iter().find_map(|tag| Some((*tag, table.get(tag)?))) else {
            return Err(self.placed(Mistake::missing("kind", alternatives("", variants).0)));
        };
        match &entry.node.value {
            Value::Text(word) if variants.contains(&word.as_str()) => {
                visitor.visit_enum(Variant { word, content: FromNode { tag: Some(tag), ..self } })
            }
            Value::Text(word) => Err(Mistake::word(word, Some(name), variants).in_value(entry.shown(), &entry.node.at)),
            other => Err(Mistake::wrong_kind(other, &"a text").in_value(entry.shown(), &entry.node.at)),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple map
        identifier ignored_any
    }
}

/// The entries of a table, in the order in which they were written.
struct Entries<'de, 'l> {
    entries: Vec<&'de Entry>,
    next: usize,
    of: &'l Label<'l>,
}

impl<'de> de::MapAccess<'de> for Entries<'de, '_> {
    type Error = Mistake;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Mistake> {
        let Some(entry) = self.entries.get(self.next) else { return Ok(None) };
        let key = IntoDeserializer::<Mistake>::into_deserializer(entry.key.as_str());
        seed.deserialize(key).map(Some).map_err(|mistake| mistake.in_table(&self.of.to_string(), &entry.at))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Mistake> {
        let entry = self.entries[self.next];
        self.next += 1;
        let label = Label::Key { parent: self.of, key: &entry.key };
        let value = seed.deserialize(FromNode { node: &entry.node, label, tag: None, shared: None });
        value.map_err(|mistake| mistake.in_value(entry.shown(), &entry.node.at))
    }
}

/// The items of a list.
struct Items<'de, 'l> {
    list: &'de [Node],
    next: usize,
    of: &'l Label<'l>,
}

impl<'de> de::SeqAccess<'de> for Items<'de, '_> {
    type Error = Mistake;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Mistake> {
        let Some(node) = self.list.get(self.next) else { return Ok(None) };
        let label = Label::Position { parent: self.of, position: self.next };
        self.next += 1;
        let key = if let Label::Key { key, .. } = self.of { key } else { "list" };
        let item = seed.deserialize(FromNode { node, label, tag: None, shared: None });
        item.map(Some).map_err(|mistake| mistake.in_value(key, &node.at))
    }
}

/// One table for each of several structs.
struct Parts<'de, 'l> {
    part: FromNode<'de, 'l>,
    left: usize,
}

impl<'de> de::SeqAccess<'de> for Parts<'de, '_> {
    type Error = Mistake;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Mistake> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        seed.deserialize(self.part).map(Some)
    }
}

/// A table whose variant is known.
struct Variant<'de, 'l> {
    word: &'de str,
    content: FromNode<'de, 'l>,
}

impl<'de, 'l> de::EnumAccess<'de> for Variant<'de, 'l> {
    type Error = Mistake;
    type Variant = FromNode<'de, 'l>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), Mistake> {
        let word = IntoDeserializer::<Mistake>::into_deserializer(self.word);
        Ok((seed.deserialize(word)?, self.content))
    }
}

impl<'de> de::VariantAccess<'de> for FromNode<'de, '_> {
    type Error = Mistake;

    fn unit_variant(self) -> Result<(), Mistake> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Mistake> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, parts: usize, visitor: V) -> Result<V::Value, Mistake> {
        de::Deserializer::deserialize_tuple_struct(self, "", parts, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, fields: &'static [&'static str], visitor: V) -> Result<V::Value, Mistake> {
        de::Deserializer::deserialize_struct(self, "", fields, visitor)
    }
}
