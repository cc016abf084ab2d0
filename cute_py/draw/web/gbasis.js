/* The G-basis: which box of the global tensor one instruction moves.

   cute_py/tma/atom/gbasis.py            makeVMap, constructGBasis, splitBasis
   cute_py/tma/atom/gbasis.py     coalesce256, exactPart, whyNotCollapsed */

const MAX_BOX_EXTENT = BigInt(FACTS.max_box);
const MAX_TMA_RANK = FACTS.max_rank;

const gbasisRefusal = (message, facts) =>
  new Refusal(
    "GBasisError",
    message,
    Object.entries(facts).map(([name, value]) => [name, String(value)]),
  );

function identityLayout(shape) {
  const bases = (tree, path) =>
    Array.isArray(tree) ? tree.map((t, i) => bases(t, [...path, i])) : new Basis(1n, path);
  return new Layout(shape, Array.isArray(shape) ? bases(shape, []) : 1n);
}

function checkTiler(tiler) {
  if (Array.isArray(tiler)) tiler.forEach(checkTiler);
  else if (!isInt(tiler) && !(tiler instanceof Layout) && tiler !== WHOLE) {
    throw new Refusal("InvalidTypeError", `a tile is made of sizes and plain layouts, got ${treeText(tiler)}`);
  }
  if (tiler instanceof Layout && leaves(tiler.stride).some((d) => d instanceof Basis)) {
    throw new NotCovered("tiles with basis strides");
  }
}

/** CTA value index -> global mode. */
function makeVMap(shape, tiler) {
  checkTiler(tiler);
  return composition(identityLayout(shape), tiler);
}

function coalesce256(layout) {
  const [shapes, strides] = [leaves(layout.shape), leaves(layout.stride)];
  if (!shapes.length) return new Layout(1n, 0n);
  const [s, d] = [[shapes[0]], [strides[0]]];
  for (let i = 1; i < shapes.length; i++) {
    const last = s.length - 1;
    if (isOne(shapes[i])) continue;
    const merges = typeof shapes[i] === "bigint" && typeof s[last] === "bigint";
    if (last === 0 && isOne(s[0])) {
      s[0] = shapes[i];
      d[0] = strides[i];
    } else if (merges && same(times(s[last], d[last]), strides[i]) && shapes[i] * s[last] <= MAX_BOX_EXTENT) {
      s[last] *= shapes[i];
    } else {
      s.push(shapes[i]);
      d.push(strides[i]);
    }
  }
  if (s.length === 1) return isOne(s[0]) ? new Layout(1n, 0n) : new Layout(s[0], d[0]);
  return new Layout(s, d);
}

/** Basis elements of the moving modes that the tile does not walk. */
function remainingBases(gmem, identity, tile) {
  const walked = leaves(tile.stride);
  const strides = leaves(gmem.stride);
  const bases = leaves(identity.stride);
  return leaves(gmem.shape).flatMap((s, i) =>
    isOne(s) || isZero(strides[i]) || walked.some((w) => !(w instanceof Dynamic) && equalLeaves(w, bases[i]))
      ? []
      : [bases[i]],
  );
}

const extentOf = (shape) => leaves(shape).reduce((n, s) => n * number(s), 1n);

