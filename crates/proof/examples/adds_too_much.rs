//! The defect that row D7 plants: a sum that doesn't fit and that nobody checks. Every build of ours has to stop at it.

fn main() {
    let most = std::hint::black_box(i64::MAX);
    std::hint::black_box(most + 1);
}
