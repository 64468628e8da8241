//! A model of how a deployment on PostgreSQL grows: requests a second, users and storage for 1, 3 and 10 Strata nodes.
//!
//! The cost of one request comes from the group `postgres`; everything else is arithmetic on it, so another machine needs other
//! constants and no other formulas. Left out: the network, and models that answer more slowly than memory.
//! `cargo xtask bench scale` prints the table, and a test compares it with `docs/scale.md`.

use anyhow::Result;

use crate::Bench;
use crate::report::Report;

/// The cost of requests, in milliseconds of one core, as in the figures of `docs/scale.md`: the processor time of both sides for a turn
/// of 64 writers. A recall takes 1.28 ms there; the shares of Strata and PostgreSQL in it, two to one, are estimates. The group
/// `postgres` prints all four; after a full run, replace them together with the figures of the page. HTTP and checks of a request are not in them.
struct Cost {
    /// A turn in Strata: checked, analysed, sent.
    append_strata: f64,
    /// A turn in PostgreSQL: five indexes and the text index.
    append_server: f64,
    /// A recall of a user with 10,000 turns in Strata.
    recall_strata: f64,
    /// The reads of that recall in PostgreSQL.
    recall_server: f64,
}

const COST: Cost = Cost { append_strata: 0.03, append_server: 0.13, recall_strata: 1.1, recall_server: 0.4 };

/// The measured bytes of a turn on disk with its indexes and trigrams, after a vacuum, without vectors.
const TURN_BYTES: f64 = 2_200.0;
/// A vector of 384 components with its row and keys, and pgvector's column for it: computed from the sizes of the columns.
const VECTOR_BYTES: f64 = 560.0;
const HALFVEC_BYTES: f64 = 780.0;
/// About the bytes in memory of the index of a user with 10,000 turns: an estimate from its lists.
const INDEX_BYTES: f64 = 8e6;

/// The cores of a Strata node, and of the PostgreSQL server. Both are ordinary sizes of rented machines.
const NODE_CORES: f64 = 4.0;
const SERVER_CORES: f64 = 16.0;
/// The memory of the PostgreSQL server, an ordinary size with as many cores, and the most partitions that the planner handles
/// without notice. A partition that fits into memory with its indexes is written without reading the disk.
const SERVER_MEMORY: f64 = 64e9;
const MOST_PARTITIONS: f64 = 64.0;
/// The share of the cores that may be busy: beyond it, waiting times grow faster than the load.
const BUSY: f64 = 0.6;
/// The default of `postgres.connections`, with one more for notices.
const CONNECTIONS: f64 = 25.0;
/// An exchange of a chat: two turns are recorded and one question is recalled.
const TURNS: f64 = 2.0;
/// The exchanges of a user in the busiest hour: one every three minutes.
const EXCHANGES_AN_HOUR: f64 = 20.0;
/// The share of all users who chat in the busiest hour.
const ACTIVE: f64 = 0.05;

/// The load that a number of nodes carries.
struct Capacity {
    nodes: f64,
    /// Exchanges a second, as far as Strata and as far as PostgreSQL can carry them.
    by_strata: f64,
    by_server: f64,
}

impl Capacity {
    fn of(nodes: f64) -> Self {
        let strata = TURNS * COST.append_strata + COST.recall_strata;
        let server = TURNS * COST.append_server + COST.recall_server;
        Self {
            nodes,
            by_strata: nodes * NODE_CORES * BUSY * 1000.0 / strata,
            by_server: SERVER_CORES * BUSY * 1000.0 / server,
        }
    }

    fn exchanges(&self) -> f64 {
        self.by_strata.min(self.by_server)
    }

    fn active_users(&self) -> f64 {
        self.exchanges() * 3600.0 / EXCHANGES_AN_HOUR
    }

    fn row(&self) -> String {
        let first = if self.by_strata < self.by_server { "Strata's cores" } else { "PostgreSQL's cores" };
        format!(
            "| {} | {} | {} | {} | {} | {} | {first} |\n",
            self.nodes,
            rounded(self.exchanges()),
            rounded(TURNS * self.exchanges()),
            rounded(self.active_users()),
            rounded(self.active_users() / ACTIVE),
            self.nodes * CONNECTIONS,
        )
    }
}

