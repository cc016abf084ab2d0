/* Python in a worker: the interpreter and the library come with the page, and nothing is fetched.
   A message {boot} starts it, a message {id, query} asks cute_py.page.answer; every answer carries its id. */

const HOME = "https://packed.invalid/"; // never asked: `fetch` below has the two files
let python = null;

function bytesOf(text) {
  const plain = atob(text);
  const out = new Uint8Array(plain.length);
  for (let i = 0; i < plain.length; i++) out[i] = plain.charCodeAt(i);
  return out;
}

async function unpacked(text) {
  const stream = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const tell = (part, words) => postMessage({ part, words });

/** Run a script. A page that is a file has no modules of its own (they need an origin), so scripts are classic ones. */
function run(text) {
  importScripts(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
}

/** The glue of the interpreter is a module with one export and no imports: the same as a script. */
function scriptOf(bytes) {
  return new TextDecoder()
    .decode(bytes)
    .replaceAll("import.meta.url", JSON.stringify(`${HOME}pyodide.asm.mjs`))
    .replace(/export default (\w+);?\s*$/, "self.createPyodideModule = $1;");
}

async function boot(packed) {
  const begin = performance.now();
  tell(0.05, "unpacking the interpreter");
  const names = ["wasm", "stdlib", "library", "loader", "glue"];
  const [wasm, stdlib, library, loader, glue] = await Promise.all(names.map((name) => unpacked(packed[name])));
  const files = { "pyodide.asm.wasm": [wasm, "application/wasm"], "python_stdlib.zip": [stdlib, "application/zip"] };
  self.fetch = async (url) => {
    const [body, type] = files[String(url).split("/").pop()] ?? [];
    return body ? new Response(body, { headers: { "Content-Type": type } }) : Response.error();
  };
  tell(0.2, "starting Python");
  run(loader);
  run(scriptOf(glue));
  self.importScripts = undefined; // the loader takes a worker that has it for one that can't import modules
  const started = performance.now();
  python = await loadPyodide({ indexURL: HOME, lockFileContents: packed.lock, createPyodideModule: self.createPyodideModule });
  const booted = performance.now();
  tell(0.75, "loading cute_py");
  python.FS.writeFile("/library.zip", library);
  python.runPython(`
import sys
sys.path.insert(0, "/library.zip")
import importlib, json
from cute_py.page.answer import answer_page
from cute_py.page.forms import TABS
from cute_py.errors import CuteError

def load(tab):
    if tab in TABS:
        importlib.import_module("cute_py.page." + TABS[tab].module)

def ask(text):
    try:
        return json.dumps(answer_page(json.loads(text)))
    except CuteError as error:
        return json.dumps({"refused": str(error)})
`);
  const times = { unpack: started - begin, boot: booted - started, library: performance.now() - booted, since: booted };
  postMessage({ part: 1, words: "", times });
}

onmessage = async ({ data }) => {
  try {
    if (data.boot) return await boot(data.boot);
    python.globals.get("load")(data.query.tab);
    postMessage({ started: data.id });
    const begin = performance.now();
    const answer = JSON.parse(python.globals.get("ask")(JSON.stringify(data.query)));
    postMessage({ id: data.id, answer, time: performance.now() - begin });
  } catch (error) {
    postMessage({ id: data.id, failed: String(error.message ?? error).split("\n").slice(-3).join(" ") });
  }
};
