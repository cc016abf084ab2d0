/* Fixes of a refusal, each verified before it is shown: changes of the page's fields.

   cute_py/tma/atom/make.py         pythonFixes: the same candidates in the same order and words
   cute_py/tma/atom/smem_layout.py        canonicalLayout

   pageFixes adds what a form can do and an argument can't: write sizes as static ones, move the address, and so on. */

const roundUp = (n, unit) => ceilQuotient(n, unit) * unit;

/** The canonical layout of a wgmma or tcgen05 operand: an atom of 8 rows (columns) of one swizzle span, repeated. */
function canonicalLayout(major, span, bits, tile) {
  const n = (BigInt(span.span) * 8n) / bits;
  const rows = BigInt(FACTS.atom_rows);
  const atom = major === "MN" ? new Layout([n, rows], [1n, n]) : new Layout([rows, n], [n, 1n]);
  return new Composed(new Swizzle(BigInt(span.bits), 4n, 3n), new SmemFlag(bits), tileToShape(atom, staticTree(tile)));
}

/** The candidates that Python tries, the smallest first: [{words, changes}], changes of the fields' texts. */
function* candidates({ gmem, smem, bits, dtype, count }) {
  const unit = 128n / bits || 1n;
  const moved = mapLeaves(
    (d) => (number(d) === 0n || number(d) === 1n ? d : likeLeaf(d, roundUp(number(d), unit))),
    gmem.stride,
  );
  if (treeText(moved) !== treeText(gmem.stride)) {
    const strides = leaves(moved).map(number);
    const row = strides.length <= 2 ? strides.reduce((a, b) => (b > a ? b : a)) : 0n;
    const words = row ? `pad the row to ${row} elements` : `pad the rows to multiples of ${unit} elements`;
    yield { words, changes: { gmem: String(new Layout(gmem.shape, moved)) } };
  }
  const plain = smem instanceof Composed ? smem.inner : smem;
  const tile = modes(plain.shape).map(productOf);
  const swizzled = smem instanceof Composed;
  if (tile.length === 2 && swizzled) {
    for (const major of ["K", "MN"]) {
      for (const span of FACTS.spans) {
        const words = `make_smem_layout("${major}", "${span.name}", "${dtype}", (${tile.map(number).join(", ")}))`;
        try {
          yield { words, changes: { smem: String(canonicalLayout(major, span, bits, tile)) } };
        } catch (error) {
          if (!(error instanceof Refusal)) throw error;
        }
      }
    }
  }
  if (swizzled) yield { words: "no swizzle", changes: { smem: String(plain) } };
  const right = new Layout(tile, compactRight(tile)[0]);
  yield { words: `a row-major shared tile ${right}`, changes: { smem: String(right) } };
  yield { words: `a column-major shared tile ${compact(tile)}`, changes: { smem: String(compact(tile)) } };
  yield { words: "split_oversize=True: several instructions a tile", changes: { split: "1" } };
  for (const n of [8n, 4n, 2n, 1n]) {
    if (n < count) yield { words: `num_multicast=${n}`, changes: { multicast: String(n) } };
  }
  const sizes = tile.map(number);
  const smaller = sizes.map((m) => [256n, 128n, 64n, 32n, 16n, 8n].find((n) => n < m) ?? m);
  for (const changed of [smaller, sizes.map((m) => roundUp(m, unit))]) {
    for (let i = 0; i < sizes.length; i++) {
      if (changed[i] === sizes[i]) continue;
      const part = sizes.map((m, j) => (j === i ? changed[i] : m));
      for (const layout of [new Layout(part, compactRight(part)[0]), compact(part)]) {
        const words = `a tile of ${part.join("x")}`;
        yield { words, changes: { smem: String(layout), tile: treeText(part) } };
      }
    }
  }
}

/** Up to `most` candidates that `works(changed query)` accepts. */
function pythonFixes(parsed, query, works, most) {
  const found = [];
  for (const fix of candidates(parsed)) {
    if (found.length === most) break;
    if (works({ ...query, ...fix.changes })) found.push(fix);
  }
  return found;
}

const staticText = (text) => {
  const cut = text.lastIndexOf(" o ");
  const head = cut < 0 ? "" : text.slice(0, cut + 3);
  return head + text.slice(head.length).replace(/(?<![\w@])(\d+)/g, "_$1");
};

/** Candidates of the form's own: [{words, changes}]. */
function* pageCandidates({ query, problems }, parsed) {
  for (const { field } of problems) {
    const text = query[field] ?? "";
    const missing = text.split("(").length - text.split(")").length;
    if (missing > 0)
      yield {
        words: `close the brackets: ${text + ")".repeat(missing)}`,
        changes: { [field]: text + ")".repeat(missing) },
      };
    if (FACTS.defaults[field])
      yield { words: `the default: ${FACTS.defaults[field]}`, changes: { [field]: FACTS.defaults[field] } };
  }
  for (const field of ["gmem", "smem"]) {
    const text = (query[field] ?? "").trim();
    if (/^\([\s\S]*\)$/.test(text) && !text.includes(":")) {
      yield { words: `row-major: ${text}:LayoutRight`, changes: { [field]: `${text}:LayoutRight` } };
      yield { words: `column-major: ${text}:LayoutLeft`, changes: { [field]: `${text}:LayoutLeft` } };
    }
  }
  const smem = staticText(query.smem ?? "");
  if (smem !== query.smem) yield { words: `sizes known when compiling are written with _: ${smem}`, changes: { smem } };
  if (query.tile) yield { words: "no tile of its own: the shape of the shared layout", changes: { tile: "" } };
  if (!parsed) return;
  const { address, bits, dtype, gmem } = parsed;
  if (!leaves(gmem.stride).some((d) => number(d) === 1n)) {
    const copy = new Layout(gmem.shape, compactRight(gmem.shape)[0]);
    yield { words: `a contiguous tensor in its place: ${copy}`, changes: { gmem: String(copy) } };
  }
  if (address !== null && address % 16n) {
    const up = `0x${roundUp(address, 16n).toString(16)}`;
    yield { words: `the next address that is a multiple of 16: ${up}`, changes: { address: up } };
  }
  const row = FACTS.dtypes.find((d) => d.name === dtype);
  const other = FACTS.same_width[Number(bits)];
  if (row && row.format === null && other && !query.internal) {
    yield { words: `count in ${other}, which moves the same bits`, changes: { internal: other } };
  }
  if (query.internal) yield { words: "count in the tensor's own type", changes: { internal: "" } };
  if (parsed.smem instanceof Composed && !(parsed.smem.offset instanceof SmemFlag)) {
    const flagged = String(new Composed(parsed.smem.outer, new SmemFlag(bits), parsed.smem.inner));
    yield { words: `a swizzle of bytes: ${flagged}`, changes: { smem: flagged } };
  }
  const op = FACTS.ops[query.op];
  const wanted = `${query.op}_MULTICAST`;
  if (op && !op.multicast && FACTS.ops[wanted] && parsed.count > 1n)
    yield { words: `${wanted}`, changes: { op: wanted } };
}