/// A number with two digits that count.
fn rounded(number: f64) -> String {
    let step = 10_f64.powf(number.log10().floor() - 1.0).max(1.0);
    let mut digits = format!("{}", (number / step).round() * step);
    let mut place = digits.len();
    while place > 3 {
        place -= 3;
        digits.insert(place, ',');
    }
    digits
}

/// The tables of `docs/scale.md`.
fn tables() -> String {
    let mut text = "| Strata nodes | exchanges/s | turns/s | users who chat at once | users | connections | first limit |\n\
                    |---|---|---|---|---|---|---|\n"
        .to_owned();
    for nodes in [1.0, 3.0, 10.0] {
        text += &Capacity::of(nodes).row();
    }
    let gigabytes = |bytes: f64| format!("{:.1} GB", bytes / 1e9);
    text += "\n| a million turns | on disk |\n|---|---|\n";
    text += &format!("| turns with their indexes | {} |\n", gigabytes(1e6 * TURN_BYTES));
    text += &format!("| their vectors, 384 components | {} |\n", gigabytes(1e6 * VECTOR_BYTES));
    text += &format!("| the same with pgvector | {} more |\n", gigabytes(1e6 * HALFVEC_BYTES));
    text += &format!(
        "| in the memory of Strata, if 100 users with 10,000 turns each have just asked | {} |\n",
        gigabytes(100.0 * INDEX_BYTES)
    );
    text
}

/// The table of limits in `docs/scale.md`: what one server carries.
fn limits() -> String {
    let exchanges = Capacity::of(f64::MAX).by_server;
    let alone = SERVER_CORES * BUSY * 1000.0 / COST.append_server;
    let bytes = MOST_PARTITIONS * SERVER_MEMORY;
    format!(
        "| one server with {SERVER_CORES} cores and {:.0} GB | carries about |\n|---|---|\n\
         | turns/s in the busiest hour, with a recall for every two | {} |\n\
         | turns/s, while replicas serve all recall | {} |\n\
         | data with indexes, {MOST_PARTITIONS} partitions each as large as its memory | {:.1} TB, {} million turns |\n",
        SERVER_MEMORY / 1e9,
        rounded(TURNS * exchanges),
        rounded(alone),
        bytes / 1e12,
        rounded(bytes / TURN_BYTES / 1e6),
    )
}

/// Prints the tables.
pub(crate) fn measure(_: &mut Bench, report: &mut Report) -> Result<()> {
    println!("{}\n{}", tables(), limits());
    for nodes in [1.0, 3.0, 10.0] {
        report.add(format!("{nodes} nodes"), Capacity::of(nodes).exchanges(), "exchanges/s", None);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page with a table between its marks.
    fn with_table(page: &str, name: &str, table: &str) -> String {
        let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->\n"));
        let (before, rest) = page.split_once(&begin).unwrap();
        let (_, after) = rest.split_once(&end).unwrap();
        format!("{before}{begin}{table}{end}{after}")
    }

    /// The figures from which the model computes stand in the page too.
    #[test]
    fn the_model_has_the_figures_of_the_page() {
        let page = include_str!("../../../docs/scale.md");
        let appended =
            format!("{} ms in Strata, {} ms in PostgreSQL", COST.append_strata, COST.append_server);
        let recalled =
            format!("{} ms in Strata and {} ms in PostgreSQL", COST.recall_strata, COST.recall_server);
        let bytes = format!("about {} kB", TURN_BYTES / 1_000.0);
        for figure in [appended, recalled, bytes] {
            assert!(page.contains(&figure), "`{figure}`");
        }
    }

    #[test]
    fn the_documentation_has_the_tables_of_the_model() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scale.md");
        let page = std::fs::read_to_string(path).unwrap();
        let wanted = with_table(&with_table(&page, "model", &tables()), "limits", &limits());
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, &wanted).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), wanted, "run this with UPDATE_DOCS=1");
    }

    #[test]
    fn more_nodes_help_until_the_database_is_busy() {
        let [one, three, many] = [1.0, 3.0, 1_000.0].map(|nodes| Capacity::of(nodes).exchanges());
        assert!(one < three && three <= many);
        assert!((many - Capacity::of(1e6).exchanges()).abs() < 1e-9);
        assert_eq!(
            (rounded(1_234.0), rounded(56.0), rounded(1_234_567.0)),
            ("1,200".into(), "56".into(), "1,200,000".into())
        );
    }
}
