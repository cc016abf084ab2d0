/* Numbers and trees.

   cute_py/layout/leaf.py            Dynamic, times, plus, truncDiv, truncMod, minimum, same, text
   cute_py/layout/trees.py           leaves, modes, at, congruent, grouped, zip2By
   cute_py/arith_tuple/ratio.py      Ratio
   cute_py/arith_tuple/arith_tuple.py      Basis, coordinates as arrays

   A static integer (CuTe's _4) is a BigInt, a run-time one (4) a Dynamic, so that strides of 40 bits and more are exact.
   A tree is a leaf or an array of trees. */

/** What cute_py raises: `kind` is the name of the Python class, `facts` are its [name, text] lines. */
class Refusal extends Error {
  constructor(kind, message, facts = null) {
    super(message);
    this.kind = kind;
    this.facts = facts;
  }
}

/** Something that Python answers and this engine does not. */
class NotCovered extends Error {}

class Dynamic {
  constructor(value) {
    this.value = value;
  }
}

class Ratio {
  constructor(numerator, denominator) {
    this.numerator = numerator;
    this.denominator = denominator;
  }
}

/** `value` along the mode at `path` (outermost index first). */
class Basis {
  constructor(value, path) {
    this.value = value;
    this.path = path;
  }
}

/** CuTe's `_`: the whole mode. */
const WHOLE = { toString: () => "_" };

const isInt = (x) => typeof x === "bigint" || x instanceof Dynamic;
const number = (x) => (x instanceof Dynamic ? x.value : x);
const isOne = (x) => x === 1n;
const isZero = (x) => x === 0n;
const pathOf = (x) => (x instanceof Basis ? x.path : []);
const scaleOf = (x) => (x instanceof Basis ? x.value : x);
const samePath = (a, b) => a.length === b.length && a.every((n, i) => n === b[i]);
const magnitudeOf = (n) => (n < 0n ? -n : n);

function gcd(a, b) {
  a = magnitudeOf(a);
  b = magnitudeOf(b);
  while (b) [a, b] = [b, a % b];
  return a;
}

/** Python's //, which rounds down. */
function floorDiv(a, b) {
  const q = a / b;
  return a % b !== 0n && a < 0n !== b < 0n ? q - 1n : q;
}

const ceilQuotient = (a, b) => -floorDiv(-a, b);

function ratio(numerator, denominator) {
  const g = gcd(numerator, denominator);
  return denominator === g ? numerator / g : new Ratio(numerator / g, denominator / g);
}

function isStatic(x) {
  if (x instanceof Basis) return isStatic(x.value);
  return !(x instanceof Dynamic);
}

function multiply(a, b) {
  if (a instanceof Ratio || b instanceof Ratio) {
    const [r, n] = a instanceof Ratio ? [a, b] : [b, a];
    if (n instanceof Ratio) return ratio(r.numerator * n.numerator, r.denominator * n.denominator);
    if (n instanceof Dynamic) return new Dynamic((n.value * r.numerator) / r.denominator);
    return ratio(r.numerator * n, r.denominator);
  }
  if (typeof a === "bigint" && typeof b === "bigint") return a * b;
  return isZero(a) || isZero(b) ? 0n : new Dynamic(number(a) * number(b));
}

/** `n * x` for an integer n and any stride x. */
function times(n, x) {
  return x instanceof Basis ? new Basis(multiply(x.value, n), x.path) : multiply(n, x);
}

function addNumbers(a, b) {
  if (a instanceof Ratio || b instanceof Ratio) {
    const [r, n] = a instanceof Ratio ? [a, b] : [b, a];
    if (n instanceof Ratio) {
      return ratio(r.numerator * n.denominator + n.numerator * r.denominator, r.denominator * n.denominator);
    }
    if (n instanceof Dynamic) {
      throw new Refusal(
        "InvalidTypeError",
        `${leafText(r)} and the run-time number ${n.value} have no sum, which would be static and run-time at once`,
      );
    }
    return ratio(r.numerator + n * r.denominator, r.denominator);
  }
  if (typeof a === "bigint" && typeof b === "bigint") return a + b;
  return new Dynamic(number(a) + number(b));
}

/** A coordinate: an array of numbers, one per mode of the codomain (paths of one index only). */
function asCoordinate(x) {
  if (Array.isArray(x)) return x;
  if (x.path.length !== 1) throw new NotCovered("coordinates of nested modes");
  return [...Array(x.path[0]).fill(0n), x.value];
}

