//! Everything that a client could send to say who it is, and who it then is.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use dalasi::app::keys;
use dalasi::credentials::ApiKey;
use dalasi::tokens::{Grant, SigningKey, SigningKeys};
use domain::api_key::{Area, KeyKind, Right, Rights};
use domain::{Mode, Scope};
use serde_json::{Value, json};
use store::queries::signing_keys;

use super::tenants::{Tenants, new_key};
use crate::world::PAY_URL;

pub(crate) struct Credential {
    pub(crate) name: String,
    /// Sent as they stand.
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) query: Option<String>,
    pub(crate) is: Is,
}

/// What the server has to make of it.
#[derive(Debug, Clone)]
pub(crate) enum Is {
    /// 401 with this code.
    Nobody(&'static str),
    Secret(Scope, Rights),
    Token(Scope, Rights),
    Publishable(Scope),
}

const MISSING: &str = "authentication_required";
const NO_KEY: &str = "invalid_api_key";
const NO_TOKEN: &str = "invalid_token";

struct Wallet(Vec<Credential>);

impl Wallet {
    fn bearer(&mut self, name: impl Into<String>, text: impl std::fmt::Display, is: Is) {
        self.header(name, format!("Bearer {text}"), is);
    }

    fn header(&mut self, name: impl Into<String>, value: impl Into<String>, is: Is) {
        self.headers(name, vec![("authorization", value.into())], is);
    }

