/* The page: events, the form, the address, and what Python returns, shown. No arithmetic of layouts is done here.
   Texts of a person go into the document as text; HTML and SVG come from cute_py.page alone, which escapes. */

const byId = (id) => document.getElementById(id);
const DATA = JSON.parse(byId("data").textContent);
const TABS = Object.fromEntries(DATA.tabs.map((tab) => [tab.name, tab]));
const LOAD_MS = 120_000; // to load the modules of a tab for the first time
let limitMs = 5000; // for one answer
const TYPING_MS = 10; // keys that come sooner are asked together
const CELLS_AT_ONCE = 200;
const SMALLEST_SCALE = 0.65; // of a picture that is wider than its column; below it the picture scrolls
const CHARACTERS_AT_ONCE = 60_000; // of sections
const FIXES_MS = 250; // changes are tried after a pause, so that they keep no typed answer waiting

let tab = DATA.tabs[0].name;
let asked = 0;
let language = "";

/** An element; children are nodes or texts. */
function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

// ---- the form and the address ---------------------------------------------------------------------------------------

function fieldNode(field, value) {
  const keys = { id: field.name, name: field.name, spellcheck: "false", autocapitalize: "off" };
  let input;
  if (field.kind === "area") input = make("textarea", { ...keys, rows: field.name === "text" ? 8 : 2 });
  else if (field.kind === "choice")
    input = make("select", keys, ...field.choices.map(([v, text]) => make("option", { value: v }, text)));
  else if (field.kind === "check") input = make("input", { ...keys, type: "checkbox" });
  else input = make("input", { ...keys, type: "text", list: field.kind === "list" ? `${field.name}-list` : null });
  setValue(input, value);
  const note = field.note ? make("small", {}, ` ${field.note}`) : null;
  const label = make("label", { for: field.name }, field.label, note);
  const wrong = make("p", { class: "wrong", id: `${field.name}-wrong` });
  const list =
    field.kind === "list"
      ? make("datalist", { id: `${field.name}-list` }, ...field.choices.map(([v]) => make("option", { value: v })))
      : null;
  const parts = field.kind === "check" ? [input, label] : [label, input, list];
  const about = { class: `field${field.half ? " half" : ""} ${field.kind}`, "data-only": field.only || null };
  return make("div", about, ...parts, wrong);
}

function setValue(input, value) {
  if (input.type === "checkbox") input.checked = value === "1";
  else {
    if (input.tagName === "SELECT" && ![...input.options].some((option) => option.value === value))
      input.append(make("option", { value }, value));
    input.value = value;
  }
}

const valueOf = (input) => (input.type === "checkbox" ? (input.checked ? "1" : "") : input.value);

function formInputs() {
  return Object.fromEntries(TABS[tab].fields.map(({ name }) => [name, valueOf(byId(name))]));
}

function showForm(inputs) {
  const about = TABS[tab];
  byId("form").replaceChildren(
    make("p", { class: "purpose" }, about.purpose),
    ...about.fields.map((field) => fieldNode(field, inputs[field.name] ?? about.defaults[field.name])),
  );
  byId("examples").replaceChildren(
    make("option", { value: "" }, "choose …"),
    ...about.examples.map(({ name }, i) => make("option", { value: i }, name)),
  );
  for (const button of byId("tabs").children) {
    button.setAttribute("aria-selected", button.dataset.tab === tab);
    button.tabIndex = button.dataset.tab === tab ? 0 : -1;
  }
}

/** Hide the fields that the chosen kind does not read. */
function hideFields() {
  for (const node of byId("form").querySelectorAll("[data-only]"))
    node.hidden = !node.dataset.only.split(" ").includes(byId("kind").value);
}

function hashOf(inputs) {
  const { defaults } = TABS[tab];
  const typed = Object.entries(inputs).filter(([name, value]) => value !== defaults[name]);
  return `#${new URLSearchParams([["tab", tab], ...typed])}`;
}