function plus(a, b) {
  if (isZero(a)) return b;
  if (isZero(b)) return a;
  if (!(a instanceof Basis || b instanceof Basis || Array.isArray(a) || Array.isArray(b))) return addNumbers(a, b);
  const [x, y] = [asCoordinate(a), asCoordinate(b)];
  return Array.from({ length: Math.max(x.length, y.length) }, (_, i) =>
    isZero(y[i] ?? 0n) ? (x[i] ?? 0n) : isZero(x[i] ?? 0n) ? y[i] : addNumbers(x[i], y[i]),
  );
}

function divisionByZero() {
  throw new Refusal("LayoutError", "division by zero");
}

/** C++'s a / b, which rounds toward zero. */
function truncDiv(a, b) {
  if (typeof a === "bigint" && typeof b === "bigint") return b === 0n ? divisionByZero() : a / b;
  if (isZero(a)) return 0n;
  return number(b) === 0n ? divisionByZero() : new Dynamic(number(a) / number(b));
}

function truncMod(a, b) {
  if (typeof a === "bigint" && typeof b === "bigint") return b === 0n ? divisionByZero() : a % b;
  if (isZero(a) || b === 1n || b === -1n) return 0n;
  return number(b) === 0n ? divisionByZero() : new Dynamic(number(a) % number(b));
}

function minimum(a, b) {
  const least = number(a) <= number(b) ? number(a) : number(b);
  return typeof a === "bigint" && typeof b === "bigint" ? least : new Dynamic(least);
}

const likeLeaf = (x, value) => (x instanceof Dynamic ? new Dynamic(value) : value);
const magnitude = (x) => likeLeaf(x, magnitudeOf(number(x)));
const signOf = (n) => (n > 0n ? 1n : n < 0n ? -1n : 0n);
const sign = (x) => likeLeaf(x, signOf(number(x)));

/** Equal, and known to be so at compile time. */
function same(a, b) {
  if (typeof a === "bigint" && typeof b === "bigint") return a === b;
  return isStatic(a) && isStatic(b) && a.constructor === b.constructor && equalLeaves(a, b);
}

/** Equal numbers at equal places, static or not. */
function equalLeaves(a, b) {
  if (a instanceof Basis || b instanceof Basis) {
    return a instanceof Basis && b instanceof Basis && samePath(a.path, b.path) && equalLeaves(a.value, b.value);
  }
  if (a instanceof Ratio || b instanceof Ratio) {
    return a instanceof Ratio && b instanceof Ratio && a.numerator === b.numerator && a.denominator === b.denominator;
  }
  return number(a) === number(b);
}

// ---- trees ----------------------------------------------------------------------------------------------------------

const leaves = (tree) => (Array.isArray(tree) ? tree.flatMap(leaves) : [tree]);
const modes = (tree) => (Array.isArray(tree) ? tree : [tree]);
const unwrap = (items) => (items.length === 1 ? items[0] : items);
const mapLeaves = (f, tree) => (Array.isArray(tree) ? tree.map((t) => mapLeaves(f, t)) : f(tree));
const atPath = (tree, path) => path.reduce((t, i) => (Array.isArray(t) ? t[i] : t), tree);

function congruent(a, b) {
  if (!Array.isArray(a) || !Array.isArray(b)) return !Array.isArray(a) && !Array.isArray(b);
  return a.length === b.length && a.every((x, i) => congruent(x, b[i]));
}

/** Modes [begin, end) as one mode. */
function grouped(tree, begin, end) {
  const parts = modes(tree);
  return begin === end ? tree : [...parts.slice(0, begin), parts.slice(begin, end), ...parts.slice(end)];
}

/** First halves and second halves of the pairs that lie where `guide` has its leaves. */
function zip2By(tree, guide) {
  if (!Array.isArray(guide)) return tree;
  const pairs = guide.map((g, i) => zip2By(tree[i], g));
  return [pairs.map((p) => p[0]), [...pairs.map((p) => p[1]), ...tree.slice(guide.length)]];
}

function leafText(x) {
  if (x instanceof Dynamic) return String(x.value);
  if (x instanceof Ratio) return `_${x.numerator}/_${x.denominator}`;
  if (x instanceof Basis)
    return (
      leafText(x.value) +
      [...x.path]
        .reverse()
        .map((i) => `@${i}`)
        .join("")
    );
  return typeof x === "bigint" ? `_${x}` : String(x);
}

const treeText = (tree) => (Array.isArray(tree) ? `(${tree.map(treeText).join(",")})` : leafText(tree));
