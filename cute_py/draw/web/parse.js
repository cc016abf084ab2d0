/* Reading and printing of what the page is given.

   cute_py/notation/parse.py, scan.py     parseText: layouts, trees, swizzles, unset shared pointers, composed layouts
   cute_py/layout/layout.py                  checkedLayout
   cute_py/layout/swizzle.py                 Swizzle

   C++ spellings (Int<4>{}, make_layout(...)), symbols, tensors and pointers with an address are not read here. */

const MAX_DEPTH = 64;

class Swizzle {
  constructor(bits, base, shift) {
    if (bits > magnitudeOf(shift)) fail("abs(SShift) must be more than BBits.");
    Object.assign(this, { bits, base, shift });
  }

  toString() {
    return `Sw<${this.bits},${this.base},${this.shift}>`;
  }
}

/** An unset shared pointer: `smem_ptr[16b](unset)`. */
class SmemFlag {
  constructor(bits) {
    this.bits = bits;
  }

  toString() {
    return `smem_ptr[${this.bits}b](unset)`;
  }
}

class Composed {
  constructor(outer, offset, inner) {
    Object.assign(this, { outer, offset, inner });
  }

  toString() {
    const offset = isInt(this.offset) ? leafText(this.offset) : this.offset;
    return `${this.outer} o ${offset} o ${this.inner}`;
  }
}

/** shape:stride, checked as Python's constructor checks it; `stride` is a tree, or "LayoutRight" or "LayoutLeft". */
function checkedLayout(shape, stride) {
  for (const s of leaves(shape)) {
    if (!isInt(s)) throw new Refusal("InvalidTypeError", `a shape holds integers, got ${treeText(s)}`);
    if (number(s) < 0n) throw new Refusal("InvalidValueError", `a size is ${number(s)}; must not be negative`);
  }
  for (const d of typeof stride === "string" ? [] : leaves(stride)) {
    if (!isInt(d) && !(d instanceof Basis))
      throw new Refusal("InvalidTypeError", `${treeText(d)} is no integer and no stride`);
  }
  if (stride === "LayoutLeft") return compact(shape);
  if (stride === "LayoutRight") return new Layout(shape, compactRight(shape)[0]);
  if (!congruent(shape, stride)) throw new Refusal("LayoutError", "shape and stride must be congruent");
  return new Layout(shape, stride);
}

/** A cursor over the text; every method reads on or refuses. */
class Reader {
  constructor(text) {
    this.text = text;
    this.at = 0;
    this.depth = 0;
  }

  refuse(expected) {
    throw new Refusal("ParseError", `at position ${this.at}: ${expected}`);
  }

  found(pattern) {
    pattern.lastIndex = this.at;
    const match = pattern.exec(this.text);
    if (match) this.at += match[0].length;
    return match;
  }

  expression() {
    const parts = [this.part()];
    while (this.found(/\s+o\s+/y)) parts.push(this.part());
    return this.joined(parts);
  }

  /** Right to left: outer o offset o inner. */
  joined(parts) {
    if (parts.length === 1) return parts[0];
    if (Array.isArray(parts[0]) || isInt(parts[0])) throw new NotCovered("coordinate tensors");
    if (parts.length % 2 === 0) this.refuse("a composed layout has three parts: outer o offset o inner");
    const [outer, offset, ...inner] = parts;
    if (Array.isArray(offset)) throw new NotCovered("composed layouts with a coordinate between");
    if (!(offset instanceof SmemFlag || isInt(offset))) {
      this.refuse(`the offset between two functions is an integer, got ${offset}`);
    }
    return new Composed(outer, offset, this.joined(inner));
  }

