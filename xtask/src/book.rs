//! `cargo xtask book`: the documentation as a book of web pages, in `target/book`.
//!
//! mdBook is built once into `target/tools`, without its server, search and watcher: neither Debian, PyPI nor npm has a program of it.
//! mdBook accepts links that lead nowhere, so they are checked here, in the pages that it wrote.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cargo_tools::MDBOOK;
use crate::process;
use crate::workspace::Workspace;

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let program = MDBOOK.program(workspace)?;
    let out = workspace.target()?.join("book");
    if out.exists() {
        fs::remove_dir_all(&out).with_context(|| format!("removing {}", out.display()))?;
    }
    process::run(
        Command::new(program).current_dir(workspace.root()).arg("build").arg("--dest-dir").arg(&out),
    )?;
    let pages = read_pages(&out)?;
    let dead = dead_links(&pages);
    if !dead.is_empty() {
        bail!("{} links of the book lead nowhere:\n{}", dead.len(), dead.join("\n"));
    }
    println!("{} has {} pages; open index.html", out.display(), pages.len());
    Ok(())
}

/// The pages by their names.
fn read_pages(out: &Path) -> Result<BTreeMap<String, String>> {
    let mut pages = BTreeMap::new();
    for entry in fs::read_dir(out).with_context(|| format!("reading {}", out.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // `print.html` repeats all pages with anchors of its own, and `toc.html` is a part of a page.
        if name.ends_with(".html") && name != "print.html" && name != "toc.html" && name != "404.html" {
            pages.insert(name, fs::read_to_string(entry.path())?);
        }
    }
    Ok(pages)
}

/// Links between pages, with their anchors, that lead nowhere.
fn dead_links(pages: &BTreeMap<String, String>) -> Vec<String> {
    let anchors: BTreeMap<&str, BTreeSet<&str>> =
        pages.iter().map(|(name, page)| (name.as_str(), values(page, " id=\"").collect())).collect();
    let mut dead = Vec::new();
    for (name, page) in pages {
        for link in values(main_part(page), " href=\"") {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let file = if file.is_empty() { name.as_str() } else { file.trim_start_matches("./") };
            let leads = file.contains(':')
                || anchors.get(file).is_some_and(|known| anchor.is_empty() || known.contains(anchor));
            if !leads {
                dead.push(format!("  {name}: {link}"));
            }
        }
    }
    dead
}

/// The author's text, without the frame around it.
fn main_part(page: &str) -> &str {
    let start = page.find("<main>").unwrap_or(0);
    let end = page.find("</main>").unwrap_or(page.len());
    &page[start..end]
}

fn values<'a>(page: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    page.split(name).skip(1).filter_map(|rest| rest.split('"').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_links_and_anchors_are_found() {
        let page = |body: &str| format!("<a href=\"frame.css\"></a><main>{body}</main>");
        let pages: BTreeMap<String, String> = [
            (
                "a.html",
                page("<h2 id=\"top\"></h2><a href=\"b.html#part\"></a><a href=\"https://example.org/\"></a>"),
            ),
            ("b.html", page("<h2 id=\"part\"></h2><a href=\"a.html\"></a><a href=\"#part\"></a>")),
        ]
        .map(|(name, page)| (name.to_owned(), page))
        .into();
        assert_eq!(dead_links(&pages), Vec::<String>::new());
        let mut broken = pages;
        broken.insert("c.html".to_owned(), page("<a href=\"d.html\"></a><a href=\"a.html#gone\"></a>"));
        assert_eq!(dead_links(&broken), ["  c.html: d.html", "  c.html: a.html#gone"]);
    }
}
