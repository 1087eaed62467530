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

document.addEventListener("htmx:afterSwap", (event) => improve(event.target.parentNode || document));
improve(document);
