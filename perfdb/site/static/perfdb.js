// Tables of perfdb.site: sort, filter, copy, links to rows and to tabs. Without it the tables are
// whole, in order, and can be downloaded.

"use strict";

const UNKNOWN = "–";

// --- what a cell says

// The words of a cell: without the numbers of footnotes and the links beside it, its lines as one.
function words(cell) {
  const copy = cell.cloneNode(true);
  for (const mark of copy.querySelectorAll(".perf-mark, .perf-aside")) mark.remove();
  for (const line of copy.querySelectorAll("div:not(:last-child)")) line.append("; ");
  return copy.textContent.replace(/\s+/g, " ").trim();
}

// What a cell is sorted by: a number where it holds one, without thousands separators. A share that
// is printed in % is the fraction that data-sort says of others.
function sortKey(row, column) {
  const cell = row.cells[column];
  const text = (cell.dataset.sort ?? words(cell)).trim();
  const [, digits, percent] = /^(.*?)\s*(%?)$/.exec(text.replaceAll(",", ""));
  const number = Number(digits) / (percent ? 100 : 1);
  return digits === "" || Number.isNaN(number) ? text : number;
}

// --- sort

// Numbers by size, before words by the alphabet; what is unknown comes last either way.
function compare(a, b, direction) {
  const unknown = (key) => key === UNKNOWN || key === "";
  if (unknown(a) || unknown(b)) return unknown(a) - unknown(b);
  if (typeof a === "number" && typeof b === "number") return (a - b) * direction;
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return a.localeCompare(b, "en", { numeric: true }) * direction;
}

// The first click sorts rates from the fastest down, all else from the least up; the next turns it.
function sortBy(head) {
  const table = head.closest("table");
  const sorted = head.getAttribute("aria-sort");
  const ascending = sorted ? sorted === "descending" : !("falling" in head.dataset);
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
  const body = table.tBodies[0];
  const keyed = [...body.rows].map((row) => [sortKey(row, head.cellIndex), row]);
  keyed.sort(([a], [b]) => compare(a, b, ascending ? 1 : -1));
  body.append(...keyed.map(([, row]) => row));
}

function makeSortable(table) {
  for (const head of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sortBy(head));
    head.append(button);
  }
}

// --- filter

const LEAST_ROWS = 4;

const RULE = "Show rows in which each of these words starts a word or number";

// "64" begins 64 and 640, and stands inside 1640: nothing may come before it that it goes on from.
function beginning(word) {
  return new RegExp(`(?<![\\p{L}\\p{N}])${word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}`, "iu");
}

// A text without the separators of thousands.
function plain(text) {
  return text.replace(/(?<=\d),(?=\d{3})/g, "");
}

// Show the rows in which every word asked for begins a word, in any cell; 6473 begins 6,473 too, and
// 6,473 begins 6473.
function filterBy(table, query) {
  const asked = query.split(/\s+/).filter(Boolean);
  const words = asked.map((word) => [beginning(word), beginning(plain(word))]);
  for (const row of table.tBodies[0].rows) {
    const text = [...row.cells].map((cell) => cell.textContent).join(" ");
    row.hidden = !words.every(([word, digits]) => word.test(text) || digits.test(plain(text)));
  }
}

function shownRows(table) {
  return [...table.tBodies[0].rows].filter((row) => !row.hidden);
}

function counted(table) {
  const every = table.tBodies[0].rows.length;
  const shown = shownRows(table).length;
  const rows = every === 1 ? "row" : "rows";
  return shown === every ? `${every} ${rows}` : `${shown} of ${every} ${rows}`;
}

// --- copy

// The shown rows as lists of texts, the titles of the columns first. What is noted of a row, what the
// audit found and where a result is from have columns of their own, where any row has them. Where the
// table has a column of that title, ours says whose it is.
function texts(table) {
  const rows = shownRows(table);
  const beside = { Notes: notesOf(table), Findings: said("findings"), Source: said("source") };
  const isSaid = (of) => rows.some((row) => of(row) !== undefined);
  const more = Object.entries(beside).filter(([, of]) => isSaid(of));
  const titles = [...table.tHead.rows[0].cells].map(words);
  const own = (title) => (titles.includes(title) ? `${title} (perfdb)` : title);
  return [
    [...titles, ...more.map(([title]) => own(title))],
    ...rows.map((row) => [...[...row.cells].map(words), ...more.map(([, of]) => of(row) ?? "")]),
  ];
}

const said = (name) => (row) => row.dataset[name];

// What is noted of all rows, below the table, and what the marks by the name of a row stand for.
function notesOf(table) {
  const every = [];
  let below = table.parentElement.nextElementSibling;
  for (; below?.matches("p.perf-notes"); below = below.nextElementSibling) {
    every.push(below.textContent.replace(/^All rows: /, ""));
  }
  return (row) => {
    const marks = [...row.querySelectorAll(".perf-mark a")].map((mark) => mark.title);
    return [...every, ...marks].join(" | ") || undefined;
  };
}

