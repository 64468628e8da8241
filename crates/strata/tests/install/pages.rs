//! The README and the pages of the book, as a newcomer would follow them: with the package alone, in an empty folder.
//!
//! Blocks in `sh` are run, and so are those in `python` and `js`; in `console`, lines after `$` are run, and each line of output has to
//! come with its words in their order (`…` stands for anything). Blocks in `bash` are not run. Only ports and the model are ours.

use std::fmt::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::support::{Apis, show};
use super::{only_file, packages, root, tool};

#[test]
fn the_readme_leads_a_newcomer_from_the_package_to_a_backup() {
    let newcomer = Newcomer::with_packages();
    let wheel = only_file(&packages(), ".whl");
    std::os::unix::fs::symlink(&wheel, newcomer.folder.path().join(wheel.file_name().unwrap())).unwrap();
    let environment = newcomer.folder.path().join("environment");
    let made = Command::new("python3").args(["-m", "venv"]).arg(&environment).output().unwrap();
    assert!(made.status.success(), "{}", show(&made));
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    newcomer.follow_text("README.md", &opening_the_page(&readme), &environment.join("bin"));
    assert!(environment.join("bin/strata").is_file(), "the README installs the program");
    let asked = newcomer.model.received();
    let reminded = asked.iter().any(|request| {
        let text = request.body.to_string();
        text.contains("What is my canoe called?")
            && text.contains("<strata_memory>")
            && text.contains("Heron")
    });
    assert!(reminded, "the model is asked with memory: {asked:?}");
}

/// The README with a browser that opens the page which it names, where it says so, and goes on to the memories.
fn opening_the_page(readme: &str) -> String {
    let (before, after) = readme.split_once("open <").expect("the README says which page to open");
    let (page, after) = after.split_once('>').unwrap();
    let (rest, after) = after.split_once("\n\n").unwrap();
    let open = "/usr/bin/chromium --headless --no-sandbox --disable-gpu --user-data-dir=browser --dump-dom";
    let opened = format!(
        "```console\n$ {open} {page}\n/inspect/memories?user=ada\n<h1>Overview\n\
         $ {open} \"{page}inspect/memories?user=ada\"\nAda is allergic to peanuts\n```\n"
    );
    format!("{before}open <{page}>{rest}\n\n{opened}\n{after}")
}

#[test]
fn the_page_about_moving_runs() {
    let setup = r#"```sh
mkdir -p notes memory/entries/global/facts
printf '{"messages":[{"role":"user","content":"My kiln is new."},{"role":"assistant","content":"Which glaze?"}]}\n' > chat.jsonl
printf '{"results":[{"memory":"Ada throws pots","user_id":"ada"}]}\n' > memories.json
printf '# Garden\n\nThe pear tree blooms.\n' > notes/garden.md
printf -- '---\nid: one\nrole: memory\nconversation_id: global\n---\nAda keeps bees\n' > memory/entries/global/facts/one.md
```
"#;
    let page = std::fs::read_to_string(root().join("docs/moving.md")).unwrap();
    Newcomer::with_packages().follow_text("docs/moving.md", &(setup.to_owned() + &page), &programs());
}

#[test]
fn the_page_about_the_vault_runs() {
    let setup = "```sh\nexport STRATA_ENABLE_GIT_VERSIONING=true\n\
                 strata add \"Ada prefers trains to planes\" --store vault:notes\n\
                 strata add \"Ada keeps bees\" --store vault:notes\n\
                 commit=$(strata vault log --limit 1 --store vault:notes | cut -d' ' -f1)\n```\n";
    let page = std::fs::read_to_string(root().join("docs/vault.md")).unwrap();
    assert!(page.contains(" 3f2a91c "), "the page names a commit");
    let page = page.replace(" 3f2a91c ", " $commit ");
    Newcomer::with_packages().follow_text("docs/vault.md", &(setup.to_owned() + &page), &programs());
}

#[test]
fn getting_started_runs() {
    Newcomer::with_packages().follow("docs/getting-started.md", &programs());
}

