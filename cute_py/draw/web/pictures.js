/* Pictures of the page: boxes on the global tensor, a tile in shared memory. Follows cute_py/draw/boxes.py and
   cute_py/draw/shared_memory.py; what is drawn is asked of the engine. */

const SVG = "http://www.w3.org/2000/svg";
const TONES = 8;
const LINE_BYTES = 128;
const UNIT_BYTES = 16;
const MOST_BOXES = 16;
const MOST_LINES = 24;
const CHARACTER = 7;

/** An element with attributes and children; texts are never markup. */
function make(tag, attributes = {}, ...children) {
  const drawn = ["svg", "g", "rect", "text", "title", "path", "pattern", "defs", "line"].includes(tag);
  const node = drawn ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((c) => c !== null));
  return node;
}

const coordinateText = (coord) => (Array.isArray(coord) ? `(${coord.map(coordinateText).join(",")})` : String(coord));

function hatch() {
  const lines = make("path", { d: "M-2,2 l4,-4 M0,8 l8,-8 M6,10 l4,-4", class: "hatch" });
  return make(
    "defs",
    {},
    make("pattern", { id: "hatched", width: 8, height: 8, patternUnits: "userSpaceOnUse" }, lines),
  );
}

function canvas(width, height, label, keys = {}) {
  const size = { width, height, viewBox: `0 0 ${width} ${height}` };
  return make("svg", { ...size, class: "picture", role: "group", "aria-label": label, ...keys }, hatch());
}

/** The part of a box along one mode that is inside the tensor. */
const fraction = (start, box, size) => Math.min(Math.max(Number(size - start) / Number(box), 0), 1);

// ---- boxes ----------------------------------------------------------------------------------------------------------

/** {svg, notes}: boxes of all tiles, mode 0 across, mode 1 down; `which` is outlined; `choose(coord)` on a click. */
function boxesPicture(atom, which, choose) {
  const { plan, work } = atom;
  const rank = plan.dims.length;
  const pair = (numbers) => [numbers[0], numbers[1] ?? 1n];
  const [dims, box] = [pair(plan.dims), pair(plan.box)];
  const own = Array.from(
    { length: Math.min(Number(work.total), FACTS.most_listed) },
    (_, i) => work.at(BigInt(i)).coord,
  );
  const chosen = new Set(own.map((_, i) => coordinateText(work.at(BigInt(i), which).coord)));
  const firsts = (mode) => new Set(own.map((coord) => coord[mode] ?? 0n));
  const across = boxStarts(work, firsts(0), 0, MOST_BOXES);
  const down = rank > 1 ? boxStarts(work, firsts(1), 1, MOST_BOXES) : { starts: [0n], total: 1n };
  const elsewhere = work.at(0n, which).coord.slice(2);
  const label = (x, y) => coordinateText([x, y].slice(0, rank).concat(elsewhere));
  const texts = across.starts.flatMap((x) => down.starts.map((y) => (x === null || y === null ? "" : label(x, y))));
  const longest = Math.max(...texts.map((t) => t.length));
  const shape = Math.min(Math.max(Number(box[0]) / Number(box[1]), 0.5), 4);
  const high = 34;
  const wide = Math.max(longest * CHARACTER + 10, high * shape);
  const left = 12 + CHARACTER * Math.max(...down.starts.map((y) => (y === null ? 1 : String(y).length)));
  const gap = (starts, i) => starts.slice(0, i).filter((s) => s === null).length;
  const place = (starts, i, side) => (i - gap(starts, i)) * side + gap(starts, i) * 22;
  const width = left + place(across.starts, across.starts.length, wide) + 2;
  const height = 20 + place(down.starts, down.starts.length, high) + 2;
  const svg = canvas(width, height, "boxes of the tiles on the global tensor");
  across.starts.forEach((x, i) => {
    const middle = left + place(across.starts, i, wide) + (x === null ? 11 : wide / 2);
    svg.append(make("text", { x: middle, y: 13, class: "faint mid" }, x === null ? "…" : String(x)));
  });
  down.starts.forEach((y, j) => {
    const top = 20 + place(down.starts, j, high);
    svg.append(
      make(
        "text",
        { x: left - 6, y: top + (y === null ? 14 : high / 2 + 4), class: "faint end" },
        y === null ? "⋮" : String(y),
      ),
    );
    across.starts.forEach((x, i) => {
      if (x === null || y === null) return;
      const at = { x: left + place(across.starts, i, wide), y: top };
      svg.append(
        boxCell(
          at,
          [wide, high],
          label(x, y),
          [fraction(x, box[0], dims[0]), fraction(y, box[1], dims[1])],
          plan,
          chosen.has(label(x, y)),
          (x / box[0] + y / box[1]) % 2n,
          () => choose([x, y].slice(0, rank).concat(elsewhere)),
        ),
      );
    });
  });
  return { svg, notes: boxNotes(plan, across, down, elsewhere) };
}

