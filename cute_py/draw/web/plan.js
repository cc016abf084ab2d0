/* From a G-basis to the numbers of a tensor map, and the TMA tensor.

   cute_py/tma/atom/tile_atom.py          planTiled, multicastBox, tmaStrides, layoutModes
   cute_py/tma/atom/partition.py          tmaTensorText
   cute_py/tma/atom/op.py                 whyNotSwizzle, swizzleRow
   cute_py/tma/atom/make.py               reasons
   cute_py/tma/atom/atom.py               whyNotFilled
   cute_py/tma/atom/tile_atom.py          whyNotUnits */

/** Python's format(x, "g") of a number of 8ths. */
function general(numerator, denominator) {
  const value = Number(numerator) / Number(denominator);
  const text = value.toPrecision(6);
  const [digits, exponent] = text.includes("e") ? text.split("e") : [text, ""];
  const short = digits.includes(".") ? digits.replace(/\.?0+$/, "") : digits;
  if (!exponent) return short;
  return `${short}e${exponent[0]}${exponent.slice(1).padStart(2, "0")}`;
}

/** Sizes and strides of each TMA mode, in elements of the internal type; `gmem` is in those elements. */
function shapeAndStride(gmem, basis) {
  return modes(basis.stride).map((mode) => {
    const paths = leaves(mode).map(pathOf);
    if (paths.some((p) => Array.isArray(atPath(gmem.shape, p)))) {
      const facts = { "global layout in that type": gmem, "G-basis": basis };
      throw gbasisRefusal(
        "the tile is a single element of the type that TMA counts in: its box walks no mode of the tensor",
        facts,
      );
    }
    const pairs = paths.map((p) => [number(atPath(gmem.shape, p)), number(atPath(gmem.stride, p))]);
    if (pairs.length === 1) return pairs[0];
    return pairs.reduce(
      ([size, stride], [s, d]) => {
        const common = gcd(stride, d);
        if (!common) return [s, common];
        return [(size - 1n) * floorDiv(stride, common) + (s - 1n) * floorDiv(d, common) + 1n, common];
      },
      [1n, 0n],
    );
  });
}

/** The box that one of `count` CTAs issues: cut from the last mode on. [box, condition that does not hold]. */
function multicastBox(full, count) {
  const box = [...full];
  const condition = "smem_box_shape[i] % multicast == 0 || multicast % smem_box_shape[i] == 0";
  const broken = (message, mode) => [
    box,
    { condition, message: `num_multicast = ${count} CTAs; must ${message}`, mode },
  ];
  let left = count;
  for (let i = box.length - 1; left > 1n; i--) {
    if (i < 0) {
      const most = (box.reduce((a, b) => a * b, 1n) * count) / left;
      return broken(`be at most the ${most} elements of the box, so that every CTA gets a part`, null);
    }
    if (box[i] % left && left % box[i]) return broken(`divide or be divided by boxDim[${i}] = ${box[i]} elements`, i);
    const rest = ceilQuotient(left, box[i]);
    box[i] = ceilQuotient(box[i], left);
    left = rest;
  }
  return [box, null];
}

/** The strides of the TMA tensor, congruent with the global shape. */
function tmaStrides(gmem, counted, basis, byteStrides, bits, internal) {
  const owners = modes(basis.stride).map((mode) => leaves(mode).map(pathOf));
  const leafAt = (path) => {
    const [size, stride] = [atPath(counted.shape, path), atPath(counted.stride, path)];
    if (isOne(size) || isZero(stride)) return 0n;
    const j = owners.findIndex((paths) => paths.some((p) => samePath(p, path)));
    if (j < 0) return 0n;
    if (j === 0) return new Basis(multiply(ratio(bits, internal), atPath(gmem.stride, path)), [0]);
    if (owners[j].length === 1) return new Basis(1n, [j]);
    const unit = byteStrides[j] > 16n ? byteStrides[j] : 16n;
    return new Basis(new Dynamic(ceilQuotient(floorDiv(number(stride) * internal, unit), 8n)), [j]);
  };
  const visit = (tree, path) => (Array.isArray(tree) ? tree.map((t, i) => visit(t, [...path, i])) : leafAt(path));
  return visit(gmem.shape, []);
}

/** The numbers of the tensor map of a G-basis; `broken` lists what CuTe would assert. */
function planTiled(gmem, basis, bits, internal, count) {
  const counted = recastLayout(gmem, bits, internal);
  const pairs = shapeAndStride(counted, basis);
  const dims = pairs.map((p) => p[0]);
  const strides = pairs.map((p) => p[1]);
  const byteStrides = strides.map((d) => floorDiv(d * internal, 8n));
  const broken = [];
  const note = (condition, message, mode) => broken.push({ condition, message, mode });
  if (strides.length && strides[0] !== 1n) {
    note(
      'gmem_prob_stride[0] == 1 && "Majorness of smem doesn\'t match majorness of gmem"',
      `Majorness of smem doesn't match majorness of gmem: TMA mode 0 has stride ${strides[0]} elements; must be 1`,
      0,
    );
  }
  for (let i = 1; i < strides.length; i++) {
    const argument = `globalStrides[${i - 1}]`;
    if ((strides[i] * internal) % 128n) {
      const bytes = general(strides[i] * internal, 8n);
      note(`(gmem_prob_stride[${i}] & 0b1111) == 0`, `${argument} = ${bytes} bytes; must be a multiple of 16`, i);
    }
    if (byteStrides[i] < 0n || byteStrides[i] >= 1n << 40n) {
      const condition = `(gmem_prob_stride[${i}]) < (uint64_t(1) << 40)`;
      note(condition, `${argument} = ${byteStrides[i]} bytes; must be below 2**40`, i);
    }
  }
  dims.forEach((n, i) => {
    if (n >= 1n && n <= 1n << 32n) return;
    const condition = `gmem_prob_shape[${i}] ${n < 1n ? ">= (uint64_t(1))" : "<= (uint64_t(1) << 32)"}`;
    note(condition, `globalDim[${i}] = ${n} elements; must be 1 to 2**32`, i);
  });
  const fullBox = modes(basis.shape).map(extentOf);
  const [box, problem] = multicastBox(fullBox, count);
  if (problem) broken.push(problem);
  box.forEach((n, i) => {
    if (n >= 1n && n <= MAX_BOX_EXTENT) return;
    const condition = `smem_box_shape[${i}] ${n < 1n ? ">= (uint32_t(1))" : "<= (uint32_t(1) << 8)"}`;
    note(condition, `boxDim[${i}] = ${n} elements; must be ${n < 1n ? "at least 1" : "at most 256"}`, i);
  });
  return {
    gmem,
    basis,
    counted,
    internal,
    dims,
    strides: byteStrides.slice(1),
    box,
    gStride: tmaStrides(gmem, counted, basis, byteStrides, bits, internal),
    slotBits: fullBox.reduce((a, b) => a * b, 1n) * internal,
    broken,
  };
}

