/* Tensor maps of tiles: rules, bits, what is legal and may surprise. All limits, positions and words are FACTS.

   cute_py/tma/descriptor/violations.py, limits.py              violations
   cute_py/tma/descriptor/encode.py, fields.py                  encode
   cute_py/tma/descriptor/describe.py                           fieldTable
   cute_py/tma/descriptor/hazards.py                            hazards

   A request is {format, address, dims, strides, box, swizzle}: no interleave, element strides 1, zeros for fill. */

const archRow = (name) => FACTS.architectures.find((row) => row.name === name.replace(/[af]$/, ""));
const product = (numbers) => numbers.reduce((a, b) => a * b, 1n);

/** Broken rules, as {rule, argument, message, mode}. */
function violations(request, arch) {
  const gpu = archRow(arch);
  const bits = BigInt(FACTS.formats[request.format].bits);
  const found = [];
  const broken = (rule, argument, value, mode = null, detail = "", requirement = null) => {
    const row = FACTS.rules[rule];
    const unit = row.unit ? ` ${row.unit}` : "";
    const how = detail ? ` (${detail})` : "";
    const message = `${argument} = ${value}${unit}${how}; must ${requirement ?? row.requirement}`;
    found.push({ rule, argument, message, mode, source: row.source });
  };
  const range = (rule, argument, value, mode) => {
    const row = FACTS.rules[rule];
    if (value < BigInt(row.minimum) || value > BigInt(row.maximum)) broken(rule, argument, value, mode);
  };
  const multiple = (rule, argument, value, mode) => {
    if (value % BigInt(FACTS.rules[rule].multiple)) broken(rule, argument, value, mode);
  };
  const known = request.swizzle <= Number(FACTS.rules.swizzle.maximum) || gpu.swizzles.includes(request.swizzle);
  if (!known) broken("swizzle", "swizzle", request.swizzle, null, "", gpu.swizzle_requirement);
  multiple("address_alignment", "globalAddress", request.address);
  range("address_range", "globalAddress", request.address);
  request.dims.forEach((n, i) => range("size", `globalDim[${i}]`, n, i));
  request.strides.forEach((n, i) => {
    multiple("stride_alignment", `globalStrides[${i}]`, n, i + 1);
    range("stride_range", `globalStrides[${i}]`, n, i + 1);
  });
  request.box.forEach((n, i) => range("box", `boxDim[${i}]`, n, i));
  const row = request.box[0] * bits;
  if (request.box[0] > 0n) {
    const name = "boxDim[0] in bytes";
    if (row % (8n * BigInt(FACTS.rules.inner_bytes.multiple))) {
      broken("inner_bytes", name, row / 8n, 0, `${request.box[0]} elements x ${bits} bits`);
    }
    const span =
      FACTS.swizzle_span[request.swizzle] ?? (gpu.swizzles.includes(request.swizzle) ? FACTS.atom_span : null);
    if (span && row > 8n * BigInt(span)) {
      broken("inner_span", name, row / 8n, 0, "", `be at most ${span} with swizzle ${span}B`);
    }
  }
  const size = bits * product(request.box);
  if (size > 8n * BigInt(gpu.shared_memory_bytes)) {
    const limit = `be at most ${gpu.block_shared_memory_bytes}, the shared memory of a block on ${gpu.name}`;
    broken("box_bytes", "bytes of the box", size / 8n, null, "", limit);
  }
  return found;
}

/** What has no known bits in such a request, or null. */
function unknownAddition(request) {
  return FACTS.additions.find((row) => row.field === "swizzle" && row.numbers.includes(request.swizzle)) ?? null;
}

/** The map as one 1024-bit number, bit 0 first. */
function encode(request) {
  const format = FACTS.formats[request.format];
  const values = {
    global_address: request.address,
    rank: BigInt(request.dims.length - 1),
    format: BigInt(format.code),
    tf32_round: BigInt(format.tf32_round),
    swizzle: BigInt(request.swizzle),
    l2_promotion: BigInt(FACTS.l2_promotion),
    note_box_bytes: BigInt(format.bits >> 3) * product(request.box),
    note_smem_alignment: BigInt(FACTS.note_alignment[request.swizzle]),
  };
  request.dims.forEach((n, i) => (values[`global_dim[${i}]`] = n - 1n));
  request.box.forEach((n, i) => (values[`box_dim[${i}]`] = n - 1n));
  request.strides.forEach((n, i) => {
    values[`global_stride_low[${i + 1}]`] = (n >> 4n) & 0xffffffffn;
    values[`global_stride_high[${i + 1}]`] = n >> 36n;
  });
  return FACTS.fields.reduce((map, row) => map | ((values[row.label] ?? 0n) << BigInt(row.position)), 0n);
}

