/* Layout algebra.

   cute_py/layout/layout.py, int_tuple.py      Layout, productOf, ceilDiv, compactLeft, crd2idx
   cute_py/layout/coalesce.py                  coalesced, coalescedBeyond, filtered
   cute_py/layout/composition.py               composeTrees, composition
   cute_py/layout/inverse.py, complement.py    rightInverse, complement (integer strides)
   cute_py/layout/tiling.py                    logicalDivide, zippedDivide, tileToShape
   cute_py/layout/recast.py                    recastLayout */

class Layout {
  constructor(shape, stride) {
    this.shape = shape;
    this.stride = stride;
  }

  mode(i) {
    return Array.isArray(this.shape) ? new Layout(this.shape[i], this.stride[i]) : this;
  }

  toString() {
    return `${treeText(this.shape)}:${treeText(this.stride)}`;
  }
}

const joined = (parts) =>
  new Layout(
    parts.map((p) => p.shape),
    parts.map((p) => p.stride),
  );

function fail(condition) {
  throw new Refusal("StaticAssertError", condition);
}

function productOf(tree) {
  return Array.isArray(tree) ? tree.reduce((n, t) => multiply(n, productOf(t)), 1n) : tree;
}

const ceilDivLeaf = (a, b) => truncDiv(addNumbers(addNumbers(a, b), -1n), b);

function ceilDiv(a, b) {
  if (!Array.isArray(a)) return ceilDivLeaf(a, Array.isArray(b) ? productOf(b) : b);
  if (Array.isArray(b)) return a.map((x, i) => ceilDiv(x, i < b.length ? b[i] : 1n));
  return a.map((x) => {
    const part = ceilDiv(x, b);
    b = ceilDiv(b, x);
    return part;
  });
}

function compactLeft(shape, current = 1n) {
  if (Array.isArray(shape)) {
    const out = shape.map((s) => {
      const [stride, next] = compactLeft(s, current);
      current = next;
      return stride;
    });
    return [out, current];
  }
  return isOne(shape) ? [0n, current] : [current, multiply(current, shape)];
}

function compactRight(shape, current = 1n) {
  if (!Array.isArray(shape)) return isOne(shape) ? [0n, current] : [current, multiply(current, shape)];
  const out = [];
  for (const s of [...shape].reverse()) {
    const [stride, next] = compactRight(s, current);
    current = next;
    out.unshift(stride);
  }
  return [out, current];
}

/** A compact layout of sizes; column-major. */
const compact = (shape) => new Layout(shape, compactLeft(shape)[0]);

/** The inner product of a coordinate with the strides; an integer is split over the modes first. */
function crd2idx(coord, shape, stride) {
  let total = 0n;
  const add = (term, i) => (total = i === 0 ? term : plus(total, term));
  if (Array.isArray(coord)) {
    if (!Array.isArray(shape) || coord.length !== shape.length)
      throw new Refusal("CoordinateError", "Mismatched Ranks");
    coord.forEach((c, i) => add(crd2idx(c, shape[i], stride[i]), i));
    return total;
  }
  if (!Array.isArray(shape)) return times(coord, stride);
  shape.forEach((s, i) => {
    let part = coord;
    if (i < shape.length - 1 && !isZero(coord)) {
      const size = productOf(s);
      part = truncMod(coord, size);
      coord = truncDiv(coord, size);
    }
    add(crd2idx(part, s, stride[i]), i);
  });
  return total;
}

// ---- coalesce -------------------------------------------------------------------------------------------------------

function mergedBackwards(shapes, strides, shape, stride) {
  const [s, d] = [[shape], [stride]];
  for (let i = shapes.length - 2; i >= 0; i--) {
    const last = s.length - 1;
    if (isOne(shapes[i])) continue;
    if (last === 0 && isOne(s[0])) {
      s[0] = shapes[i];
      d[0] = strides[i];
    } else if (
      typeof s[last] === "bigint" &&
      typeof shapes[i] === "bigint" &&
      same(times(shapes[i], strides[i]), d[last])
    ) {
      s[last] *= shapes[i];
      d[last] = strides[i];
    } else {
      s.push(shapes[i]);
      d.push(strides[i]);
    }
  }
  if (s.length === 1) return isOne(s[0]) ? new Layout(1n, 0n) : new Layout(s[0], d[0]);
  return new Layout(s.reverse(), d.reverse());
}