#[test]
fn the_page_about_http_runs() {
    Newcomer::with_packages().follow("docs/http.md", &programs());
}

#[test]
fn the_page_about_the_clients_runs() {
    Newcomer::with_packages().follow("docs/sdk.md", &programs());
}

#[test]
fn the_page_about_operations_runs() {
    Newcomer::with_packages().follow("docs/operations.md", &programs());
}

#[test]
fn the_examples_of_the_proxy_and_of_mem0_run() {
    for page in ["docs/proxy.md", "docs/mem0.md"] {
        let newcomer = Newcomer::with_packages();
        let serve = "```sh\nstrata serve --upstream https://api.openai.com/v1 &\n```\n";
        let text = serve.to_owned() + &std::fs::read_to_string(root().join(page)).unwrap();
        newcomer.follow_text(page, &text, &programs());
        assert_eq!(newcomer.model.received().len(), usize::from(page == "docs/proxy.md"));
    }
}

#[test]
fn the_pages_of_the_packages_run() {
    let newcomer = Newcomer::with_packages();
    let npm = packages().join("node/node_modules/.bin");
    for (page, package, programs) in
        [("packages/python/README.md", ".whl", programs()), ("packages/npm/README.md", ".tgz", npm)]
    {
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        let (installing, using) = text.split_once("strata serve &").unwrap();
        assert!(installing.contains(&format!("*{package}")), "{page} says how to install");
        // The packages are installed already.
        let own = format!("test \"$(command -v strata)\" = '{}'", programs.join("strata").display());
        newcomer.follow_text(page, &format!("```sh\n{own}\nstrata serve &{using}"), &programs);
    }
}

/// The page with `…` for the numbers that its commands promise to print: they differ from one store to the next.
fn with_any_numbers(page: &str) -> String {
    let mut is_console = false;
    let line = |line: &str| {
        is_console = if line.starts_with("```") { line == "```console" } else { is_console };
        match is_console && !line.starts_with("$ ") && line.contains(|c: char| c.is_ascii_digit()) {
            true => line.replace(|c: char| c.is_ascii_digit(), "…") + "\n",
            false => line.to_owned() + "\n",
        }
    };
    page.lines().map(line).collect()
}

#[test]
fn the_page_about_the_report_runs() {
    let id = "0197f3c2-5b1e-7c3a-9d2e-3f4a5b6c7d8e";
    let page = std::fs::read_to_string(root().join("docs/report.md")).unwrap();
    assert!(page.contains(id), "the page names a request");
    let page = with_any_numbers(&page.replace(id, "$request"));
    let setup = r#"```sh
export STRATA_EMBEDDER=words STRATA_LEARN_READER=off
printf '%s\n' "The kiln door sticks." "The kiln hums at night." "The kiln shelf is cracked." | strata record --session kiln
python3 -c "print('The kiln log: ' + 'cone six, slow cooling; ' * 120)" | strata record --session kiln
for number in $(seq 21); do strata search "what about the kiln door, shelf and log" > found.txt; done
request=$(strata search kiln --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["request_id"])')
strata serve &
```
"#;
    let after = "```console\n$ strata report --json | grep complaints\ncomplaints\": 2\n```\n";
    let text = format!("{setup}\n{page}\n{after}");
    Newcomer::with_packages().follow_text("docs/report.md", &text, &programs());
}

#[test]
fn the_page_about_security_runs() {
    let key = "strata_w7d3kq1m5x9c2vbn8ghj4ptzr6ya0sef";
    let create = "$ strata keys create --user ada --expires 90d --name laptop\n";
    let page = std::fs::read_to_string(root().join("docs/security.md")).unwrap();
    assert!(page.contains(create) && page.contains(&format!("'Authorization: Bearer {key}'")));
    let page = page.replace(create, &create.replace('\n', " | tee key.txt\n"));
    let page =
        page.replace(&format!("'Authorization: Bearer {key}'"), "\"Authorization: Bearer $(cat key.txt)\"");
    let setup = "```sh\nstrata serve &\n```\n";
    let refused = "```console\n$ curl -s http://127.0.0.1:8100/memories\nmissing_api_key\n```\n";
    let text = format!("{setup}\n{}\n{refused}", page.replace(key, "strata_…"));
    Newcomer::with_packages().follow_text("docs/security.md", &text, &programs());
}

