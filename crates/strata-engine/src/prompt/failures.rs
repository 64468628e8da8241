//! Whether a tool's result tells of a failure.

use serde_json::{Map, Value};

use strata_language::Pattern;

/// The longest JSON result that is read. A failure is reported in a short result; a long one is data.
const MAX_JSON_BYTES: usize = 16 * 1024;

/// The number of lines at each end of a text that may tell of a failure.
const END_LINES: usize = 2;

/// Whether a call failed; `None` if the result does not say.
pub(super) fn failed_by_content(content: &str) -> Option<bool> {
    let content = content.trim();
    if content.starts_with('{') && content.len() <= MAX_JSON_BYTES {
        let Ok(Value::Object(result)) = serde_json::from_str(content) else { return failed_text(content) };
        return failed_object(&result).or_else(|| nested(&result));
    }
    failed_text(content)
}

/// One level down, where wrappers put the result.
fn nested(result: &Map<String, Value>) -> Option<bool> {
    let inner = ["result", "response", "data", "output"].iter().find_map(|key| match result.get(*key)? {
        Value::Object(inner) => failed_object(inner),
        _ => None,
    });
    inner.filter(|failed| *failed)
}

fn failed_object(result: &Map<String, Value>) -> Option<bool> {
    let flag = |keys: &[&str]| keys.iter().find_map(|key| result.get(*key)?.as_bool());
    if let Some(success) = flag(&["success", "ok", "succeeded"]) {
        return Some(!success);
    }
    if flag(&["is_error", "isError", "timed_out", "timedOut", "failed"]) == Some(true) {
        return Some(true);
    }
    let exit =
        ["exit_code", "exitCode", "exit_status", "exitStatus", "returncode", "return_code", "returnCode"];
    if let Some(code) = exit.iter().find_map(|key| result.get(*key)?.as_i64()) {
        return Some(code != 0);
    }
    let http = ["status", "status_code", "statusCode", "code", "http_status"];
    let http =
        http.iter().find_map(|key| result.get(*key)?.as_i64()).filter(|code| (100..600).contains(code));
    if let Some(code) = http {
        return Some(code >= 400);
    }
    let word =
        ["status", "state", "outcome", "type", "result"].iter().find_map(|key| result.get(*key)?.as_str());
    let is_bad = |word: &str| ["error", "failed", "failure", "fail", "exception", "timeout"].contains(&word);
    if word.is_some_and(|word| is_bad(&word.to_lowercase())) {
        return Some(true);
    }
    let error =
        ["error", "errors", "is_error", "isError", "exception"].iter().find_map(|key| result.get(*key))?;
    Some(match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    })
}