  part() {
    this.found(/\s*/y);
    const begin = this.at;
    const swizzle = this.found(
      /(?:Sw|S|Swizzle)<\s*(\d+)\s*,\s*(\d+)\s*,\s*(-?\d+)\s*>(?:\{\})?|SW_(\d+)_(\d+)_(-?\d+)/y,
    );
    if (swizzle && /^_(?:gmem_|smem_)?(?:sub)?ptr\[/.test(this.text.slice(this.at))) {
      throw new NotCovered("tensors and pointers with an address");
    }
    if (swizzle)
      return this.built(
        () =>
          new Swizzle(
            ...swizzle
              .slice(swizzle[1] ? 1 : 4)
              .slice(0, 3)
              .map(BigInt),
          ),
        begin,
      );
    const flag = this.found(/smem_ptr\[(\d+)b\]\(unset\)/y);
    if (flag) return new SmemFlag(BigInt(flag[1]));
    if (/^(?:gmem_|smem_|)(?:sub)?ptr\[|^tmem_|^counting_iter|^ArithTuple|^tensor</.test(this.text.slice(this.at))) {
      throw new NotCovered("tensors and pointers with an address");
    }
    if (/^(?:make_|Layout<|Shape<|Stride<|Coord<|Tile<|Step<|tuple<|Int<|C<|E<|R<)/.test(this.text.slice(this.at))) {
      throw new NotCovered("C++ spellings such as Int<4>{} and make_layout(...)");
    }
    const shape = this.tree();
    if (!this.found(/\s*:\s*/y)) return shape;
    const major = this.found(/(?:Gen(Col|Row)Major|Layout(Left|Right))(?:\{\})?/y);
    const stride = major ? (major[1] === "Row" || major[2] === "Right" ? "LayoutRight" : "LayoutLeft") : this.tree();
    return this.built(() => checkedLayout(shape, stride), begin);
  }

  /** What `make` gives; its refusal becomes one of the text, at `begin`. */
  built(make, begin) {
    try {
      return make();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.at = begin;
      return this.refuse(error.message);
    }
  }

  tree() {
    if (!this.found(/\(/y)) return this.leaf();
    if (++this.depth > MAX_DEPTH) this.refuse(`nested deeper than ${MAX_DEPTH} brackets`);
    const items = [];
    this.found(/\s*/y);
    while (!this.found(/\)/y)) {
      if (items.length) {
        if (!this.found(/,\s*/y)) this.refuse("expected ',' or ')'");
        if (this.found(/\)/y)) break;
      }
      if (this.at >= this.text.length) this.refuse("expected ')'");
      items.push(this.expression());
      this.found(/\s*/y);
    }
    this.depth--;
    return items;
  }

  leaf() {
    if (this.found(/_(?![\w-])(?:\{\})?|None/y)) return WHOLE;
    const word = this.found(/(_?)(-?\d{1,4000})(?:\{\})?(?![\w.{<]|\s*[*/+%-])/y);
    if (!word) this.strange();
    const value = word[1] ? BigInt(word[2]) : new Dynamic(BigInt(word[2]));
    const path = [];
    for (let mode = this.found(/@(\d+)/y); mode; mode = this.found(/@(\d+)/y)) path.unshift(Number(mode[1]));
    if (this.text[this.at] === "@") this.refuse("expected the number of a mode after @");
    return path.length ? new Basis(value, path) : value;
  }

  /** No number: say what it is, if it is something that Python reads. */
  strange() {
    const word = /^[^,:()]*/.exec(this.text.slice(this.at))[0].trim();
    if (!word) this.refuse("expected a number, found nothing");
    if (/[-+*/%]$/.test(word) && this.text[this.at + word.length] === "(")
      throw new NotCovered("symbols and arithmetic such as 2*K");
    if (/^[-+]?\d*\.\d/.test(word)) this.refuse(`${word} is no integer`);
    if (word.startsWith("?")) this.refuse(`${word} is a number that the DSL knows only at run time`);
    if (/^_-?\d+\/_\d+$/.test(word)) throw new NotCovered("ratios");
    if (/^-?(?:\d[\d_]*|[A-Za-z]\w*)(?:\s*(?:\*\*|\/\/|[-+*/%])\s*-?(?:\d[\d_]*|[A-Za-z]\w*))*$/.test(word)) {
      throw new NotCovered("symbols and arithmetic such as 2*K");
    }
    this.refuse(`'${word.slice(0, 40)}' is no number`);
  }
}

/** The layout, composed layout, swizzle, tree or number that a text shows. */
function parseText(text) {
  if (text.length > FACTS.max_text) {
    throw new Refusal("InvalidValueError", `a text of ${text.length} characters; must be at most ${FACTS.max_text}`);
  }
  if (/@\d{3}/.test(text))
    throw new Refusal("InvalidValueError", "a basis element names a mode above 99; no layout here has so many");
  const reader = new Reader(text);
  const result = reader.expression();
  reader.found(/\s*/y);
  if (reader.at < text.length) reader.refuse("expected the end of the text");
  return result;
}

/** Every run-time number made static. */
function staticTree(thing) {
  if (thing instanceof Layout) return new Layout(staticTree(thing.shape), staticTree(thing.stride));
  if (thing instanceof Basis) return thing;
  return Array.isArray(thing) ? thing.map(staticTree) : thing instanceof Dynamic ? thing.value : thing;
}
