/* From the texts of a form to everything that the page shows. Pure: no document, no network.

   cute_py/draw/explorer_answer.py        answer: the same dictionary, made by the library
   cute_py/tma/atom/make.py          inspect: the order of the checks of make_tma_atom
   cute_py/tma/atom/atom.py     the numbers of an atom
   cute_py/tma/atom/tile_atom.py    whyNotFits
   cute_py/tma/atom/op.py                 whyNotOn, receivesSlices, whyNotShared

   Load after facts, leaf, algebra, parse, gbasis, plan, descriptor, tile and fixes. */

const INTEGER = /^\s*([-+]?)(0x[0-9a-f]+|0o[0-7]+|0b[01]+|[1-9]\d*|0+)\s*$/i;

function integerOf(text, what) {
  const found = INTEGER.exec(text);
  if (!found) throw new Refusal("InvalidValueError", `${what}`);
  const value = BigInt(found[2].toLowerCase());
  return found[1] === "-" ? -value : value;
}

function addressOf(text) {
  const address = integerOf(text, FACTS.wanted.address);
  if (address < 0n || address >= 1n << 64n)
    throw new Refusal(
      "InvalidValueError",
      `the address of a pointer = ${address} bytes; must be 0 to 18446744073709551615`,
    );
  return address;
}

function dtypeOf(name) {
  const row = FACTS.dtypes.find((d) => d.name === name || d.aliases.includes(name));
  if (!row) throw new Refusal("InvalidValueError", `unknown element type '${name}'`);
  if (row.bits < 8) throw new NotCovered(`elements of ${row.bits} bits (${row.name})`);
  return row;
}

function globalLayout(text) {
  const layout = parseText(text);
  if (!(layout instanceof Layout) || leaves(layout.stride).some((d) => d instanceof Basis)) {
    throw new Refusal("InvalidTypeError", "the global tensor is not a layout; write one such as (1024,512):(512,_1)");
  }
  return layout;
}

function sharedLayout(text) {
  const layout = parseText(text);
  const plain = layout instanceof Composed ? layout.inner : layout;
  if (plain instanceof Composed) throw new NotCovered("swizzles of swizzles");
  if (!(plain instanceof Layout)) {
    throw new Refusal("InvalidTypeError", "the shared tile is not a layout; write one such as (_128,_64):(_64,_1)");
  }
  if (layout instanceof Composed && !(layout.outer instanceof Swizzle))
    throw new NotCovered("composed layouts without a swizzle");
  if (leaves(plain.stride).some((d) => d instanceof Basis)) throw new NotCovered("shared layouts with basis strides");
  return layout;
}

function operation(name) {
  const row = Object.hasOwn(FACTS.ops, name) ? FACTS.ops[name] : null;
  if (!row) throw new Refusal("InvalidValueError", `unknown TMA operation '${name}'`);
  if (row.mode !== "tile") throw new NotCovered(`${row.mode} (${name})`);
  if (row.ctas !== 1) throw new NotCovered(`pairs of CTAs (${name})`);
  return row;
}

function architecture(name) {
  if (!archRow(name)) throw new Refusal("InvalidValueError", `unknown architecture '${name}', or one without TMA`);
  return name;
}

function whyNotOn(op, name, arch, count) {
  const number = Number(/\d+/.exec(arch)[0]);
  if (number < op.arch) return `${name} needs sm_${op.arch} or newer, not ${arch}`;
  if (count < 1n) return `num_multicast = ${count} CTAs; must be at least 1`;
  return count > 16n ? `num_multicast = ${count} CTAs; must be at most 16, the largest cluster` : null;
}

/** CTAs divide the tile among them, and each keeps its slice. */
function receivesSlices({ op, count }) {
  return op.direction === "load" && !op.multicast && op.ctas === 1 && count > 1n;
}

function whyNotShared(atom) {
  if (!receivesSlices(atom)) return null;
  const name = atom.query.op ?? FACTS.defaults.op;
  return `${name} sends nothing to other CTAs: each of the ${atom.count} receives its slice of the tile alone`;
}

