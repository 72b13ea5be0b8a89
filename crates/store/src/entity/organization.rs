use domain::organization::Organization;
use domain::{Id, Scope};

use super::Entity;
use crate::sql::Value;

impl Entity for Organization {
    type Id = Id<Organization>;

    const TABLE: &'static str = "organizations";
    const INSERT: &'static str = "\
insert into organizations (organization_id, mode, id, version, doc, name, created_at)
values ($1, $2, $3, $4, $5, $6, $7)";
    const UPDATE: &'static str = "\
update organizations
set version = $4, doc = $5, name = $6, created_at = $7
where organization_id = $1 and mode = $2 and id = $3 and version = $8";
    const SELECT: &'static str = "\
select version, doc
from organizations
where organization_id = $1 and mode = $2 and id = $3";

    fn id(&self) -> Id<Organization> {
        self.id
    }
    fn scope(&self) -> Scope {
        Organization::scope(self)
    }
    fn version(&self) -> i64 {
        self.version
    }
    fn set_version(&mut self, version: i64) {
        self.version = version;
    }
    fn columns(&self) -> Vec<Value> {
        vec![self.profile.name.as_str().into(), self.created_at.micros().into()]
    }
}
