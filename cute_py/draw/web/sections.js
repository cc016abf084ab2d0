/* The answer of the engine as sections of the page. Follows no Python module: what is shown is the data of
   explorer_answer.answer; fixes and pictures are asked of the engine. */

const MOST_WAYS = 4;
const MOST_STEPS = 6;

function section(id, heading, ...children) {
  const place = byId(id);
  place.hidden = !children.length;
  place.replaceChildren(...(children.length ? [make("h2", {}, heading), ...children] : []));
}

const code = (text) => make("code", {}, String(text));
const scroll = (...children) => make("div", { class: "scroll" }, ...children);
const noteList = (notes) => make("ul", { class: "notes" }, ...notes.map((n) => make("li", {}, n)));

function table(heads, rows, className = "") {
  const head = make("tr", {}, ...heads.map((h) => make("th", { scope: "col" }, h)));
  return scroll(make("table", { class: className }, make("thead", {}, head), make("tbody", {}, ...rows)));
}

const cells = (...contents) => make("tr", {}, ...contents.map((c) => make("td", {}, c)));

function showVerdict(got) {
  const verdict = byId("verdict");
  const count = got.problems.length;
  let words;
  if (got.not_covered.length)
    words = `Not answered here: ${got.not_covered.join("; ")}. The library answers: cute-py tma.`;
  else if (got.problems.every((p) => p.rule === "work") && count)
    words = "The map is legal, but its instructions can't fill the tile";
  else if (count) words = `Refused: ${count} problem${count === 1 ? "" : "s"}`;
  else {
    const n = got.plan.instructions;
    words = `Accepted: a tile is ${n} instruction${n === 1 ? "" : "s"}${got.work && got.work.total !== n ? ` of each CTA` : ""}, ${got.plan.transaction_bytes} bytes`;
  }
  verdict.className = got.not_covered.length ? "unknown" : count ? "bad" : "good";
  verdict.textContent = words;
}

function showProblems(got, atom) {
  for (const name of TYPED) {
    const own = got.problems.filter((p) => p.field === name);
    byId(`${name}-wrong`).textContent = own.map((p) => p.message).join("; ");
    byId(name).setAttribute("aria-invalid", String(own.length > 0));
    byId(name).setAttribute("aria-describedby", own.length ? `${name}-wrong` : "");
  }
  if (!got.problems.length) return section("problems", "");
  const ways = atom ? waysOut(atom) : [];
  const chain = ways.length && ways[0].left ? chainOut(atom, MOST_STEPS) : null;
  const listed = new Set();
  const items = got.problems.map((p) => {
    const lines = [
      ...(p.facts ?? []).map(([name, text]) => `${name}: ${text}`),
      p.mode !== null && got.plan ? got.plan.modes[p.mode] : "",
      p.source ? `source: ${p.source}` : "",
    ];
    const own = ways.filter((w) => w.removes.includes(p.message) && !listed.has(w)).slice(0, MOST_WAYS);
    own.forEach((w) => listed.add(w));
    return make(
      "li",
      {},
      make("strong", {}, p.message),
      ...lines.filter(Boolean).map((line) => make("small", {}, line)),
      make("ul", { class: "fixes" }, ...own.map((w) => make("li", {}, fixButton(w.words, w.changes)))),
    );
  });
  const all =
    chain && chain.words.length > 1
      ? [make("h3", {}, "All of it"), fixButton(chain.words.join("; then "), chain.changes)]
      : [];
  const quiet = ways.length ? "Each fix was tried." : "No single change that was tried helps.";
  const heading = got.problems.length === 1 ? "What is wrong" : `What is wrong: ${got.problems.length}`;
  return section("problems", heading, make("ol", {}, ...items), ...all, make("p", { class: "quiet" }, quiet));
}

function fixButton(words, changes) {
  const changed = Object.entries(changes)
    .map(([field, text]) => `${field} = ${text || "(empty)"}`)
    .join("; ");
  return make("button", { type: "button", class: "fix", title: changed, onclick: () => apply(changes) }, words);
}