function tmaTensorText(plan) {
  return `ArithTuple(${plan.dims.map(() => "_0").join(",")}) o ${new Layout(plan.gmem.shape, plan.gStride)}`;
}

// ---- swizzles -------------------------------------------------------------------------------------------------------

function whyNotSwizzle({ bits, base, shift }) {
  const say = FACTS.swizzle_refusals;
  if (base === 4n) return bits > 3n ? say.bits : shift !== 3n ? say.shift : null;
  if (base === 5n || base === 6n)
    return bits !== 2n ? say.wide_bits : base === 5n && shift !== 2n ? say.wide_shift : null;
  return say.other;
}

/** The mode of the tensor map that swizzles so. */
function swizzleRow(swizzle) {
  const reason = whyNotSwizzle(swizzle);
  if (reason) fail(reason);
  return FACTS.swizzle_modes.find((row) => BigInt(row.bits) === swizzle.bits && BigInt(row.base) === swizzle.base);
}

/** What the engine does differently with a swizzle of elements, or null. */
function whyNotUnits(layout, bits) {
  if (!(layout instanceof Composed) || !layout.outer.bits) return null;
  if (layout.offset instanceof SmemFlag || bits === 8n || bits % 8n) return null;
  const shift = BigInt((bits / 8n).toString(2).length - 1);
  const { outer } = layout;
  if (outer.base < shift)
    return `${outer} on elements of ${bits} bits permutes parts of elements when it is read on bytes`;
  return (
    `${outer} acts on elements in this layout, and on bytes in the TMA engine; for ${bits}-bit elements ${outer} on ` +
    `bytes is ${new Swizzle(outer.bits, outer.base - shift, outer.shift)} on elements`
  );
}

// ---- words ----------------------------------------------------------------------------------------------------------

const stripped = (text) => text.replace(/^_+|_+$/g, "");

/** Which modes of the global tensor a TMA mode is made of. */
function layoutModes(plan, mode) {
  const parts = leaves(modes(plan.basis.stride)[mode]).map((d) => {
    const path = pathOf(d);
    const [size, stride] = [plan.gmem.shape, plan.gmem.stride].map((tree) => stripped(treeText(atPath(tree, path))));
    return `layout mode ${path.join(".") || "0"}: ${size} elements, stride ${stride}`;
  });
  return `TMA mode ${mode} (${parts.join("; ")})`;
}

/** The first mode whose overhang is not filled with zeros, or null. */
function whyNotFilled(plan, vMap) {
  const key = (path) => path.join(".");
  const reach = new Map();
  leaves(vMap.shape).forEach((n, i) => {
    const d = leaves(vMap.stride)[i];
    const name = key(pathOf(d));
    if (!name) return;
    const old = reach.get(name) ?? { path: d.path, extent: 1n };
    reach.set(name, { path: d.path, extent: old.extent + (number(n) - 1n) * number(d.value) });
  });
  const walked = new Map();
  for (let j = 0; j < modes(plan.basis.stride).length; j++) {
    const paths = leaves(modes(plan.basis.stride)[j]).map(pathOf);
    const extents = leaves(modes(plan.basis.shape)[j]).map(number);
    if (extents.length === paths.length) paths.forEach((p, i) => walked.set(key(p), [j, extents[i]]));
    if (paths.length < 2) continue;
    const strideOf = (p) => number(atPath(plan.gmem.stride, p));
    const outermost = paths.reduce((a, b) => (strideOf(b) > strideOf(a) ? b : a));
    for (const path of paths) {
      const size = number(atPath(plan.gmem.shape, path));
      const tile = reach.get(key(path))?.extent ?? 1n;
      if (!samePath(path, outermost) && size % tile) {
        return (
          `a tile reaches ${tile} elements along layout mode ${key(path)} of ${size}, which shares TMA mode ${j} with ` +
          "others: what lies past its end is read, not filled with zeros"
        );
      }
    }
  }
  for (const { path, extent: tile } of reach.values()) {
    if (!isOne(atPath(plan.gmem.shape, path)) || tile === 1n) continue;
    const [j, extent] = walked.get(key(path)) ?? [0, 1n];
    if (extent !== tile || plan.box[j] !== extentOf(modes(plan.basis.shape)[j])) {
      return (
        `a tile reaches ${tile} elements along layout mode ${key(path)}, statically of size 1: coordinates never move ` +
        "along it, so instructions past its end read its first row again"
      );
    }
  }
  return null;
}
