//! A standby that follows a server.

use std::path::Path;
use std::process::Stdio;

use super::{Server, as_postgres, connect, free_port, make_folder, run, watchdog};

impl Server {
    /// Starts a standby. With it, a commit on this server waits until the standby has it too.
    pub async fn start_standby(&self) -> Self {
        let mut standby = Self::new(self.programs.clone(), self.durability);
        standby.port = free_port();
        make_folder(&standby.folder);
        let source = format!("host=127.0.0.1 port={} user=test application_name=standby", self.port);
        let mut copy = as_postgres(&self.programs.join("pg_basebackup"));
        copy.args(["-D", &standby.data(), "-R", "-X", "stream", "-c", "fast", "-d", &source]);
        run(copy.stderr(Stdio::null()));
        standby.resume();
        watchdog::watch_test(&standby);
        let admin = connect(self.port, "postgres").await;
        admin.batch_execute("ALTER SYSTEM SET synchronous_standby_names = 'standby'").await.unwrap();
        admin.batch_execute("SELECT pg_reload_conf()").await.unwrap();
        let following = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'";
        while admin.simple_query(following).await.unwrap().len() < 3 {
            tokio::task::yield_now().await;
        }
        standby
    }

    /// Stops all processes of the server where they are: connections stay open, and nothing answers, as on a machine that hangs.
    pub fn freeze(&self) {
        self.signal("STOP");
    }

    /// Lets the processes go on.
    pub(super) fn thaw(&self) {
        self.signal("CONT");
    }

    fn signal(&self, signal: &str) {
        let script = format!(
            "read server < '{}/postmaster.pid' || exit 0
             kill -{signal} $server && kill -{signal} $(cat /proc/$server/task/$server/children)",
            self.data()
        );
        let _ = as_postgres(Path::new("sh")).args(["-c", &script]).stderr(Stdio::null()).status();
    }

    /// Makes a standby the primary.
    pub fn promote(&self) {
        self.control(&["promote", "-w"]);
    }

    /// The address of a database on this server or on another one, whichever can be written to.
    pub fn address_with(&self, other: &Self, database: &str) -> String {
        format!("postgres://test@127.0.0.1:{},127.0.0.1:{}/{database}?sslmode=disable", self.port, other.port)
    }
}