function coalesced(layout, beyond = false) {
  const [s, d] = [leaves(layout.shape), leaves(layout.stride)];
  if (!s.length) return new Layout(1n, 0n);
  const last = s.length - 1;
  return mergedBackwards(s, d, beyond && isOne(s[last]) ? 2n : s[last], d[last]);
}

/** Coalesced at the leaves of `profile`, the same function beyond the domain too. */
function coalescedBeyond(layout, profile) {
  if (!Array.isArray(profile)) return coalesced(layout, true);
  const rank = modes(layout.shape).length;
  if (profile.length > rank) fail("tuple_size<IntTuple>::value <= rank");
  const parts = profile.map((p, i) => coalescedBeyond(layout.mode(i), p));
  for (let i = profile.length; i < rank; i++) parts.push(layout.mode(i));
  return joined(parts);
}

function withoutZeros(shape, guide) {
  if (Array.isArray(guide)) return modes(shape).map((s, i) => withoutZeros(s, guide[i]));
  return isZero(guide) ? mapLeaves(() => 1n, shape) : shape;
}

const filtered = (layout) => coalesced(new Layout(withoutZeros(layout.shape, layout.stride), layout.stride));

/** The profile that offsets have: nested arrays of zeros. */
function coprofileOf(stride) {
  const paths = leaves(stride)
    .map(pathOf)
    .filter((p) => p.length);
  const zeros = (depth, group) => {
    const rank = Math.max(...group.map((p) => p[depth] ?? -1)) + 1;
    if (rank === 0) return 0n;
    if (group.some((p) => p.length === depth)) throw new Refusal("LayoutError", "strides of incompatible hierarchy");
    return Array.from({ length: rank }, (_, i) => {
      const here = group.filter((p) => p[depth] === i);
      return here.length ? zeros(depth + 1, here) : 0n;
    });
  };
  return paths.length ? zeros(0, paths) : 0n;
}

// ---- composition ----------------------------------------------------------------------------------------------------

function composeTrees(lhs, shape, stride) {
  if (Array.isArray(shape)) return joined(shape.map((s, i) => composeTrees(lhs, s, stride[i])));
  if (stride instanceof Basis) {
    const mode = new Layout(atPath(lhs.shape, stride.path), atPath(lhs.stride, stride.path));
    return composeTrees(mode, shape, stride.value);
  }
  if (isZero(stride)) return new Layout(shape, 0n);
  if (!Array.isArray(lhs.shape)) return new Layout(shape, times(stride, lhs.stride));
  return walk(lhs, shape, stride);
}

/** A flat left side of several modes, an integer mode size:step. */
function walk(lhs, size, step) {
  const [shapes, strides] = [[], []];
  const last = lhs.shape.length - 1;
  for (let i = 0; i < last; i++) {
    const leaf = lhs.shape[i];
    const [have, d, n] = [number(leaf), number(step), number(size)];
    const known = typeof leaf === "bigint" && typeof step === "bigint";
    if (have === 0n) throw new Refusal("LayoutError", "can't compose over a mode of size 0");
    if (known && d >= have && d % have) fail("Stride Divisibility Condition");
    const over = magnitudeOf(d) || divisionByZero();
    const left = (have + over - 1n) / over;
    const following = ((over + have - 1n) / have) * signOf(d);
    const wrap = (value) => (known ? value : new Dynamic(value));
    if ((known && left === 1n) || isOne(size)) {
      step = wrap(following);
      continue;
    }
    const take = left <= n ? left : n;
    const takenStatic = known && typeof size === "bigint";
    if (take === 0n || (takenStatic && n % take)) fail("Shape Divisibility Condition");
    shapes.push(takenStatic ? take : new Dynamic(take));
    strides.push(times(step, lhs.stride[i]));
    size = takenStatic || (typeof size === "bigint" && n === 0n) ? n / take : new Dynamic(n / take);
    step = wrap(following);
  }
  const tail = times(step, lhs.stride[last]);
  if (!shapes.length) return new Layout(size, tail);
  if (isOne(size)) return new Layout(unwrap(shapes), unwrap(strides));
  return new Layout([...shapes, size], [...strides, tail]);
}

