//! The defect that row D14.builds plants: a program that holds the path of the folder in which it was built.

fn main() {
    std::hint::black_box(env!("CARGO_MANIFEST_DIR"));
}
