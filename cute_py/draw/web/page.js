/* The page: the form, its state in the address, and when the engine is asked. Follows no Python module. */

const byId = (id) => document.getElementById(id);
const FIELDS = Object.keys(FACTS.defaults);
const TYPED = FIELDS.filter((name) => !["split", "at"].includes(name));

/** Called with (query, answer) after each answer; a served page sets it (checked.js) before the page starts. */
let afterAnswer = null;
let tileNumber = "0";

// ---- state ----------------------------------------------------------------------------------------------------------

function formQuery() {
  const query = Object.fromEntries(TYPED.map((name) => [name, byId(name).value]));
  return { ...query, split: byId("split").checked ? "1" : "", at: tileNumber };
}

function fillForm(query) {
  for (const name of TYPED) {
    const value = query[name] ?? FACTS.defaults[name];
    const input = byId(name);
    if (input.tagName === "SELECT" && ![...input.options].some((o) => o.value === value))
      input.append(make("option", {}, value));
    input.value = value;
  }
  byId("split").checked = query.split === "1";
  tileNumber = query.at ?? "0";
}

function hashOf(query) {
  const typed = FIELDS.filter((name) => ["gmem", "smem"].includes(name) || (query[name] ?? "") !== FACTS.defaults[name]);
  return `#${new URLSearchParams(typed.map((name) => [name, query[name]]))}`;
}

function queryOfHash() {
  const found = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  return "gmem" in found || "smem" in found ? found : FACTS.examples[0].fields;
}

function apply(changes) {
  fillForm({ ...formQuery(), ...changes });
  update();
}

// ---- answer ----------------------------------------------------------------------------------------------------------

/** Show an answer; `atom` is the engine's own value, null where the answer came from elsewhere. */
function showAnswer(got, atom) {
  showVerdict(got);
  showProblems(got, atom);
  showNumbers(got);
  showPictures(got, atom);
  showInstructions(got);
  showStages(got);
  showMap(got);
  showDescriptor(got, atom);
  showWarnings(got);
}

function update() {
  const query = formQuery();
  history.replaceState(null, "", hashOf(query));
  let got;
  try {
    const atom = inspect(query);
    got = answerOf(atom);
    showAnswer(got, atom);
  } catch (error) {
    got = null;
    byId("verdict").className = "bad";
    byId("verdict").textContent = `This page failed on these texts: ${error.message}`;
    for (const place of document.querySelectorAll("#out section")) place.hidden = true;
  }
  document.body.dataset.ready = "1";
  afterAnswer?.(query, got);
}

// ---- start ----------------------------------------------------------------------------------------------------------

function start() {
  const own = (row) => row.mode === "tile" && row.ctas === 1;
  const group = (label, keep) =>
    make(
      "optgroup",
      { label },
      ...Object.keys(FACTS.ops)
        .filter((n) => keep(FACTS.ops[n]))
        .map((n) => make("option", {}, n)),
    );
  byId("op").append(
    group("tiles", own),
    group("not answered here", (row) => !own(row)),
  );
  byId("arch").append(
    ...["sm_90a", ...FACTS.architectures.slice(1).map((row) => `${row.name}a`)].map((n) => make("option", {}, n)),
  );
  byId("dtypes").append(
    ...FACTS.dtypes.filter((d) => d.bits >= 8 && d.format !== null).map((d) => make("option", { value: d.name })),
  );
  byId("examples").append(
    ...FACTS.examples.map(({ name, fields }) => {
      const show = () => {
        fillForm(fields);
        update();
      };
      return make(
        "li",
        {},
        make(
          "button",
          { type: "button", class: name.startsWith("error") ? "wrong-example" : null, onclick: show },
          name.replace(/^error: /, ""),
        ),
      );
    }),
  );
  let waiting = 0;
  byId("form").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(update, 120);
  });
  byId("form").addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", () => {
    fillForm(queryOfHash());
    update();
  });
  fillForm(queryOfHash());
  update();
}
