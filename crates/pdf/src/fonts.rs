//! The embedded fonts. `fonts/README.md` says where they come from.

use std::sync::{Arc, LazyLock};

use parley::fontique::{Blob, Collection, CollectionOptions, FontInfoOverride, SourceCache};
use parley::{FontContext, FontWeight};

pub(crate) const LATIN: &str = "Inter";
pub(crate) const ARABIC: &str = "Noto Sans Arabic";

struct Face {
    family: &'static str,
    weight: FontWeight,
    file: &'static [u8],
}

const FACES: [Face; 4] = [
    Face { family: LATIN, weight: FontWeight::NORMAL, file: include_bytes!("../fonts/Inter-Regular.otf") },
    Face { family: LATIN, weight: FontWeight::SEMI_BOLD, file: include_bytes!("../fonts/Inter-SemiBold.otf") },
    Face { family: ARABIC, weight: FontWeight::NORMAL, file: include_bytes!("../fonts/NotoSansArabic-Regular.ttf") },
    Face { family: ARABIC, weight: FontWeight::SEMI_BOLD, file: include_bytes!("../fonts/NotoSansArabic-Bold.ttf") },
];

/// The same files as blobs: a blob's id tells the fonts apart, and is given once per process.
static BLOBS: LazyLock<[Blob<u8>; FACES.len()]> =
    LazyLock::new(|| std::array::from_fn(|index| Blob::new(Arc::new(FACES[index].file))));

/// Fonts that can be written into a file, by the ids of their blobs.
static WRITABLE: LazyLock<Vec<(u64, krilla::text::Font)>> = LazyLock::new(|| {
    BLOBS
        .iter()
        .zip(&FACES)
        .map(|(blob, face)| {
            let font = krilla::text::Font::new(face.file.into(), 0).expect("an embedded font can be read");
            (blob.id(), font)
        })
        .collect()
});

/// Only these fonts, never those of the machine: the same values make the same file everywhere.
pub(crate) fn context() -> FontContext {
    let mut collection = Collection::new(CollectionOptions { shared: false, system_fonts: false });
    for (blob, face) in BLOBS.iter().zip(&FACES) {
        let family = FontInfoOverride {
            family_name: Some(face.family),
            weight: Some(face.weight),
            ..FontInfoOverride::default()
        };
        collection.register_fonts(blob.clone(), Some(family));
    }
    FontContext { collection, source_cache: SourceCache::default() }
}

pub(crate) fn writable(blob: &Blob<u8>) -> krilla::text::Font {
    let found = WRITABLE.iter().find(|(id, _)| *id == blob.id());
    found.map(|(_, font)| font.clone()).expect("text is set in the embedded fonts only")
}

pub(crate) fn is_arabic(blob: &Blob<u8>) -> bool {
    BLOBS.iter().zip(&FACES).any(|(it, face)| it.id() == blob.id() && face.family == ARABIC)
}
