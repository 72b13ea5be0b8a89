//! Reads a request's body to its end, up to a limit.

use axum::body::Body;
use bytes::Bytes;
use http_body_util::BodyExt as _;

use crate::monotonic;

/// Why there is no body.
#[derive(Debug)]
pub(crate) enum Unread {
    TooLarge,
    /// It did not come, or there was no place for it: see [`crate::gate::Full`].
    Broken(axum::Error),
}

/// Bytes that are kept in one piece until all are there: a large body that grew as a whole would be moved time and again, and
/// leave gaps of its own size in memory.
const PIECE: usize = 64 << 10;

/// What comes is copied: a part of a few bytes keeps all alive that was read from the network together with it, and takes more
/// than its bytes to note.
pub(crate) async fn read(mut body: Body, most_bytes: usize) -> Result<Bytes, Unread> {
    let (mut pieces, mut piece, mut room) = (Vec::new(), Vec::new(), most_bytes);
    let begun = monotonic::now();
    while let Some(frame) = body.frame().await {
        let Ok(part) = frame.map_err(Unread::Broken)?.into_data() else { continue };
        room = room.checked_sub(part.len()).ok_or(Unread::TooLarge)?;
        if piece.len() + part.len() > PIECE {
            pieces.push(std::mem::take(&mut piece));
        }
        piece.extend_from_slice(&part);
    }
    monotonic::was_sending(begun.elapsed());
    if pieces.is_empty() {
        return Ok(piece.into());
    }
    pieces.push(piece);
    Ok(pieces.concat().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_parts(parts: &[&'static str]) -> Body {
        let parts: Vec<_> = parts.iter().map(|part| Ok::<_, std::io::Error>(*part)).collect();
        Body::from_stream(futures_util::stream::iter(parts))
    }

    #[tokio::test]
    async fn a_body_is_all_of_its_parts_and_no_longer_than_it_may_be() {
        assert_eq!(read(in_parts(&["ab", "", "c"]), 3).await.unwrap(), "abc");
        assert!(read(Body::empty(), 0).await.unwrap().is_empty());
        let long: Vec<&'static str> = std::iter::repeat_n("0123456789", PIECE / 4).collect();
        assert_eq!(read(in_parts(&long), 10 * long.len()).await.unwrap(), long.concat());
        assert!(matches!(read(in_parts(&["ab", "cd"]), 3).await, Err(Unread::TooLarge)));
    }

    #[tokio::test]
    async fn a_body_that_breaks_off_is_none() {
        let parts = [Ok("ab"), Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset))];
        let body = Body::from_stream(futures_util::stream::iter(parts));
        assert!(matches!(read(body, 3).await, Err(Unread::Broken(_))));
    }
}
