// Run tests/without_numpy.py in Pyodide: node pyodide.mjs PYODIDE LIBRARY.zip without_numpy.py; prints JSON.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, library, script] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${folder}/pyodide.mjs`));
const python = await loadPyodide({ indexURL: folder });
python.FS.writeFile("/library.zip", readFileSync(library));
python.FS.writeFile("/home/pyodide/without_numpy.py", readFileSync(script));
console.log(
  python.runPython(`
import json, sys
sys.path[:0] = ["/library.zip", "/home/pyodide"]
import without_numpy
json.dumps(without_numpy.run())
`),
);
process.exit(0);
