//! Elements and attributes of an MPD, with errors that give their position.

use super::super::{ContentError, Place};
use super::time::read_duration;
use anabranch_units::Duration;
use roxmltree::{Document, Node};
use std::str::FromStr;

/// An element of a document, with the file's name for messages.
#[derive(Clone, Copy)]
pub(super) struct Element<'a> {
    file: &'a str,
    node: Node<'a, 'a>,
}

/// The text as a document.
pub(super) fn document<'a>(file: &str, text: &'a str) -> Result<Document<'a>, ContentError> {
    // Some MPDs declare entities; none of those tested needs more than a document type without them.
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..roxmltree::ParsingOptions::default() };
    Document::parse_with_options(text, options).map_err(|error| {
        let pos = error.pos();
        let message = error.to_string();
        // The library ends its messages with the position, which comes first here.
        let what = message.rsplit_once(" at ").map_or(message.as_str(), |(what, _)| what);
        ContentError::new(file, Some(Place { line: pos.row, column: pos.col }), format!("not well-formed XML: {what}"))
    })
}

impl<'a> Element<'a> {
    pub fn root(file: &'a str, document: &'a Document<'a>) -> Self {
        Element { file, node: document.root_element() }
    }

    /// The name without its namespace: older MPDs have another one.
    pub fn name(&self) -> &'a str {
        self.node.tag_name().name()
    }

    pub fn children(&self, name: &'a str) -> impl Iterator<Item = Element<'a>> + use<'a> {
        let file = self.file;
        let named = self.node.children().filter(move |n| n.is_element() && n.tag_name().name() == name);
        named.map(move |node| Element { file, node })
    }

    pub fn child(&self, name: &'a str) -> Option<Element<'a>> {
        self.children(name).next()
    }

    pub fn text(&self, attribute: &str) -> Option<&'a str> {
        self.node.attribute(attribute)
    }

    pub fn place(&self) -> Place {
        self.place_at(self.node.range().start)
    }

    fn place_at(&self, offset: usize) -> Place {
        let pos = self.node.document().text_pos_at(offset);
        Place { line: pos.row, column: pos.col }
    }

    /// An error at this element.
    pub fn error(&self, message: impl std::fmt::Display) -> ContentError {
        ContentError::new(self.file, Some(self.place()), message)
    }

    /// An error at one of its attributes.
    pub fn attribute_error(&self, attribute: &str, message: impl std::fmt::Display) -> ContentError {
        let place =
            self.node.attribute_node(attribute).map_or_else(|| self.place(), |a| self.place_at(a.range().start));
        ContentError::new(self.file, Some(place), message)
    }

    /// An attribute that is a number.
    pub fn number<T: FromStr>(&self, attribute: &str, expected: &str) -> Result<Option<T>, ContentError> {
        let Some(text) = self.text(attribute) else { return Ok(None) };
        let wrong = || self.attribute_error(attribute, format!("{attribute}=\"{text}\" is not {expected}"));
        text.trim().parse().map(Some).map_err(|_| wrong())
    }

    /// An attribute that is a duration, such as `PT1H2M3.5S`.
    pub fn duration(&self, attribute: &str) -> Result<Option<Duration>, ContentError> {
        let Some(text) = self.text(attribute) else { return Ok(None) };
        read_duration(text).map(Some).map_err(|what| {
            self.attribute_error(attribute, format!("{attribute}=\"{text}\" is not a duration: {what}"))
        })
    }

    /// The bytes of an attribute that is a range, such as `0-671`.
    pub fn range_bytes(&self, attribute: &str) -> Result<Option<u64>, ContentError> {
        let Some(text) = self.text(attribute) else { return Ok(None) };
        let bytes = text.split_once('-').and_then(|(first, last)| {
            let (first, last): (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            last.checked_sub(first)?.checked_add(1)
        });
        let wrong = || self.attribute_error(attribute, format!("{attribute}=\"{text}\" is not a range of bytes"));
        bytes.map(Some).ok_or_else(wrong)
    }
}
