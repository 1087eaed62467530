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