function showNumbers(got) {
  if (!got.plan) return section("numbers", "", ...(got.gbasis ? [pairs([["G-basis", got.gbasis]])] : []));
  const { plan } = got;
  const list = (numbers) => `(${numbers.join(",")})`;
  const rows = [
    ["box", `${plan.box.join(" x ")} of ${plan.format}`],
    ["G-basis", got.gbasis],
    ["G-strides", plan.g_stride],
    ["TMA tensor", plan.tma_tensor],
    ["sizes", list(plan.dims)],
    ["strides", plan.strides.length ? `${list(plan.strides)} bytes` : "contiguous"],
    ["instructions", `${plan.instructions} of ${plan.bytes_per_instruction} bytes a CTA and tile`],
    ["barrier expects", `${plan.transaction_bytes} bytes a tile`],
    ["swizzle", `${plan.swizzle}, tile aligned to ${plan.alignment} bytes`],
    ["tiles", got.work ? `${got.work.tiles}, as ${got.work.tile_shape}` : "not laid out"],
  ];
  return section("numbers", "Box and bytes", pairs(rows));
}

const pairs = (rows) =>
  make("dl", {}, ...rows.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, code(value))]));

function showStages(got) {
  if (!got.stages) return section("stages", "");
  const rows = got.stages.map(([name, value, reason]) =>
    make(
      "tr",
      { class: name === "tma_gbasis" ? "result" : null },
      make("th", { scope: "row" }, code(name)),
      make("td", {}, code(value), make("small", {}, reason)),
    ),
  );
  return section(
    "stages",
    "From the tile to the box",
    table(["stage", "value, and what it is for"], rows, "stages"),
    ...(got.notes.length ? [noteList(got.notes)] : []),
  );
}

function showMap(got) {
  if (!got.plan) return section("map", "");
  const { plan } = got;
  const rows = plan.dims.map((n, i) =>
    cells(
      String(i),
      code(n),
      code(i ? plan.strides[i - 1] : "contiguous"),
      code(plan.box[i]),
      plan.modes[i].replace(/^TMA mode \d+ \(|\)$/g, ""),
    ),
  );
  return section(
    "map",
    "Tensor map, innermost mode first",
    table(["mode", "elements", "stride, bytes", "box", "made of"], rows),
  );
}

function showInstructions(got) {
  if (!got.work) return section("instructions", "");
  const { work } = got;
  const rows = work.coords.map((coord, i) => cells(String(i), code(coordinateText(coord)), code(work.offsets[i])));
  const notes = [`the last instruction of the last tile is at ${coordinateText(work.last)}`];
  if (work.total > work.coords.length)
    notes.unshift(`summarised: ${work.total} instructions, of which ${work.coords.length} are listed`);
  return section(
    "instructions",
    `Instructions of tile ${work.tile}`,
    table(["no.", "TMA coordinate, innermost first", "shared byte"], rows, "tall"),
    noteList(notes),
  );
}

function tileChooser(work) {
  const last = Number(work.tiles) - 1;
  const input = make("input", {
    id: "at",
    value: work.tile,
    inputmode: "numeric",
    "aria-label": `number of the tile, 0 to ${last}`,
  });
  input.addEventListener("change", () => apply({ at: input.value }));
  const step = (by, label, text) =>
    make(
      "button",
      {
        type: "button",
        "aria-label": label,
        onclick: () => apply({ at: String(Math.min(Math.max(Number(work.tile) + by, 0), last)) }),
      },
      text,
    );
  return make(
    "div",
    { class: "chooser" },
    "tile ",
    step(-1, "tile before", "‹"),
    input,
    step(1, "tile after", "›"),
    ` of ${work.tiles}`,
  );
}