    fn headers(&mut self, name: impl Into<String>, headers: Vec<(&'static str, String)>, is: Is) {
        self.0.push(Credential { name: name.into(), headers, query: None, is });
    }

    fn query(&mut self, name: &str, query: String) {
        self.0.push(Credential { name: name.into(), headers: Vec::new(), query: Some(query), is: Is::Nobody(MISSING) });
    }
}

pub(crate) async fn all(tenants: &Tenants) -> Vec<Credential> {
    let mut wallet = Wallet(Vec::new());
    keys_and_their_shadows(tenants, &mut wallet).await;
    tokens(tenants, &mut wallet).await;
    scopes_alone(tenants, &mut wallet).await;
    wallet.0
}

async fn keys_and_their_shadows(tenants: &Tenants, wallet: &mut Wallet) {
    let (world, ours) = (&tenants.world, &tenants.ours);
    let key = ours.key.text.expose();
    let (here, all) = (ours.scope, Rights::all());
    let live = Scope { mode: Mode::Live, ..here };

    wallet.bearer("a secret key", key, Is::Secret(here, all.clone()));
    wallet.header("its scheme in small letters", format!("bearer {key}"), Is::Secret(here, all.clone()));
    let newer = new_key(world, here, KeyKind::Secret, all.clone()).await;
    wallet.bearer("a newer key beside it", newer.text.expose(), Is::Secret(here, all.clone()));
    let of_live = new_key(world, live, KeyKind::Secret, all.clone()).await;
    wallet.bearer("a secret key of live mode", of_live.text.expose(), Is::Secret(live, all.clone()));
    let theirs = tenants.theirs.key.text.expose();
    wallet.bearer("a secret key of another merchant", theirs, Is::Secret(tenants.theirs.scope, all.clone()));
    let publishable = new_key(world, here, KeyKind::Publishable, all.clone()).await;
    let publishable = publishable.text.expose().to_owned();
    wallet.bearer("a publishable key", &publishable, Is::Publishable(here));
    let publishable_live = new_key(world, live, KeyKind::Publishable, all.clone()).await;
    wallet.bearer("a publishable key of live mode", publishable_live.text.expose(), Is::Publishable(live));
    for (name, kind) in [("secret", KeyKind::Secret), ("publishable", KeyKind::Publishable)] {
        let revoked = new_key(world, here, kind, all.clone()).await;
        let id = revoked.key.id;
        world.app.commit(move |tx, _| keys::revoke(tx, here, id)).await.unwrap();
        wallet.bearer(format!("a revoked {name} key"), revoked.text.expose(), Is::Nobody(NO_KEY));
    }

    wallet.headers("nothing", Vec::new(), Is::Nobody(MISSING));
    for value in ["", "Bearer", "Bearer ", "Basic dXNlcjpwYXNz", "Bearer\t"] {
        wallet.header(format!("the header {value:?}"), value, Is::Nobody(MISSING));
    }
    wallet.header("a key without a scheme", key, Is::Nobody(MISSING));
    for scheme in ["Basic", "Token", "Digest", "ApiKey", "Bearer:"] {
        wallet.header(format!("a key by the scheme {scheme}"), format!("{scheme} {key}"), Is::Nobody(MISSING));
    }
    let nobodys = ApiKey::generate(KeyKind::Secret, Mode::Test, &[9; 32]);
    let wrong = [
        ("garbage", "nonsense".to_owned()),
        ("a key cut by one", key[..key.len() - 1].to_owned()),
        ("a key cut to its prefix", "sk_test_".to_owned()),
        ("a key with something behind it", format!("{key}0")),
        ("a key in capitals", key.to_uppercase()),
        ("a key with another last character", other_end(key)),
        ("a key that calls itself live", key.replace("sk_test_", "sk_live_")),
        ("a publishable key that calls itself secret", publishable.replace("pk_", "sk_")),
        ("a well-formed key that nobody has", nobodys.expose().to_owned()),
        ("the key's id", ours.key.key.id.to_string()),
        ("the key's stored digest", ours.key.key.digest.clone()),
        ("the organization's id", here.organization.to_string()),
        ("a webhook secret", ours.objects.endpoint_secret.clone()),
        ("a checkout's client secret", ours.objects.client_secret.clone()),
        ("two keys in one header", format!("{key}, Bearer {key}")),
        ("a quote for the database", "sk_test_' or '1'='1".to_owned()),
    ];
    for (name, text) in wrong {
        wallet.bearer(name, text, Is::Nobody(NO_KEY));
    }
    let header = |value: &str| ("authorization", format!("Bearer {value}"));
    wallet.headers("two headers", vec![header(key), header(key)], Is::Nobody(MISSING));
    wallet.headers("two headers, one of them garbage", vec![header("x"), header(key)], Is::Nobody(MISSING));
    wallet.headers("the key in X-Api-Key", vec![("x-api-key", key.to_owned())], Is::Nobody(MISSING));
    wallet.headers(
        "the key in Proxy-Authorization",
        vec![("proxy-authorization", format!("Bearer {key}"))],
        Is::Nobody(MISSING),
    );
    wallet.headers(
        "the key in a cookie",
        vec![("cookie", format!("session={key}; access_token={key}"))],
        Is::Nobody(MISSING),
    );
    for name in ["api_key", "access_token", "key", "Authorization"] {
        wallet.query(&format!("the key in the query as {name}"), format!("{name}={key}"));
    }
}

/// Genuine tokens, and those that lack one thing.
async fn tokens(tenants: &Tenants, wallet: &mut Wallet) {
    let (world, ours) = (&tenants.world, &tenants.ours);
    let (here, all) = (ours.scope, Rights::all());
    let signing = signing(tenants).await;
    let now = world.now().seconds();
    let grant = |scope: Scope, key: &str, rights: &str| Grant {
        key_id: key.to_owned(),
        organization_id: scope.organization.to_string(),
        mode: scope.mode,
        scope: rights.to_owned(),
        token_id: "tok_1".to_owned(),
    };
    let mine = grant(here, &ours.key.key.id.to_string(), &all.to_string());
    let mint = |grant: &Grant| signing.mint(grant, PAY_URL, now, 3600).unwrap();
    let token = mint(&mine);

    wallet.bearer("a token", &token, Is::Token(here, all.clone()));
    let theirs = grant(tenants.theirs.scope, &tenants.theirs.key.key.id.to_string(), &all.to_string());
    wallet.bearer("a token of another merchant", mint(&theirs), Is::Token(tenants.theirs.scope, all.clone()));
    let nothing = Grant { scope: String::new(), ..mine.clone() };
    wallet.bearer("a token for nothing", mint(&nothing), Is::Token(here, Rights::none()));

    let expired = signing.mint(&mine, PAY_URL, now - 7200, 3600).unwrap();
    wallet.bearer("an expired token", expired, Is::Nobody("token_expired"));
    let narrow = new_key(world, here, KeyKind::Secret, Rights::parse("read:checkouts").unwrap()).await;
    let revoked = new_key(world, here, KeyKind::Secret, all.clone()).await;
    let id = revoked.key.id;
    world.app.commit(move |tx, _| keys::revoke(tx, here, id)).await.unwrap();
    let stranger = SigningKeys::new(SigningKey::generate(&[5; 32]), None, Vec::new());
    let [header, claims, signature] = parts(&token);
    let live = Grant { mode: Mode::Live, ..mine.clone() };
    let of_theirs = Grant { organization_id: theirs.organization_id.clone(), ..mine.clone() };
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut record: Value = serde_json::from_slice(&BASE64.decode(&claims).unwrap()).unwrap();
        change(&mut record);
        BASE64.encode(record.to_string())
    };
    let head = |alg: &str| BASE64.encode(json!({"alg": alg, "typ": "JWT", "kid": signing.current_id()}).to_string());
    let symmetric = format!("{}.{claims}", head("HS256"));
    let public = signing.jwks()["keys"][0]["x"].as_str().unwrap().to_owned();
    let mac = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &BASE64.decode(public).unwrap()), symmetric.as_bytes());
    let wrong = [
        ("from the future", signing.mint(&mine, PAY_URL, now + 3600, 3600).unwrap()),
        ("for another address", signing.mint(&mine, "https://elsewhere.example", now, 3600).unwrap()),
        ("by another signer", stranger.mint(&mine, PAY_URL, now, 3600).unwrap()),
        ("for live mode by a test key", mint(&live)),
        ("for another merchant by our key", mint(&of_theirs)),
        ("wider than its key", mint(&grant(here, &narrow.key.id.to_string(), &all.to_string()))),
        ("of a revoked key", mint(&grant(here, &revoked.key.id.to_string(), &all.to_string()))),
        ("of no key", mint(&grant(here, &other_end(&ours.key.key.id.to_string()), &all.to_string()))),
        ("with a scope that there is not", mint(&Grant { scope: "read:everything".into(), ..mine.clone() })),
        ("without a signature", format!("{header}.{claims}.")),
        ("with another signature", format!("{header}.{claims}.{}", other_end(&signature))),
        ("of algorithm none", format!("{}.{claims}.", head("none"))),
        ("of algorithm None, signed", format!("{}.{claims}.{signature}", head("None"))),
        ("of HS256 under the public key", format!("{symmetric}.{}", BASE64.encode(mac.as_ref()))),
        ("whose mode was changed", format!("{header}.{}.{signature}", changed(&|it| it["mode"] = "live".into()))),
        ("whose end was moved", format!("{header}.{}.{signature}", changed(&|it| it["exp"] = (now + 80_000).into()))),
        ("of four parts", format!("{token}.x")),
        ("of empty parts", "..".to_owned()),
    ];
    for (name, text) in wrong {
        wallet.bearer(format!("a token {name}"), text, Is::Nobody(NO_TOKEN));
    }
    wallet.query("a token in the query", format!("access_token={token}"));
}

