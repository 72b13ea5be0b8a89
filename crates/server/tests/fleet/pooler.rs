//! PgBouncer in transaction mode, with few connections for many.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::cluster::{Cluster, as_account, free_port, missing, on_path};

pub(crate) struct Pooler {
    pub(crate) url: String,
    process: Child,
}

impl Pooler {
    /// In front of this cluster.
    pub(crate) fn start(program: &Path, cluster: &Cluster) -> Self {
        let port = free_port();
        let folder = cluster.folder();
        let settings = format!(
            "[databases]\npostgres = host=127.0.0.1 port={} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 6\n",
            cluster.port
        );
        let file = folder.join("pgbouncer.ini");
        std::fs::write(&file, settings).unwrap();
        let process = as_account(program)
            .arg("-q")
            .arg(&file)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        for _ in 0..100 {
            if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Self { url: format!("postgres://postgres@127.0.0.1:{port}/postgres"), process }
    }
}

/// PgBouncer, which Debian's package keeps off the path of who is not root, or why there is nothing to run.
pub(crate) fn program() -> Result<PathBuf, &'static str> {
    let of_debian = Path::new("/usr/sbin/pgbouncer");
    let found = if of_debian.is_file() { Some(of_debian.to_path_buf()) } else { on_path("pgbouncer") };
    found.ok_or_else(|| missing("there is no pgbouncer (Debian: pgbouncer)"))
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