/** The tab and the inputs that the address holds; addresses of the earlier page are those of the tab TMA. */
function ofAddress() {
  const held = new URLSearchParams(location.hash.slice(1));
  const name = held.get("tab") ?? (held.has("gmem") ? "tma" : DATA.tabs[0].name);
  const known = Object.hasOwn(TABS, name) ? name : DATA.tabs[0].name;
  const inputs = [...held].filter(([key]) => Object.hasOwn(TABS[known].defaults, key));
  return [known, Object.fromEntries(inputs)];
}

function keep(inputs, step) {
  const hash = hashOf(inputs);
  if (hash === location.hash) return;
  history[step ? "pushState" : "replaceState"](null, "", hash);
}

/** Show a tab; `step`: as a step that Back returns from. */
function go(name, inputs, step) {
  if (name !== tab) byId("code").hidden = true;
  tab = name;
  showForm(inputs);
  update(step);
}

function change(inputs) {
  for (const [name, value] of Object.entries(inputs)) if (byId(name)) setValue(byId(name), value);
  update(true);
}

// ---- asking ----------------------------------------------------------------------------------------------------------

let worker = null;
let ready = false;
let waiting = null;
let clock = 0;

const packed = (name) => byId(`packed-${name}`)?.textContent.trim();
const offline = DATA.mode === "static" && DATA.lock !== null;
/** The packed parts stand behind this script, so that the page is seen before they are read. */
const parsed = new Promise((done) =>
  document.readyState === "loading" ? document.addEventListener("DOMContentLoaded", done) : done(),
);

async function startWorker() {
  ready = false;
  worker = true; // on its way
  await parsed;
  const source = packed("worker");
  worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  worker.onmessage = ({ data }) => heard(data);
  worker.onerror = (event) => stopped(`Python could not start: ${event.message ?? "the browser refuses the worker"}`);
  const parts = Object.fromEntries(["wasm", "stdlib", "library", "loader", "glue"].map((name) => [name, packed(name)]));
  worker.postMessage({ boot: { ...parts, lock: DATA.lock } });
}

function heard(data) {
  if (data.part !== undefined) {
    byId("boot").hidden = data.part === 1;
    byId("progress").value = data.part;
    byId("stage").textContent = data.words;
    if (data.part !== 1) return;
    ready = true;
    document.body.dataset.times = JSON.stringify(data.times);
    document.body.dataset.python = "ready";
    next();
    return;
  }
  if (data.loaded) {
    document.body.dataset.tabs = "loaded";
    return;
  }
  clearTimeout(clock);
  if (data.started !== undefined) {
    clock = setTimeout(ended, limitMs);
    return;
  }
  const job = waiting;
  waiting = null;
  if (data.id === undefined && data.failed) return stopped(`Python could not start: ${data.failed}`);
  if (job && job.id === data.id) job.done(data.failed ? { refused: data.failed } : JSON.parse(data.text));
  next();
}

function stopped(words) {
  worker?.terminate?.();
  worker = null;
  byId("boot").hidden = true;
  showVerdict("bad", words);
}

let queued = null;

/** Ask the latest question, if none is being answered: questions that were asked in between are left out. */
function next() {
  if (!ready || waiting || !queued) return;
  waiting = queued;
  queued = null;
  worker.postMessage({ id: waiting.id, query: waiting.query });
  clock = setTimeout(ended, LOAD_MS);
}

/** The time of an answer is over: the worker is ended, and Python starts anew. */
function ended() {
  const job = waiting;
  waiting = null;
  worker.terminate();
  startWorker();
  job.done({ refused: `no answer within ${limitMs / 1000} s: the computation was ended` });
}

async function fromServer(query) {
  try {
    const reply = await fetch("answer", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(query),
    });
    const data = await reply.json();
    return reply.ok ? data : { refused: data.error.message };
  } catch (error) {
    return { refused: `the server does not answer: ${error.message}` };
  }
}

/** `done` gets the answer, unless another question was asked since. */
function ask(part, done) {
  const query = { tab, inputs: formInputs(), part };
  const id = ++asked;
  const finish = (answer) => id === asked && done(answer);
  if (DATA.mode === "served") return fromServer(query).then(finish);
  if (!offline) return finish(null);
  queued = { id, query, done: finish };
  if (!worker) startWorker();
  next();
}

let prepared = null; // address -> answer
let early = ""; // the prepared answer that is shown until Python's comes, as text
let complete = 0; // sections of the same answer that are shown already

