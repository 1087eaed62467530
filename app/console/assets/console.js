// Makes pages nicer that work without it: local times, buttons that copy.
"use strict";

const LOCAL = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

function improve(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    time.textContent = LOCAL.format(new Date(time.dateTime));
  }
  for (const button of root.querySelectorAll("button[data-copy]")) {
    button.hidden = !navigator.clipboard;
  }
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (button) {
    await navigator.clipboard.writeText(button.dataset.copy);
    const before = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = before; }, 1500);
  }
});

// A link that signs in has its token behind the #, which no server and no log sees before the form is sent.
const entrance = document.querySelector("form[data-link]");
const token = location.hash.slice(1);
if (entrance && /^[a-z0-9-]{1,63}\.[a-z0-9]{1,16}\.[A-Za-z0-9_-]{43}$/.test(token)) {
  history.replaceState(null, "", location.pathname);
  entrance.elements.link.value = token;
  entrance.submit();
}

// A menu closes when somebody goes on elsewhere.
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.who[open]")) {
    if (!menu.contains(event.target)) { menu.open = false; }
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    for (const menu of document.querySelectorAll("details.who[open]")) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  }
});

// Files are sent one after the other, with how much has arrived.
const upload = document.querySelector("form[data-upload]");

function send(file, told) {
  return new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.open("POST", `${upload.dataset.upload}?external_id=${encodeURIComponent(file.name)}`);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.setRequestHeader("X-Form-Token", upload.elements.form_token.value);
    request.upload.addEventListener("progress", (event) => told(event.loaded / event.total));
    request.addEventListener("load", () => {
      const page = new DOMParser().parseFromString(request.responseText, "text/html");
      const fault = page.querySelector("h1 + p");
      resolve(request.status < 400 ? "" : fault ? fault.textContent : `error ${request.status}`);
    });
    request.addEventListener("error", () => resolve("the connection broke"));
    request.send(file);
  });
}

if (upload) {
  const [button, status, bar] = ["button", "[role=status]", "progress"].map((name) => upload.querySelector(name));
  button.disabled = false;
  upload.addEventListener("submit", async (event) => {
    event.preventDefault();
    const faults = [];
    button.disabled = true;
    bar.hidden = false;
    for (const file of upload.elements.file.files) {
      status.textContent = `Sending ${file.name}`;
      const fault = await send(file, (part) => { bar.value = part; });
      if (fault) { faults.push(`${file.name}: ${fault}`); }
    }
    bar.hidden = true;
    button.disabled = false;
    if (faults.length) { status.textContent = faults.join(" "); } else { location.reload(); }
  });
}

// A page that follows what happens: the server sends its parts anew. What somebody is using stays as it is.
const live = document.querySelector("[data-live]");
let source = null;

function follow() {
  source = new EventSource(live.dataset.live);
  source.addEventListener("message", (event) => {
    live.dataset.live = live.dataset.live.replace(/mark=\d+/, `mark=${event.lastEventId}`);
    const sent = document.createElement("template");
    sent.innerHTML = event.data;
    for (const part of sent.content.querySelectorAll("[data-part]")) {
      const shown = live.querySelector(`[data-part="${part.dataset.part}"]`);
      if (shown && !shown.contains(document.activeElement) && !shown.querySelector("details[open]")) {
        improve(part);
        shown.replaceWith(part);
      }
    }
  });
  source.addEventListener("ended", () => {
    source.close();
    // Asks for the page itself: the one that is open may be the answer to a form, which must not be sent again.
    location.assign(document.querySelector(".side a[aria-current]").href);
  });
  source.addEventListener("error", () => {
    live.querySelector("[data-live-off]").hidden = source.readyState !== EventSource.CLOSED;
  });
}

if (live) {
  // Browsers open six connections to a host: a page that nobody sees leaves its one to others.
  const changed = () => {
    if (source) { source.close(); source = null; }
    if (!document.hidden) { follow(); }
  };
  document.addEventListener("visibilitychange", changed);
  changed();
}

// On a narrow screen the pages stand in one line, of which the own one is to be seen.
document.querySelector(".side a[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

document.addEventListener("htmx:afterSwap", (event) => improve(event.target.parentNode || document));
improve(document);