#[test]
fn the_page_about_daily_use_runs() {
    Newcomer::with_packages().follow("docs/daily.md", &programs());
}

#[test]
fn the_page_about_learning_runs() {
    let page = with_any_numbers(&std::fs::read_to_string(root().join("docs/learning.md")).unwrap());
    let setup = "```sh\nstrata add --infer \"I live in Oulu\" --user mika\n```\n";
    Newcomer::with_packages().follow_text("docs/learning.md", &(setup.to_owned() + &page), &programs());
}

#[test]
fn the_pages_about_prompts_and_chats_run() {
    let setup = "```sh\nexport STRATA_EMBEDDER=words STRATA_LEARN_READER=off\n\
                 echo 'The pump of the pond fluctuates.' | strata record --session pump\nstrata serve &\n```\n";
    for page in ["docs/prompt.md", "docs/chat.md"] {
        let text = setup.to_owned() + &std::fs::read_to_string(root().join(page)).unwrap();
        Newcomer::with_packages().follow_text(page, &text, &programs());
    }
}

/// `claude` is stood in for by a shell function that starts what it is told to register, as the client does, and asks it for
/// its tools.
#[test]
fn the_page_about_agents_runs() {
    let setup = r#"```sh
ask='{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"page","version":"1"}}}'
claude() {
  case "$*" in
    "mcp add strata -- "*) shift 4; echo "$ask" | "$@" | grep -q serverInfo ;;
    "mcp add --transport http strata "*) curl -sf "$6" "${@:7:1}" "$8" -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' -d "$ask" | grep -q serverInfo ;;
    *) return 1 ;;
  esac
}
strata serve &
```
"#;
    let page = std::fs::read_to_string(root().join("docs/mcp.md")).unwrap();
    let newcomer = Newcomer::with_packages();
    newcomer.follow_text("docs/mcp.md", &(setup.to_owned() + &page), &programs());
    // The JSON of other clients names the same program.
    let configs: Vec<serde_json::Value> = page
        .split("```json\n")
        .skip(1)
        .map(|rest| serde_json::from_str(rest.split("```").next().unwrap()).unwrap())
        .collect();
    assert_eq!(configs.len(), 3);
    for config in configs {
        let server = config.as_object().unwrap().values().next().unwrap()["strata"].clone();
        assert_eq!(
            (&server["command"], &server["args"]),
            (&"strata".into(), &serde_json::json!(["mcp", "--user", "ada"]))
        );
    }
}

