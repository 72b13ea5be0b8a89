use domain::api_key::ApiKey;
use domain::{Id, Scope};

use super::Entity;
use crate::sql::Value;

impl Entity for ApiKey {
    type Id = Id<ApiKey>;

    const TABLE: &'static str = "api_keys";
    const INSERT: &'static str = "\
insert into api_keys (organization_id, mode, id, version, doc, digest, revoked_at, created_at)
values ($1, $2, $3, $4, $5, $6, $7, $8)";
    const UPDATE: &'static str = "\
update api_keys
set version = $4, doc = $5, digest = $6, revoked_at = $7, created_at = $8
where organization_id = $1 and mode = $2 and id = $3 and version = $9";
    const SELECT: &'static str = "\
select version, doc
from api_keys
where organization_id = $1 and mode = $2 and id = $3";

    fn id(&self) -> Id<ApiKey> {
        self.id
    }
    fn scope(&self) -> Scope {
        self.scope
    }
    fn version(&self) -> i64 {
        self.version
    }
    fn set_version(&mut self, version: i64) {
        self.version = version;
    }
    fn columns(&self) -> Vec<Value> {
        let revoked_at = self.revoked_at.map(|at| at.micros());
        vec![self.digest.as_str().into(), revoked_at.into(), self.created_at.micros().into()]
    }
}