const hexOf = (map, bytes) =>
  Array.from({ length: bytes }, (_, i) => ((map >> BigInt(8 * i)) & 255n).toString(16).padStart(2, "0")).join("");

const readField = (row, map) => (map >> BigInt(row.position)) & ((1n << BigInt(row.width)) - 1n);

/** [label, where, raw value, value, unit, meaning] of the fields of a tiled map, lowest bit first, notes left out. */
function fieldTable(map) {
  const byLabel = Object.fromEntries(FACTS.fields.map((row) => [row.label, row]));
  const rank = Number(readField(byLabel.rank, map)) + 1;
  const limit = 8 * FACTS.payload_bytes;
  const live = FACTS.fields.filter((row) => row.kinds !== "im2col" && row.position < limit && (row.mode ?? 0) < rank);
  return [...live]
    .sort((a, b) => a.position - b.position)
    .map((row) => {
      const raw = readField(row, map);
      const [shift, word] = [row.position % 64, Math.floor(row.position / 64)];
      const where = row.width === 1 ? `w${word}[${shift}]` : `w${word}[${shift}:${shift + row.width - 1}]`;
      let [value, meaning] = [raw, ""];
      if (FACTS.names[row.name]) meaning = FACTS.names[row.name][raw] ?? "unknown";
      else if (row.name === "format") meaning = formatName(raw, readField(byLabel.tf32_round, map));
      else if (row.name === "load_mode") meaning = raw ? "im2col" : "tiled";
      else if (row.name === "global_stride_low") {
        const high = readField(byLabel[`global_stride_high[${row.mode}]`], map);
        meaning = `stride ${(raw | (high << 32n)) << 4n} bytes`;
      } else if (row.encoding.endsWith(" - 1")) value = raw + 1n;
      return [row.label, where, jsonNumber(raw), jsonNumber(value), row.unit, meaning];
    });
}

function formatName(code, tf32) {
  const named = (flag) => FACTS.formats.find((row) => row.code === Number(code) && row.tf32_round === Number(flag));
  return (named(tf32) ?? named(0)).name;
}

/** An integer for JSON: a number where it is exact, else its digits. */
const jsonNumber = (n) => (n >= -(2n ** 53n) && n <= 2n ** 53n ? Number(n) : String(n));

/** [name, values, effect] of what the driver accepts and may surprise. */
function hazards(request) {
  const width = BigInt(FACTS.formats[request.format].bits) / 8n;
  const list = (items) => items.join(", ") || null;
  const rowBytes = request.dims[0] * width;
  const span = FACTS.swizzle_span[request.swizzle];
  let reach = rowBytes;
  const overlap = request.strides
    .map((stride, i) => [stride, i])
    .filter(([stride, i]) => stride && request.dims[i + 1] > 1n)
    .sort(([a, i], [b, j]) => (a < b ? -1 : a > b ? 1 : i - j))
    .flatMap(([stride, i]) => {
      const text = stride < reach ? [`globalStrides[${i}] = ${stride} < ${reach} bytes`] : [];
      reach += (request.dims[i + 1] - 1n) * stride;
      return text;
    });
  const found = {
    "null address": request.address === 0n ? "globalAddress = 0" : null,
    "ragged rows": rowBytes % 16n ? `rows of ${rowBytes} bytes` : null,
    "box beyond tensor": list(
      request.box.flatMap((b, i) => (b > request.dims[i] ? [`boxDim[${i}] = ${b} > ${request.dims[i]}`] : [])),
    ),
    "stride 0": list(
      request.strides.flatMap((d, i) => (d === 0n && request.dims[i + 1] > 1n ? [`globalStrides[${i}] = 0`] : [])),
    ),
    overlap: list(overlap),
    "tf32 rounding": FACTS.formats[request.format].tf32_round ? FACTS.formats[request.format].name : null,
    "row gap":
      span && request.box[0] * width < BigInt(span) ? `rows of ${request.box[0] * width} bytes, ${span} apart` : null,
    coordinates: list(request.dims.flatMap((n, i) => (n > 1n << 31n ? [`globalDim[${i}] = ${n}`] : []))),
  };
  return FACTS.hazards.flatMap(({ name, effect }) => (found[name] ? [[name, found[name], effect]] : []));
}
