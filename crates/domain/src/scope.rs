//! Whose data, and whether it is real: the pair that every stored row and every query carries.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::Id;
use crate::organization::Organization;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    Test,
    Live,
}

impl Mode {
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Test => "test",
            Mode::Live => "live",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "test" => Some(Mode::Test),
            "live" => Some(Mode::Live),
            _ => None,
        }
    }

    pub fn is_live(self) -> bool {
        self == Mode::Live
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Scope {
    pub organization: Id<Organization>,
    pub mode: Mode,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_read_as_it_is_written() {
        for (mode, text, is_live) in [(Mode::Test, "test", false), (Mode::Live, "live", true)] {
            assert_eq!((mode.as_str(), mode.to_string().as_str(), mode.is_live()), (text, text, is_live));
            assert_eq!(Mode::parse(text), Some(mode));
        }
        assert_eq!((Mode::parse("Live"), Mode::parse("")), (None, None), "and nothing else is one");
    }
}