/** {layout, stages, notes}; `bits` are those of the tensor's elements, `internal` those that TMA counts in. */
function constructGBasis(gmem, smem, vMap, bits, internal, split) {
  const [have, want] = [productOf(smem.shape), productOf(vMap.shape)];
  if (typeof have !== "bigint" || typeof want !== "bigint" || have !== want) {
    throw gbasisRefusal("TMA requires CTA_Tile and SLayout top-level size equivalence.", {
      "shared layout": `${smem}, size ${leafText(have)}`,
      "CTA V-map": `${vMap}, size ${leafText(want)}`,
      rule: "both sizes static and equal",
    });
  }
  const inverse = rightInverse(smem);
  const full = coalesced(composition(vMap, inverse));
  const fullShapes = modes(full.shape);
  const fullStrides = modes(full.stride);
  const middle = fullStrides.findIndex((d) => !isOne(scaleOf(d)));
  const rank = middle < 0 ? fullStrides.length : middle;
  if (rank === 0) {
    throw gbasisRefusal("Could not find a common tile-gmem vectorization. Does the Tile select out major GMEM modes?", {
      "shared layout": smem,
      inverse,
      "walks the global modes": full,
      rule: "the run that is contiguous in shared memory must step by 1 through a global mode",
    });
  }
  const run = new Layout(fullShapes.slice(0, rank), fullStrides.slice(0, rank));
  const tileStride = recastLayout(composition(gmem, run), bits, internal);
  const merged = coalesce256(tileStride);
  const identity = identityLayout(gmem.shape);
  const tileBasis = new Layout(tileStride.shape, composition(identity, run).stride);
  const tile = composition(tileBasis, compact(modes(merged.shape)));
  const counted = recastLayout(gmem, bits, internal);
  const rest = remainingBases(counted, identity, tile);
  const all = new Layout([...modes(tile.shape), ...rest.map(() => 1n)], [...modes(tile.stride), ...rest]);
  const first = Math.min(all.shape.length, MAX_TMA_RANK - 1);
  let basis = new Layout(grouped(all.shape, first, all.shape.length), grouped(all.stride, first, all.stride.length));
  const notes = [];
  if (rank < fullStrides.length) {
    notes.push(`shared memory is contiguous beyond the box; mode ${rank} of ${full} does not step by 1`);
  }
  if (modes(merged.shape).length < leaves(tileStride.shape).length) {
    notes.push(`contiguous in global memory too: ${tileStride} merged to ${merged}`);
  }
  if (all.shape.length > MAX_TMA_RANK) {
    notes.push(`rank ${all.shape.length}: modes 4 and up share the last mode of the tensor map`);
  }
  const stages = {
    cta_v_map: String(vMap),
    inv_smem_layout: String(inverse),
    sidx2gmode_full: String(full),
    smem_rank: String(rank),
    sidx2gmode: String(run),
    tile_gstride: String(tileStride),
    tma_gstride: String(merged),
    tile_gbasis: String(tileBasis),
    tma_gbasis_tile: String(tile),
  };
  if (split) {
    const [cut, note] = splitBasis(basis, counted);
    basis = cut;
    notes.push(...note);
  }
  return { layout: basis, vMap, counted, notes, stages: { ...stages, tma_gbasis: String(basis) } };
}

/** Cut the first box mode above 256, and boxes over collapsed modes; what comes after becomes 1. */
function splitBasis(layout, gmem) {
  const notes = [];
  let done = false;
  const fit = (shape, budget) => {
    if (Array.isArray(shape)) {
      return shape.map((s) => {
        const part = fit(s, budget);
        budget = budget / extentOf(part) || 1n;
        return part;
      });
    }
    if (done) return 1n;
    if (shape <= budget) return shape;
    done = true;
    while (shape % budget) budget--;
    return budget;
  };
  const shape = layout.shape.map((s, i) => {
    const exact = exactPart(layout, i, gmem);
    const fitted = fit(exact ?? s, MAX_BOX_EXTENT);
    done ||= exact !== null;
    if (treeText(fitted) !== treeText(s) && !notes.length) {
      notes.push(`box mode ${i} of ${extentOf(s)} elements cut to ${extentOf(fitted)}: several instructions`);
    }
    return fitted;
  });
  return [new Layout(shape, layout.stride), notes];
}

// ---- global modes that share a mode of the map ----------------------------------------------------------------------

/** [sizes, strides] of a mode of the map that several global modes share, or null. */
function collapsedMode(basis, mode, gmem) {
  const paths = leaves(modes(basis.stride)[mode]).map(pathOf);
  const sizes = leaves(modes(basis.shape)[mode]).map(number);
  if (paths.length < 2 || paths.length !== sizes.length) return null;
  return [sizes, paths.map((p) => number(atPath(gmem.stride, p)))];
}

/** How many leading sizes a run of steps of the common stride can walk. */
function exactLeaves(sizes, strides) {
  let reached = strides.reduce(gcd);
  for (let i = 0; i < sizes.length; i++) {
    if (sizes[i] <= 1n) continue;
    if (strides[i] !== reached) return i;
    reached = sizes[i] * strides[i];
  }
  return sizes.length;
}

function exactPart(basis, mode, gmem) {
  const found = collapsedMode(basis, mode, gmem);
  if (!found) return null;
  const count = exactLeaves(...found);
  return count === found[0].length ? null : found[0].map((n, i) => (i < count ? n : 1n));
}

/** [why a box does not walk the tile, TMA mode], or null. */
function whyNotCollapsed(gmem, basis) {
  for (let mode = 0; mode < modes(basis.shape).length; mode++) {
    const found = collapsedMode(basis, mode, gmem);
    if (!found || exactLeaves(...found) === found[0].length) continue;
    const [sizes, strides] = found;
    const product = sizes.reduce((a, b) => a * b, 1n);
    return [
      `boxDim[${mode}] = ${product} steps of ${strides.reduce(gcd)} elements; must be the tile's (${sizes}) elements ` +
        `of strides (${strides}), which are not such a run`,
      mode,
    ];
  }
  return null;
}
