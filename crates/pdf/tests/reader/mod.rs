//! What another program reads from our files: poppler, which shares no code with us.
#![allow(dead_code, unreachable_pub, reason = "every user takes some of it")]

use std::io::Write as _;
use std::process::{Command, Stdio};

/// The words of a file in reading order, one line per line, runs of blanks as one.
pub fn text(file: &[u8]) -> String {
    let text = String::from_utf8(poppler("pdftotext", &["-layout", "-", "-"], file)).expect("UTF-8");
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

/// One text per page.
pub fn pages(file: &[u8]) -> Vec<String> {
    let text = String::from_utf8(poppler("pdftotext", &["-layout", "-", "-"], file)).expect("UTF-8");
    text.split_terminator('\u{c}').map(str::to_owned).collect()
}

pub fn page_count(file: &[u8]) -> usize {
    let count = about(file).into_iter().find(|(name, _)| name == "Pages");
    count.and_then(|(_, count)| count.parse().ok()).expect("a number of pages")
}

/// Without the layout: a paragraph's lines follow one another.
pub fn raw_text(file: &[u8]) -> String {
    String::from_utf8(poppler("pdftotext", &["-raw", "-", "-"], file)).expect("UTF-8")
}

/// In reading order, without the marks that the reader adds around what is written from the right.
pub fn logical_text(file: &[u8]) -> String {
    let text = String::from_utf8(poppler("pdftotext", &["-", "-"], file)).expect("UTF-8");
    text.chars().filter(|it| !matches!(it, '\u{202a}'..='\u{202e}')).collect()
}

/// What the file says of itself, by name.
pub fn about(file: &[u8]) -> Vec<(String, String)> {
    let text = String::from_utf8(poppler("pdfinfo", &["-"], file)).expect("UTF-8");
    text.lines().filter_map(|it| it.split_once(':')).map(|(name, value)| (name.into(), value.trim().into())).collect()
}

/// The tags of the file, as a tree in lines, with their text.
pub fn structure(file: &[u8]) -> String {
    String::from_utf8(poppler("pdfinfo", &["-struct-text", "-"], file)).expect("UTF-8")
}

/// What the QR codes of a page say.
pub fn codes(file: &[u8]) -> Vec<String> {
    let grey = poppler("pdftoppm", &["-r", "200", "-gray", "-singlefile", "-"], file);
    let (width, height, pixels) = portable_grey_map(&grey);
    let mut image = rqrr::PreparedImage::prepare_from_greyscale(width, height, |x, y| pixels[y * width + x]);
    image.detect_grids().iter().map(|grid| grid.decode().expect("a whole code").1).collect()
}

/// `P5 width height 255`, one byte of white space, and the pixels.
fn portable_grey_map(file: &[u8]) -> (usize, usize, &[u8]) {
    let mut rest = file;
    let mut word = || {
        let end = rest.iter().position(u8::is_ascii_whitespace).expect("a header");
        let (word, after) = rest.split_at(end);
        rest = &after[1..];
        std::str::from_utf8(word).expect("ASCII").to_owned()
    };
    assert_eq!(word(), "P5");
    let (width, height) = (word().parse().expect("a width"), word().parse().expect("a height"));
    assert_eq!(word(), "255");
    (width, height, rest)
}

fn poppler(program: &str, arguments: &[&str], file: &[u8]) -> Vec<u8> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("{program}: {error}; on Debian: apt-get install poppler-utils"));
    let mut input = child.stdin.take().expect("it was asked for");
    let file = file.to_vec();
    let writer = std::thread::spawn(move || input.write_all(&file));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("no panic").expect("it reads all");
    assert!(output.status.success(), "{program} refuses the file");
    output.stdout
}
