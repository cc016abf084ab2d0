/* Python in a worker: the interpreter and the library come with the page, and nothing is fetched.
   A message {boot} starts it, a message {id, query} asks cute_py.page.answer; every answer, as JSON, carries its id. */

const HOME = "https://packed.invalid/"; // never asked: `fetch` below has the two files
const IDLE_MS = 300; // after an answer
const STEP_MS = 5; // between two steps, so that a question comes first
let python = null;
let idle = 0;
let loaded = false; // all tabs

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

def steps():
    try:
        modules = sys.path_importer_cache["/library.zip"].get_data("later.txt").decode().split()
    except OSError:  # the page was made without node
        modules = []
    for name in modules:
        importlib.import_module(name)
        yield True
    for tab in TABS.values():
        for _, inputs in (tab.examples[0], tab.examples[-1]):
            answer_page({"tab": tab.name, "inputs": inputs})
            yield True

left = steps()
`);
  const times = { unpack: started - begin, boot: booted - started, library: performance.now() - booted, since: booted };
  postMessage({ part: 1, words: "", times });
}

/** Load what the other tabs need, a little at a time, while nothing is asked. */
function prepare() {
  try {
    loaded = !python.runPython("next(left, False)");
  } catch {
    loaded = true; // the question that needs it will have the error
  }
  if (loaded) postMessage({ loaded });
  else idle = setTimeout(prepare, STEP_MS);
}

onmessage = async ({ data }) => {
  clearTimeout(idle);
  try {
    if (data.boot) await boot(data.boot);
    else answer(data);
  } catch (error) {
    postMessage({ id: data.id, failed: String(error.message ?? error).split("\n").slice(-3).join(" ") });
  }
  if (python && !loaded) idle = setTimeout(prepare, IDLE_MS);
};

function answer({ id, query }) {
  python.globals.get("load")(query.tab);
  postMessage({ started: id });
  const begin = performance.now();
  const text = python.globals.get("ask")(JSON.stringify(query)); // a text crosses sooner than its parts
  postMessage({ id, text, time: performance.now() - begin });
}