/// Whether the first or the last lines of a text tell of a failure.
fn failed_text(content: &str) -> Option<bool> {
    static FAILED: Pattern = Pattern::new(
        r#"(?x)
            ^(?:error|fatal|fatal\ error|exception|failure|failed|panic|uncaught\ \w+|tool\ error|execution\ error)(?:\[\w+\])?:
            | ^(?:\w+\.)*[A-Z]\w*(?:Error|Exception)(?::|$)
            | ^Traceback\ \(most\ recent\ call\ last\)
            | ^Exception\ in\ thread
            | (?-u:\b)panicked\ at\s
            | (?i:(?-u:\b)exit(?:ed)?(?:\ with)?(?:\ (?:code|status))?(?:\ of)?[:=\ ]+(?:code\ )?-?[1-9]\d*(?-u:\b))
            | (?i:^(?:error\ executing|error\ running|error\ calling|failed\ to\ |unable\ to\ |could\ not\ |command\ failed|build\ failed))
            | (?i:(?:command\ not\ found|no\ such\ file\ or\ directory|permission\ denied|connection\ refused|timed\ out|segmentation\ fault(?:\ \(core\ dumped\))?)\.?$)
            | ^HTTP(?:/\d(?:\.\d)?)?[\ :]+[45]\d\d(?-u:\b)
            | ^[45]\d\d\ (?:Bad|Unauthorized|Forbidden|Not|Method|Conflict|Gone|Too|Unprocessable|Internal|Service|Gateway|Payment|Request)
            | (?i:(?-u:\b)status(?:\ code)?[:=\ ]+"?(?:[45]\d\d(?-u:\b)|error|failed))
            | ^npm\ (?:ERR!|error)
            | ^<(?:tool_use_)?error>
            | ^(?:错误|錯誤|异常|異常|执行失败|執行失敗|失败|失敗|调用失败|調用失敗)(?:[:：]|$)
            "#,
    );
    let lines: Vec<&str> = content.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines.len().saturating_sub(END_LINES).max(END_LINES);
    let ends = lines.iter().take(END_LINES).chain(lines.get(last..).unwrap_or_default());
    let failed = FAILED.get()?;
    let lowered = |line: &str| line.chars().next().is_some_and(|c| c.is_ascii_uppercase());
    let tells = |line: &&str| {
        let start = if lowered(line) { line[..1].to_lowercase() + &line[1..] } else { (*line).to_owned() };
        failed.is_match(line) || failed.is_match(&start)
    };
    ends.into_iter().any(tells).then_some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(content: &str, failed: bool) {
        assert_eq!(failed_by_content(content).unwrap_or(false), failed, "{content}");
    }

    #[test]
    fn failures_are_known_in_every_common_shape() {
        for content in [
            r#"{"content":[{"type":"text","text":"no such kiln"}],"isError":true}"#,
            r#"{"is_error": true}"#,
            r#"{"ok": false, "why": "cold"}"#,
            r#"{"status": "error", "message": "cold"}"#,
            r#"{"status": "FAILED"}"#,
            r#"{"status": 503}"#,
            r#"{"statusCode": 404, "body": ""}"#,
            r#"{"exit_code": 2, "stdout": "", "stderr": "cold"}"#,
            r#"{"returncode": -9}"#,
            r#"{"error": {"code": -32601, "message": "unknown"}}"#,
            r#"{"errors": [{"message": "cold"}], "data": null}"#,
            r#"{"type": "error", "text": "cold"}"#,
            r#"{"timed_out": true}"#,
            r#"{"result": {"success": false}}"#,
            "Error: the kiln is cold",
            "error[E0308]: mismatched types",
            "Traceback (most recent call last):\n  File \"kiln.py\", line 3\nValueError: cold",
            "lighting…\n\nkiln.errors.ColdError: no flame",
            "Process finished with exit code 1",
            "make: *** [all] Error 2\nexit status 2",
            "[exit code: 127]",
            "bash: kilnctl: command not found",
            "cat: /etc/kiln: No such file or directory",
            "HTTP/1.1 500 Internal Server Error\ncontent-length: 0",
            "404 Not Found",
            "Request failed with status code 429",
            "Exception in thread \"main\" java.lang.IllegalStateException: cold",
            "thread 'main' panicked at src/main.rs:4:5:\ncold",
            "npm ERR! missing script: light",
            "fatal: not a git repository",
            "<tool_use_error>File has not been read</tool_use_error>",
            "执行失败：窑是冷的",
        ] {
            check(content, true);
        }
    }

    #[test]
    fn results_that_tell_of_success_or_of_data_are_no_failure() {
        for content in [
            r#"{"ok": true, "error": null}"#,
            r#"{"exit_code": 0, "stderr": "warning: dim"}"#,
            r#"{"status": 200}"#,
            r#"{"status": "ok", "errors": []}"#,
            r#"{"isError": false, "content": []}"#,
            r#"{"code": 7, "name": "glaze"}"#,
            "Process finished with exit code 0",
            "HTTP/1.1 200 OK",
            "3 tests passed, 0 failed",
            "one\ntwo\nError: this stands in a file that was read\nthree\nfour\nfive",
            "The report has a chapter on error handling.",
            "完成，没有错误",
            "",
        ] {
            check(content, false);
        }
    }
}
