// Helpers for elements and formatting. Data of a run enters the page as text, never as markup.

export const byId = (id) => document.getElementById(id);

// make("td", {class: "number", text: "12"}, child, ...)
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (name === "text") element.textContent = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// Writes only a different text, so that selections and a screen reader's position survive.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setAttribute(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

// Makes the children of `parent` match `items`. Reuses children by key, so that focus and scroll
// position survive.
export function keep(parent, items, key, create, update) {
  const old = new Map();
  for (const child of parent.children) old.set(child.dataset.key, child);
  let place = parent.firstElementChild;
  for (const item of items) {
    const name = String(key(item));
    let child = old.get(name);
    if (child) {
      old.delete(name);
    } else {
      child = create(item);
      child.dataset.key = name;
    }
    if (child === place) place = place.nextElementSibling;
    else parent.insertBefore(child, place);
    update?.(child, item);
  }
  for (const child of old.values()) child.remove();
}

// A table with a heading row; cells are texts or elements. "#" at the end of a heading marks numbers.
export function table(headings, rows) {
  const head = make("tr");
  for (const heading of headings) {
    const is_number = heading.endsWith("#");
    head.append(make("th", {scope: "col", class: is_number ? "number" : null,
                            text: heading.replace(/#$/, "")}));
  }
  const body = make("tbody");
  for (const row of rows) {
    const line = make("tr");
    row.forEach((cell, at) => {
      const is_number = headings[at].endsWith("#");
      const element = at === 0 ? make("th", {scope: "row"}) : make("td", {class: is_number ? "number" : null});
      element.append(cell ?? "");
      line.append(element);
    });
    body.append(line);
  }
  return make("table", {}, make("thead", {}, head), body);
}

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

export function count(value) {
  return isNumber(value) ? Math.round(value).toLocaleString("en") : "";
}
export function number(value, digits = 4) {
  if (!isNumber(value)) return value === undefined || value === null ? "" : String(value);
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size < 1e-4 || size >= 1e7 ? value.toExponential(digits - 1)
                                    : String(Number(value.toPrecision(digits)));
}
export function percent(share, digits = 0) {
  return isNumber(share) ? (100 * share).toFixed(digits) + " %" : "";
}
export function bytes(value) {
  if (!isNumber(value)) return "";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit + 1 < units.length) {
    value /= 1024;
    unit += 1;
  }
  return (unit === 0 || value >= 100 ? value.toFixed(0) : value.toFixed(1)) + " " + units[unit];
}
export function seconds(value) {
  if (!isNumber(value)) return "";
  if (value < 1e-3) return (1e6 * value).toFixed(0) + " µs";
  if (value < 1) return (1e3 * value).toFixed(value < 0.1 ? 1 : 0) + " ms";
  if (value < 120) return value.toFixed(value < 10 ? 1 : 0) + " s";
  const minutes = Math.floor(value / 60);
  return minutes < 120 ? minutes + " min" : Math.floor(minutes / 60) + " h " + (minutes % 60) + " min";
}
export function clock(time) {
  return isNumber(time) ? new Date(1000 * time).toLocaleTimeString([], {hour12: false}) : "";
}
export function day(time) {
  return isNumber(time) ? new Date(1000 * time).toLocaleString([], {hour12: false}) : "";
}