/// A newcomer with the set that `docs/evals.md` describes under these names, in a folder `DIR`.
fn with_sets(names: &[&str]) -> Newcomer {
    let page = std::fs::read_to_string(root().join("docs/evals.md")).unwrap();
    let json: Vec<String> = page
        .split("```json\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap().replace('\n', " "))
        .collect();
    let newcomer = Newcomer::with_packages();
    let folder = newcomer.folder.path();
    std::fs::create_dir(folder.join("DIR")).unwrap();
    for name in names {
        for (part, line) in ["conversations", "questions"].iter().zip(&json) {
            std::fs::write(folder.join(format!("DIR/{name}.{part}.jsonl")), format!("{line}\n")).unwrap();
        }
    }
    std::os::unix::fs::symlink(root().join("evals"), folder.join("evals")).unwrap();
    newcomer
}

/// The words alone: these pages are about measuring, and not about what is measured.
const WORDS: &str = "```sh\nexport STRATA_EMBEDDER=words STRATA_LEARN_READER=off\n```\n";

#[test]
fn the_page_about_measuring_runs() {
    let page = std::fs::read_to_string(root().join("docs/evals.md")).unwrap();
    let newcomer = with_sets(&["garden"]);
    newcomer.follow_text("docs/evals.md", &(WORDS.to_owned() + &page), &programs());
    assert!(newcomer.folder.path().join("OUT/garden.jsonl").is_file(), "the rankings are written");
}

/// The public sets that the page names are not in the repository, so sets of their names stand in for them.
#[test]
fn the_page_about_recall_runs() {
    let page = std::fs::read_to_string(root().join("docs/recall.md")).unwrap();
    let text = WORDS.to_owned() + &page;
    with_sets(&["locomo", "factcon"]).follow_text("docs/recall.md", &text, &programs());
}

#[test]
fn a_page_that_promises_too_much_fails() {
    let check = |block: &str| Script::of(block, "1").unmet(&format!("{MARK}0\none two\nthree\n{MARK}end\n"));
    assert_eq!(check("```console\n$ x\none … two\nthree\n```\n"), Vec::<String>::new());
    assert_eq!(check("```console\n$ x\ntwo one\n```\n").len(), 1);
    assert_eq!(check("```console\n$ x\nthree\none\n```\n").len(), 1, "the order counts");
    assert_eq!(check("```console\n$ x\n$ y\nthree\n```\n").len(), 1, "each command has its own output");
    assert_eq!(check("```console\n$ x\nt…o\nthr…\n```\n"), Vec::<String>::new());
    assert_eq!(check("```console\n$ x\nth…o\n```\n").len(), 1);
    let page = "12\n```console\n$ echo 12\n12:30 of 9\n```\n12\n";
    assert_eq!(with_any_numbers(page), "12\n```console\n$ echo 12\n……:…… of …\n```\n12\n");
}

/// A person with an empty folder, the packages and a model.
struct Newcomer {
    folder: tempfile::TempDir,
    model: Apis,
}

impl Newcomer {
    fn with_packages() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let modules = packages().join("node/node_modules");
        std::os::unix::fs::symlink(modules, folder.path().join("node_modules")).unwrap();
        Self { folder, model: Apis::start() }
    }

    /// Follows a page, with the programs of a folder before those of the machine.
    fn follow(&self, page: &str, programs: &Path) {
        self.follow_text(page, &std::fs::read_to_string(root().join(page)).unwrap(), programs);
    }

    fn follow_text(&self, page: &str, text: &str, programs: &Path) {
        let port = free_port();
        let text = text.replace("127.0.0.1:8100", &format!("127.0.0.1:{port}"));
        let script = Script::of(&text.replace("https://api.openai.com/v1", &self.model.url()), &port);
        assert!(script.commands > 0, "{page} has something to run");
        let file = self.folder.path().join("page.sh");
        std::fs::write(&file, &script.text).unwrap();
        let output = self.shell(programs, &port).arg(&file).output().unwrap();
        assert!(output.status.success(), "{page}\n{}\n{}", show(&output), script.text);
        let unmet = script.unmet(&String::from_utf8_lossy(&output.stdout));
        assert!(
            unmet.is_empty(),
            "{page} promises what does not come:\n{}\n{}",
            unmet.join("\n"),
            show(&output)
        );
    }

    /// A shell without the settings of the machine.
    fn shell(&self, programs: &Path, port: &str) -> Command {
        let mut shell = Command::new("bash");
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name.starts_with("STRATA_") || name.starts_with("XDG_") || name.starts_with("PYTHON") {
                shell.env_remove(name);
            }
        }
        let mut path = vec![programs.to_owned()];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        shell.current_dir(self.folder.path()).env("HOME", self.folder.path());
        shell.env("PATH", std::env::join_paths(path).unwrap());
        shell.env("STRATA_LISTEN", format!("127.0.0.1:{port}"));
        // A debug build on a busy machine is slower than a chat would wait.
        shell.env("STRATA_MEMORY_DEADLINE_MS", "60000");
        shell.env("PIP_NO_INDEX", "1").env("PIP_DISABLE_PIP_VERSION_CHECK", "1");
        // The application that gets a memory has its own packages.
        shell.env("OPENAI_API_KEY", "sk-test").env("PYTHONPATH", site_packages());
        shell.env("MEM0_TELEMETRY", "False");
        shell
    }
}