async function readPrepared() {
  await parsed;
  const held = packed("prepared");
  if (!held) return {};
  const bytes = Uint8Array.from(atob(held), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

async function preparedAnswer(inputs) {
  prepared ??= readPrepared();
  return (await prepared)[hashOf(inputs)] ?? null;
}

function update(step) {
  const inputs = formInputs();
  hideFields();
  keep(inputs, step);
  document.body.dataset.state = "asking";
  early = "";
  complete = 0;
  const whole = (answer) => answer && !(early && JSON.stringify(answer) === early) && show(answer);
  ask("first", (answer) => {
    if (answer?.complete === undefined) return whole(answer);
    if (!early) show(answer);
    const mine = asked;
    afterFrame(() => mine === asked && ask("answer", whole));
  });
  if (DATA.mode === "static") {
    const mine = asked;
    preparedAnswer(inputs).then((answer) => {
      if (mine !== asked || document.body.dataset.state !== "asking") return;
      if (answer) {
        early = JSON.stringify(answer);
        show(answer);
      } else if (!offline) {
        clear();
        showVerdict("unknown", "This page has no interpreter: it shows its examples, and answers nothing else.");
        document.body.dataset.state = "shown";
      } else if (!ready) showVerdict("unknown", "Python is starting …");
    });
  }
}

// ---- showing ---------------------------------------------------------------------------------------------------------

function showVerdict(kind, words) {
  byId("verdict").className = kind;
  byId("verdict").textContent = words;
}

function clear() {
  drawn++;
  byId("sections").replaceChildren();
  byId("problems").hidden = byId("code").hidden = true;
}

function show(answer) {
  if (answer.refused) {
    clear();
    showVerdict("bad", answer.refused);
    document.body.dataset.state = "shown";
    return;
  }
  document.body.dataset.answer = JSON.stringify({ verdict: answer.verdict, problems: answer.problems.length });
  showVerdict(...answer.verdict);
  showProblems(answer.problems);
  showSections(answer);
  if (answer.complete !== undefined) return; // the whole answer follows, with its code
  showCode(answer.code);
  const mine = asked;
  const better = () => mine === asked && ask("fixes", (found) => found?.problems && showProblems(found.problems));
  if (answer.more) setTimeout(better, FIXES_MS);
}

function showProblems(problems) {
  const place = byId("problems");
  place.hidden = !problems.length;
  for (const { name } of TABS[tab].fields) {
    const own = problems.filter((problem) => problem.field === name);
    byId(name).setAttribute("aria-invalid", own.length > 0);
    byId(`${name}-wrong`).textContent = own.map((problem) => problem.message).join("; ");
  }
  const items = problems.map((problem) =>
    make(
      "li",
      {},
      make("strong", {}, problem.message),
      ...problem.facts.map((fact) => make("small", {}, fact)),
      problem.hint ? make("small", {}, problem.hint) : null,
      make("ul", { class: "fixes" }, ...problem.fixes.map(fixNode)),
    ),
  );
  place.replaceChildren(make("h2", {}, problems.length > 1 ? "Problems" : "Problem"), make("ol", {}, ...items));
}

function fixNode({ words, inputs }) {
  return make("li", {}, make("button", { type: "button", class: "fix", onclick: () => change(inputs) }, words));
}

function sectionNode({ id, title, html }) {
  const node = make("section", { id: `s-${id}`, "aria-label": title }, make("h2", {}, title));
  const body = make("div", {});
  body.innerHTML = html; // made and escaped by Python; the policy of the page runs nothing in it
  node.append(body);
  return node;
}

const afterFrame = (work) => requestAnimationFrame(() => setTimeout(work));
let drawn = 0; // answers
let held = []; // [group, node] of cells that are not in the document yet

/** The sections of the first screen at once, the others and the rest of the cells in the frames after it, unless another
    answer came. After the first part of an answer, its complete sections stay. */
function showSections(answer) {
  const mine = ++drawn;
  const rest = answer.sections.slice(complete);
  const whole = answer.complete === undefined;
  let size = 0;
  const below = whole ? rest.findIndex(({ html }, i) => (size += html.length) >= CHARACTERS_AT_ONCE && i > 0) : -1;
  const add = (some, old) => {
    const nodes = some.map(sectionNode);
    nodes.forEach(dress);
    holdCells(nodes);
    for (const node of old) node.remove();
    byId("sections").append(...nodes);
  };
  held = [];
  add(rest.splice(0, below < 0 ? rest.length : below), [...byId("sections").children].slice(complete));
  const more = () => {
    if (mine !== drawn) return;
    if (held.length) putCells(2 * CELLS_AT_ONCE);
    else add(rest.splice(0, 1), []);
    proceed();
  };
  const proceed = () => (held.length || rest.length ? afterFrame(more) : (document.body.dataset.state = "shown"));
  document.body.dataset.state = "seen";
  complete = answer.complete ?? 0;
  if (whole) proceed();
}

/** Thousands of cells take a tenth of a second to lay out: those after the first ones, and the labels between them, are
    taken out before the pictures enter the document. */
function holdCells(nodes) {
  let count = 0;
  for (const group of nodes.flatMap((node) => [...node.querySelectorAll("g.table")]))
    for (const child of [...group.children]) {
      count += child.classList.contains("c");
      if (count > CELLS_AT_ONCE) held.push([group, child]);
    }
  for (const [, child] of held) child.remove();
}

function putCells(most) {
  for (const [group, child] of held.splice(0, most)) group.append(child);
}

function showCode(panels) {
  byId("code").hidden = !panels.length;
  if (!panels.length) return;
  const chosen = panels.find((panel) => panel.name === language) ?? panels[0];
  byId("languages").replaceChildren(
    ...panels.map((panel) => {
      const pick = () => {
        language = panel.name;
        showCode(panels);
      };
      const keys = { type: "button", role: "tab", "aria-selected": String(panel === chosen), onclick: pick };
      return make("button", keys, panel.name);
    }),
  );
  byId("listing").textContent = chosen.text;
}

// ---- pictures --------------------------------------------------------------------------------------------------------

/** Buttons and keys of every picture below a node. */
function dress(place) {
  for (const figure of place.querySelectorAll("figure")) {
    const svg = figure.querySelector("svg");
    svg.setAttribute("tabindex", "0");
    svg.style.minWidth = `${SMALLEST_SCALE * svg.getAttribute("width")}px`;
    const { name, part } = figure.dataset;
    const button = (kind) => {
      const keys = { type: "button", disabled: part !== undefined, onclick: () => download(name, kind, svg) };
      return make("button", keys, kind.toUpperCase());
    };
    figure.prepend(make("div", { class: "tools" }, button("svg"), button("png")));
    const cells = [...svg.querySelectorAll("g.c")];
    svg.addEventListener("click", (event) => tellCell(figure, cells, event.target.closest("g.c")));
    svg.addEventListener("keydown", (event) => moveCell(event, figure, cells));
  }
  for (const row of place.querySelectorAll("table.fields tbody tr")) {
    const light = (on) => lightBytes(place, row.cells[1].textContent, on);
    for (const [name, on] of [["mouseenter", true], ["mouseleave", false], ["focus", true], ["blur", false]])
      row.addEventListener(name, () => light(on));
    row.tabIndex = 0;
  }
}

/** The bytes of a field of the descriptor: 'w1[22:15]' is bits 22 to 15 of its second word of 64. */
function lightBytes(place, where, on) {
  for (const [, word, high, low] of where.matchAll(/w(\d+)\[(\d+)(?::(\d+))?\]/g)) {
    const bits = [Number(low ?? high), Number(high)];
    for (let at = 8 * word + Math.floor(bits[0] / 8); at <= 8 * word + Math.floor(bits[1] / 8); at++)
      place.querySelector(`.byte[data-at="${at}"]`)?.classList.toggle("lit", on);
  }
}

const textOf = (cell) => cell.querySelector("text")?.textContent ?? "";

/** Tell what a cell is, and mark those with the same first text: the cells of one thread. */
function tellCell(figure, cells, cell) {
  if (!cell) return;
  for (const other of cells) {
    other.classList.toggle("chosen", other === cell);
    other.classList.toggle("same", /^T\d+$/.test(textOf(cell)) && textOf(other) === textOf(cell));
  }
  figure.querySelector(".cell-text").textContent = cell.querySelector("title")?.textContent ?? textOf(cell);
}

const placeOf = (cell) => {
  const box = cell.querySelector("rect");
  return [Number(box?.getAttribute("x") ?? 0), Number(box?.getAttribute("y") ?? 0)];
};

function moveCell(event, figure, cells) {
  const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
  if (!by || !cells.length) return;
  event.preventDefault();
  const now = figure.querySelector("g.c.chosen");
  if (!now) return tellCell(figure, cells, cells[0]);
  const [x, y] = placeOf(now);
  const axis = by[0] ? 0 : 1;
  let best = null;
  for (const cell of cells) {
    const at = placeOf(cell);
    const along = (at[axis] - [x, y][axis]) * by[axis];
    if (along <= 0) continue;
    const cost = along + 4 * Math.abs(at[1 - axis] - [x, y][1 - axis]);
    if (!best || cost < best[0]) best = [cost, cell];
  }
  if (best) tellCell(figure, cells, best[1]);
}

function save(name, blob) {
  const url = URL.createObjectURL(blob);
  make("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

function download(name, kind, svg) {
  putCells(held.length);
  const text = new XMLSerializer().serializeToString(svg);
  const blob = new Blob([text], { type: "image/svg+xml" });
  if (kind === "svg") return save(`${name}.svg`, blob);
  const image = new Image();
  image.onload = () => {
    const scale = image.width * image.height > 4e6 ? 1 : 2;
    const canvas = make("canvas", { width: image.width * scale, height: image.height * scale });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((png) => save(`${name}.png`, png), "image/png");
    URL.revokeObjectURL(image.src);
  };
  image.src = URL.createObjectURL(blob);
}

// ---- start -----------------------------------------------------------------------------------------------------------

async function copyText(text, place) {
  try {
    await navigator.clipboard.writeText(text);
    place.textContent = "copied";
  } catch {
    place.textContent = text; // a browser that does not allow it: the text to copy by hand
  }
  setTimeout(() => (place.textContent = ""), 4000);
}

function listen() {
  let typing = 0;
  let fresh = true;
  byId("form").addEventListener("input", () => {
    clearTimeout(typing);
    if (fresh) history.pushState(null, "", location.href); // the rest of the typing replaces this step
    fresh = false;
    typing = setTimeout(() => update(false), TYPING_MS);
  });
  byId("form").addEventListener("change", () => (fresh = true));
  byId("form").addEventListener("submit", (event) => event.preventDefault());
  byId("examples").addEventListener("change", (event) => {
    const example = TABS[tab].examples[event.target.value];
    if (example) go(tab, example.inputs, true);
  });
  byId("share").addEventListener("click", () => {
    keep(formInputs(), true);
    copyText(location.href, byId("shared"));
  });
  byId("copy-code").addEventListener("click", () => copyText(byId("listing").textContent, byId("shared")));
  for (const button of byId("tabs").children) button.addEventListener("click", () => go(button.dataset.tab, {}, true));
  byId("tabs").addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    const buttons = [...byId("tabs").children];
    const at = buttons.findIndex((button) => button.dataset.tab === tab);
    const to = buttons[(at + by + buttons.length) % buttons.length];
    to.focus();
    go(to.dataset.tab, {}, true);
  });
  for (const name of ["popstate", "hashchange"])
    window.addEventListener(name, () => {
      const [held, inputs] = ofAddress();
      if (held === tab && hashOf(inputsOf(held, inputs)) === hashOf(formInputs())) return;
      go(held, inputs, false);
    });
}

const inputsOf = (name, inputs) => ({ ...TABS[name].defaults, ...inputs });

function start() {
  listen();
  const [held, inputs] = ofAddress();
  const first = held === DATA.tabs[0].name && !Object.keys(inputs).length;
  tab = held;
  showForm(inputs);
  byId("boot").hidden = DATA.mode === "served" || !offline;
  if (first && DATA.code) {
    showCode(DATA.code); // the first answer is in the document already
    dress(byId("sections"));
    document.body.dataset.state = "shown";
    if (offline) setTimeout(startWorker, 50);
    return;
  }
  update(false);
}

start();
