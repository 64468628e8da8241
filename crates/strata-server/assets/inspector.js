// Two small helps; every page works without them.
//
// A form with `data-live="ID"` shows its answer while a person types: the page of the form is fetched, and the element with
// that id is replaced by the one of the fetched page. With `data-load` that happens once without typing. The server escapes its content, and the parsed document never runs.
// A form with `data-submit-on-change` is sent when its choice changes.
"use strict";

document.documentElement.classList.add("scripted");

for (const form of document.querySelectorAll("form[data-live]")) {
  let timer = 0;
  let running = null;
  const address = () => {
    const url = new URL(form.action);
    url.search = new URLSearchParams(new FormData(form)).toString();
    return url;
  };
  const refresh = async () => {
    running?.abort();
    running = new AbortController();
    const url = address();
    try {
      const answer = await fetch(url, { signal: running.signal, headers: { accept: "text/html" } });
      // Signing in again needs a whole page.
      if (answer.redirected) {
        location.assign(url);
        return;
      }
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById(form.dataset.live);
      const shown = document.getElementById(form.dataset.live);
      if (fresh && shown) {
        shown.replaceChildren(...fresh.childNodes);
        history.replaceState(null, "", url);
      }
    } catch (error) {
      // A later key stroke has made this answer useless, or the server is gone; the button still works.
      if (error.name !== "AbortError") form.removeAttribute("data-live");
    }
  };
  if (form.hasAttribute("data-load")) refresh();
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(refresh, 180);
  });
  form.addEventListener("submit", (event) => {
    if (!form.hasAttribute("data-live")) return;
    event.preventDefault();
    clearTimeout(timer);
    refresh();
  });
}

for (const form of document.querySelectorAll("form[data-submit-on-change]")) {
  form.addEventListener("change", () => form.requestSubmit());
}
