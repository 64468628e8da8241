//! The pages in process: what they show, what they refuse, and how large they are.

use axum::body::Body;
use axum::http::Method;
use serde_json::{Value, json};
use strata_core::UserId;
use strata_core::key::{SECRET_BYTES, Scopes, SecretSource};
use strata_engine::NewKey;

use crate::Settings;
use crate::testing::{Answer, DEAD_JOB, TestServer, request, with_jobs};

/// Random bytes that count up.
struct Counted(std::sync::atomic::AtomicU8);

impl SecretSource for Counted {
    fn fill(&self, bytes: &mut [u8; SECRET_BYTES]) -> strata_core::Result<()> {
        bytes.fill(self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        Ok(())
    }
}

async fn key(server: &TestServer, user: &str, scopes: &str) -> String {
    static SOURCE: Counted = Counted(std::sync::atomic::AtomicU8::new(1));
    let user = if user == "*" { UserId::global() } else { UserId::new(user).unwrap() };
    let new = NewKey { scopes: scopes.parse::<Scopes>().unwrap(), ..NewKey::new(user) };
    let (_, secret) = server.app.engine().keys.create(new, &SOURCE).await.unwrap();
    secret.reveal().to_owned()
}

async fn page(server: &TestServer, uri: &str, headers: &[(&str, &str)]) -> Answer {
    let request = headers
        .iter()
        .fold(request(Method::GET, uri), |request, (name, value)| request.header(*name, *value));
    server.send(request.header("accept", "text/html").body(Body::empty()).unwrap()).await
}

async fn submit(server: &TestServer, uri: &str, form: &str, headers: &[(&str, &str)]) -> Answer {
    let request = headers
        .iter()
        .fold(request(Method::POST, uri), |request, (name, value)| request.header(*name, *value));
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    server.send(request.body(Body::from(form.to_owned())).unwrap()).await
}

/// The headers with which a browser sends a form of this server, with a token of its own choice.
const FORM: [(&str, &str); 2] = [("origin", "http://localhost:8100"), ("cookie", "strata_form=t1")];

/// A server with a session and a memory of `ada`, and the memory's id.
async fn filled() -> (TestServer, String) {
    // Keys that are made later are looked for at once.
    let settings = Settings { keys_remembered: std::time::Duration::ZERO, ..Settings::default() };
    let server = TestServer::with(settings, Default::default());
    let said = json!([
        {"role": "user", "content": "the boat is called Möwe <b>& co</b>"},
        {"role": "assistant", "content": "A fine name."},
    ]);
    server.post("/turns", json!({"user_id": "ada", "session_id": "har/bour", "messages": said})).await;
    let added =
        server.post("/memories", json!({"text": "<script>alert(1)</script> rows", "user_id": "ada"})).await;
    let id = added.json()["results"][0]["id"].as_str().unwrap().to_owned();
    (server, id)
}

#[tokio::test]
async fn a_browser_gets_pages_and_a_program_the_list_of_routes() {
    let (server, _) = filled().await;
    let browser = page(&server, "/", &[]).await;
    assert_eq!((browser.status.as_u16(), browser.header("location")), (303, Some("/inspect")));
    assert_eq!(server.get("/").await.json()["name"], "strata");
    let json = server
        .send(request(Method::GET, "/").header("accept", "application/json").body(Body::empty()).unwrap());
    assert_eq!(json.await.json()["name"], "strata");
}

#[tokio::test]
async fn every_page_renders_with_a_strict_policy() {
    let (server, memory) = filled().await;
    server.post("/search", json!({"user_id": "ada", "query": "what is the boat called"})).await;
    let rows = server.get("/requests?user_id=ada").await.json();
    let request = rows["requests"][0]["id"].as_str().unwrap().to_owned();
    let turns = server.get("/sessions/har%2Fbour/turns?user_id=ada").await.json();
    let turn = turns["turns"][0]["id"].as_str().unwrap().to_owned();
    for (path, expected) in [
        ("/inspect".to_owned(), "Turns a day"),
        ("/inspect/sessions".to_owned(), "har/bour"),
        ("/inspect/sessions/har%2Fbour".to_owned(), "the boat is called Möwe"),
        ("/inspect/sessions/har%2Fbour/state".to_owned(), "Turns read"),
        ("/inspect/sessions/har%2Fbour/summaries".to_owned(), "No summaries yet"),
        ("/inspect/sessions/har%2Fbour/prompt".to_owned(), "Everything raw"),
        (format!("/inspect/turns/{turn}"), "Turn 0"),
        ("/inspect/memories".to_owned(), "rows"),
        (format!("/inspect/memories/{memory}"), "Destroy it for good"),
        ("/inspect/requests".to_owned(), "what is the boat called"),
        (format!("/inspect/requests/{request}"), "What became of the candidates"),
        ("/inspect/try".to_owned(), "Nothing asked yet"),
        ("/inspect/try?q=what+is+the+boat+called".to_owned(), "Recalled"),
        ("/inspect/report".to_owned(), "not enough data"),
        ("/inspect/report?days=30".to_owned(), "Upgrade triggers"),
    ] {
        let separator = if path.contains('?') { '&' } else { '?' };
        let shown = page(&server, &format!("{path}{separator}user=ada"), &[]).await;
        assert_eq!(shown.status, 200, "{path}: {}", shown.body);
        assert!(shown.body.contains(expected), "{path}: {}", shown.body);
        assert!(!shown.body.contains("<script>alert") && !shown.body.contains("<b>"), "{path}");
        assert!(!shown.body.contains(" style=") && !shown.body.contains("onclick"), "{path}");
        let policy = shown.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(shown.header("x-content-type-options"), Some("nosniff"));
        assert!(shown.body.len() < 100_000, "{path}: {}", shown.body.len());
    }
}

#[tokio::test]
async fn a_user_is_chosen_and_an_empty_store_is_no_error() {
    let (server, _) = filled().await;
    let first = page(&server, "/inspect", &[]).await;
    assert!(
        first.body.contains("<span class=\"quiet\">User</span> ada"),
        "the only user is shown: {}",
        first.body
    );
    let other = page(&server, "/inspect?user=eve", &[]).await;
    assert!(other.body.contains("Nothing is stored for “eve” yet"), "{}", other.body);
    assert!(
        other.body.contains("<option selected>eve</option>") && other.body.contains("<option>ada</option>")
    );
    let empty = TestServer::new();
    for path in ["/inspect", "/inspect/sessions", "/inspect/memories", "/inspect/requests", "/inspect/report"]
    {
        assert_eq!(page(&empty, path, &[]).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn the_configured_user_is_shown_first_and_the_first_address_keeps_a_chosen_one() {
    let user = UserId::new("zoe").unwrap();
    let server = TestServer::with(Settings { user, ..Settings::default() }, Default::default());
    for user in ["ada", "zoe"] {
        server.post("/memories", json!({"text": "rows on Sundays", "user_id": user})).await;
    }
    let first = page(&server, "/inspect", &[]).await;
    assert!(first.body.contains("<option selected>zoe</option>"), "{}", first.body);
    let led = page(&server, "/?user=ada", &[]).await;
    assert_eq!(led.header("location"), Some("/inspect?user=ada"));
    key(&server, "ada", "read").await;
    let keyed = page(&server, "/?user=ada", &[]).await;
    assert!(
        keyed
            .header("location")
            .is_some_and(|to| to == "/inspect?user=ada" || to.ends_with("=%2Finspect%3Fuser%3Dada")),
        "{}",
        keyed.body
    );
}

#[tokio::test]
async fn what_a_phone_hides_has_a_short_form() {
    let (server, _) = filled().await;
    for path in ["/inspect/try?q=the+boat+is+red&user=ada", "/inspect/sessions/har%2Fbour?user=ada"] {
        let shown = page(&server, path, &[]).await.body;
        let classes = shown.split("class=\"").filter_map(|rest| rest.split('"').next());
        let has =
            |name: &str| classes.clone().filter(|names| names.split(' ').any(|one| one == name)).count();
        assert_eq!(has("wide"), has("slim"), "{path}: {shown}");
    }
}

#[tokio::test]
async fn a_failure_keeps_the_menu_and_the_user() {
    let (server, _) = filled().await;
    server.post("/memories", json!({"text": "rows on Sundays", "user_id": "eve"})).await;
    for (path, user, status) in [
        ("/inspect/sessions/none?user=eve", "eve", 404),
        ("/inspect/nothing?user=eve", "eve", 404),
        ("/inspect/memories/x?user=eve", "eve", 400),
        ("/inspect?user=*", "ada", 400),
    ] {
        let shown = page(&server, path, &[]).await;
        assert_eq!(shown.status, status, "{path}");
        let (back, menu) = (format!("href=\"/inspect?user={user}\""), "<nav aria-label=\"Main\">");
        assert!(shown.body.contains(menu) && shown.body.contains(&back), "{path}: {}", shown.body);
    }
    let form = submit(&server, "/inspect/memories/x/edit?user=eve", "text=y", &FORM).await;
    assert!(form.status == 403 && form.body.contains("href=\"/inspect?user=eve\""), "{}", form.body);
    let bound = key(&server, "ada", "read").await;
    let cookie = format!("strata_inspector={bound}");
    let foreign = page(&server, "/inspect?user=eve", &[("cookie", &cookie)]).await;
    assert!(foreign.status == 403 && foreign.body.contains("Sign out"), "{}", foreign.body);
    assert!(foreign.body.contains("<span class=\"quiet\">User</span> ada"), "{}", foreign.body);
    assert!(foreign.header("set-cookie").is_some(), "the form for signing out has its token");
}

#[tokio::test]
async fn a_session_has_its_title_and_a_phase_only_with_a_case() {
    let server = TestServer::new();
    let put = async |findings: Value| {
        let diagnostic =
            json!({"status": "investigating", "facts": ["the skiff is old"], "findings": findings});
        let state = json!({"diagnostic": diagnostic, "system_state": {"title": "Caulking <b>the</b> skiff"}});
        let answer = server.write(Method::PUT, "/sessions/c-1/state?user_id=ada", state).await;
        assert!(answer.status.is_success(), "{}", answer.body);
    };
    put(json!([])).await;
    for path in ["/inspect", "/inspect/sessions", "/inspect/sessions/c-1", "/inspect/sessions/c-1/state"] {
        let shown = page(&server, &format!("{path}?user=ada"), &[]).await.body;
        assert!(shown.contains("Caulking &#60;b&#62;the&#60;/b&#62; skiff"), "{path}: {shown}");
        assert!(!shown.contains("investigating"), "{path}: {shown}");
    }
    put(json!(["the seams leak"])).await;
    assert!(page(&server, "/inspect/sessions?user=ada", &[]).await.body.contains("investigating"));
}

#[tokio::test]
async fn figures_without_enough_data_are_folded_into_one_line() {
    let (server, _) = filled().await;
    let shown = page(&server, "/inspect?user=ada", &[]).await.body;
    assert_eq!(shown.matches("Not enough data for").count(), 1, "{shown}");
    assert!(!shown.contains("not enough data"), "{shown}");
}

#[tokio::test]
async fn a_failure_is_a_page() {
    let (server, memory) = filled().await;
    for (path, status) in [
        ("/inspect/sessions/none", 404),
        (&format!("/inspect/memories/{memory}?user=eve"), 404),
        ("/inspect/memories/x", 400),
        ("/inspect/turns/00000000-0000-0000-0000-00000000ffff", 404),
        ("/inspect?user=*", 400),
    ] {
        let shown = page(&server, path, &[]).await;
        assert_eq!(shown.status, status, "{path}");
        assert!(shown.body.starts_with("<!doctype html>"), "{path}: {}", shown.body);
        assert!(shown.header("content-security-policy").is_some(), "{path}");
    }
}

#[tokio::test]
async fn a_memory_is_searched_edited_deleted_restored_and_forgotten() {
    let (server, id) = filled().await;
    let found =
        async |query: &str| page(&server, &format!("/inspect/memories?user=ada&{query}"), &[]).await.body;
    assert!(found("q=rows").await.contains("alert(1)"));
    assert!(found("q=glacier").await.contains("Nothing fits"));
    assert!(found("q=rows&kind=todo").await.contains("Nothing fits"));
    let path = |action: &str| format!("/inspect/memories/{id}{action}?user=ada");
    let edited = submit(&server, &path("/edit"), "form_token=t1&content=rows+at+dawn", &FORM).await;
    assert_eq!(edited.status, 303, "{}", edited.body);
    let shown = page(&server, edited.header("location").unwrap(), &[]).await;
    assert!(
        shown.body.contains("The memory was edited") && shown.body.contains("rows at dawn"),
        "{}",
        shown.body
    );
    let past = found("state=past&q=ROWS").await;
    assert!(past.contains("alert(1)") && past.contains("<span>on 20"), "the former statement: {past}");
    assert_eq!(submit(&server, &path("/delete"), "form_token=t1", &FORM).await.status, 303);
    assert!(
        found("state=deleted").await.contains("rows at dawn") && !found("").await.contains("rows at dawn")
    );
    assert_eq!(submit(&server, &path("/restore"), "form_token=t1", &FORM).await.status, 303);
    assert!(found("").await.contains("rows at dawn"));
    assert_eq!(
        submit(&server, &path("/forget"), "form_token=t1", &FORM).await.status,
        400,
        "without the box"
    );
    assert_eq!(submit(&server, &path("/forget"), "form_token=t1&sure=yes", &FORM).await.status, 303);
    assert_eq!(page(&server, &path(""), &[]).await.status, 404);
}

#[tokio::test]
async fn a_form_of_another_page_changes_nothing() {
    let (server, id) = filled().await;
    let before = server.heads().await;
    let path = format!("/inspect/memories/{id}/delete?user=ada");
    let own = ("origin", "http://localhost:8100");
    for (form, headers) in [
        ("form_token=t1", &[("cookie", "strata_form=t1")][..]),
        ("form_token=t1", &[("origin", "http://localhost:3000"), ("cookie", "strata_form=t1")]),
        ("form_token=t1", &[("origin", "null"), ("cookie", "strata_form=t1")]),
        ("form_token=t2", &[own, ("cookie", "strata_form=t1")]),
        ("form_token=", &[own, ("cookie", "strata_form=")]),
        ("", &[own]),
        ("form_token=t1", &[own, ("cookie", "strata_form=t1"), ("sec-fetch-site", "same-site")]),
    ] {
        assert_eq!(submit(&server, &path, form, headers).await.status, 403, "{form} {headers:?}");
    }
    assert_eq!(server.heads().await, before);
}

#[tokio::test]
async fn with_keys_a_person_signs_in_and_sees_what_the_key_may_read() {
    let (server, id) = filled().await;
    let ada = key(&server, "ada", "read,write").await;
    let (eve, reader, collector) = (
        key(&server, "eve", "read,write").await,
        key(&server, "ada", "read").await,
        key(&server, "ada", "write").await,
    );
    let refused = page(&server, "/inspect/memories?kind=fact", &[]).await;
    assert_eq!(refused.header("location"), Some("/inspect/sign-in?next=%2Finspect%2Fmemories%3Fkind%3Dfact"));
    assert_eq!(page(&server, "/", &[]).await.status, 303);
    assert_eq!(server.get("/").await.status, 401, "a program still needs its key");
    let form = page(&server, "/inspect/sign-in", &[]).await;
    assert_eq!(form.status, 200);
    assert!(form.header("set-cookie").unwrap().contains("HttpOnly; SameSite=Strict"));
    let sign_in = async |key: &str| {
        submit(&server, "/inspect/sign-in", &format!("form_token=t1&next=/inspect/report&key={key}"), &FORM)
            .await
    };
    for wrong in ["", "x", "strata_00000000000000000000000000000000", &collector] {
        let answer = sign_in(wrong).await;
        assert!(answer.status == 401 && answer.header("set-cookie").is_none(), "{wrong}: {}", answer.body);
        assert!(answer.body.contains("<form") && !answer.body.contains("Authorization"), "{}", answer.body);
        let quotes = |quote: &str| answer.body.matches(quote).count();
        assert_eq!(quotes("“"), quotes("”"), "{}", answer.body);
    }
    let signed_in = sign_in(&ada).await;
    assert_eq!((signed_in.status.as_u16(), signed_in.header("location")), (303, Some("/inspect/report")));
    let cookie = signed_in.header("set-cookie").unwrap();
    assert!(
        cookie.starts_with("strata_inspector=strata_") && cookie.contains("HttpOnly; SameSite=Strict"),
        "{cookie}"
    );
    assert!(cookie.contains("Path=/inspect;"), "{cookie}");
    let with = |key: &str| format!("strata_inspector={key}; strata_form=t1");
    let (ada, eve, reader) = (with(&ada), with(&eve), with(&reader));
    let memory = format!("/inspect/memories/{id}");
    let shown = page(&server, &memory, &[("cookie", &ada)]).await;
    assert!(
        shown.status == 200 && shown.body.contains("Sign out") && shown.body.contains("Destroy it"),
        "{}",
        shown.body
    );
    assert_eq!(page(&server, &memory, &[("cookie", &eve)]).await.status, 404);
    assert_eq!(page(&server, "/inspect?user=eve", &[("cookie", &ada)]).await.status, 403);
    let read = page(&server, &memory, &[("cookie", &reader)]).await;
    assert!(read.status == 200 && !read.body.contains("Destroy it"), "{}", read.body);
    let delete = format!("{memory}/delete");
    let submit_as =
        async |cookie: &str| submit(&server, &delete, "form_token=t1", &[FORM[0], ("cookie", cookie)]).await;
    assert_eq!(submit_as(&reader).await.status, 403, "a key that only reads");
    assert_eq!(submit_as(&eve).await.status, 404, "a key of another user");
    assert_eq!(submit_as(&ada).await.status, 303);
    // The cookie opens the inspector and nothing else.
    let api = server
        .send(request(Method::GET, "/memories").header("cookie", &ada).body(Body::empty()).unwrap())
        .await;
    assert_eq!(api.status, 401);
    let out = submit(&server, "/inspect/sign-out", "form_token=t1", &[FORM[0], ("cookie", &ada)]).await;
    assert!(
        out.header("set-cookie").unwrap().contains("strata_inspector=; ")
            && out.header("set-cookie").unwrap().contains("Max-Age=0")
    );
}

#[tokio::test]
async fn a_megabyte_is_shown_in_parts() {
    let server = TestServer::new();
    let long = "<西湖>".repeat(80_000);
    let said = json!([{"role": "user", "content": long}]);
    server.post("/turns", json!({"user_id": "ada", "session_id": "s", "messages": said})).await;
    let list = page(&server, "/inspect/sessions/s?user=ada", &[]).await;
    assert!(
        list.body.len() < 100_000 && list.body.contains("Read the other 318400 characters"),
        "{}",
        list.body.len()
    );
    let turns = server.get("/sessions/s/turns?user_id=ada").await.json();
    let turn = turns["turns"][0]["id"].as_str().unwrap().to_owned();
    let part = page(&server, &format!("/inspect/turns/{turn}?user=ada&page=2"), &[]).await;
    assert!(part.body.contains("Part 2 of 23") && part.body.len() < 100_000, "{}", part.body.len());
    for path in [
        "/inspect",
        "/inspect/sessions/s/prompt",
        "/inspect/sessions/s/summaries",
        "/inspect/sessions/s/state",
    ] {
        let shown = page(&server, &format!("{path}?user=ada"), &[]).await;
        assert!(shown.status == 200 && shown.body.len() < 100_000, "{path}: {}", shown.body.len());
    }
}

#[tokio::test]
async fn long_lists_have_pages() {
    let server = TestServer::new();
    for number in 0..45 {
        let body = json!({"user_id": "ada", "session_id": format!("s{number:02}"), "messages": [{"role": "user", "content": "hello"}]});
        server.post("/turns", body).await;
        server.post("/memories", json!({"user_id": "ada", "text": format!("fact number {number:02}")})).await;
    }
    let body = async |path: &str| page(&server, path, &[]).await.body;
    let first = body("/inspect/sessions?user=ada").await;
    assert!(first.contains("s44") && !first.contains("s03<") && first.contains("page=2"), "{first}");
    assert!(body("/inspect/sessions?user=ada&page=2").await.contains("s03<"));
    let first = body("/inspect/memories?user=ada").await;
    assert!(
        first.contains("number 44") && !first.contains("number 04") && first.contains("after=40"),
        "{first}"
    );
    assert!(body("/inspect/memories?user=ada&after=40").await.contains("number 04"));
}

/// The address behind a link with these words.
fn link(body: &str, words: &str) -> Option<String> {
    let before = body.split(&format!(">{words}</a>")).next().filter(|before| before.len() < body.len())?;
    let href = before.rsplit("href=\"").next()?.split('"').next()?;
    Some(href.replace("&#38;", "&").replace("&amp;", "&"))
}

#[tokio::test]
async fn every_turn_of_a_session_can_be_reached() {
    let server = TestServer::new();
    for (session, count) in [("long", 75), ("short", 1)] {
        let said: Vec<Value> =
            (0..count).map(|n| json!({"role": "user", "content": format!("said {n:02}.")})).collect();
        server.post("/turns", json!({"user_id": "ada", "session_id": session, "messages": said})).await;
        let mut seen = std::collections::BTreeSet::new();
        let mut next = Some(format!("/inspect/sessions/{session}?user=ada"));
        let mut pages = 0;
        let mut body = String::new();
        while let Some(path) = next {
            body = page(&server, &path, &[]).await.body;
            seen.extend((0..count).filter(|n| body.contains(&format!("said {n:02}."))));
            next = link(&body, "Earlier turns");
            pages += 1;
            assert!(pages <= 4, "{session}: the pages go round");
        }
        assert_eq!(seen.len(), count, "{session}: {seen:?}");
        let first = page(&server, &link(&body, "#0").unwrap(), &[]).await.body;
        let back = page(&server, &link(&first, session).unwrap(), &[]).await.body;
        assert!(back.contains("said 00.") && !back.contains("nothing was said"), "{back}");
    }
    let beyond = page(&server, "/inspect/sessions/short?user=ada&after=99", &[]).await.body;
    assert!(beyond.contains("said 00."), "{beyond}");
}

#[tokio::test]
async fn a_list_that_ends_early_says_so() {
    use strata_core::store::{Change, ChangeSet, MemoryQuery, MemorySelect};
    use strata_core::{Memory, MemoryId};
    let server = TestServer::new();
    let (user, engine) = (UserId::new("ada").unwrap(), server.app.engine());
    let anchorage = json!({"user_id": "ada", "text": "the anchorage is calm", "infer": false});
    server.post("/memories", anchorage).await;
    let query = MemoryQuery::new(MemorySelect::All);
    let first = engine.store().memories(&user, &query).await.unwrap().remove(0);
    for _ in 0..52 {
        let another = |_| Memory { id: MemoryId(engine.next_id()), ..first.clone() };
        let changes = (0..100).map(|number| Change::AddMemory(Box::new(another(number)))).collect();
        engine.store().apply(&user, ChangeSet::new(engine.now(), changes)).await.unwrap();
    }
    // A list by time, and one that looks for parts of words.
    for query in ["", "&state=all&q=nchorag"] {
        let mut next = Some(format!("/inspect/memories?user=ada{query}"));
        let (mut pages, mut body) = (0, String::new());
        while let Some(path) = next {
            body = page(&server, &path, &[]).await.body;
            next = link(&body, "Older memories");
            pages += 1;
            assert!(pages <= 5_000 / 40, "the pages go round");
        }
        assert!(body.contains("Older ones exist"), "{body}");
    }
    let body =
        async |query: &str| page(&server, &format!("/inspect/memories?user=ada&{query}"), &[]).await.body;
    assert!(body("q=anchorage").await.contains("These fit best, and there are more"));
    assert!(!body("q=anchorage&state=deleted").await.contains("there are more"));
    server.post("/memories", json!({"user_id": "ada", "text": "the buoy is green", "infer": false})).await;
    assert!(!body("q=buoy").await.contains("there are more"));
}

#[tokio::test]
async fn a_complaint_is_filed_on_the_page_of_its_request() {
    let (server, _) = filled().await;
    server.post("/search", json!({"user_id": "ada", "query": "what is the boat called"})).await;
    let rows: Value = server.get("/requests?user_id=ada").await.json();
    let path = format!("/inspect/requests/{}", rows["requests"][0]["id"].as_str().unwrap());
    let form = "form_token=t1&text=it+forgot+the+harbour&meaning=yes";
    let filed = submit(&server, &format!("{path}/feedback?user=ada"), form, &FORM).await;
    assert_eq!(filed.status, 303, "{}", filed.body);
    let shown = page(&server, filed.header("location").unwrap(), &[]).await.body;
    assert!(shown.contains("it forgot the harbour") && shown.contains("Your complaint was filed"), "{shown}");
    assert_eq!(server.get("/report?user_id=ada").await.json()["failures"]["complaints"], 1);
    // A rehearsal leaves no row.
    page(&server, "/inspect/try?user=ada&q=boat", &[]).await;
    assert_eq!(server.get("/requests?user_id=ada").await.json()["requests"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_job_that_was_given_up_is_tried_again() {
    let server = with_jobs().await;
    let overview = page(&server, "/inspect?user=ada", &[]).await.body;
    assert!(overview.contains("the model refuses") && overview.contains("Try again"), "{overview}");
    let path = format!("/inspect/jobs/{DEAD_JOB}/retry?user=ada");
    assert_eq!(submit(&server, &path, "form_token=t2", &FORM).await.status, 403, "the form of another page");
    let retried = submit(&server, &path, "form_token=t1", &FORM).await;
    assert_eq!(retried.status, 303, "{}", retried.body);
    let after = page(&server, retried.header("location").unwrap(), &[]).await.body;
    assert!(after.contains("The job is in the queue again") && !after.contains("Try again"), "{after}");
    let job = server.get(&format!("/jobs/{DEAD_JOB}?user_id=ada")).await.json();
    assert_eq!(job["status"], "queued");
    assert_eq!(submit(&server, &path, "form_token=t1", &FORM).await.status, 409, "it is not dead any more");
}

#[tokio::test]
async fn an_address_that_is_no_page_gets_a_page() {
    let (server, _) = filled().await;
    for path in ["/inspect/nothing", "/inspect/sessions/harbour/nothing", "/inspect/memories/x/y/z"] {
        let shown = page(&server, path, &[]).await;
        assert_eq!(shown.status, 404, "{path}");
        assert!(
            shown.header("content-type").unwrap().starts_with("text/html")
                && shown.body.contains("<h1>Not found</h1>"),
            "{path}: {}",
            shown.body
        );
    }
    let with_slash = page(&server, "/inspect/?user=ada", &[]).await;
    assert_eq!((with_slash.status.as_u16(), with_slash.header("location")), (308, Some("/inspect?user=ada")));
    let unknown = page(&server, "/inspect/sessions/nowhere?user=ada", &[]).await;
    assert!(
        unknown.status == 404 && unknown.body.contains("Session “nowhere” does not exist"),
        "{}",
        unknown.body
    );
    key(&server, "ada", "read").await;
    assert_eq!(page(&server, "/inspect/nothing", &[]).await.status, 303, "with keys, only after signing in");
}

#[tokio::test]
async fn sessions_with_odd_names_have_pages() {
    let server = TestServer::new();
    for name in ["..", ".", "~..", "a/b", "x y?z", "西湖"] {
        let said = json!([{"role": "user", "content": format!("said in <{name}>")}]);
        let body = json!({"user_id": "ada", "session_id": name, "messages": said});
        assert_eq!(server.post("/turns", body).await.status, 201, "{name}");
    }
    let list = page(&server, "/inspect/sessions?user=ada", &[]).await.body;
    let links: Vec<&str> = list
        .split("href=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .filter(|link| link.starts_with("/inspect/sessions/"))
        .collect();
    assert_eq!(links.len(), 6, "{links:?}");
    for link in links {
        let part = link.strip_prefix("/inspect/sessions/").unwrap().split('?').next().unwrap();
        assert!(!matches!(part, "%2E" | "%2E%2E" | "." | ".."), "a browser would leave it out: {link}");
        let shown = page(&server, &link.replace("&#38;", "&").replace("&amp;", "&"), &[]).await;
        assert!(shown.status == 200 && shown.body.contains("said in"), "{link}: {}", shown.status);
    }
}

#[tokio::test]
async fn an_overview_that_does_not_read_the_whole_week_says_since_when_it_counts() {
    use jiff::SignedDuration;
    use strata_core::metric::RequestMetric;
    use strata_core::store::conformance::fixture;
    use strata_core::store::{Change, ChangeSet};
    let (server, _) = filled().await;
    let (user, engine) = (UserId::new("ada").unwrap(), server.app.engine());
    let whole = page(&server, "/inspect?user=ada", &[]).await.body;
    assert!(whole.contains("Requests this week") && !whole.contains("more rows"), "{whole}");
    let begin = engine.now() - SignedDuration::from_hours(100);
    let row = |minute: i64| RequestMetric {
        created_at: begin + SignedDuration::from_mins(minute),
        ..fixture::request(0)
    };
    for batch in 0..21 {
        let rows = (0..100).map(|number| Change::AddRequest(Box::new(row(batch * 100 + number)))).collect();
        engine.store().apply(&user, ChangeSet::new(engine.now(), rows)).await.unwrap();
    }
    let cut = page(&server, "/inspect?user=ada", &[]).await.body;
    // 2,000 of 2,100 rows are read, one of every minute.
    let since = (begin + SignedDuration::from_mins(100)).strftime("%Y-%m-%d %H:%M").to_string();
    for expected in [
        format!("Requests since {since}"),
        format!("Verdicts since {since}"),
        format!("Nothing failed since {since}"),
        "more rows than the 2,000".to_owned(),
    ] {
        assert!(cut.contains(&expected), "{expected}: {cut}");
    }
    assert!(!cut.contains("7 days"), "{cut}");
}

#[tokio::test]
async fn more_jobs_than_are_counted_are_said_to_be_more() {
    use strata_core::job::Job;
    use strata_core::store::conformance::fixture;
    use strata_core::store::{Change, ChangeSet};
    let (server, _) = filled().await;
    let (user, engine) = (UserId::new("eve").unwrap(), server.app.engine());
    let enqueue = async |count: u32| {
        let job = |_| Change::EnqueueJob(Box::new(Job { user: user.clone(), ..fixture::job(None, 0) }));
        engine
            .store()
            .apply(&user, ChangeSet::new(engine.now(), (0..count).map(job).collect()))
            .await
            .unwrap();
        page(&server, "/inspect?user=eve", &[]).await.body
    };
    let shown = enqueue(1_000).await;
    assert!(shown.contains("<span class=\"figure\">1,000</span>"), "{shown}");
    let shown = enqueue(1).await;
    assert!(shown.contains("<span class=\"figure\">over 1,000</span>"), "{shown}");
}

#[tokio::test]
async fn a_user_who_is_not_in_the_list_can_be_named() {
    let (server, _) = filled().await;
    for number in 0..200 {
        let text = json!({"text": "sorts shells", "user_id": format!("reader-{number:03}"), "infer": false});
        server.post("/memories", text).await;
    }
    let shown = page(&server, "/inspect?user=ada", &[]).await.body;
    assert!(shown.contains("<input id=\"user\" name=\"user\" list=\"users\" value=\"ada\""), "{shown}");
    assert!(shown.contains("<option value=\"reader-100\">") && !shown.contains("<select id=\"user\""));
    let last = page(&server, "/inspect?user=reader-199", &[]).await.body;
    assert!(
        last.contains("value=\"reader-199\"") && last.contains("<span class=\"figure\">1</span>"),
        "{last}"
    );
}
