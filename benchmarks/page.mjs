// The playground in Chromium, timed: node page.mjs CONFIGURATION.json; prints one line of JSON. benchmarks/page.py runs it.
import { createReadStream, existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";

const { playwright, chromium: executablePath, file, served, pyodide, inputs, boots, rounds } = JSON.parse(
  readFileSync(process.argv[2], "utf8"),
);
const { chromium } = await import(pathToFileURL(`${playwright}/index.mjs`));
const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];

// Pyodide alone: its own loader in a worker, from a server of this machine.
const BARE = `
import { loadPyodide } from "./pyodide.mjs";
loadPyodide({ indexURL: location.origin + "/" }).then(() => postMessage(performance.now()), (e) => postMessage(String(e)));
`;
const PAGE = `<!doctype html><script>new Worker("bare.js", { type: "module" }).onmessage = ({ data }) => { window.booted = data; };</script>`;
const TYPES = { js: "text/javascript", mjs: "text/javascript", wasm: "application/wasm", zip: "application/zip" };
const server = createServer((request, reply) => {
  const name = request.url.slice(1);
  const made = { "": ["text/html", PAGE], "bare.js": ["text/javascript", BARE], "favicon.ico": ["image/x-icon", ""] }[name];
  if (made) return reply.writeHead(200, { "Content-Type": made[0] }).end(made[1]);
  const path = `${pyodide}/${name}`;
  if (!/^[\w.-]+$/.test(name) || !existsSync(path)) return reply.writeHead(404).end();
  reply.writeHead(200, { "Content-Type": TYPES[name.split(".").pop()] ?? "text/plain" });
  createReadStream(path).pipe(reply);
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));

/** Run `work` with a page of a browser that was started for it, without anything that an earlier one kept. */
async function inBrowser(work) {
  const browser = await chromium.launch({ executablePath, args });
  try {
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
    return await work(await context.newPage());
  } finally {
    await browser.close();
  }
}

const bareBoot = () =>
  inBrowser(async (page) => {
    page.on("console", (message) => message.type() === "error" && console.error(message.text()));
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    await page.waitForFunction(() => window.booted !== undefined, null, { timeout: 240_000 });
    return page.evaluate(() => window.booted);
  });

const painted = (page) =>
  page.evaluate(
    () =>
      new Promise((done) => {
        const told = (list) => list.find((entry) => entry.name === "first-contentful-paint")?.startTime;
        const now = told(performance.getEntriesByType("paint"));
        if (now !== undefined) return done(now);
        new PerformanceObserver((list) => told(list.getEntries()) !== undefined && done(told(list.getEntries()))).observe({
          type: "paint",
          buffered: true,
        });
      }),
  );

const booted = (page) => page.waitForFunction(() => document.body.dataset.python === "ready", null, { timeout: 240_000 });
const idle = (page) =>
  page.waitForFunction(() => document.body.dataset.state === "shown" && !waiting && !queued, null, { timeout: 60_000 });

/** Type a row of the inputs; milliseconds from the last key to the frame that shows the answer, and to the frame that
    has the last cell of its pictures. */
function typed(page, [tab, values]) {
  return page.evaluate(
    async ([tab, values]) => {
      const names = Object.keys(values);
      const last = names.pop() ?? Object.keys(TABS[tab].defaults)[0];
      for (const name of names) setValue(byId(name), values[name]);
      setValue(byId(last), values[last] ?? TABS[tab].defaults[last]);
      delete document.body.dataset.state;
      const begin = performance.now();
      const frame = () => new Promise((done) => requestAnimationFrame(() => done()));
      const state = (...words) => words.includes(document.body.dataset.state);
      // asked before the page asks for its frames, so that what the page does after this frame is not counted
      const watched = (async () => {
        while (!state("seen", "shown")) await frame();
        await new Promise((done) => setTimeout(done));
        return performance.now() - begin;
      })();
      byId(last).dispatchEvent(new Event("input", { bubbles: true }));
      const seen = await watched;
      while (!state("shown")) await frame();
      await new Promise((done) => setTimeout(done));
      return [seen, performance.now() - begin];
    },
    [tab, values],
  );
}

/** Go to a tab; milliseconds until its answer is shown, and until Python has answered too. */
async function opened(page, tab) {
  const begin = Date.now();
  await page.evaluate((name) => {
    delete document.body.dataset.state;
    go(name, {}, true);
  }, tab);
  await page.waitForFunction(() => document.body.dataset.state === "shown", null, { timeout: 60_000 });
  const shown = Date.now() - begin;
  await idle(page);
  return [shown, Date.now() - begin];
}

async function answers(page) {
  const out = { opened: {}, rows: inputs.map(() => []) };
  for (let round = 0; round < rounds; round++) {
    for (const [i, row] of inputs.entries()) {
      const took = await opened(page, row[0]);
      if (round === 0) out.opened[row[0]] ??= took;
      out.rows[i].push(await typed(page, row));
      await idle(page);
    }
  }
  return out;
}

const out = { bare: [], boots: [], static: null, served: null };
await bareBoot(); // the files are read once before anything is timed
for (let i = 0; i < boots; i++) {
  out.bare.push(await bareBoot());
  await inBrowser(async (page) => {
    await page.goto(pathToFileURL(file).href);
    const paint = await painted(page);
    await booted(page);
    const ready = await page.evaluate(() => performance.now());
    const [first] = await typed(page, ["layout", { layout: "(4,8):(8,1)" }]);
    out.boots.push({ paint, ready, first, ...JSON.parse(await page.evaluate(() => document.body.dataset.times)) });
    if (i === boots - 1) out.static = await answers(page);
  });
}
out.served = await inBrowser(async (page) => {
  await page.goto(served);
  await idle(page);
  return answers(page);
});
server.close();
process.stdout.write(`${JSON.stringify(out)}\n`, () => process.exit(0));
