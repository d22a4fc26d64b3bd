// Two charts of a whole run: what smaller trees would have given, and whether the drafter's confidence can be trusted.

const COUNT_WIDTH = 18, COUNT_HEIGHT = 9; // of a number in a chart
const CHART = { width: 300, height: 190, left: 34, right: 46, top: 14, bottom: 30 };

// Numbers on an axis: 1, 2 or 5 times a power of ten apart, about `count` of them.
function axisTicks(low, high, count) {
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough || 1));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough) || power;
  const found = [];
  for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + 1e-9; value += step) found.push(Number(value.toFixed(6)));
  return found;
}

function chartFrame(x, y, labels) {
  const { left, right, top, bottom, width, height } = CHART, base = height - bottom;
  const text = (kind, at, words) => svg("text", { class: "dtx-axis " + kind, ...at }, words);
  return [
    ...labels.yTicks.flatMap((value) => [svg("path", { class: "dtx-gridline", d: `M${left} ${y(value)}H${width - right}` }),
      text("is-y", { x: left - 4, y: y(value) }, labels.yText(value))]),
    ...labels.xTicks.map((value) => text("is-x", { x: x(value), y: base + 11 }, labels.xText(value))),
    text("is-x", { x: (left + width - right) / 2, y: height - 4 }, labels.x),
  ];
}

function chartSvg(label, ...parts) {
  return svg("svg", { class: "dtx-chart", viewBox: `0 0 ${CHART.width} ${CHART.height}`, role: "img", "aria-label": label }, ...parts);
}

// tau against rows, one curve a depth limit; solid where it is exact.
function drawBudgets(budgets, say) {
  const { left, right, top, bottom, width, height } = CHART;
  const whole = budgets.curves[budgets.curves.length - 1], count = whole.tau.length;
  const most = Math.max(1.2, ...budgets.curves.map((curve) => curve.tau[curve.tau.length - 1]));
  const x = (rows) => left + (width - left - right) * (count > 1 ? (rows - 1) / (count - 1) : 0);
  const y = (tau) => height - bottom - (height - bottom - top) * (tau - 1) / (most - 1);
  const line = (tau, from, to) => "M" + tau.slice(from, to).map((value, i) => `${x(from + i + 1).toFixed(1)} ${y(value).toFixed(1)}`).join("L");
  let lowest = Infinity;
  const yTicks = axisTicks(1, most, 4), digits = yTicks[1] - yTicks[0] < 0.1 ? 2 : 1;
  const curves = [...budgets.curves].reverse().flatMap((curve) => {
    const kind = "dtx-curve" + (curve === whole ? " is-whole" : ""), end = y(curve.tau[count - 1]), isFree = lowest - end <= -10 || lowest === Infinity;
    if (isFree) lowest = end;
    return [svg("path", { class: kind, "data-depth": curve.depth, d: line(curve.tau, 0, curve.exact_rows) }),
      curve.exact_rows < count ? svg("path", { class: kind + " is-bound", d: line(curve.tau, curve.exact_rows - 1, count) }) : null,
      isFree ? svg("text", { class: "dtx-axis is-curve", x: width - right + 7, y: end }, curve.depth + (curve.depth === 1 ? " level" : " levels")) : null];
  });
  const cursor = svg("path", { class: "dtx-cursor" });
  const chart = chartSvg("Mean acceptance length by number of rows, one curve for each depth limit",
    ...chartFrame(x, y, { x: "rows of a pass", xTicks: axisTicks(1, count, 5).filter((value) => value >= 1), xText: String,
      yTicks, yText: (value) => value.toFixed(digits) }),
    ...curves.filter(Boolean), svg("circle", { class: "dtx-now", cx: x(count), cy: y(whole.tau[count - 1]), r: 3.5 }), cursor);
  const tell = (rows) => {
    cursor.setAttribute("d", `M${x(rows)} ${top}V${height - bottom}`);
    say(rows, whole.tau[rows - 1]);
  };
  chart.addEventListener("pointermove", (event) => {
    const box = chart.getBoundingClientRect(), scale = Math.min(box.width / width, box.height / height);
    const at = ((event.clientX - box.left - (box.width - scale * width) / 2) / scale - left) / (width - left - right);
    tell(clamp(Math.round(1 + at * (count - 1)), 1, count));
  });
  say(count, whole.tau[count - 1]);
  return chart;
}

// Share accepted against confidence; a point's area is its number of nodes, the diagonal is a drafter that is right.
function drawCalibration(calibration) {
  const { left, right, top, bottom, width, height } = CHART;
  const x = (value) => left + (width - left - right) * value, y = (value) => height - bottom - (height - bottom - top) * value;
  const most = Math.max(...calibration.bins.map((bin) => bin.num_nodes));
  const radius = (bin) => 2 + 7 * Math.sqrt(bin.num_nodes / most);
  // On the side away from the diagonal, but never among the numbers of the axis.
  let before = null; // nor on the number before it
  const countAt = (bin) => {
    const below = y(bin.accepted) + radius(bin) + 5, isBelow = bin.accepted < bin.confidence && below < height - bottom - 4;
    let at = isBelow ? below : y(bin.accepted) - radius(bin) - 5;
    if (before && x(bin.confidence) - before.x < COUNT_WIDTH && Math.abs(at - before.at) < COUNT_HEIGHT) at = before.at - COUNT_HEIGHT;
    before = { x: x(bin.confidence), at };
    return at;
  };
  const percents = (value) => (100 * value).toFixed(0) + " %";
  return chartSvg("Share accepted by the drafter's confidence",
    ...chartFrame(x, y, { x: "the drafter's confidence", xTicks: [0, 0.5, 1], xText: percents, yTicks: [0, 0.25, 0.5, 0.75, 1], yText: percents }),
    svg("path", { class: "dtx-diagonal", d: `M${x(0)} ${y(0)}L${x(1)} ${y(1)}` }),
    ...calibration.bins.flatMap((bin) => [svg("path", { class: "dtx-gap", d: `M${x(bin.confidence)} ${y(bin.confidence)}V${y(bin.accepted)}` }),
      svg("circle", { class: "dtx-bin", "data-bin": bin.low, cx: x(bin.confidence).toFixed(1), cy: y(bin.accepted).toFixed(1), r: radius(bin).toFixed(1) },
        svg("title", {}, `${bin.num_nodes} nodes, confidence ${percent(bin.confidence)}, accepted ${percent(bin.accepted)}`)),
      svg("text", { class: "dtx-axis is-count", x: x(bin.confidence).toFixed(1), y: countAt(bin).toFixed(1) }, String(bin.num_nodes))]));
}
