//! What a payer fills in on the page of a payment, before the choice of a method: which field it is, what to know before, and
//! what is wrong with it.

use super::Payment;
use crate::pages::amount;
use crate::pages::text::plain;
use crate::pages::view::{Amount, Field, FieldError, FieldKind, Label, Part, PartError, PaymentPage};

/// Whether there is anything to type beside the methods.
pub(super) fn asks(page: &PaymentPage) -> bool {
    page.part.is_some() || !page.fields.is_empty()
}

impl<'a> Payment<'a> {
    pub(super) fn label(&self, label: &Label) -> String {
        match label {
            Label::Amount => self.t.get("field-amount"),
            Label::Name => self.t.get("field-name"),
            Label::Email => self.t.get("field-email"),
            Label::Phone => self.t.get("phone-label"),
            Label::Own(words) => plain(words),
        }
    }

    pub(super) fn input_type(&self, field: &Field) -> &'static str {
        match field.kind {
            FieldKind::Email => "email",
            FieldKind::Phone => "tel",
            FieldKind::Amount { .. }
            | FieldKind::Name
            | FieldKind::Text
            | FieldKind::Number
            | FieldKind::Select { .. }
            | FieldKind::Checkbox => "text",
        }
    }

    pub(super) fn input_mode(&self, field: &Field) -> &'static str {
        match field.kind {
            FieldKind::Amount { .. } | FieldKind::Number => "decimal",
            FieldKind::Email => "email",
            FieldKind::Phone => "tel",
            FieldKind::Name | FieldKind::Text | FieldKind::Select { .. } | FieldKind::Checkbox => "text",
        }
    }

    /// What a browser may fill in by itself: only what is asked of the payer, not what a merchant calls it.
    pub(super) fn fills_in(&self, field: &Field) -> &'static str {
        match field.label {
            Label::Name => "name",
            Label::Email => "email",
            Label::Phone => "tel",
            Label::Amount | Label::Own(_) => "off",
        }
    }

    /// What a payer needs to know before filling in a field.
    pub(super) fn hint(&self, field: &Field) -> Option<String> {
        match &field.kind {
            FieldKind::Amount { least: Some(least), most: Some(most), .. } => {
                let (least, most) = (self.money(least), self.money(most));
                Some(self.t.with_two("field-between", ("least", &least), ("most", &most)))
            }
            FieldKind::Amount { least: Some(least), most: None, .. } => {
                Some(self.t.with("field-least", "amount", self.money(least)))
            }
            FieldKind::Amount { least: None, most: Some(most), .. } => {
                Some(self.t.with("field-most", "amount", self.money(most)))
            }
            FieldKind::Amount { least: None, most: None, currency, .. } => {
                Some(self.t.with("field-currency", "currency", currency))
            }
            FieldKind::Phone => Some(self.t.get("field-phone-hint")),
            FieldKind::Name
            | FieldKind::Text
            | FieldKind::Number
            | FieldKind::Email
            | FieldKind::Select { .. }
            | FieldKind::Checkbox => None,
        }
    }

    pub(super) fn field_error(&self, field: &Field) -> Option<String> {
        let bound = |bound: &Option<Amount>, key, without| match bound {
            Some(bound) => self.t.with(key, "amount", self.money(bound)),
            None => self.t.get(without),
        };
        Some(match (field.error?, &field.kind) {
            (FieldError::TooLittle, FieldKind::Amount { least, .. }) => bound(least, "field-least", "amount-too-small"),
            (FieldError::TooMuch, FieldKind::Amount { most, .. }) => bound(most, "field-most", "amount-too-large"),
            (FieldError::Missing, FieldKind::Amount { .. } | FieldKind::Name | FieldKind::Text | FieldKind::Number) => {
                self.t.get("field-missing")
            }
            (FieldError::Missing, FieldKind::Email) => self.t.get("field-email-missing"),
            (FieldError::Missing, FieldKind::Phone) => self.t.get("phone-missing"),
            (FieldError::Missing, FieldKind::Select { .. }) => self.t.get("field-select-missing"),
            (FieldError::Missing, FieldKind::Checkbox) => self.t.get("field-box-missing"),
            (FieldError::CardNumber, _) => self.t.get("field-card-number"),
            (FieldError::TooLong, _) => self.t.get("field-too-long"),
            (FieldError::Format, FieldKind::Amount { exponent, .. }) => self.amount_format(*exponent),
            (FieldError::Format, FieldKind::Email) => self.t.get("field-email-format"),
            (FieldError::Format, FieldKind::Phone) => self.t.get("field-phone-format"),
            (_, FieldKind::Number) => self.t.get("field-number-format"),
            (_, _) => self.t.get("field-format"),
        })
    }

    /// Everything that is wrong, with the field where it is.
    pub(super) fn field_errors(&self) -> Vec<(&'a str, String)> {
        let error = |field: &'a Field| {
            Some((field.name.as_str(), format!("{}: {}", self.label(&field.label), self.field_error(field)?)))
        };
        self.page.fields.iter().filter_map(error).collect()
    }

    /// How an amount is written that could not be read.
    fn amount_format(&self, exponent: u8) -> String {
        self.t.with("part-format", "example", amount::example(exponent, self.page.language.locale))
    }

    pub(super) fn part_summary(&self, part: &Part) -> String {
        self.t.get(if part.asked.is_some() { "part-other-summary" } else { "part-summary" })
    }

    pub(super) fn part_hint(&self, part: &Part) -> String {
        let most = self.money(&part.most);
        match &part.asked {
            Some(asked) => self.t.with_two("part-other-hint", ("amount", &most), ("asked", &self.money(asked))),
            None => self.t.with("part-hint", "amount", most),
        }
    }

    pub(super) fn part_error(&self, error: &PartError, most: &Amount) -> String {
        match error {
            PartError::Format => self.amount_format(most.exponent),
            PartError::TooLittle => self.t.get("amount-too-small"),
            PartError::TooMuch => self.t.with("part-too-much", "amount", self.money(most)),
        }
    }

    /// Where a payer can type, Enter presses a form's first button: between methods it would choose, so that one does nothing.
    pub(super) fn has_field(&self) -> bool {
        asks(self.page)
    }

    pub(super) fn has_field_error(&self) -> bool {
        let in_part = self.page.part.as_ref().is_some_and(|part| part.error.is_some());
        in_part || self.page.fields.iter().any(|field| field.error.is_some())
    }
}
