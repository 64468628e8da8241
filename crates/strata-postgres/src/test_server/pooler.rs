//! PgBouncer in transaction mode in front of a database.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use super::{Database, as_postgres, folder, free_port, make_folder, watchdog};

/// A running pooler, which ends when it is dropped.
pub struct Pooler {
    child: Child,
    folder: PathBuf,
    port: u16,
    database: String,
}

impl Pooler {
    /// Starts a pooler with few connections in front of the server of a database.
    pub fn start(database: &Database) -> Self {
        let port = free_port();
        let folder = folder(&format!("pooler-{}-{port}", std::process::id()));
        make_folder(&folder);
        let users = folder.join("users");
        fs::write(&users, "\"test\" \"\"\n").unwrap();
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             auth_type = trust\nauth_file = {}\npool_mode = transaction\ndefault_pool_size = 4\n\
             max_client_conn = 200\nunix_socket_dir =\n",
            database.port,
            users.display()
        );
        let file = folder.join("pgbouncer.ini");
        fs::write(&file, settings).unwrap();
        let program =
            ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].into_iter().find(|path| Path::new(path).exists());
        let mut command = as_postgres(Path::new(program.unwrap_or("pgbouncer")));
        let child = command.arg("-q").arg(&file).stderr(Stdio::null()).spawn();
        let mut pooler = Self {
            child: child.expect("PgBouncer is installed"),
            folder,
            port,
            database: database.name.clone(),
        };
        watchdog::watch_program(&pooler.folder, pooler.child.id());
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(pooler.child.try_wait().unwrap().is_none(), "PgBouncer has ended");
            std::thread::yield_now();
        }
        pooler
    }

    /// The address of the database behind the pooler.
    pub fn address(&self) -> String {
        super::address(self.port, &self.database)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
