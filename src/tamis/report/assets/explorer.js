// The explorer: lists of columns whose error was measured on held-out rows, found with a slider.
// It only looks up lists and subtracts their errors. Names are written as text, never as HTML.
const explore = D => {
  const E = D.explorer, NEW = 300, chart = $("#explore-chart"), slider = $("#explore-size");
  const priceSlider = $("#explore-price"), priceField = $("#explore-cap"), q = E.q, out = new Set();
  const space = $("#curve svg").namespaceURI;
  const lists = E.lists.map(l => ({columns: [], without: [], ...l}));
  const own = lists.filter(l => !l.without.length);
  const priced = own.filter(l => l.price != null);
  const prices = [...new Set(priced.map(l => l.price))].sort((a, b) => a - b);
  let size = own.some(l => l.size === E.selected) ? E.selected : own[0].size, limit = null;

  // lookup: `out` contains the columns that are not available
  const usable = l => l.without.every(j => out.has(j)) &&
    (l.folds ? !out.size : !l.columns.some(j => out.has(j)));
  const better = (a, b) => !a || (E.greater ? b.error > a.error : b.error < a.error) ? b : a;
  const best = found => found.reduce(better, null);
  const at = k => best(lists.filter(l => l.size === k && usable(l)));
  const sizes = () => [...new Set([...own, ...lists.filter(usable)].map(l => l.size))].sort((a, b) => a - b);
  const full = k => own.find(l => l.size === k);
  const within = found => found.filter(l => l.price != null && l.price <= limit * (1 + 1e-9));
  const current = () => limit == null ? at(size) : best(within(lists.filter(usable)));
  // the list with all columns available, for comparison with a list without some of them
  const peer = l => limit == null ? full(l.size) : best(within(own));

  // writing: elements, names that keep their direction, and sentences of both
  const element = (tag, ...content) => {
    const e = document.createElement(tag); e.append(...content); return e;
  };
  const name = j => element("bdi", D.name[j]);
  const names = columns => columns.flatMap((j, i) =>
    [i ? (i === columns.length - 1 ? " and " : ", ") : "", name(j)]);
  const groups = E.omitted.filter(([, c]) => c.length > 1);
  const group = () => groups.find(([, c]) => c.length === out.size && c.every(j => out.has(j)));
  const left = () => group() ? [element("bdi", group()[0])] : names([...out]);
  const columns = k => k === 1 ? "1 column" : `${k} columns`;
  const number = v => E.percent ? `${v.toFixed(1)} points` : String(+v.toPrecision(2));
  const value = l => `${l.text}${l.spread ? ` (${l.spread})` : ""}`;
  const than = (l, other) => {
    const d = l.error - other.error;
    return d ? `${number(Math.abs(d))} ${d > 0 ? "more" : "less"} than` : "the same as";
  };
  const money = v => String(+(v < 100 ? v.toPrecision(5) : v.toFixed(2)));

  const sentence = l => {
    const prefix = out.size ? ["Without ", ...left(), ": "] : [];
    if (!l) {
      const what = limit == null ? `No list of ${columns(size)}` : `No list for at most ${money(limit)}`;
      const others = limit == null ? sizes().filter(at) : [];
      const fits = E.omitted.flatMap(([n], i) => [i ? ", " : "", element("bdi", n)]);
      return [what, ...(out.size ? [" without ", ...left()] : []), " was evaluated. ",
        ...(others.length ? [`Evaluated without ${out.size > 1 ? "them" : "it"}: lists of ${others.join(", ")}. `] : []),
        ...(fits.length ? ["Fits are available without: ", ...fits, "."]
          : E.own ? ["Lists without a column are evaluated by ", element("code", "report(…, without=fit_without(selection, X, y))"), "."]
            : ["Only a selection with its own error estimate, such as Auto or HonestSize, can be evaluated without a column."])];
    }
    const said = [...prefix, element("b", `${columns(l.size)}, ${E.measure} ${value(l)}`), " on held-out rows"];
    const reference = out.size ? peer(l) : best(own);
    if (out.size && reference && reference !== l)
      said.push(`, ${than(l, reference)} the ${value(reference)} of the list of ${columns(reference.size)} with all columns available`);
    else if (out.size && reference)
      said.push(", the same list as with all columns available");
    else if (!out.size && reference !== l)
      said.push(`, ${than(l, reference)} the best, ${value(reference)} with ${reference.size}`);
    said.push(".");
    if (E.corrected && l.size === E.selected && !l.without.length)
      said.push(` Corrected for the selection: ${E.corrected}.`);
    if (E.baseline) said.push(` The baseline has ${E.baseline}.`);
    if (l.price != null) said.push(` Price ${money(l.price)}.`);
    if (l.stability != null) said.push(` Stability ${l.stability.toFixed(2)}.`);
    return said;
  };

  const changes = l => {
    if (!l) return [];
    if (l.folds) return ["The search on all rows stopped before this size. These are the columns that at least half of the resamples select at this size."];
    const smaller = own[own.findIndex(o => o.size === l.size) - 1];
    const reference = out.size ? peer(l) : smaller;
    const said = [];
    if (reference && !reference.folds && reference !== l) {
      const entered = l.columns.filter(j => !reference.columns.includes(j));
      const gone = reference.columns.filter(j => !l.columns.includes(j));
      const against = out.size ? "the list with all columns available" : `the list of ${reference.size}`;
      said.push(`Compared with ${against}: `, ...(entered.length ? [...names(entered), " entered"] : ["nothing entered"]),
        ", ", ...(gone.length ? [...names(gone), " left"] : ["nothing left"]), ". ");
    }
    if (l.rivals) said.push("Not in this list, but in at least half of the lists of the resamples: ",
      ...l.rivals.flatMap(([j, share], i) => [i ? ", " : "", name(j), ` (${share}\u00a0%)`]), ". ");
    const always = l.columns.filter((j, i) => l.share?.[i] === 100);
    if (l.share) said.push(always.length ? "In this list in every resample: " : "No column is in this list in every resample.",
      ...names(always), ...(always.length ? ["."] : []));
    return said;
  };

  // the table of the list, and the columns that were left out
  const leave = columns => {
    for (const j of columns) out.add(j);
    limit ??= E.limit ?? null; // the selection had a price limit, which still holds
    show(); focusOut();
  };
  const focusOut = () => $("#explore-out button")?.focus();
  const button = (label, names, press) => {
    const b = element("button", label); b.type = "button"; b.className = "quiet";
    if (names) b.setAttribute("aria-label", `${label} ${names}`);
    b.onclick = press; return b;
  };
  const table = l => {
    const heads = ["Column", ...(l?.share ? ["In resamples"] : []), ...(q ? ["q"] : []), ""];
    const head = element("tr", ...heads.map((text, i) => {
      const th = element("th", text); th.scope = "col"; if (i && text) th.className = "num";
      if (!text) th.append(Object.assign(element("span", "Change"), {className: "vh"}));
      return th;
    }));
    const rows = (l?.columns ?? []).slice(0, NEW).map((j, i) => {
      const th = element("th", name(j)); th.scope = "row";
      if (D.desc?.[j]) th.append(" ", element("small", D.desc[j]));
      const cells = [...(l.share ? [`${l.share[i]}\u00a0%`] : []), ...(q ? [q[j]] : [])];
      const tr = element("tr", th, ...cells.map(text => Object.assign(element("td", text), {className: "num"})),
        element("td", button("Leave out", D.name[j], () => leave([j]))));
      tr.dataset.column = j;
      return tr;
    });
    $("#explore-list thead").replaceChildren(head);
    $("#explore-list tbody").replaceChildren(...rows);
    $("#explore-list").hidden = !rows.length;
    const chips = group() ? [[element("bdi", group()[0]), group()[0], group()[1]]]
      : [...out].map(j => [name(j), D.name[j], [j]]);
    const back = chips.map(([shown, label, columns]) => element("span", shown, " ", button("Put back", label, () => {
      for (const j of columns) out.delete(j);
      show(); if (out.size) focusOut(); else slider.focus();
    })));
    $("#explore-out").replaceChildren(...(out.size ? [element("span", "Not available:"), ...back] : []));
    $("#explore-groups").replaceChildren(...groups.filter(g => g !== group()).map(([n, c]) => button("Leave out " + n, "", () => leave(c))));
  };

  // the chart: measured lists only, joined by lines to guide the eye
  const draw = l => {
    const byPrice = limit != null, x = o => byPrice ? o.price : o.size;
    const all = (byPrice ? priced : own).slice().sort((a, b) => x(a) - x(b));
    const other = out.size ? [...new Set(lists.filter(usable).map(o => o.size))].map(at)
      .filter(o => x(o) != null).sort((a, b) => x(a) - x(b)) : [];
    const seen = [...all, ...other], W = Math.max(260, Math.min(700, chart.parentNode.clientWidth)), H = 240;
    const low = Math.min(...seen.map(o => o.error - (o.se ?? 0))), high = Math.max(...seen.map(o => o.error + (o.se ?? 0)));
    const first = Math.min(...seen.map(x)), last = Math.max(...seen.map(x));
    const log = last > 40 && first > 0, scale = v => log ? Math.log(v) : v;
    const X = v => 48 + (W - 78) * (last > first ? (scale(v) - scale(first)) / (scale(last) - scale(first)) : 0.5);
    const Y = v => H - 42 - (H - 70) * (high > low ? (v - low) / (high - low) : 0.5);
    const svg = document.createElementNS(space, "svg");
    const add = (tag, css, attributes, text) => {
      const e = document.createElementNS(space, tag);
      e.setAttribute("class", css);
      for (const k in attributes) e.setAttribute(k, attributes[k]);
      if (text != null) e.textContent = text;
      svg.append(e); return e;
    };
    svg.setAttribute("viewBox", `0 0 ${W} ${H}`); svg.setAttribute("width", W); svg.setAttribute("height", H);
    svg.setAttribute("aria-hidden", "true");
    add("text", "soft", {x: 0, y: 12}, E.measure + (E.percent ? ", %" : ""));
    const step = 10 ** Math.floor(Math.log10((high - low) / 2 || 1)), by = [5, 2, 1].map(m => m * step).find(s => (high - low) / s >= 2) ?? step;
    for (let v = Math.ceil(low / by) * by; v <= high; v += by) {
      add("line", "grid", {x1: 48, x2: W - 30, y1: Y(v), y2: Y(v)});
      add("text", "soft", {x: 42, y: Y(v) + 4, "text-anchor": "end"}, String(+v.toPrecision(4)));
    }
    let end = -99;
    for (const o of all) if (X(x(o)) - end > 30) { end = X(x(o)); add("text", "soft", {x: end, y: H - 24, "text-anchor": "middle"}, byPrice ? money(o.price) : o.size); }
    add("text", "soft", {x: (W + 18) / 2, y: H - 6, "text-anchor": "middle"}, byPrice ? "price" : "columns");
    // against price: one step for each list that is better than all cheaper lists
    const front = found => byPrice ? found.filter(o => best(found.filter(p => p.price <= o.price)) === o) : found;
    const edge = (found, sign) => found.flatMap((o, i) => [...(byPrice && i ? [[o, found[i - 1]]] : []), [o, o]])
      .map(([o, p]) => `${X(x(o)).toFixed(1)},${Y(p.error + sign * (p.se ?? 0)).toFixed(1)}`);
    const line = front(all);
    add("polygon", "band", {points: [...edge(line, 1), ...edge(line, -1).reverse()].join(" ")});
    add("polyline", "own", {points: edge(line, 0).join(" ")});
    add("polyline", "other", {points: edge(front(other), 0).join(" ")});
    for (const o of all) add("circle", line.includes(o) ? "own" : "own rest", {cx: X(x(o)), cy: Y(o.error), r: 3});
    for (const o of other) add("circle", "other", {cx: X(x(o)), cy: Y(o.error), r: 3.5});
    if (other.length && all.length) {
      const ends = [all.at(-1), other.at(-1)], above = ends[1].error > ends[0].error, what = group()?.[0] ?? (out.size === 1 ? D.name[[...out][0]] : `${out.size} columns`);
      const label = (o, css, up, text) => add("text", css, {x: X(x(o)) + 4, y: Y(o.error) + (up ? -10 : 18), "text-anchor": "end"}, text);
      label(ends[0], "own", !above, "all available");
      label(ends[1], "other", above, "without " + (what.length > 24 ? what.slice(0, 23) + "…" : what));
    }
    if (l) {
      const cx = X(x(l)), cy = Y(l.error);
      add("line", "here", {x1: cx, x2: cx, y1: Y(l.error - (l.se ?? 0)), y2: Y(l.error + (l.se ?? 0))});
      add("circle", "here", {cx, cy, r: 6});
      // below the point if the line rises to its right
      const next = (out.size ? other : all).find(o => x(o) > x(l));
      const below = !byPrice && next && Y(next.error) < cy - 12 && cy < H - 58;
      add("text", "here", {x: Math.min(cx + 10, W - 60), y: below ? cy + 20 : Math.max(cy - 12, 26)}, l.text);
    }
    // a click on the chart moves the slider to the nearest list
    svg.onclick = e => {
      const box = svg.getBoundingClientRect(), px = (e.clientX - box.left) * W / box.width;
      const near = all.reduce((a, o) => Math.abs(X(x(o)) - px) < Math.abs(X(x(a)) - px) ? o : a);
      if (byPrice) limit = near.price; else size = near.size;
      show();
    };
    chart.replaceChildren(svg);
  };

  const show = () => {
    const stops = sizes();
    if (!stops.includes(size)) size = stops.findLast(k => k <= size) ?? stops[0];
    const l = current();
    if (limit != null && l) size = l.size;
    slider.max = stops.length - 1; slider.value = stops.indexOf(size);
    slider.setAttribute("aria-valuetext", columns(size));
    $("#explore-at").textContent = columns(size);
    if (prices.length) {
      const cap = limit ?? full(size)?.price ?? prices[0];
      priceSlider.value = Math.max(0, prices.findLastIndex(p => p <= cap));
      priceSlider.setAttribute("aria-valuetext", `at most ${money(cap)}`);
      if (cap !== +priceField.value) priceField.value = money(cap);
    }
    $("#explore-words").replaceChildren(...sentence(l));
    $("#explore-changes").replaceChildren(...changes(l));
    table(l); draw(l);
    $("#explore-reset").disabled = size === E.selected && !out.size && limit == null;
  };

  slider.oninput = () => { limit = null; size = sizes()[+slider.value]; show(); };
  if (prices.length) {
    $("#explore-prices").hidden = false; priceSlider.max = prices.length - 1;
    priceSlider.oninput = () => { limit = prices[+priceSlider.value]; show(); };
    priceField.oninput = () => { if (priceField.value) { limit = +priceField.value; show(); } };
  }
  $("#explore-reset").onclick = () => { out.clear(); limit = null; size = E.selected; show(); slider.focus(); };
  $("#explorer").hidden = false; $("#curve").hidden = true;
  show();
  let wide = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== wide) { wide = innerWidth; draw(current()); } });
};