// A table of Markdown in which every sign is a sign.
function markdown(rows) {
  const cell = (text) => text.replace(/[\\`*_{}[\]<>|$~^&]/g, "\\$&");
  const line = (row) => `| ${row.map(cell).join(" | ")} |`;
  const [titles, ...others] = rows;
  return [line(titles), `|${titles.map(() => "---").join("|")}|`, ...others.map(line), ""].join("\n");
}

// CSV without formulas: a spreadsheet takes a text that begins with one of these signs for one.
function csv(rows) {
  const cell = (text) => {
    if (text === UNKNOWN) return "";
    const number = /^[-+]?[\d.,]+%?$/.test(text);
    const plain = !number && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(plain) ? `"${plain.replace(/"/g, '""')}"` : plain;
  };
  return rows.map((row) => row.map(cell).join(",")).join("\n") + "\n";
}

// Browsers give the clipboard to https and localhost alone; elsewhere a selection is copied.
async function copied(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done ? undefined : Promise.reject(new Error("refused"));
}

// --- the tools above a table

function makeFilter(table, status) {
  const input = document.createElement("input");
  input.type = "search";
  input.placeholder = "Filter rows";
  input.title = RULE;
  input.setAttribute("aria-label", `Filter rows of ${table.parentElement.ariaLabel}`);
  input.addEventListener("input", () => {
    filterBy(table, input.value);
    status.textContent = counted(table);
  });
  return input;
}

function makeCopy(table, status, name, format) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = `Copy ${name}`;
  button.addEventListener("click", async () => {
    try {
      await copied(format(texts(table)));
      status.textContent = `${counted(table)}, copied`;
    } catch {
      status.textContent = "The browser blocked copying";
    }
  });
  return button;
}

function makeTools(table) {
  const tools = document.createElement("div");
  tools.className = "perf-tools";
  const status = document.createElement("span");
  status.setAttribute("role", "status");
  status.textContent = counted(table);
  if (table.tBodies[0].rows.length >= LEAST_ROWS) tools.append(makeFilter(table, status));
  tools.append(status, makeCopy(table, status, "Markdown", markdown), makeCopy(table, status, "CSV", csv));
  table.parentElement.before(tools);
}

// --- on a narrow screen what was run, and then the rates, stand beside the names of rows, in view

const NARROW = matchMedia("(max-width: 600px)");

function rearrange(table) {
  const heads = [...table.tHead.rows[0].cells];
  const marked = (mark) => heads.filter((head) => mark in head.dataset);
  const [near, rates] = [marked("near"), marked("falling")];
  const moved = [...near, ...rates].map((head) => head.cellIndex);
  for (const row of table.rows) {
    const cells = [...row.cells];
    cells[0].after(...moved.map((column) => cells[column]));
  }
  rates.filter((head) => !head.querySelector("wbr")).forEach(breakAtSlashes);
  const now = [...table.tHead.rows[0].cells];
  if (moved.length) tellApart(table, now.slice(0, near.length + 1), now.slice(moved.length + 1));
}

// "TFLOPs/sec/GPU" is wider than the figures below it.
function breakAtSlashes(head) {
  const title = [...head.querySelectorAll("button, abbr")].pop() ?? head;
  for (const text of [...title.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE)) {
    const parts = text.data.split(/(?<=\/)/);
    text.replaceWith(...parts.flatMap((part) => [part, document.createElement("wbr")]));
  }
}

// Where rows read alike but for their figures, all rows say below their names in what those differ
// that is out of view: in their words first, then in numbers. Sentences stand there alone.
function tellApart(table, inView, others) {
  const rows = [...table.tBodies[0].rows];
  const isFigure = ({ cellIndex }) => rows.some((row) => row.cells[cellIndex].querySelector("a.e"));
  const [known, heads] = [inView, others].map((some) => some.filter((head) => !isFigure(head)));
  heads.sort((a, b) => a.matches(".n") - b.matches(".n"));
  const read = (row) => known.map((head) => words(row.cells[head.cellIndex])).join("\n");
  const telling = new Set(grouped(rows, read).flatMap((alike) => differing(alike, heads)));
  const told = heads.filter((one) => telling.has(one));
  for (const row of told.length ? rows : []) {
    const lines = told.map((head) => titled(head, words(row.cells[head.cellIndex])));
    for (const line of NARROW.matches ? lines : [lines.join(" · ")]) sayBelow(row, line);
  }
  for (const head of told.filter((one) => NARROW.matches && one.matches(".w"))) {
    for (const row of table.rows) row.cells[head.cellIndex].classList.add("perf-told");
  }
}

