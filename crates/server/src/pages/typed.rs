//! What a payer typed into a form that did nothing: the page shows it again, so that nobody types it twice.

use domain::payment_link::FieldType;
use serde::{Deserialize, Serialize};

use super::amount;
use super::form::{self, Form};
use super::text::Locale;
use super::{questions, shown};
use crate::app::hosted::{Hosted, Place};
use crate::card_number::has_card_number;

/// It rides in an address.
const MOST_BYTES: usize = 1500;

/// By the names of the form's fields. With answers goes what names the questions that they answer (`shown`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Typed(Vec<(String, String)>);

impl Typed {
    /// Never a card's number, and no code.
    pub(super) fn in_form(form: &Form) -> Self {
        let mut left = MOST_BYTES;
        let mut typed = form.fields();
        typed.retain(|(name, text)| {
            let is_kept = (questions::is_field(name) || name == form::SHOWN) && !text.trim().is_empty();
            let fits = is_kept && text.len() <= left && !has_card_number(text);
            left -= if fits { text.len() } else { 0 };
            fits
        });
        Self(typed)
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(it, _)| it == name).map(|(_, text)| text.as_str())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Without the answers to questions that are others now.
    pub(super) fn of_page(mut self, hosted: &Hosted, place: Place) -> Self {
        if self.get(form::SHOWN) != shown::named(hosted, place).as_deref() {
            self.0.retain(|(name, _)| questions::index_of(name).is_none());
        }
        self
    }

    /// As the page's other language writes it. What is no number in this one is left out where one is asked for: it might be
    /// another in that.
    pub(super) fn in_other_language(mut self, hosted: &Hosted, place: Place, locale: Locale) -> Self {
        let asked = questions::asked(hosted, place);
        let is_number = |name: &str| match questions::index_of(name) {
            Some(index) => asked.get(index).is_some_and(|question| question.kind == FieldType::Number),
            None => name == questions::AMOUNT,
        };
        self.0.retain_mut(|(name, text)| {
            let number = is_number(name).then(|| amount::typed(text, locale));
            if let Some(Some(number)) = &number {
                *text = amount::to_type(number, locale.other());
            }
            number.is_none_or(|number| number.is_some())
        });
        self
    }
}
