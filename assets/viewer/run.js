// The whole run: how its steps ended, what smaller trees would have given, whether its drafter can be trusted.

const QUESTION_TABS = { next: "next token", path: "whole path" };

function createRunView(store, insights) {
  const element = el("div", { class: "dtx-run", role: "region", "aria-label": "This run as a whole" });
  let painted = null, question = null;

  function draw() {
    const answer = store.id === null || !store.steps.length ? null : insights.ask("run");
    element.classList.toggle("is-waiting", !answer && store.steps.length > 0);
    if (!answer) {
      if (!store.steps.length) { fill(element, el("p", { class: "dtx-empty" }, store.message || "No step to count yet.")); painted = null; }
      return;
    }
    if (answer === painted) return;
    painted = answer;
    if (answer.error) { fill(element, el("p", { class: "dtx-empty" }, answer.error)); return; }
    fill(element, el("p", { class: "dtx-speedline" }, answer.speed), drawMisses(answer.misses), drawBudgetPart(answer.budgets), drawTrust(answer.calibration));
  }

  function part(title, ...children) {
    return el("section", { class: "dtx-runpart", "aria-label": title }, el("h3", {}, title), ...children);
  }

  function drawMisses(misses) {
    const widest = Math.max(...misses.endings.map((ending) => ending.share), 0.01);
    const rows = misses.endings.map((ending) => el("li", {}, el("button", { type: "button", class: "dtx-ending", "data-ending": ending.kind,
      title: `Step ${ending.example + 1} is an example. ${ending.example_sentence}`, click: () => open(ending.example) },
    el("b", {}, String(ending.count)), el("span", {}, ending.label), el("small", {}, percent(ending.share)),
    el("small", { class: "dtx-example" }, "step " + (ending.example + 1) + " \u203a"),
    el("i", { class: "dtx-endingbar", style: "width:" + (100 * ending.share / widest).toFixed(1) + "%" }),
    el("em", { title: ending.would_help }, ending.would_help))));
    return part("How its steps ended", el("ol", { class: "dtx-endings" }, ...rows), texts(misses.sentences.slice(rows.length ? 1 : 0)));
  }

  function open(step) {
    store.go(step);
    store.set({ view: "step" });
  }

  function drawBudgetPart(budgets) {
    if (!budgets.curves.length || budgets.curves[0].tau.length < 2) return part("Had the trees been smaller", texts([budgets.words]));
    const said = el("output", { class: "dtx-said" });
    const say = (rows, tau) => fill(said, el("b", {}, tau.toFixed(2)), " tokens a pass with ", el("b", {}, String(rows)), rows === 1 ? " row" : " rows");
    return part("Had the trees been smaller", drawBudgets(budgets, say), said, texts([budgets.words, ...budgets.limits]));
  }

  function drawTrust(answers) {
    const title = "Can its confidence be trusted?";
    if (!answers.length) return part(title, texts(["This method's guesses carry no probabilities."]));
    const body = el("div", { class: "dtx-trust" });
    const tabs = answers.map((each) => button("dtx-tab", "Confidence in the " + QUESTION_TABS[each.question], () => choose(each), QUESTION_TABS[each.question]));
    const choose = (each) => {
      question = each.question;
      tabs.forEach((tab, i) => tab.setAttribute("aria-pressed", String(answers[i] === each)));
      fill(body, drawCalibration(each), texts([each.sentence]));
    };
    choose(answers.find((each) => each.question === question) || answers[0]);
    return part(title, el("div", { class: "dtx-tabs" }, ...tabs), body);
  }

  function texts(sentences) { return el("div", { class: "dtx-texts" }, ...sentences.map((text) => el("p", {}, text))); }

  return { name: "run", label: "This run", help: "The run as a whole: how its steps ended, smaller trees, trust (2)", element, draw };
}