/// The blocks of a page as one script.
struct Script {
    text: String,
    commands: usize,
    /// For each command of a `console` block, in order, the lines that it promises.
    promises: Vec<Vec<String>>,
}

const MARK: &str = "@@ ";

impl Script {
    fn of(page: &str, port: &str) -> Self {
        let stop = "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n";
        let mut script = Self { text: format!("set -e\n{stop}"), commands: 0, promises: Vec::new() };
        for block in page.split("\n```").skip(usize::from(!page.starts_with("```"))).step_by(2) {
            let (language, code) = block.trim_start_matches('`').split_once('\n').unwrap_or((block, ""));
            script.commands += 1;
            match language {
                "sh" => code.lines().for_each(|line| script.add_line(line, port)),
                "console" => script.add_console(&format!("{code}\n")),
                "python" => script.add_program("python -", code),
                "js" => script.add_program("cat > block.mjs && node block.mjs", code),
                _ => script.commands -= 1,
            }
        }
        script
    }

    fn add_line(&mut self, line: &str, port: &str) {
        match line.strip_suffix('&').filter(|line| line.contains("strata serve")) {
            Some(serve) => write!(
                self.text,
                "{serve} > serve.log 2>&1 &\nuntil curl -sf http://127.0.0.1:{port}/readyz > ready.json\n\
                 do kill -0 $! || {{ cat serve.log; exit 1; }}\nsleep 0.05\ndone\n"
            )
            .unwrap(),
            None => writeln!(self.text, "{line}").unwrap(),
        }
    }

    fn add_program(&mut self, run: &str, code: &str) {
        writeln!(self.text, "{run} <<'END_OF_BLOCK'\n{code}\nEND_OF_BLOCK").unwrap();
    }

    fn add_console(&mut self, code: &str) {
        let mut commands: Vec<(String, Vec<String>)> = Vec::new();
        for line in code.lines() {
            match (line.strip_prefix("$ "), line.strip_prefix("> "), commands.last_mut()) {
                (Some(command), ..) => commands.push((command.to_owned(), Vec::new())),
                (_, Some(more), Some((command, _))) => write!(command, "\n{more}").unwrap(),
                (.., Some((_, promised))) if !line.trim().is_empty() => promised.push(line.to_owned()),
                _ => {}
            }
        }
        for (command, promised) in commands {
            let number = self.promises.len();
            let is_vague = !promised.is_empty() && promised.iter().all(|line| line.trim() == "…");
            assert!(!is_vague, "`{command}` promises nothing that could be missed");
            writeln!(self.text, "echo '{MARK}{number}'\n{{\n{command}\n}} 2>&1\necho\necho '{MARK}end'")
                .unwrap();
            self.promises.push(promised);
        }
    }

    /// The promised lines that did not come.
    fn unmet(&self, output: &str) -> Vec<String> {
        let mut unmet = Vec::new();
        for (number, promised) in self.promises.iter().enumerate() {
            let printed = output.split(&format!("{MARK}{number}\n")).nth(1).unwrap_or_default();
            let mut lines = printed.split(MARK).next().unwrap_or_default().lines();
            for line in promised {
                if line.trim() != "…" && !lines.any(|printed| has_words(printed, line)) {
                    unmet.push(line.clone());
                }
            }
        }
        unmet
    }
}

/// Whether a line has the words of another one, in their order.
fn has_words(line: &str, wanted: &str) -> bool {
    let mut rest = line;
    let words = wanted.split(|c: char| c == '…' || c.is_whitespace()).filter(|word| !word.is_empty());
    words.into_iter().all(|word| match rest.find(word) {
        Some(at) => {
            rest = &rest[at + word.len()..];
            true
        }
        None => false,
    })
}

/// Where the wheel's program is.
fn programs() -> PathBuf {
    packages().join("venv/bin")
}

/// Where the packages of the virtual environment with tools are; `openai` is among them.
fn site_packages() -> PathBuf {
    let program = "import sysconfig; print(sysconfig.get_path('purelib'))";
    let output = Command::new(tool("python")).args(["-c", program]).output().unwrap();
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

fn free_port() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string()
}
