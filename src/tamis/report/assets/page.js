const $ = s => document.querySelector(s), root = document.documentElement;
// theme
const themes = ["auto", "light", "dark"], button = $("#theme"); let theme = 0;
button.hidden = false;
button.onclick = () => { theme = (theme + 1) % 3; if (theme) root.dataset.theme = themes[theme]; else delete root.dataset.theme; button.textContent = "Theme: " + themes[theme]; };
// copying
const copy = async text => { try { await navigator.clipboard.writeText(text); } catch { const a = document.createElement("textarea"); a.value = text; document.body.append(a); a.select(); document.execCommand("copy"); a.remove(); } };
// texts to copy that are not on the page
const texts = {};
for (const b of document.querySelectorAll("[data-copy]")) { b.hidden = false; const was = b.textContent; b.onclick = async () => { const k = b.dataset.copy; await copy(texts[k]?.() ?? $(k).textContent); b.textContent = "Copied"; setTimeout(() => b.textContent = was, 1500); }; }
// tooltips of marks
const tip = $("#tip");
document.addEventListener("pointermove", e => { const m = e.target.closest?.("[data-tip]"); tip.hidden = !m; if (!m) return; tip.textContent = m.dataset.tip; const w = tip.offsetWidth; tip.style.left = Math.max(4, Math.min(e.clientX + 12, innerWidth - w - 8)) + "px"; tip.style.top = (e.clientY + 34 > innerHeight ? e.clientY - 34 : e.clientY + 14) + "px"; });
if ($("#data")) {
const D = JSON.parse($("#data").textContent), raw = D.raw ?? D.name;
texts.names = () => raw.slice(0, D.kept).join("\n");
// the kept columns: the first 25, and the others on request
const rest = document.querySelectorAll(".answer .rest");
if (rest.length) { const p = $("#more"); p.hidden = false; for (const tr of rest) tr.hidden = true; p.firstElementChild.onclick = () => { for (const tr of rest) tr.hidden = false; p.hidden = true; rest[0].querySelector("th").setAttribute("tabindex", "-1"); rest[0].querySelector("th").focus(); }; }
// the table of all columns: rows are made for one page at a time
const n = D.name.length, PAGE = 50, body = $("#all tbody"), heads = [...document.querySelectorAll("#all th")];
const lower = D.name.map((s, i) => (s + " " + (D.desc?.[i] ?? "")).toLowerCase()), collator = new Intl.Collator(undefined, {numeric: true});
let key = "rank", down = false, rows = [...Array(n).keys()], page = 0;
const fmt = v => v == null ? "–" : v === 0 ? "0" : Math.abs(v) >= 1e-4 && Math.abs(v) < 1e6 ? (Math.abs(v) >= 100 ? v.toFixed(0) : String(+v.toPrecision(3))).replace("-", "−") : v.toExponential(1).replaceAll("-", "−").replace("+", "");
const cell = {rank: i => i + 1, name: i => D.name[i], score: i => fmt(D.score[i]), freq: i => D.freq ? D.freq[i] + "\u00a0%" : "–", med: i => D.med ? `${D.med[i]} (${D.lo[i]}–${D.hi[i]})` : "–", near: i => D.near[i] < 0 ? "–" : `${D.name[D.near[i]]} ${D.r[i].toFixed(2)}`};
const value = {rank: i => i, score: i => D.score[i], freq: i => D.freq?.[i], med: i => D.med?.[i], near: i => D.r[i]};
const refresh = () => {
  const words = $("#q").value.toLowerCase().split(/\s+/).filter(Boolean), only = $("#only").checked;
  rows = []; for (let i = 0; i < n; i++) if ((!only || i < D.kept) && words.every(w => lower[i].includes(w))) rows.push(i);
  const sign = down ? -1 : 1;
  if (key === "name") rows.sort((a, b) => sign * collator.compare(D.name[a], D.name[b]) || a - b);
  else if (key !== "rank") { const f = value[key]; rows.sort((a, b) => { const x = f(a), y = f(b); return x == null ? (y == null ? a - b : 1) : y == null ? -1 : sign * (x - y) || a - b; }); }
  else if (down) rows.reverse();
  page = 0; draw();
};
const draw = () => {
  const first = page * PAGE, part = rows.slice(first, first + PAGE), out = document.createDocumentFragment();
  for (const i of part) {
    const tr = document.createElement("tr"); if (i < D.kept) tr.className = "on";
    for (const h of heads) { const td = tr.insertCell(), k = h.dataset.key; if (h.classList.contains("num")) td.className = "num";
      if (k === "name") { const b = document.createElement("bdi"); b.textContent = D.name[i]; td.append(b); if (D.desc?.[i]) { const s = document.createElement("small"); s.textContent = D.desc[i]; td.append(" ", s); } } else td.textContent = cell[k](i); }
    out.append(tr);
  }
  body.replaceChildren(out);
  $("#count").textContent = rows.length ? `${first + 1}–${first + part.length} of ${rows.length}` + (rows.length < n ? ` found among ${n} columns` : " columns") : "No column matches.";
  $("#pages").hidden = rows.length <= PAGE; $("#prev").disabled = !page; $("#next").disabled = first + PAGE >= rows.length;
};
for (const h of heads) { const b = document.createElement("button"); b.type = "button"; b.setAttribute("aria-label", "Sort by " + h.textContent); h.append(b);
  b.onclick = () => { const k = h.dataset.key; down = k === key ? !down : k !== "rank" && k !== "name" && k !== "med"; key = k; for (const o of heads) o.removeAttribute("aria-sort"); h.setAttribute("aria-sort", down ? "descending" : "ascending"); refresh(); }; }
let timer; $("#q").oninput = () => { clearTimeout(timer); timer = setTimeout(refresh, 80); };
$("#only").onchange = refresh; $("#prev").onclick = () => { page--; draw(); }; $("#next").onclick = () => { page++; draw(); };
$("#csv").onclick = () => { const q = v => { let s = String(v ?? ""); return /[",\n\r]/.test(s) ? '"' + s.replaceAll('"', '""') + '"' : s; };
  const text = ["rank,column,score,kept,frequency_percent", ...raw.map((s, i) => [i + 1, q(raw[i]), D.score[i] ?? "", i < D.kept, D.freq?.[i] ?? ""].join(","))].join("\n") + "\n";
  const a = document.createElement("a"); a.href = URL.createObjectURL(new Blob([text], {type: "text/csv"})); a.download = "ranking.csv"; a.click(); URL.revokeObjectURL(a.href); };
$("#tools").hidden = false; draw();
if (D.explorer) explore(D);
}