/** Why the tile can't lie in the shared memory of one block, or null. */
function whyNotFits({ tile, bits, op, fields, plan, swizzleRow }) {
  if (op.direction === "prefetch") return null;
  const gpu = archRow(fields.arch);
  const delivered = (product(plan.box) * plan.internal) / 8n;
  const spread = product(plan.box.slice(1)) * BigInt(swizzleRow.span);
  const apart = spread > delivered ? spread - delivered : 0n; // of the last box, whose rows lie one span apart
  const taken = ceilQuotient(number(cosizeOf(tile)) * bits, 8n) + apart;
  const barrier = op.direction === "load" ? BigInt(FACTS.barrier_bytes) : 0n;
  if (taken + barrier <= BigInt(gpu.block_shared_memory_bytes)) return null;
  const beside = barrier ? ` and a barrier of ${barrier}` : "";
  const limit = `a block has at most ${gpu.block_shared_memory_bytes} bytes of shared memory on ${gpu.name}`;
  return `a tile of ${taken} bytes${beside}; ${limit}`;
}

/** What the fields say, problems of single fields, and what is not covered. */
function readFields(query) {
  const problems = [];
  const notCovered = [];
  const read = (field, make) => {
    try {
      return make((query[field] ?? FACTS.defaults[field] ?? "").trim());
    } catch (error) {
      if (error instanceof NotCovered) notCovered.push(error.message);
      else if (error instanceof Refusal) problems.push({ rule: error.kind, field, message: error.message, mode: null });
      else throw error;
      return null;
    }
  };
  const fields = {
    gmem: read("gmem", globalLayout),
    dtype: read("dtype", dtypeOf),
    internal: read("internal", (text) => (text ? dtypeOf(text) : null)),
    address: read("address", addressOf),
    smem: read("smem", sharedLayout),
    tile: read("tile", (text) => (text ? staticTree(parseText(text)) : null)),
    op: read("op", operation),
    count: read("multicast", (text) => integerOf(text, FACTS.wanted.multicast)),
    arch: read("arch", architecture),
  };
  return { fields, problems, notCovered };
}

/** The atom of a query with every problem that it has; stops where a step has no result. */
function inspect(query) {
  const { fields, problems, notCovered } = readFields(query);
  const atom = { query, fields, problems, notCovered, basis: null, plan: null, work: null };
  if (problems.length || notCovered.length) return atom;
  const attempt = (make, rule) => {
    try {
      return make();
    } catch (error) {
      if (error instanceof NotCovered) notCovered.push(error.message);
      else if (error instanceof Refusal) {
        const facts = error.kind === "GBasisError" ? error.facts : null;
        problems.push({ rule: rule ?? error.kind, field: null, message: error.message, mode: null, facts });
      } else throw error;
      return null;
    }
  };
  const { gmem, smem, dtype, op, count, arch, address } = fields;
  const internal = fields.internal ?? dtype;
  const swizzle = smem instanceof Composed ? smem.outer : new Swizzle(0n, 4n, 3n);
  const tile = smem instanceof Composed ? smem.inner : smem;
  const tiler = fields.tile ?? modes(tile.shape).map(productOf);
  Object.assign(atom, { smem, tile, tiler, swizzle, op, count, bits: BigInt(dtype.bits), internal });
  const reason = whyNotOn(op, query.op ?? FACTS.defaults.op, arch, count);
  if (reason) problems.push({ rule: "InvalidValueError", field: "op", message: reason, mode: null });
  if (internal.format === null) {
    problems.push({ rule: "StaticAssertError", field: "dtype", message: "Unknown TMA Format!", mode: null });
  }
  const unknown = whyNotSwizzle(swizzle);
  if (unknown) problems.push({ rule: "StaticAssertError", field: "smem", message: unknown, mode: null });
  const [bits, wide] = [atom.bits, BigInt(internal.bits)];
  atom.basis = attempt(() => constructGBasis(gmem, tile, makeVMap(gmem.shape, tiler), bits, wide, query.split === "1"));
  if (problems.length || notCovered.length) return atom;
  const plan = attempt(() => planTiled(gmem, atom.basis.layout, bits, wide, count));
  if (!plan) return atom;
  atom.plan = plan;
  atom.swizzleRow = swizzleRow(swizzle);
  atom.request = {
    format: internal.format,
    address,
    dims: plan.dims,
    strides: plan.strides,
    box: plan.box,
    swizzle: atom.swizzleRow.code,
  };
  const found = violations(atom.request, arch);
  atom.sound = !found.length;
  problems.push(
    ...found.map((v) => ({ rule: v.rule, field: null, message: v.message, mode: v.mode, source: v.source })),
  );
  for (const b of plan.broken) {
    if (!problems.some((p) => p.message.startsWith(`${b.message.split(" ")[0]} `))) {
      problems.push({ rule: "cute", field: null, message: b.message, mode: b.mode });
    }
  }
  const inexact = whyNotCollapsed(plan.counted, plan.basis);
  if (inexact) problems.push({ rule: "collapsed", field: null, message: inexact[0], mode: inexact[1] });
  atom.refused = problems.length > 0;
  const slot = plan.slotBits / bits;
  atom.instructions = slot ? ceilQuotient(productOf(tile.shape), slot) : 0n;
  const whole = wide === bits || (plan.box[0] * wide) % 128n === 0n; // else instructions may step by a part of an element
  const walks = whole && !plan.broken.some((b) => b.mode === 0) && plan.dims.every((n) => n > 0n && n <= 1n << 32n);
  if (walks && atom.instructions && atom.instructions * count <= BigInt(FACTS.most_work))
    atom.work = attempt(() => tileWork(atom), "work");
  if (atom.work && !atom.work.tiles) atom.work = null;
  return atom;
}

