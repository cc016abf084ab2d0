// Type into the page in Chromium: node browser.mjs PLAYWRIGHT CHROMIUM URL INPUTS.json FOLDER served|static
// Prints one line of JSON: what the page showed for each input, times, and what it did.
import { readFileSync, mkdirSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [playwright, program, url, inputs, folder, mode] = process.argv.slice(2);
const { chromium } = await import(pathToFileURL(`${playwright}/index.mjs`));
const rows = JSON.parse(readFileSync(inputs, "utf8"));
mkdirSync(folder, { recursive: true });
const options = { executablePath: program, args: process.getuid?.() === 0 ? ["--no-sandbox"] : [] };
const browser = await chromium.launch(options);
const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, acceptDownloads: true });
const page = await context.newPage();
const troubles = [];
const asked = new Set();
page.on("console", (message) => message.type() === "error" && troubles.push(message.text()));
page.on("pageerror", (error) => troubles.push(String(error)));
page.on("request", (request) => asked.add(request.url().split(/[?#]/)[0].slice(0, 80)));
page.on("dialog", (dialog) => {
  troubles.push(`dialog: ${dialog.message()}`);
  dialog.dismiss();
});

await page.goto(url);
const out = { answers: [], paint: 0, times: null };
out.paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0);
out.first = await page.textContent("#verdict");
if (mode === "static") {
  await page.waitForFunction(() => document.body.dataset.python === "ready", null, { timeout: 240_000 });
  out.times = JSON.parse(await page.evaluate(() => document.body.dataset.times));
  await page.waitForFunction(() => document.body.dataset.tabs === "loaded", null, { timeout: 240_000 });
  const begin = Date.now();
  await page.click("#tabs [data-tab=tma]");
  await page.waitForFunction(() => !waiting && !queued);
  out.opened = Date.now() - begin;
  await page.click("#tabs [data-tab=layout]");
}

const shown = () => page.waitForFunction(() => document.body.dataset.state === "shown", null, { timeout: 120_000 });

async function type(tab, values) {
  await page.click(`#tabs [data-tab=${tab}]`);
  await shown();
  for (const [name, value] of Object.entries(values)) {
    await page.waitForSelector(`#${name}`, { state: "visible" });
    const field = page.locator(`#${name}`);
    const kind = await field.evaluate((node) => (node.tagName === "SELECT" ? "select" : node.type));
    await page.evaluate(() => delete document.body.dataset.state);
    if (kind === "select") await field.selectOption(value);
    else if (kind === "checkbox") await field.setChecked(value === "1");
    else await field.fill(value);
    await shown();
  }
}

for (const [tab, values] of rows) {
  const begin = Date.now();
  await type(tab, values);
  out.answers.push({
    tab,
    verdict: [await page.getAttribute("#verdict", "class"), await page.textContent("#verdict")],
    problems: await page.$$eval("#problems strong", (nodes) => nodes.map((node) => node.textContent)),
    sections: await page.$$eval("#sections section h2", (nodes) => nodes.map((node) => node.textContent)),
    cells: await page.$$eval("#sections g.c", (nodes) => nodes.length),
    code: await page.$$eval("#languages button", (nodes) => nodes.map((node) => node.textContent)),
    listing: await page.textContent("#listing"),
    steps: await page.$$eval("#s-steps ol > li", (nodes) => nodes.map((node) => node.textContent)),
    images: await page.$$eval("#sections img, #problems img, #sections b", (nodes) => nodes.length),
    ms: Date.now() - begin,
  });
}

// the examples of the list, and the code in every language
out.examples = [];
out.listings = {};
for (const tab of ["layout", "banks", "threads", "tma", "formats", "explain"]) {
  await type(tab, {});
  await page.evaluate(() => delete document.body.dataset.state);
  await page.locator("#examples").selectOption("1");
  await shown();
  out.examples.push([tab, await page.textContent("#verdict")]);
  const languages = page.locator("#languages button");
  for (let i = 0; i < (await languages.count()); i++) {
    await languages.nth(i).click();
    (out.listings[tab] ??= {})[await languages.nth(i).textContent()] = await page.textContent("#listing");
  }
}

// tabs by the keyboard
await type("layout", {});
await page.locator("#tabs [data-tab=layout]").focus();
await page.keyboard.press("ArrowRight");
await shown();
out.keyed = await page.evaluate(() => [document.activeElement.dataset.tab, location.hash]);

// an address from elsewhere is text
await page.evaluate(() => {
  delete document.body.dataset.state;
  location.hash = new URLSearchParams({ tab: "layout", layout: "<img src=x onerror=alert(1)>", op: "<b>" }).toString();
});
await shown();
out.hostile = await page.evaluate(() => [byId("layout").value, document.querySelectorAll("img, #verdict *").length]);

// a link that was copied
if (mode === "served") {
  await type("layout", { layout: "(6,7):(7,1)", op: "coalesce" });
  await page.click("#share");
  const other = await context.newPage();
  await other.goto(page.url());
  await other.waitForFunction(() => document.body.dataset.state === "shown");
  out.shared = [await page.textContent("#verdict"), await other.textContent("#verdict"), await page.textContent("#shared")];
  await other.close();
}

// a fix, the address, back and forward
await type("tma", { gmem: "(256,100):(100,_1)", smem: "(_64,_32):(_32,_1)" });
await page.waitForSelector("#problems button.fix", { timeout: 60_000 });
const before = page.url();
await page.evaluate(() => delete document.body.dataset.state);
await page.click("#problems button.fix");
await shown();
out.fixed = await page.textContent("#verdict");
out.moved = page.url() !== before;
await page.goBack();
await page.waitForTimeout(300);
await shown();
out.back = [page.url() === before, await page.inputValue("#gmem")];
await page.goForward();
await page.waitForTimeout(300);
await shown();
out.forward = await page.textContent("#verdict");

// a cell by mouse and by keys, downloads
await type("threads", {});
await page.locator("#s-picture g.c").nth(40).click();
out.told = await page.textContent("#s-picture .cell-text");
out.same = await page.$$eval("#s-picture g.c.same", (nodes) => nodes.length);
await page.locator("#s-picture svg").focus();
await page.keyboard.press("ArrowDown");
out.below = await page.textContent("#s-picture .cell-text");
out.downloads = [];
for (const kind of ["SVG", "PNG"]) {
  const [file] = await Promise.all([page.waitForEvent("download"), page.locator("#s-picture .tools button", { hasText: kind }).click()]);
  out.downloads.push([file.suggestedFilename(), readFileSync(await file.path()).subarray(0, 4).toString("latin1")]);
}

// a picture that is wider than its column, as it is and as it is drawn
await page.setViewportSize({ width: 1300, height: 900 });
await type("threads", { atoms: "(2,1,1)" });
out.shrunk = await page.evaluate(() => {
  const svg = document.querySelector("#s-picture svg");
  const box = svg.closest(".scroll");
  return [Number(svg.getAttribute("width")), svg.clientWidth, box.clientWidth, box.scrollWidth];
});

// the first cells of a large answer, and then all
out.parts = await page.evaluate(async () => {
  const counts = () => ["#sections g.c", ".tools button:disabled"].map((what) => document.querySelectorAll(what).length);
  const until = async (...states) => {
    while (!states.includes(document.body.dataset.state)) await new Promise(requestAnimationFrame);
    return counts();
  };
  delete document.body.dataset.state;
  change({ atoms: "(1,2,1)" });
  return [await until("seen", "shown"), await until("shown")];
});

// sizes and colours
out.places = {};
for (const dark of [false, true]) {
  await page.emulateMedia({ colorScheme: dark ? "dark" : "light" });
  for (const [width, height] of [[1440, 900], [768, 1024], [390, 844]]) {
    await page.setViewportSize({ width, height });
    for (const tab of ["layout", "banks", "threads", "tma", "formats", "explain"]) {
      if (dark && !["threads", "tma"].includes(tab)) continue;
      await type(tab, {});
      await page.evaluate(() => scrollTo(0, 0));
      const box = await page.locator("#verdict").boundingBox();
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      out.places[`${tab}-${width}${dark ? "-dark" : ""}`] = [box.y + box.height, height, wide, width];
      await page.screenshot({ path: `${folder}/${mode}-${tab}-${width}${dark ? "-dark" : ""}.png` });
    }
  }
}
// an answer that takes too long is ended, and Python starts anew
if (mode === "static") {
  await page.evaluate(() => {
    limitMs = 1;
    delete document.body.dataset.python;
    go("banks", { layout: "(64,64):(65,1)", dtype: "float32", access: "column" }, true); // takes some tenths of a second
  });
  await page.waitForFunction(() => document.getElementById("verdict").textContent.includes("was ended"));
  out.ended = await page.textContent("#verdict");
  await page.evaluate(() => (limitMs = 60_000));
  await page.waitForFunction(() => document.body.dataset.python === "ready", null, { timeout: 240_000 });
  await type("layout", { layout: "(3,5):(5,1)" });
  out.after = await page.textContent("#verdict");
}
out.troubles = [...troubles];
// the policy: no script of a text, no evaluation, no other host
out.policy = await page.evaluate(async () => {
  const script = document.createElement("script");
  script.textContent = "window.ran = true";
  document.body.append(script);
  const evaluate = () => {
    try {
      return new Function("return true")();
    } catch {
      return false;
    }
  };
  const evaluated = await new Promise((done) => setTimeout(() => done(evaluate()))); // within this call it is allowed
  const fetched = await fetch("https://example.invalid/").then(() => true, () => false);
  await new Promise((done) => setTimeout(done, 50));
  return { ran: window.ran === true, evaluated, fetched };
});
out.blocked = troubles.slice(out.troubles.length).filter((text) => text.includes("Content Security Policy")).length;
out.asked = [...asked];
await browser.close();
console.log(JSON.stringify(out));
