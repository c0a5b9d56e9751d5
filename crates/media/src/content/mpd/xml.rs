//! Elements and attributes of an MPD, with faults that know their element.

use super::super::{ContentError, ContentWarning, Place};
use super::encoding::end_of;
use super::time::read_duration;
use anabranch_units::Duration;
use roxmltree::{Document, Node};
use std::str::FromStr;

/// Elements and texts of a document: each takes some hundred bytes, and the largest MPDs of services have some ten
/// thousand.
const MOST_NODES: u32 = 4_000_000;

/// The text of an MPD, for places in messages.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Source {
    pub file: String,
    pub text: String,
}

/// An element as messages name it, and its position.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Spot {
    offset: usize,
    /// Such as `<Period id="ad">`.
    element: String,
}

/// What is wrong with an element. The line is counted when it is shown.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fault {
    spot: Spot,
    message: String,
}

impl Source {
    /// The text as a document.
    pub fn document(&self) -> Result<Document<'_>, ContentError> {
        // Some MPDs declare entities; none of those tested needs more than a document type without them.
        let options = roxmltree::ParsingOptions {
            allow_dtd: true,
            nodes_limit: MOST_NODES,
            ..roxmltree::ParsingOptions::default()
        };
        Document::parse_with_options(&self.text, options).map_err(|error| {
            let pos = error.pos();
            let message = error.to_string();
            // The library ends its messages with the position, which comes first here.
            let what = message.rsplit_once(" at ").map_or(message.as_str(), |(what, _)| what);
            let place = Place { line: pos.row, column: pos.col };
            ContentError::new(
                &self.file,
                Some(place),
                format!("not well-formed XML: {what}; correct it, or get the file again"),
            )
        })
    }

    fn place(&self, spot: &Spot) -> Place {
        end_of(&self.text[..spot.offset])
    }

    /// An error at an element.
    pub fn error(&self, spot: &Spot, message: impl std::fmt::Display) -> ContentError {
        ContentError::new(&self.file, Some(self.place(spot)), format!("{message} ({})", spot.element))
    }

    /// An error that is at no single element.
    pub fn error_of_file(&self, message: impl std::fmt::Display) -> ContentError {
        ContentError::new(&self.file, None, message)
    }

    pub fn fault(&self, fault: &Fault) -> ContentError {
        self.error(&fault.spot, &fault.message)
    }

    /// A warning at an element.
    pub fn warning(&self, spot: &Spot, message: String) -> ContentWarning {
        ContentWarning { file: self.file.clone(), place: Some(self.place(spot)), message }
    }
}

/// An element of a document.
#[derive(Clone, Copy)]
pub(super) struct Element<'a>(Node<'a, 'a>);

impl<'a> Element<'a> {
    pub fn root(document: &'a Document<'a>) -> Self {
        Element(document.root_element())
    }

    /// The name without its namespace: older MPDs have another one.
    pub fn name(&self) -> &'a str {
        self.0.tag_name().name()
    }

    pub fn elements(&self) -> impl Iterator<Item = Element<'a>> + use<'a> {
        self.0.children().filter(Node::is_element).map(Element)
    }

    pub fn children(&self, name: &'a str) -> impl Iterator<Item = Element<'a>> + use<'a> {
        self.elements().filter(move |e| e.name() == name)
    }

    pub fn child(&self, name: &'a str) -> Option<Element<'a>> {
        self.children(name).next()
    }

    /// Its text, if it begins with one.
    pub fn content(&self) -> Option<&'a str> {
        self.0.text()
    }

    /// An attribute without a namespace.
    pub fn text(&self, attribute: &str) -> Option<&'a str> {
        self.0.attribute(attribute)
    }

    /// Where the content of a remote element is (xlink:href).
    pub fn remote(&self) -> Option<&'a str> {
        const XLINK: &str = "http://www.w3.org/1999/xlink";
        self.0.attribute((XLINK, "href"))
    }

    pub fn spot(&self) -> Spot {
        let id = self.text("id").map_or_else(String::new, |id| format!(" id=\"{id}\""));
        Spot { offset: self.0.range().start, element: format!("<{}{id}>", self.name()) }
    }

    /// A fault of this element.
    pub fn fault(&self, message: impl std::fmt::Display) -> Fault {
        Fault { spot: self.spot(), message: message.to_string() }
    }

    /// A fault of one of its attributes.
    pub fn attribute_fault(&self, attribute: &str, message: impl std::fmt::Display) -> Fault {
        let mut fault = self.fault(message);
        if let Some(node) = self.0.attribute_node(attribute) {
            fault.spot.offset = node.range().start;
        }
        fault
    }

    /// An attribute that is a number.
    pub fn number<T: FromStr>(&self, attribute: &str, expected: &str) -> Result<Option<T>, Fault> {
        let Some(text) = self.text(attribute) else { return Ok(None) };
        let wrong = || self.attribute_fault(attribute, format!("{attribute}=\"{text}\" is not {expected}: correct it"));
        text.trim().parse().map(Some).map_err(|_| wrong())
    }

    /// An attribute that is a duration, such as `PT1H2M3.5S`.
    pub fn duration(&self, attribute: &str) -> Result<Option<Duration>, Fault> {
        let Some(text) = self.text(attribute) else { return Ok(None) };
        read_duration(text).map(Some).map_err(|what| {
            let message =
                format!("{attribute}=\"{text}\" is not a duration: {what}; expected one such as \"PT1M30.5S\"");
            self.attribute_fault(attribute, message)
        })
    }

    /// The bytes of an attribute that is a range (RFC 9110, 14.1.1): `0-671`, `-500`; within, `None` of one that ends
    /// with the file, such as `672-`.
    pub fn range_bytes(&self, attribute: &str) -> Result<Option<Option<u64>>, Fault> {
        let Some(text) = self.text(attribute) else { return Ok(None) };
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let bytes = text.split_once('-').and_then(|(first, last)| match (first.trim(), last.trim()) {
            ("", last) => number(last).filter(|&bytes| bytes > 0).map(Some),
            (first, "") => number(first).map(|_| None),
            (first, last) => number(last)?.checked_sub(number(first)?)?.checked_add(1).map(Some),
        });
        let wrong = || {
            let message = format!("{attribute}=\"{text}\" is not a range of bytes: expected one such as \"0-671\"");
            self.attribute_fault(attribute, message)
        };
        bytes.map(Some).ok_or_else(wrong)
    }
}