function showPictures(got, atom) {
  if (!got.work || !atom) {
    section("boxes", "");
    return section("smem-picture", "");
  }
  const which = BigInt(got.work.tile);
  const boxes = boxesPicture(atom, which, (coord) => chooseTile(atom, coord));
  section("boxes", "Boxes on the global tensor", tileChooser(got.work), scroll(boxes.svg), noteList(boxes.notes));
  if (!got.descriptor) return section("smem-picture", "");
  const instructions = tileInstructions(atom.work, which);
  const panel = make("dl", { class: "way", "aria-live": "polite" });
  const picture = smemPicture(atom, instructions, (byte) => showByte(byte));
  const showByte = (byte) => {
    picture.svg.dataset.at = byte;
    picture.svg.querySelector(".pointed")?.classList.remove("pointed");
    picture.svg.querySelector(`[data-byte="${byte - (byte % UNIT_BYTES)}"]`)?.classList.add("pointed");
    const way = wayOf(BigInt(byte), atom, instructions, picture.rows);
    const steps = way ? waySteps(way, atom.plan) : [["shared byte", `${byte}: nothing is written here`]];
    panel.replaceChildren(...steps.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, code(value))]));
  };
  section(
    "smem-picture",
    `Tile ${got.work.tile} in shared memory`,
    make("div", { class: "image" }, scroll(picture.svg), panel),
    make(
      "p",
      { class: "quiet" },
      "Point at a byte, or move with the arrow keys (with shift: by one byte), to see its path.",
    ),
    noteList(picture.notes),
  );
  return showByte(0);
}

/** The tile that issues the box at a coordinate, looked for among the first of them. */
function chooseTile(atom, coord) {
  const wanted = coordinateText(coord);
  const tiles = Math.min(Number(atom.work.tiles), 4096);
  const each = Math.min(Number(atom.work.total), FACTS.most_listed);
  for (let t = 0; t < tiles; t++) {
    for (let i = 0; i < each; i++) {
      if (coordinateText(atom.work.at(BigInt(i), BigInt(t)).coord) === wanted) return apply({ at: String(t) });
    }
  }
  return null;
}

/** First and last byte of a field, from its place: "w1[7:10]". */
function bytesOf(where) {
  const [, word, low, high] = /^w(\d+)\[(\d+)(?::(\d+))?\]$/.exec(where).map(Number);
  return [8 * word + (low >> 3), 8 * word + ((Number.isNaN(high) ? low : high) >> 3)];
}

function showDescriptor(got, atom) {
  const unknown = atom?.sound ? unknownAddition(atom.request) : null;
  if (unknown)
    return section(
      "descriptor",
      "Descriptor",
      make("p", {}, `The bits of ${unknown.name} in a tensor map are not known here; known is: ${unknown.known}.`),
    );
  if (!got.descriptor) return section("descriptor", "");
  const bytes = got.descriptor.hex.match(/../g);
  const spans = bytes.map((b, i) => make("span", { class: b === "00" ? "byte zero" : "byte", title: `byte ${i}` }, b));
  const words = make(
    "tbody",
    {},
    ...Array.from({ length: bytes.length / 8 }, (_, w) =>
      make("tr", {}, make("th", { scope: "row" }, `w${w}`), make("td", {}, ...spans.slice(8 * w, 8 * w + 8))),
    ),
  );
  const rows = got.descriptor.fields.map(([label, where, raw, value, unit, meaning]) => {
    const [low, high] = bytesOf(where);
    const mark = (on) => () => spans.slice(low, high + 1).forEach((s) => s.classList.toggle("lit", on));
    const row = cells(code(label), code(where), code(raw), `${value}${unit ? ` ${unit}` : ""}`, meaning);
    for (const [event, on] of [
      ["pointerenter", true],
      ["pointerleave", false],
      ["focus", true],
      ["blur", false],
    ])
      row.addEventListener(event, mark(on));
    row.tabIndex = 0;
    spans.slice(low, high + 1).forEach((s) => (s.title += `, ${label}`));
    return row;
  });
  return section(
    "descriptor",
    "Descriptor: the 64 bytes that the engine reads",
    scroll(make("table", { class: "bytes" }, words)),
    make(
      "details",
      {},
      make("summary", {}, "as one text, for cute-py desc"),
      make("pre", { id: "hex" }, got.descriptor.hex),
    ),
    table(["field", "bits", "stored", "value", "meaning"], rows, "fields"),
  );
}

function showWarnings(got) {
  const rows = (got.warnings ?? []).map(([name, values, effect]) => cells(name, values, effect));
  return section(
    "warnings",
    "Legal, and may surprise",
    ...(rows.length ? [table(["what", "values", "effect"], rows)] : []),
  );
}