// A window that grows or shrinks brings columns into view or takes them out of it: then it is said
// anew. On a wide screen what counts is what the box shows before it is scrolled.
function tellAgain(box) {
  const table = box.firstElementChild;
  const heads = [...table.tHead.rows[0].cells];
  const shown = NARROW.matches ? [] : shownHeads(box, heads);
  const told = NARROW.matches ? "narrow" : `${shown.length} columns`;
  if (table.dataset.told === told) return;
  table.dataset.told = told;
  for (const line of table.querySelectorAll("small.perf-aside")) line.remove();
  if (NARROW.matches) rearrange(table);
  else tellApart(table, shown, heads.slice(shown.length));
}

function shownHeads(box, heads) {
  const edge = box.firstElementChild.offsetLeft + box.clientWidth;
  const isShown = (head) => head.offsetLeft + head.offsetWidth <= edge;
  return box.matches(".fits") ? heads : heads.filter(isShown);
}

// The columns that it takes to tell rows apart, as far as there are any.
function differing(rows, heads) {
  const said = (head) => (row) => words(row.cells[head.cellIndex]);
  const head = heads.find((one) => grouped(rows, said(one)).length > 1);
  if (!head) return [];
  return [head, ...grouped(rows, said(head)).flatMap((alike) => differing(alike, heads))];
}

// "TP 1" stays on one line.
function titled(head, said) {
  return `${words(head)}${head.matches(".n") ? "\u00a0" : " "}${said}`;
}

function sayBelow(row, textContent) {
  const line = { className: "perf-aside", textContent };
  row.cells[0].append(Object.assign(document.createElement("small"), line));
}

function grouped(rows, key) {
  const keys = rows.map(key);
  return [...new Set(keys)].map((one) => rows.filter((_, place) => keys[place] === one));
}

// --- a table that is as wide as its box needs no box: the page scrolls, and the head stays

function fit(box) {
  box.classList.remove("fits");
  const fits = box.firstElementChild.scrollWidth <= box.clientWidth;
  box.classList.toggle("fits", fits);
  if (fits) box.removeAttribute("tabindex");
  else box.tabIndex = 0;
  if (box.clientWidth) tellAgain(box);
  hint(box);
}

// A box that has more to the right fades out there.
function hint(box) {
  box.classList.toggle("more", box.scrollWidth - box.clientWidth - box.scrollLeft > 4);
}

// Where the head of such a table stops: below the bar that stays at the top of the page.
function keepTop() {
  const bar = document.querySelector(".bd-header");
  if (bar) document.documentElement.style.setProperty("--perf-top", `${bar.offsetHeight}px`);
}

const resized = new ResizeObserver((entries) => {
  for (const { target } of entries) (target.matches(".perf-wrap") ? fit : hint)(target);
});

// --- paper is light

function printLight() {
  const { theme } = document.documentElement.dataset;
  document.documentElement.dataset.theme = "light";
  window.addEventListener("afterprint", () => (document.documentElement.dataset.theme = theme), { once: true });
}

// --- tabs and rows in the address

// The radio button of the tab that an element stands in; null where it stands in none.
function tabOf(element) {
  const label = element.closest(".sd-tab-content")?.previousElementSibling;
  return label ? document.getElementById(label.htmlFor) : null;
}

// Show the row that the address names, though its tab be hidden or a filter be on; the change makes
// the other sets of tabs follow.
function showTarget() {
  const target = document.querySelector(":target");
  if (!target) return;
  const tab = tabOf(target);
  if (tab) {
    tab.checked = true;
    tab.dispatchEvent(new Event("change", { bubbles: true }));
  }
  target.hidden = false;
  target.closest("details")?.setAttribute("open", "");
  target.scrollIntoView({ block: "center" });
}

// Keep the chosen tab in the address, so that it can be handed on. A row that was named before is
// named no longer once somebody chooses another tab.
function keepTab(event) {
  const label = event.target.labels?.[0];
  if (!label?.dataset.syncId) return;
  const address = new URL(location.href);
  address.searchParams.set(label.dataset.syncGroup, label.dataset.syncId);
  if (event.isTrusted) address.hash = "";
  history.replaceState(null, "", address);
}

for (const table of document.querySelectorAll("table.perf")) {
  if ("sortable" in table.dataset) makeSortable(table);
  makeTools(table);
}
if (NARROW.matches) document.querySelectorAll(".perf-wrap").forEach(tellAgain);
for (const box of document.querySelectorAll(".perf-wrap, .perf-figure")) {
  resized.observe(box);
  box.addEventListener("scroll", () => hint(box), { passive: true });
}
keepTop();
window.addEventListener("beforeprint", printLight);
window.addEventListener("resize", keepTop);
document.addEventListener("change", keepTab);
window.addEventListener("hashchange", showTarget);
window.addEventListener("load", showTarget);
