//! What a server says of itself.

use crate::condition::Server;
use crate::error::Error;
use crate::tx::Tx;

const CONDITION: &str = "
select
    current_setting('server_version') as version,
    cast(extract(epoch from clock_timestamp()) * 1000000 as bigint) as clock_us,
    case when pg_is_in_recovery() then 'on' else 'off' end as is_standby,
    current_setting('default_transaction_read_only') as is_read_only,
    current_setting('synchronous_commit') as synchronous_commit,
    current_setting('synchronous_standby_names') as synchronous_standby_names,
    (select count(*) from pg_stat_replication where state is null or state = 'streaming') as standbys,
    (select count(*) from pg_stat_replication where sync_state in ('sync', 'quorum')) as synchronous_standbys,
    (select count(*) from pg_stat_replication where sync_state is null) as unseen_standbys";

pub(crate) const SIZE: &str = "
select pg_database_size(current_database()) as bytes";

pub(crate) fn condition(tx: &mut Tx<'_>) -> Result<(String, Server), Error> {
    let row = tx.query_one(CONDITION, &[])?;
    let server = Server {
        clock_us: row.get("clock_us")?,
        is_standby: row.get::<String>("is_standby")? == "on",
        is_read_only: row.get::<String>("is_read_only")? == "on",
        synchronous_commit: row.get("synchronous_commit")?,
        synchronous_standby_names: row.get("synchronous_standby_names")?,
        standbys: row.get("standbys")?,
        synchronous_standbys: row.get("synchronous_standbys")?,
        unseen_standbys: row.get("unseen_standbys")?,
    };
    Ok((format!("PostgreSQL {}", row.get::<String>("version")?), server))
}
