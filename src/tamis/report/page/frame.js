const $ = s => document.querySelector(s), root = document.documentElement;
// theme
const themes = ["auto", "light", "dark"], button = $("#theme"); let theme = 0;
button.hidden = false;
button.onclick = () => { theme = (theme + 1) % 3; if (theme) root.dataset.theme = themes[theme]; else delete root.dataset.theme; button.textContent = "Theme: " + themes[theme]; };
// copying
const copy = async text => { try { await navigator.clipboard.writeText(text); } catch { const a = document.createElement("textarea"); a.value = text; document.body.append(a); a.select(); document.execCommand("copy"); a.remove(); } };
// what is copied, where the page itself has no such text
const texts = {};
for (const b of document.querySelectorAll("[data-copy]")) { b.hidden = false; const was = b.textContent; b.onclick = async () => { const k = b.dataset.copy; await copy(texts[k]?.() ?? $(k).textContent); b.textContent = "Copied"; setTimeout(() => b.textContent = was, 1500); }; }
// what a mark stands for
const tip = $("#tip");
document.addEventListener("pointermove", e => { const m = e.target.closest?.("[data-tip]"); tip.hidden = !m; if (!m) return; tip.textContent = m.dataset.tip; const w = tip.offsetWidth; tip.style.left = Math.max(4, Math.min(e.clientX + 12, innerWidth - w - 8)) + "px"; tip.style.top = (e.clientY + 34 > innerHeight ? e.clientY - 34 : e.clientY + 14) + "px"; });
