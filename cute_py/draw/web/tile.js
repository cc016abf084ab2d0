/* The instructions of a tile, and where the bytes of each go.

   cute_py/tma/atom/partition.py          tileLayout, partition
   cute_py/tma/atom/tiles.py         tileWork
   cute_py/tma/simulate/trace.py, emulator_geometry.py, emulator_swizzle.py     swizzled, wayOf
   cute_py/draw/element_path.py               tensorCoordinate, which goes beyond logical_of
   cute_py/draw/shared_memory.py          tileExtent
   cute_py/draw/boxes.py, table.py        boxStarts, shown */

/** ((slot), (slots)) -> coordinate of the tile: the order of shared memory, cut into instructions. */
function tileLayout(smem, slot) {
  const order = tileToShape(joined([rightInverse(smem)]), productOf(smem.shape));
  return logicalDivide(order, compact(slot));
}

/** A tensor's layout whose mode 0 is the tile -> {start, slots, rest} as one CTA sees it. */
function slotted(layout, slots, offset) {
  const parts = modes(layout.shape).map((_, i) => (i === 0 ? composition(layout.mode(0), slots) : layout.mode(i)));
  const merged = [coalesced(parts[0].mode(0)), coalesced(parts[0].mode(1))];
  const coordinate = [[offset, 0n], ...parts.slice(1).map(() => 0n)];
  const all = joined([joined(merged), ...parts.slice(1)]);
  return { start: crd2idx(coordinate, all.shape, all.stride), slots: merged[1], rest: parts[1] ?? null };
}

/** The steps of `layout` from its origin to its element `index`, colexicographic: [[stride, count], ...]. */
function stepsTo(layout, index) {
  return leaves(layout.shape).map((s, i) => {
    const n = number(s);
    const count = index % n;
    index /= n;
    return [leaves(layout.stride)[i], count];
  });
}

/** A coordinate of `rank` plain numbers: a start and steps along its axes. */
function coordinateAt(start, steps, rank) {
  const at = Array.from({ length: rank }, (_, i) => start[i] ?? 0n);
  for (const [stride, count] of steps) {
    if (!(stride instanceof Basis) || !count) continue; // a ratio has count 0, see tileWork
    at[stride.path[0]] += number(stride.value) * count;
  }
  return at;
}

/** The instructions of the tile at the origin: of every CTA one after the other, in the order of shared memory. */
function tileWork(atom) {
  const { plan, tile, count, bits } = atom;
  const rank = plan.dims.length;
  const slot = plan.slotBits / bits;
  const smem = new Layout([modes(tile.shape)], [modes(tile.stride)]);
  const tiled = zippedDivide(new Layout(plan.gmem.shape, plan.gStride), atom.tiler);
  if (number(productOf(smem.shape)) !== number(productOf(tiled.mode(0).shape)))
    fail("size<0>(stensor) == size<0>(gtensor)");
  const slots = tileLayout(smem.mode(0), slot);
  const parts = [];
  for (let cta = 0n; cta < count; cta++) {
    const offset = cta * (slot / count);
    const gmem = slotted(tiled, slots, offset);
    const shared = slotted(smem, slots, offset);
    const start = (Array.isArray(gmem.start) || gmem.start instanceof Basis ? asCoordinate(gmem.start) : []).map(
      (x) => {
        if (!(x instanceof Ratio)) return number(x);
        throw new Refusal(
          "InvalidValueError",
          `an instruction would start at coordinate ${leafText(x)}; must be a whole number of elements`,
        );
      },
    );
    parts.push({ start, slots: gmem.slots, base: number(shared.start), places: shared.slots, rest: gmem.rest });
  }
  for (const axes of [parts[0].slots, parts[0].rest]) {
    const part = leaves(axes.stride).find((d, i) => scaleOf(d) instanceof Ratio && number(leaves(axes.shape)[i]) > 1n);
    if (part) throw new NotCovered(`instructions that step by ${leafText(part)}, a part of an element`);
  }
  const perCta = extentOf(parts[0].slots.shape);
  const total = perCta * count;
  const offsetOf = (part, index) =>
    stepsTo(part.places, index).reduce((n, [d, c]) => n + number(d) * c, part.base) * bits;
  const wrong = parts
    .flatMap((p) => [
      p.base,
      ...leaves(p.places.shape).flatMap((s, i) =>
        number(s) > 1n ? [p.base + number(leaves(p.places.stride)[i])] : [],
      ),
    ])
    .find((n) => (n * bits) % (8n * BigInt(FACTS.smem_alignment)));
  if (wrong !== undefined && total > 1n) {
    const byte = general(wrong * bits, 8n);
    throw new Refusal(
      "InvalidValueError",
      `an instruction writes shared memory at byte ${byte}; must be a multiple of ${FACTS.smem_alignment}`,
    );
  }
  const rest = parts[0].rest;
  const tiles = extentOf(rest.shape);
  return {
    tiles,
    total,
    tileShape: treeText(rest.shape),
    rest,
    /** {coord, offset}: instruction `index` of tile `which`; offset in bytes of shared memory. */
    at(index, which = 0n) {
      const part = parts[Number(index / perCta)];
      const own = coordinateAt(part.start, stepsTo(part.slots, index % perCta), rank);
      return { coord: coordinateAt(own, stepsTo(rest, which), rank), offset: offsetOf(part, index % perCta) / 8n };
    },
  };
}

// ---- bytes ----------------------------------------------------------------------------------------------------------