const accepted = (atom) => !atom.problems.length && !atom.notCovered.length;

/** Does make_tma_atom accept it, and can it copy? */
const made = (query) => {
  const atom = inspect(query);
  return accepted(atom) && !whyNotFits(atom);
};

function parsedOf(atom) {
  const { gmem, smem, dtype, count, address } = atom.fields;
  return gmem && smem && dtype
    ? { gmem, smem, dtype: dtype.name, bits: BigInt(dtype.bits), count: count ?? 1n, address }
    : null;
}

const whichTile = (query, tiles) => {
  const text = query.at ?? "0";
  const which = INTEGER.test(text) ? integerOf(text, "") : 0n;
  return which < 0n ? 0n : which < tiles ? which : tiles - 1n;
};

function planPart(atom) {
  const { plan } = atom;
  return {
    format: FACTS.formats[atom.request.format].name,
    swizzle: atom.swizzleRow.name,
    dims: plan.dims.map(jsonNumber),
    strides: plan.strides.map(jsonNumber),
    box: plan.box.map(jsonNumber),
    modes: plan.dims.map((_, i) => layoutModes(plan, i)),
    g_stride: treeText(plan.gStride),
    tma_tensor: tmaTensorText(plan),
    alignment: atom.swizzleRow.alignment,
    instructions: jsonNumber(atom.instructions),
    num_val_src: jsonNumber(plan.slotBits / atom.bits),
    bytes_per_instruction: jsonNumber((product(plan.box) * plan.internal) / 8n),
    transaction_bytes: jsonNumber((atom.instructions * plan.slotBits) / 8n / (receivesSlices(atom) ? atom.count : 1n)),
  };
}

function workPart(atom, which) {
  const { work } = atom;
  const listed = Math.min(Number(work.total), FACTS.most_listed);
  const all = Array.from({ length: listed }, (_, i) => work.at(BigInt(i), which));
  return {
    tiles: jsonNumber(work.tiles),
    tile_shape: work.tileShape,
    tile: jsonNumber(which),
    total: jsonNumber(work.total),
    coords: all.map((i) => i.coord.map(jsonNumber)),
    offsets: all.map((i) => jsonNumber(i.offset)),
    last: work.at(work.total - 1n, work.tiles - 1n).coord.map(jsonNumber),
  };
}

/** A few bytes of the tile, spread over lines and units: [byte, TMA coordinate, inside, global address, instruction, bank]. */
function samplePart(atom, which) {
  if (Number(atom.work.total) > FACTS.most_traced || !FACTS.engine_swizzles[atom.request.swizzle]) return null;
  const rows = rowsOf(atom.plan, atom.request.swizzle);
  const instructions = tileInstructions(atom.work, which);
  if (instructions.some((i) => i.coord.some((c) => BigInt.asIntN(32, c) !== c))) return null; // no instruction takes it
  const end = tileExtent(instructions, rows);
  return FACTS.sample_bytes
    .map(BigInt)
    .filter((byte) => byte < end)
    .map((byte) => {
      const way = wayOf(byte, atom, instructions, rows);
      if (!way) return [Number(byte), null];
      return [
        Number(byte),
        way.coord.map(jsonNumber),
        way.inside,
        `0x${way.address.toString(16)}`,
        way.instruction,
        Number(way.bank),
      ];
    });
}

