// Open pages of the built site in Chromium: node site_browser.mjs PLAYWRIGHT CHROMIUM URL PLAN.json
// PLAN: {"widths": [1280], "pages": [""]} prints a line of JSON for each block that is too wide;
// {"shots": FOLDER, "pages": {name: path}, "widths": [...]} writes NAME-WIDTH-light.png and NAME-WIDTH-dark.png.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [playwright, program, url, planFile] = process.argv.slice(2);
const { chromium } = await import(pathToFileURL(`${playwright}/index.mjs`));
const plan = JSON.parse(readFileSync(planFile, "utf8"));
const browser = await chromium.launch({ executablePath: program, args: process.getuid?.() === 0 ? ["--no-sandbox"] : [] });

// code and tables must not scroll; a picture may, by itself; and the page never scrolls sideways
const wideBlocks = () => {
  const found = [];
  const told = (kind, node, box) => found.push([kind, box.scrollWidth, box.clientWidth, node.textContent.replace(/\s+/g, " ").slice(0, 80)]);
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) told("page", document.querySelector("h1") ?? root, root);
  for (const code of document.querySelectorAll(".md-content pre, .md-content pre > code")) {
    if (code.scrollWidth > code.clientWidth + 1) told("code", code, code);
  }
  for (const table of document.querySelectorAll(".md-content table:not(.highlighttable)")) {
    const box = table.closest(".md-typeset__scrollwrap") ?? table.parentElement;
    if (Math.max(box.scrollWidth, table.scrollWidth) > box.clientWidth + 1) told("table", table, box);
  }
  for (const picture of document.querySelectorAll(".md-content svg.cute")) {
    const box = picture.closest(".picture") ?? picture.parentElement;
    if (picture.getBoundingClientRect().width > box.clientWidth + 1 && getComputedStyle(box).overflowX !== "auto") told("picture", picture, box);
  }
  return found;
};

if (plan.shots) {
  for (const theme of ["light", "dark"]) {
    for (const width of plan.widths) {
      const page = await browser.newPage({ viewport: { width, height: width < 500 ? 844 : 900 }, colorScheme: theme });
      for (const [name, path] of Object.entries(plan.pages)) {
        await page.goto(url + path, { waitUntil: "load" });
        await page.addStyleTag({ content: "* { transition: none !important }" }); // tabs fade when a page is long
        await page.waitForTimeout(name === "playground" ? 3000 : 300);
        await page.screenshot({ path: `${plan.shots}/${name}-${width}-${theme}.png`, fullPage: name !== "reference" });
      }
      await page.close();
    }
  }
} else {
  const page = await browser.newPage();
  for (const path of plan.pages) {
    await page.setViewportSize({ width: plan.widths[0], height: 900 });
    await page.goto(url + path, { waitUntil: "load" });
    await page.waitForSelector(".md-content");
    await page.addStyleTag({ content: "* { transition: none !important }" });
    for (const width of plan.widths) {
      await page.setViewportSize({ width, height: 900 });
      for (const row of await page.evaluate(wideBlocks)) console.log(JSON.stringify([path, width, ...row]));
    }
  }
}
await browser.close();