async fn scopes_alone(tenants: &Tenants, wallet: &mut Wallet) {
    let (world, ours) = (&tenants.world, &tenants.ours);
    let here = ours.scope;
    let signing = signing(tenants).await;
    for area in Area::ALL {
        for right in [Right::read(*area), Right::write(*area)] {
            let rights = Rights::parse(&right.to_string()).unwrap();
            let key = new_key(world, here, KeyKind::Secret, rights.clone()).await;
            wallet.bearer(format!("a key for {right}"), key.text.expose(), Is::Secret(here, rights.clone()));
            let grant = Grant {
                key_id: ours.key.key.id.to_string(),
                organization_id: here.organization.to_string(),
                mode: here.mode,
                scope: right.to_string(),
                token_id: "tok_1".to_owned(),
            };
            let token = signing.mint(&grant, PAY_URL, world.now().seconds(), 3600).unwrap();
            wallet.bearer(format!("a token for {right}"), token, Is::Token(here, rights));
        }
    }
}

async fn signing(tenants: &Tenants) -> SigningKeys {
    let read = tenants.world.app.read(|tx, context| {
        let stored = signing_keys::all(tx)?;
        keys::signing_keys_at(context, &stored, tx.now())
    });
    read.await.unwrap()
}

fn parts(token: &str) -> [String; 3] {
    let parts: Vec<String> = token.split('.').map(str::to_owned).collect();
    parts.try_into().unwrap()
}

/// The same text, but for its last character (and, of base64, all that it stands for).
fn other_end(text: &str) -> String {
    let (start, last) = text.split_at(text.len() - 1);
    format!("{start}{}", if last == "0" { "g" } else { "0" })
}