function boxCell({ x, y }, [wide, high], text, [right, bottom], plan, chosen, tone, choose) {
  const outside = 1 - right * bottom;
  const story =
    `box at TMA ${text}, ${plan.box.join(" x ")} elements` +
    (outside > 0 ? `, ${Math.round(outside * 100)}% of it outside the tensor: filled, not read` : "");
  const cell = make(
    "g",
    { class: `cell box${chosen ? " chosen" : ""}`, onclick: choose },
    make("title", {}, story),
    make("rect", { x, y, width: wide, height: high, class: `tone${tone ? 7 : 0}` }),
  );
  const hatched = { fill: "url(#hatched)", class: "outside" };
  if (right < 1)
    cell.append(make("rect", { x: x + wide * right, y, width: wide * (1 - right), height: high, ...hatched }));
  if (bottom < 1)
    cell.append(
      make("rect", { x, y: y + high * bottom, width: wide * right, height: high * (1 - bottom), ...hatched }),
    );
  const inset = chosen ? 1.5 : 0.5;
  cell.append(
    make("rect", { x: x + inset, y: y + inset, width: wide - 2 * inset, height: high - 2 * inset, class: "edge" }),
    make("text", { x: x + wide / 2, y: y + high / 2 + 4, class: "mid halo" }, text),
  );
  return cell;
}

function boxNotes(plan, across, down, elsewhere) {
  const notes = [
    `across: TMA mode 0, ${plan.dims[0]} elements, boxes of ${plan.box[0]}` +
      (plan.dims.length > 1 ? `; down: TMA mode 1, ${plan.dims[1]} elements, boxes of ${plan.box[1]}` : ""),
  ];
  if (elsewhere.length)
    notes.push(`of the other modes one box is drawn: ${elsewhere.map((c, i) => `mode ${i + 2} at ${c}`).join(", ")}`);
  const drawn = [across, down].map(({ starts }) => starts.filter((s) => s !== null).length);
  if (across.starts.includes(null) || down.starts.includes(null)) {
    notes.push(`summarised: ${down.total} x ${across.total} boxes, of which ${drawn[1]} x ${drawn[0]} are drawn`);
  }
  const over = plan.dims.flatMap((n, i) =>
    n % plan.box[i] ? [`mode ${i}: ${n} = ${n / plan.box[i]} x ${plan.box[i]} + ${n % plan.box[i]}`] : [],
  );
  if (over.length)
    notes.push(`boxes hang over the end, hatched (${over.join("; ")}): filled in shared memory, bytes counted`);
  return notes;
}

// ---- shared memory --------------------------------------------------------------------------------------------------

/** The steps of a byte's path, in order: [[name, value], ...]. */
function waySteps(way, plan) {
  const tensor = way.logical !== null ? coordinateText(way.logical) : "none: between the modes that share a TMA mode";
  return [
    ["tensor coordinate", tensor],
    ["global address", way.inside ? `0x${way.address.toString(16)}` : "outside the tensor: filled, not read"],
    ["TMA coordinate", coordinateText(way.coord)],
    ["instruction", `${way.instruction} at ${coordinateText(way.at)}${plan.box.length > 1 ? `, row ${way.row}` : ""}`],
    ["shared byte before the swizzle", String(way.before)],
    ["after the swizzle", String(way.byte)],
    ["bank", String(way.bank)],
  ];
}

const wayText = (way, plan) =>
  waySteps(way, plan)
    .map(([name, value]) => `${name} ${value}`)
    .join(" -> ");

