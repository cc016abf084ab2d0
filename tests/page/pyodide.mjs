// Run tests/without_numpy.py in Pyodide: node pyodide.mjs PYODIDE LIBRARY.zip without_numpy.py; prints JSON.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, library, script] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${folder}/pyodide.mjs`));
const python = await loadPyodide({ indexURL: folder });
python.FS.writeFile("/library.zip", readFileSync(library));
python.FS.writeFile("/home/pyodide/without_numpy.py", readFileSync(script));
const source = `
import json, sys
sys.path[:0] = ["/library.zip", "/home/pyodide"]
import without_numpy
json.dumps(without_numpy.run())
`;
// Node writes to a pipe asynchronously, so the process exits only after the last byte was written.
try {
  process.stdout.write(`${python.runPython(source)}\n`, () => process.exit(0));
} catch (error) {
  const tail = String(error.message).slice(-2000); // not the source of the interpreter, which node shows
  process.stderr.write(`${tail}\n`, () => process.exit(1));
}