function composeLayouts(lhs, rhs) {
  return composeTrees(coalescedBeyond(lhs, coprofileOf(rhs.stride)), rhs.shape, rhs.stride);
}

/** `lhs o rhs` for a layout, or by mode for a tiler: sizes, layouts, WHOLE, arrays of them. */
function composition(lhs, rhs) {
  if (rhs instanceof Layout) return composeLayouts(lhs, rhs);
  if (rhs === WHOLE) return lhs;
  if (!Array.isArray(rhs)) return composeTrees(coalesced(lhs, true), rhs, 1n);
  if (rhs.length > modes(lhs.shape).length) fail("tuple_size<Tiler>::value <= rank");
  return joined(rhs.map((t, i) => composition(lhs.mode(i), t)));
}

// ---- inverse, complement --------------------------------------------------------------------------------------------

/** Indices of the static strides, ascending, by the exchange sort that decides between equal ones in C++. */
function ascending(strides) {
  const order = strides.map((_, i) => i).filter((i) => typeof strides[i] === "bigint");
  for (let i = 0; i < order.length; i++) {
    for (let j = i + 1; j < order.length; j++) {
      if (strides[order[j]] < strides[order[i]]) [order[i], order[j]] = [order[j], order[i]];
    }
  }
  return order;
}

function rightInverse(layout) {
  const flat = coalesced(layout);
  const [shapes, strides] = [modes(flat.shape), modes(flat.stride)];
  const starts = [];
  shapes.reduce((n, s) => (starts.push(n), multiply(n, s)), 1n);
  const [s, d] = [[], []];
  let reached = 1n;
  for (const i of ascending(strides)) {
    if (typeof reached === "bigint" && strides[i] === reached) {
      s.push(shapes[i]);
      d.push(starts[i]);
      reached = multiply(shapes[i], reached);
    }
  }
  return s.length ? coalesced(new Layout(unwrap(s), unwrap(d))) : new Layout(1n, 0n);
}

/** Neighbours that are both static or both run-time multiply. */
function coalescedShape(shape) {
  const out = [];
  for (const x of leaves(shape)) {
    if (out.length && isStatic(out.at(-1)) === isStatic(x)) out.push(multiply(out.pop(), x));
    else out.push(x);
  }
  return out.length ? unwrap(out) : 1n;
}

function complement(layout, target) {
  const flat = filtered(layout);
  if (isZero(flat.stride)) return compact(coalescedShape(target));
  const [shapes, strides] = [[...modes(flat.shape)], [...modes(flat.stride)]];
  if (shapes.length > 1 && strides.some((d) => typeof d !== "bigint")) {
    fail("Dynamic-stride complement only for rank-1 layouts");
  }
  const [s, d] = [[], [1n]];
  while (shapes.length) {
    const i = strides.length > 1 ? strides.indexOf(strides.reduce((a, b) => (b < a ? b : a))) : 0;
    const gap = truncDiv(strides[i], d.at(-1));
    if (isZero(gap)) fail("Non-injective Layout detected in complement.");
    s.push(gap);
    d.push(multiply(strides[i], shapes[i]));
    shapes.splice(i, 1);
    strides.splice(i, 1);
  }
  const end = d.pop();
  const rest = coalescedShape(ceilDiv(target, end));
  return coalesced(new Layout([s, rest], [d, compactLeft(rest, end)[0]]));
}