function descriptorPart(atom) {
  if (!atom.sound || unknownAddition(atom.request)) return null;
  const map = encode(atom.request);
  return { hex: hexOf(map, FACTS.payload_bytes), fields: fieldTable(map) };
}

function warningsOf(atom) {
  const layouts = whyNotFilled(atom.plan, atom.basis.vMap) ?? whyNotUnits(atom.smem, atom.bits);
  const reason = whyNotFits(atom) ?? layouts ?? whyNotShared(atom);
  const found = hazards(atom.request);
  return reason ? [...found, ["layouts", "", reason]] : found;
}

/** The answer as plain data: what explorer_answer.answer gives for the same query. */
function answerOf(atom) {
  const { problems, notCovered, basis, plan, work } = atom;
  const which = work ? whichTile(atom.query, work.tiles) : 0n;
  const parsed = parsedOf(atom);
  const refused = problems.some((p) => p.rule !== "work");
  const fixable = refused && atom.tiler !== undefined && !notCovered.length;
  const descriptor = plan ? descriptorPart(atom) : null;
  return {
    not_covered: notCovered,
    problems: problems.map((p) => ({ source: null, facts: null, ...p })),
    gbasis: basis ? String(basis.layout) : null,
    stages: basis ? Object.entries(basis.stages).map(([name, text]) => [name, text, FACTS.stages[name]]) : null,
    notes: basis ? basis.notes : null,
    plan: plan ? planPart(atom) : null,
    work: work ? workPart(atom, which) : null,
    samples: work && descriptor ? samplePart(atom, which) : null,
    descriptor,
    warnings: plan ? warningsOf(atom) : null,
    fixes: fixable ? pythonFixes(parsed, atom.query, made, FACTS.most_fixes).map((f) => f.words) : [],
  };
}

const answer = (query) => answerOf(inspect(query));

/** Did a later step come into reach, whose problems could not be seen before? */
function reachesFurther(before, after) {
  const reach = (atom) => (atom.basis ? 1 : 0) + (atom.plan ? 2 : 0);
  return !after.problems.some((p) => p.field) && reach(after) > reach(before);
}

/** Changes of the form that leave fewer problems, none of them new, each tried: [{words, changes, left, removes}]. Those
    that leave none come first; `removes` are the messages that go away. */
function waysOut(atom) {
  const before = [...new Set(atom.problems.map((p) => p.message))];
  if (!before.length) return [];
  const parsed = parsedOf(atom);
  const tried = new Set();
  const found = [];
  for (const { words, changes } of [...pageCandidates(atom, parsed), ...(parsed ? candidates(parsed) : [])]) {
    const key = JSON.stringify(changes);
    if (tried.has(key)) continue;
    tried.add(key);
    const after = inspect({ ...atom.query, ...changes });
    if (after.notCovered.length) continue;
    const messages = after.problems.map((p) => p.message);
    const removes = before.filter((m) => !messages.includes(m));
    const fresh = messages.some((m) => !before.includes(m));
    if (found.some((f) => f.words === words)) continue;
    if (removes.length && (!fresh || reachesFurther(atom, after)))
      found.push({ words, changes, left: messages.length, removes });
  }
  return found.sort((a, b) => a.left - b.left);
}

/** Several fixes, one after the other, to a copy without problems: {words, changes}, or null. */
function chainOut(atom, most) {
  const words = [];
  let changes = {};
  let now = atom;
  for (let step = 0; step < most && now.problems.length; step++) {
    const way = waysOut(now)[0];
    if (!way) return null;
    words.push(way.words);
    changes = { ...changes, ...way.changes };
    now = inspect({ ...atom.query, ...changes });
  }
  return accepted(now) ? { words, changes } : null;
}
