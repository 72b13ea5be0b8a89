//! What the parts of a document are, for those who have it read to them.

use std::num::NonZeroU16;

use krilla::tagging::{Identifier, Node, TableHeaderScope, Tag, TagGroup, TagKind, TagTree};

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Heading(&'static str),
    Paragraph,
    Table,
    TableHead,
    TableBody,
    Row,
    ColumnHeader,
    RowHeader,
    Cell,
    /// With the words that stand for it.
    Figure(String),
    Link,
}

/// Names a part while the document is composed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part(usize);

struct Grown {
    kind: Kind,
    parts: Vec<Part>,
    drawn: Vec<Identifier>,
}

/// Parts within parts, in reading order. What is drawn of each is known only once it is written.
#[derive(Default)]
pub(crate) struct Tags {
    all: Vec<Grown>,
    top: Vec<Part>,
}

impl Tags {
    pub(crate) fn part(&mut self, kind: Kind) -> Part {
        let part = self.grow(kind);
        self.top.push(part);
        part
    }

    pub(crate) fn part_of(&mut self, whole: Part, kind: Kind) -> Part {
        let part = self.grow(kind);
        self.all[whole.0].parts.push(part);
        part
    }

    fn grow(&mut self, kind: Kind) -> Part {
        self.all.push(Grown { kind, parts: Vec::new(), drawn: Vec::new() });
        Part(self.all.len() - 1)
    }

    pub(crate) fn drawn(&mut self, part: Part, identifier: Identifier) {
        self.all[part.0].drawn.push(identifier);
    }

    pub(crate) fn tree(mut self, language: &str) -> TagTree {
        let mut tree = TagTree::new().with_lang(Some(language.to_owned()));
        for part in std::mem::take(&mut self.top) {
            tree.push(self.group(part));
        }
        tree
    }

    fn group(&mut self, part: Part) -> TagGroup {
        let Grown { kind, parts, drawn } = &mut self.all[part.0];
        let mut group = TagGroup::new(tag(kind));
        let (parts, drawn) = (std::mem::take(parts), std::mem::take(drawn));
        for identifier in drawn {
            group.push(Node::Leaf(identifier));
        }
        for part in parts {
            group.push(self.group(part));
        }
        group
    }
}

fn tag(kind: &Kind) -> TagKind {
    match kind {
        Kind::Heading(title) => Tag::Hn(NonZeroU16::MIN, Some((*title).to_owned())).into(),
        Kind::Paragraph => Tag::P.into(),
        Kind::Table => Tag::Table.into(),
        Kind::TableHead => Tag::THead.into(),
        Kind::TableBody => Tag::TBody.into(),
        Kind::Row => Tag::TR.into(),
        Kind::ColumnHeader => Tag::TH(TableHeaderScope::Column).into(),
        Kind::RowHeader => Tag::TH(TableHeaderScope::Row).into(),
        Kind::Cell => Tag::TD.into(),
        Kind::Figure(words) => Tag::Figure(Some(words.clone())).into(),
        Kind::Link => Tag::Link.into(),
    }
}