/** A byte of shared memory after the swizzle of the engine; applied twice it gives the byte back. */
function swizzled(byte, mode) {
  const row = FACTS.engine_swizzles[mode];
  const line = (byte >> BigInt(FACTS.line_shift)) & ((1n << BigInt(row.bits)) - 1n);
  return byte ^ (line << BigInt(row.base));
}

/** TMA coordinate -> coordinate of the tensor, in the profile of its shape; null where no element of it lies there.

    Global modes that share a TMA mode are distinguished by their steps, the largest first. Beyond logical_of in Python,
    which answers only where every TMA mode is one global mode. */
function tensorCoordinate(plan, coord) {
  const steps = leaves(plan.gStride).map((d, i) => {
    const value = d instanceof Basis ? d.value : 0n;
    const [top, bottom] = value instanceof Ratio ? [value.numerator, value.denominator] : [number(value), 1n];
    return { i, mode: d instanceof Basis ? d.path[0] : null, top, bottom, size: number(leaves(plan.gmem.shape)[i]) };
  });
  const flat = steps.map(() => 0n);
  for (let mode = 0; mode < coord.length; mode++) {
    const own = steps.filter((s) => s.mode === mode && s.top !== 0n);
    own.sort((a, b) => (a.top * b.bottom < b.top * a.bottom ? 1 : -1));
    let rest = coord[mode];
    own.forEach((s, k) => {
      flat[s.i] = floorDiv(rest * s.bottom, s.top);
      rest -= own.length > 1 ? (flat[s.i] * s.top) / s.bottom : 0n;
      if (k && flat[s.i] >= s.size) rest = null;
    });
    if (rest === null || (own.length > 1 && rest)) return null;
  }
  const items = flat.values();
  return mapLeaves(() => items.next().value, plan.gmem.shape);
}

/** How the rows of a box lie: bytes of a row, bytes from row to row, rows of a box. */
function rowsOf(plan, mode) {
  const bytes = (plan.box[0] * plan.internal) / 8n;
  const span = BigInt(FACTS.engine_swizzles[mode].span);
  return { bytes, pitch: bytes > span ? bytes : span, count: product(plan.box.slice(1)) };
}

/** The instructions of a tile that can be asked for single bytes: [{coord, offset, index}]. */
function tileInstructions(work, which) {
  const most = Math.min(Number(work.total), FACTS.most_traced);
  return Array.from({ length: most }, (_, i) => ({ ...work.at(BigInt(i), which), index: i }));
}

/** Bytes from the start of the tile to the end of its last row. */
function tileExtent(instructions, rows) {
  const last = instructions.reduce((n, i) => (i.offset > n ? i.offset : n), 0n);
  return last + (rows.count - 1n) * rows.pitch + rows.bytes;
}

/** The path of one byte of shared memory, or null where no instruction writes. */
function wayOf(byte, atom, instructions, rows) {
  const { plan, request } = atom;
  const before = swizzled(byte, request.swizzle);
  for (let i = instructions.length - 1; i >= 0; i--) {
    const from = before - instructions[i].offset;
    if (from < 0n) continue;
    let row = from / rows.pitch;
    const inRow = from % rows.pitch;
    if (row >= rows.count || inRow >= rows.bytes) continue;
    const rowIndex = row;
    const coord = [...instructions[i].coord];
    coord[0] += (inRow * 8n) / plan.internal;
    for (let m = 1; m < coord.length; m++) {
      coord[m] += row % plan.box[m];
      row /= plan.box[m];
    }
    const inside = coord.every((c, m) => c >= 0n && c < plan.dims[m]);
    const elements = coord.reduce(
      (n, c, m) => n + (m ? c * plan.strides[m - 1] : (c * plan.internal) / 8n),
      request.address,
    );
    const address = elements + (inRow % (plan.internal / 8n));
    return {
      logical: tensorCoordinate(plan, coord),
      coord,
      inside,
      address,
      instruction: instructions[i].index,
      at: instructions[i].coord,
      row: rowIndex,
      before,
      byte,
      bank: (byte / 4n) % 32n,
    };
  }
  return null;
}

/** Indices 0 .. size-1, or as many from both ends as fit with a null for the gap. */
function shown(size, limit) {
  if (size <= limit) return Array.from({ length: size }, (_, i) => i);
  const back = Math.floor(limit / 4);
  return [...Array(limit - back).keys(), null, ...Array.from({ length: back }, (_, i) => size - back + i)];
}

/** {starts, total}: where boxes start along a TMA mode, ascending, null for a gap; `limit` of them at most. */
function boxStarts(work, first, mode, limit) {
  const axes = leaves(work.rest.shape).map((s, i) => [number(s), leaves(work.rest.stride)[i]]);
  const along = axes.filter(([n, d]) => d instanceof Basis && d.path[0] === mode && n > 1n && number(d.value) !== 0n);
  let total = BigInt(first.size);
  let picked = first;
  let last = [...first].reduce((a, b) => (b > a ? b : a));
  for (const [n, d] of along) {
    total *= n;
    const step = number(d.value);
    const near = shown(Number(n), 2 * limit)
      .filter((i) => i !== null)
      .map(BigInt);
    picked = new Set([...picked].flatMap((start) => near.map((i) => start + i * step)));
    last += (n - 1n) * step;
  }
  const ordered = [...picked.add(last)].sort((a, b) => (a < b ? -1 : 1));
  const cut = total > BigInt(limit);
  const back = Math.floor(limit / 4);
  const starts = cut ? [...ordered.slice(0, limit - back), null, ...ordered.slice(-back)] : ordered;
  return { starts, total };
}