// ---- divide, product ------------------------------------------------------------------------------------------------

function logicalDivide(layout, tiler) {
  if (tiler instanceof Layout) {
    return composeLayouts(layout, joined([tiler, complement(tiler, coalesced(layout).shape)]));
  }
  if (tiler === WHOLE) return layout;
  if (!Array.isArray(tiler)) return logicalDivide(layout, compact(tiler));
  const rank = modes(layout.shape).length;
  if (tiler.length > rank) fail("logical_divide: Too many modes in tiler.");
  return joined(
    Array.from({ length: rank }, (_, i) =>
      i < tiler.length ? logicalDivide(layout.mode(i), tiler[i]) : layout.mode(i),
    ),
  );
}

/** ((tile modes), (rest modes)). */
function zippedDivide(layout, tiler) {
  const divided = logicalDivide(layout, tiler);
  const guideOf = (t) => (Array.isArray(t) ? t.map(guideOf) : 0n);
  const guide = guideOf(tiler);
  const paired = (tree) => {
    if (!Array.isArray(guide) && (!Array.isArray(tree) || tree.length !== 2)) fail("Mismatched ranks");
    return zip2By(tree, guide);
  };
  return new Layout(paired(divided.shape), paired(divided.stride));
}

const cosizeOf = (layout) =>
  leaves(layout.shape).reduce(
    (n, s, i) => addNumbers(n, multiply(addNumbers(s, -1n), magnitude(leaves(layout.stride)[i]))),
    1n,
  );

/** The block repeated, first mode first, until the result has `target` (sizes, one per mode). */
function tileToShape(block, target) {
  const [sizes, shapes] = [modes(target), modes(block.shape)];
  if (shapes.length > sizes.length) fail("Rank of layout must be <= rank of target shape.");
  const parts = sizes.map((_, i) =>
    i < shapes.length ? new Layout(shapes[i], modes(block.stride)[i]) : new Layout(1n, 0n),
  );
  const wanted = sizes.map(productOf);
  const have = parts.map((p) => productOf(p.shape));
  if (wanted.every((n) => typeof n === "bigint")) {
    wanted.forEach((n, i) => {
      if (typeof have[i] !== "bigint" || have[i] === 0n || n % have[i]) {
        fail("tile_to_shape: block shape does not divide the target shape.");
      }
    });
  }
  const tiler = compact(wanted.map((n, i) => ceilDiv(n, have[i])));
  const padded = joined(parts);
  const span = multiply(productOf(padded.shape), cosizeOf(tiler));
  const copies = composeLayouts(complement(padded, span), tiler);
  return joined(parts.map((p, i) => joined([p, copies.mode(i)])));
}

// ---- recast ---------------------------------------------------------------------------------------------------------

function upcast(shape, stride, n) {
  if (Array.isArray(shape)) return joined(shape.map((s, i) => upcast(s, stride[i], n)));
  if (stride instanceof Dynamic) return new Layout(shape, truncDiv(stride, n));
  if (isZero(stride)) return new Layout(shape, 0n);
  if (stride % n && n % stride) fail("Divisibility condition");
  const size = magnitude(stride);
  return new Layout(ceilDivLeaf(shape, ceilDivLeaf(n, size)), multiply(sign(stride), ceilDivLeaf(size, n)));
}

function downcast(shape, stride, n) {
  if (Array.isArray(shape)) return joined(shape.map((s, i) => downcast(s, stride[i], n)));
  if (stride === 1n || stride === -1n) return new Layout(multiply(shape, n), stride);
  return new Layout(shape, multiply(stride, n));
}

/** The layout counted in elements of `to` bits instead of `from` bits. */
function recastLayout(layout, from, to) {
  const g = gcd(from, to);
  if (to > g) layout = upcast(layout.shape, layout.stride, to / g);
  if (from > g) {
    if (!leaves(layout.stride).some(isOne)) fail("Downcast requires adjacent elements");
    layout = downcast(layout.shape, layout.stride, from / g);
  }
  return layout;
}
