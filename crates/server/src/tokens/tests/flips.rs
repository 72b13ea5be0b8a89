//! Row D4: no token with some bits flipped is accepted, and none of the corpus of attacks. What is judged is judged itself: by
//! verifiers that make the mistakes which the attacks are about.

use aws_lc_rs::hmac;
use proof::Proof;

use super::attacks::attacks;
use super::*;

const GATE_FLIPS: u64 = 10_000;

/// One step of SplitMix64: enough to choose bits by a seed.
fn next(state: &mut u64) -> usize {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    usize::try_from((mixed ^ (mixed >> 31)) >> 1).expect("63 bits")
}

/// Good tokens of several lengths, of the key that signs and of the one that did before.
fn good_tokens() -> Vec<String> {
    let mut tokens = Vec::new();
    for signer in [1, 3] {
        for length in 0..4 {
            let scope = ["read:checkouts", "write:checkouts"].map(|right| right.repeat(length)).join(" ");
            let claims = with(&good_claims(), "scope", json!(scope));
            tokens.push(signed(signer, &good_header(signer).to_string(), &claims));
        }
    }
    tokens
}

/// The token with one to three bits flipped, in its text or in what that decodes to; `None` if that is no text.
fn flipped(token: &str, state: &mut u64) -> Option<String> {
    let is_in_text = next(state).is_multiple_of(2);
    let mut parts: Vec<Vec<u8>> = match is_in_text {
        true => vec![token.as_bytes().to_vec()],
        false => token.split('.').map(|part| URL_SAFE_NO_PAD.decode(part).expect("base64url")).collect(),
    };
    for _ in 0..=next(state) % 3 {
        let part = next(state) % parts.len();
        let at = next(state) % parts[part].len();
        parts[part][at] ^= 1 << (next(state) % if is_in_text { 7 } else { 8 });
    }
    let text = match is_in_text {
        true => String::from_utf8(parts.remove(0)).ok()?,
        false => parts.iter().map(|part| URL_SAFE_NO_PAD.encode(part)).collect::<Vec<_>>().join("."),
    };
    (text != token).then_some(text)
}

/// The mistakes of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    /// `alg` is taken from the header.
    HeaderChooses,
    /// The signature is decoded and not checked.
    NotChecked,
}

fn is_accepted_by(mistake: Mistake, token: &str) -> bool {
    let parts: Vec<&str> = token.split('.').collect();
    let [header, claims, signature] = parts.as_slice() else { return false };
    let json = |part: &str| URL_SAFE_NO_PAD.decode(part).ok().and_then(|it| serde_json::from_slice::<Value>(&it).ok());
    let (Some(header_json), Some(_), Ok(bytes)) = (json(header), json(claims), URL_SAFE_NO_PAD.decode(signature))
    else {
        return false;
    };
    match (mistake, header_json["alg"].as_str().map(str::to_ascii_lowercase).as_deref()) {
        (Mistake::NotChecked, _) | (Mistake::HeaderChooses, Some("none")) => true,
        (Mistake::HeaderChooses, Some("hs256")) => {
            let key = hmac::Key::new(hmac::HMAC_SHA256, signing_key(1).public().bytes());
            hmac::verify(&key, format!("{header}.{claims}").as_bytes(), &bytes).is_ok()
        }
        (Mistake::HeaderChooses, _) => false,
    }
}

#[test]
fn no_forged_and_no_flipped_token_is_accepted() {
    let mut proof = Proof::begin("D4", None, GATE_FLIPS);
    let (keys, tokens, attacks) = (keys(), good_tokens(), attacks());
    for token in &tokens {
        assert!(keys.verify(token, NOW, ISSUER).is_ok(), "{token} is no good token to begin with");
    }
    if attacks.len() < 400 {
        proof.violation(format!("{} forged tokens", attacks.len()));
    }
    for (name, token) in &attacks {
        if keys.verify(token, NOW, ISSUER) != Err(TokenFault::Invalid) {
            proof.violation(format!("accepted: {name}"));
        }
    }
    let (mut state, mut flips, mut is_seen) = (proof.seed, 0, false);
    while flips < proof.count {
        let Some(token) = flipped(&tokens[next(&mut state) % tokens.len()], &mut state) else { continue };
        if keys.verify(&token, NOW, ISSUER) != Err(TokenFault::Invalid) {
            proof.violation(format!("accepted: {token}"));
        }
        is_seen |= is_accepted_by(Mistake::NotChecked, &token);
        flips += 1;
    }
    let falls_for = |mistake| attacks.iter().any(|(_, token)| is_accepted_by(mistake, token));
    proof.control("alg taken from the header", falls_for(Mistake::HeaderChooses));
    proof.control("a signature that is not looked at", is_seen && falls_for(Mistake::NotChecked));
    proof.finish(flips);
}
