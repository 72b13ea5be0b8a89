//! The defect that row D7 plants: who watches the memory has to see it, who doesn't sees nothing.
#![expect(unsafe_code, reason = "no safe code reads what isn't its own")]

fn main() {
    let bytes: Box<[u8]> = Box::new([1; 16]);
    let end = std::hint::black_box(bytes.len());
    // SAFETY: there is none: the byte behind the end belongs to nobody. It is read, and decides nothing but an exit code.
    let behind = unsafe { bytes.as_ptr().add(end).read() };
    std::process::exit(i32::from(behind == u8::MAX));
}
