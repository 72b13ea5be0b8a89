//! The hash tree of RFC 6962 §2.1 over SHA-256, and its proof that one leaf is in it.

use aws_lc_rs::digest::{Context, SHA256};

pub type Hash = [u8; 32];

const LEAF: u8 = 0;
const NODE: u8 = 1;

/// A leaf is never mistaken for a node: they are hashed apart.
pub fn leaf(content: &[u8]) -> Hash {
    hash(LEAF, &[content])
}

fn node(left: &Hash, right: &Hash) -> Hash {
    hash(NODE, &[left, right])
}

fn hash(kind: u8, parts: &[&[u8]]) -> Hash {
    let mut context = Context::new(&SHA256);
    context.update(&[kind]);
    parts.iter().for_each(|part| context.update(part));
    context.finish().as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// Of one leaf at least.
pub fn root(leaves: &[Hash]) -> Hash {
    match leaves {
        [] => unreachable!("a batch has entries"),
        [leaf] => *leaf,
        _ => {
            let (left, right) = leaves.split_at(split(leaves.len()));
            node(&root(left), &root(right))
        }
    }
}

/// The hashes beside the way from a leaf up to the root, from below.
pub fn path(leaves: &[Hash], index: usize) -> Vec<Hash> {
    assert!(index < leaves.len(), "a leaf that is there has a path");
    if leaves.len() == 1 {
        return Vec::new();
    }
    let half = split(leaves.len());
    let (left, right) = leaves.split_at(half);
    let (mut path, sibling) =
        if index < half { (path(left, index), root(right)) } else { (path(right, index - half), root(left)) };
    path.push(sibling);
    path
}

/// The root to which a path leads; `None` where the path does not fit a tree of so many leaves.
pub fn root_by_path(leaf: Hash, index: usize, size: usize, path: &[Hash]) -> Option<Hash> {
    if index >= size {
        return None;
    }
    if size == 1 {
        return path.is_empty().then_some(leaf);
    }
    let (sibling, below) = path.split_last()?;
    let half = split(size);
    if index < half {
        Some(node(&root_by_path(leaf, index, half, below)?, sibling))
    } else {
        Some(node(sibling, &root_by_path(leaf, index - half, size - half, below)?))
    }
}

/// The largest power of two below `size`: so many leaves stand on the left.
fn split(size: usize) -> usize {
    size.next_power_of_two() / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(hash: &Hash) -> String {
        hash.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The inputs and roots of the test vectors that certificate transparency logs share.
    #[test]
    fn known_trees_have_their_known_roots() {
        let inputs: [&[u8]; 8] = [
            &[],
            &[0x00],
            &[0x10],
            &[0x20, 0x21],
            &[0x30, 0x31],
            &[0x40, 0x41, 0x42, 0x43],
            &[0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57],
            &[0x60, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x6f],
        ];
        let leaves = inputs.map(leaf);
        let roots = [
            (1, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"),
            (2, "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"),
            (3, "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"),
            (8, "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"),
        ];
        for (size, expected) in roots {
            assert_eq!(hex(&root(&leaves[..size])), expected, "{size} leaves");
        }
    }

    #[test]
    fn a_path_proves_its_leaf_at_its_place_and_nothing_else() {
        for size in 1..=33_usize {
            let leaves: Vec<Hash> = (0..size).map(|number| leaf(&number.to_be_bytes())).collect();
            let whole = root(&leaves);
            for index in 0..size {
                let path = path(&leaves, index);
                assert_eq!(root_by_path(leaves[index], index, size, &path), Some(whole), "{index} of {size}");
                assert_ne!(root_by_path(leaf(b"another"), index, size, &path), Some(whole));
                for other in (0..size + 1).filter(|other| *other != index) {
                    assert_ne!(root_by_path(leaves[index], other, size, &path), Some(whole), "{index} as {other}");
                }
                for flipped in 0..path.len() {
                    let mut path = path.clone();
                    path[flipped][31] ^= 1;
                    assert_ne!(root_by_path(leaves[index], index, size, &path), Some(whole));
                }
                let mut longer = path.clone();
                longer.push([0; 32]);
                assert_eq!(root_by_path(leaves[index], index, size, &longer), None, "a path of another length");
                if let Some((_, shorter)) = path.split_last() {
                    assert_ne!(root_by_path(leaves[index], index, size, shorter), Some(whole));
                }
            }
        }
    }
}
