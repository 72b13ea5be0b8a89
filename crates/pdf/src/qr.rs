//! A QR code as rectangles.

use qrcode::{Color, EcLevel, QrCode};

pub(crate) struct Code {
    /// Modules a side, without the quiet zone.
    pub side: usize,
    /// Dark stretches: column, row and length in modules.
    pub dark: Vec<(usize, usize, usize)>,
}

impl Code {
    /// Nothing for an empty text and for one that no code can hold.
    pub(crate) fn new(text: &str) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        let code = QrCode::with_error_correction_level(text, EcLevel::M)
            .or_else(|_| QrCode::with_error_correction_level(text, EcLevel::L))
            .ok()?;
        let side = code.width();
        let modules = code.to_colors();
        let mut dark = Vec::new();
        for (row, modules) in modules.chunks(side).enumerate() {
            let mut column = 0;
            for stretch in modules.chunk_by(|one, other| one == other) {
                if stretch[0] == Color::Dark {
                    dark.push((column, row, stretch.len()));
                }
                column += stretch.len();
            }
        }
        Some(Self { side, dark })
    }
}
