// Sorts tables of perfdb.site by a click on a head. Without it the tables are whole and in order.

// What a cell is sorted by: a number where it holds one, thousands separators and % left out.
function sortKey(row, column) {
  const cell = row.cells[column];
  const text = (cell.dataset.sort ?? cell.textContent).trim();
  const number = Number(text.replace(/[,%]/g, ""));
  return text === "" || Number.isNaN(number) ? text : number;
}

// Numbers by size, before words by the alphabet; what is unknown comes last either way.
function compare(a, b, direction) {
  const unknown = (key) => key === "–" || key === "";
  if (unknown(a) || unknown(b)) return unknown(a) - unknown(b);
  if (typeof a === "number" && typeof b === "number") return (a - b) * direction;
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return a.localeCompare(b, "en", { numeric: true }) * direction;
}

function sortBy(head) {
  const table = head.closest("table");
  const ascending = head.getAttribute("aria-sort") !== "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
  const body = table.tBodies[0];
  const keyed = [...body.rows].map((row) => [sortKey(row, head.cellIndex), row]);
  keyed.sort(([a], [b]) => compare(a, b, ascending ? 1 : -1));
  body.append(...keyed.map(([, row]) => row));
}

for (const head of document.querySelectorAll("table.perf[data-sortable] thead th")) {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...head.childNodes);
  button.addEventListener("click", () => sortBy(head));
  head.append(button);
}
