/* Compile the library for the interpreter of the page: node compile.mjs FOLDER_OF_PYODIDE IN.zip OUT.zip */
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, source, target] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${folder}/pyodide.mjs`));
const python = await loadPyodide({ indexURL: folder });
python.FS.writeFile("/source.zip", readFileSync(source));
python.runPython(`
import importlib.util, marshal, sys, zipfile

before = {name.partition(".")[0] for name in sys.modules}
head = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8)  # no source is looked at
wanted = set()

def bare(code):
    """Without line numbers, which half of the size is."""
    parts = tuple(bare(part) if hasattr(part, "co_code") else part for part in code.co_consts)
    return code.replace(co_consts=parts, co_linetable=b"")

out = zipfile.ZipFile("/compiled.zip", "w", zipfile.ZIP_STORED)

def add(archive, name):
    data = archive.read(name)
    if name.endswith(".py") and name in wanted:
        if archive is library:  # explanations read the texts below assignments in the source
            out.writestr(zipfile.ZipInfo(name), data)
        name, data = name + "c", head + marshal.dumps(bare(compile(data, name, "exec", dont_inherit=True)))
    out.writestr(zipfile.ZipInfo(name), data)

library = zipfile.ZipFile("/source.zip")
sys.path.insert(0, "/source.zip")
from cute_py.page.answer import answer_page
from cute_py.page.forms import TABS
answer_page({"tab": "layout", "inputs": {}})
for name in sys.modules:
    wanted |= {name.replace(".", "/") + ".py", name.replace(".", "/") + "/__init__.py"}
for name in library.namelist():
    add(library, name)
first = list(sys.modules)
for tab in TABS.values():
    for _, inputs in tab.examples:
        answer_page({"tab": tab.name, "inputs": inputs})
# a module stands before those that it imports, so the other way round each brings few others with it
later = [name for name in reversed(sys.modules) if name not in first and name.startswith("cute_py.")]
out.writestr(zipfile.ZipInfo("later.txt"), " ".join(later))
standard = zipfile.ZipFile("/lib/python314.zip")
known = set(standard.namelist())
for name in sorted(first):
    if name.partition(".")[0] not in before and not name.startswith("cute_py"):
        for path in (name.replace(".", "/") + ".py", name.replace(".", "/") + "/__init__.py"):
            if path in known:
                add(standard, path)
out.close()
`);
writeFileSync(target, python.FS.readFile("/compiled.zip"));
process.exit(0);
