/* Beside the page's answer the library's: requested from the server that sent the page. Any difference is shown.
   Follows no Python module; the server is cute_py/cli/serve_command.py. */

function* differencesOf(want, got, where = "") {
  const branches = (x) => x !== null && typeof x === "object";
  if (branches(want) && branches(got)) {
    const unread = want.rule === "ParseError" && got.rule === "ParseError";
    for (const key of new Set([...Object.keys(want), ...Object.keys(got)])) {
      if (!(unread && key === "message")) yield* differencesOf(want[key], got[key], where ? `${where}.${key}` : key);
    }
  } else if (want !== got) {
    yield `${where}: Python ${JSON.stringify(want)}, this page ${JSON.stringify(got)}`;
  }
}

function showChecked(className, text, ...more) {
  const place = byId("checked");
  place.hidden = false;
  place.className = className;
  place.replaceChildren(text, ...more);
}

let asked = 0;

afterAnswer = async (query, got) => {
  const mine = ++asked;
  showChecked("unknown", "asking Python …");
  try {
    const reply = await fetch(`answer?${new URLSearchParams(query)}`);
    const want = await reply.json();
    if (mine !== asked) return;
    if (!reply.ok) return showChecked("bad", `Python refuses the question: ${want.error.message}`);
    if (!got || got.not_covered.length) {
      showAnswer(want, null);
      if (want.not_covered.length)
        return showChecked("unknown", `Python has no answer to this form either: ${want.not_covered}`);
      return showChecked("good", "answered by Python; this page alone can't");
    }
    const found = [...differencesOf(want, got)];
    if (!found.length) return showChecked("good", "checked by Python: the same answer");
    const list = make("ul", {}, ...found.slice(0, 8).map((line) => make("li", {}, code(line))));
    return showChecked(
      "bad",
      `PYTHON DIFFERS from this page in ${found.length} place${found.length === 1 ? "" : "s"}. Trust Python, and please report it.`,
      list,
    );
  } catch (error) {
    if (mine === asked) showChecked("bad", `Python could not be asked: ${error.message}`);
  }
};