/** {svg, notes}: the tile's lines of 128 bytes; `show(byte)` when one is pointed at or moved to. */
function smemPicture(atom, instructions, show) {
  const rows = rowsOf(atom.plan, atom.request.swizzle);
  const extent = tileExtent(instructions, rows);
  const lines = Number(ceilQuotient(extent, BigInt(LINE_BYTES)));
  const kept = shown(lines, MOST_LINES);
  const first = instructions[0].coord[0];
  const perUnit = BigInt(Math.max((UNIT_BYTES * 8) / Number(atom.plan.internal), 1));
  const unitWays = kept.map((line) =>
    line === null
      ? null
      : Array.from({ length: LINE_BYTES / UNIT_BYTES }, (_, u) =>
          wayOf(BigInt(line * LINE_BYTES + u * UNIT_BYTES), atom, instructions, rows),
        ),
  );
  const longest = Math.max(...unitWays.flat().map((w) => (w ? coordinateText(w.coord).length : 1)));
  const [wide, high] = [Math.max(longest * CHARACTER + 10, 62), 24];
  const left = 12 + CHARACTER * String(lines * LINE_BYTES).length;
  const svg = canvas(
    left + 8 * wide + 2,
    22 + kept.length * high + 2,
    "shared memory of the tile: arrow keys move by 16 bytes, with shift by one byte",
    { tabindex: 0 },
  );
  for (let u = 0; u < 8; u++) {
    svg.append(
      make(
        "text",
        { x: left + (u + 0.5) * wide, y: 14, class: "faint mid" },
        `banks ${4 * u}-${4 * u + 3}`.slice(u ? 6 : 0),
      ),
    );
  }
  kept.forEach((line, j) => {
    const y = 22 + j * high;
    svg.append(
      make("text", { x: left - 6, y: y + 16, class: "faint end" }, line === null ? "⋮" : String(line * LINE_BYTES)),
    );
    if (line === null) return;
    unitWays[j].forEach((way, u) =>
      svg.append(
        unitCell(
          left + u * wide,
          y,
          wide,
          high,
          line * LINE_BYTES + u * UNIT_BYTES,
          way,
          way ? Number(((way.coord[0] - first) / perUnit) % BigInt(TONES)) : 0,
          atom.plan,
        ),
      ),
    );
  });
  const byteAt = (event) => {
    const cell = event.target.closest?.("[data-byte]");
    if (!cell) return null;
    const area = cell.getBoundingClientRect();
    const part = Math.floor(((event.clientX - area.left) / area.width) * UNIT_BYTES);
    return Number(cell.dataset.byte) + Math.min(Math.max(part, 0), UNIT_BYTES - 1);
  };
  for (const name of ["pointermove", "pointerdown"]) {
    svg.addEventListener(name, (event) => {
      const byte = byteAt(event);
      if (byte !== null) show(byte);
    });
  }
  const visible = kept.filter((line) => line !== null);
  svg.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -UNIT_BYTES, ArrowRight: UNIT_BYTES, ArrowUp: -LINE_BYTES, ArrowDown: LINE_BYTES }[
      event.key
    ];
    if (!by) return;
    event.preventDefault();
    const now = Number(svg.dataset.at ?? 0);
    const next = event.shiftKey && Math.abs(by) === UNIT_BYTES ? now + Math.sign(by) : now + by;
    const limit = (visible.at(-1) + 1) * LINE_BYTES;
    if (next < 0 || next >= limit) return;
    const line = Math.floor(next / LINE_BYTES);
    const near = by > 0 ? visible.find((l) => l >= line) : visible.findLast((l) => l <= line);
    show(near * LINE_BYTES + (next % LINE_BYTES));
  });
  const notes = [
    `rows of ${rows.bytes} bytes, ${rows.pitch} bytes apart; swizzle ${atom.swizzleRow.name}; aligned to ${atom.swizzleRow.alignment} bytes`,
    "a line is 128 bytes; a cell is a 16-byte unit with the TMA coordinate of its first element; one colour is one 16-byte column of the box",
  ];
  if (kept.includes(null)) notes.push(`summarised: ${lines} lines, of which ${visible.length} are drawn`);
  if (instructions.length < Number(atom.work.total))
    notes.push(`only the first ${instructions.length} of ${atom.work.total} instructions are traced`);
  return { svg, notes, rows };
}

function unitCell(x, y, wide, high, byte, way, tone, plan) {
  const cell = make(
    "g",
    { class: "cell unit", "data-byte": byte },
    make("title", {}, way ? wayText(way, plan) : `shared byte ${byte}: nothing is written here`),
    make("rect", { x, y, width: wide, height: high, class: way ? `tone${tone}` : "empty" }),
  );
  if (way && !way.inside)
    cell.append(make("rect", { x, y, width: wide, height: high, fill: "url(#hatched)", class: "outside" }));
  cell.append(make("rect", { x: x + 0.5, y: y + 0.5, width: wide - 1, height: high - 1, class: "edge" }));
  if (way)
    cell.append(
      make("text", { x: x + wide / 2, y: y + 16, class: `mid${way.inside ? "" : " halo"}` }, coordinateText(way.coord)),
    );
  return cell;
}
