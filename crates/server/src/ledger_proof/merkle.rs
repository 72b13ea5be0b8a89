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

/// For each leaf at one of `indexes`, which are in order, the hashes beside its way up to the root, from below. Each node is
/// hashed once.
pub fn paths(leaves: &[Hash], indexes: &[usize]) -> Vec<Vec<Hash>> {
    assert!(
        indexes.is_sorted() && indexes.last().is_none_or(|last| *last < leaves.len()),
        "a leaf that is there has a path"
    );
    root_and_paths(leaves, 0, indexes).1
}

/// Of the leaves from the number `first` on.
fn root_and_paths(leaves: &[Hash], first: usize, indexes: &[usize]) -> (Hash, Vec<Vec<Hash>>) {
    if indexes.is_empty() {
        return (root(leaves), Vec::new());
    }
    if let [leaf] = leaves {
        return (*leaf, vec![Vec::new(); indexes.len()]);
    }
    let half = split(leaves.len());
    let (left, right) = leaves.split_at(half);
    let (on_left, on_right) = indexes.split_at(indexes.partition_point(|index| *index < first + half));
    let (left, mut paths) = root_and_paths(left, first, on_left);
    let (right, mut others) = root_and_paths(right, first + half, on_right);
    paths.iter_mut().for_each(|path| path.push(right));
    others.iter_mut().for_each(|path| path.push(left));
    paths.append(&mut others);
    (node(&left, &right), paths)
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
            let all = paths(&leaves, &(0..size).collect::<Vec<_>>());
            for index in 0..size {
                let path = all[index].clone();
                assert_eq!(
                    paths(&leaves, &[index]),
                    std::slice::from_ref(&path),
                    "alone and beside others it has the same way"
                );
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
