"""Style sheet of every page: light and dark, for wide screens, phones and print."""

from __future__ import annotations

from messirl.app.report.common.colours import DARK, LIGHT, css_variables

LAYOUT = """
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; background: var(--paper); color-scheme: light dark; }
body { margin: 0 auto; padding: 2.5rem 1.5rem 5rem; max-width: 1200px; background: var(--paper); color: var(--ink);
  font: 17px/1.55 Charter, "Bitstream Charter", "Sitka Text", Cambria, Georgia, serif; overflow-wrap: break-word; }
h1, h2, h3, th, td, nav, figcaption, .note, .verdict, .number, dt { font-family: system-ui, -apple-system, "Segoe UI",
  Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 2.1rem; line-height: 1.2; margin: 0 0 .6rem; letter-spacing: -.01em; }
h1 small { color: var(--soft); font-weight: normal; font-size: 1.1rem; margin-left: .4rem; }
h2 { font-size: 1.45rem; margin: 3.2rem 0 .8rem; padding-top: .5rem; border-top: 2px solid var(--ink); }
h3 { font-size: 1.08rem; margin: 2rem 0 .6rem; }
h3 small { color: var(--soft); font-weight: normal; margin-left: .3rem; }
p, dl, ul { max-width: 46rem; }
a { color: var(--link); }
a.term { color: inherit; text-decoration: underline dotted; text-underline-offset: .18em; white-space: nowrap; }
p.lead { font-size: 1.15rem; }
.said { background: var(--verdict); border-left: 5px solid var(--edge); padding: .2rem 1.1rem; margin: 1rem 0 1.4rem;
  max-width: 52rem; -webkit-print-color-adjust: exact; print-color-adjust: exact; }
.said p { font-size: 1.12rem; margin: .7rem 0; }
.said p:first-child { font-size: 1.22rem; }
p.warning { border-left: 4px solid var(--warning); padding: .2rem 0 .2rem .9rem; }
header p.warning { background: var(--warned); padding: .5rem .9rem; -webkit-print-color-adjust: exact;
  print-color-adjust: exact; }
nav { margin: 1.4rem 0; font-size: .9rem; }
nav a { margin-right: 1.1rem; white-space: nowrap; }
.wide { overflow-x: auto; margin: .8rem 0 1.4rem; }
.wide:has(table) { background: linear-gradient(to left, var(--paper) 1.2rem, transparent) right / 2.4rem 100% local,
  linear-gradient(to left, var(--line), transparent) right / 1.1rem 100% scroll; background-repeat: no-repeat; }
table { border-collapse: collapse; font-size: .86rem; line-height: 1.4; }
th, td { padding: .45rem .7rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
thead th { border-bottom: 1.5px solid var(--ink); font-weight: 500; vertical-align: bottom; }
tbody th { font-weight: 500; }
table.counts td, table.counts th + th, table.results td { text-align: right; font-variant-numeric: tabular-nums; }
table.counts, table.results { white-space: nowrap; }
table.counts th.part { padding-top: 1.3rem; border-bottom: 1.5px solid var(--ink); }
table.counts th[colspan] + th { border-left: 1.5rem solid var(--paper); }
table.counts thead th[colspan] { text-align: center; font-weight: 600; }
table.counts thead td { border: 0; }
table.results thead th + th { text-align: right; }
table.results th, table.results td { padding-left: .5rem; padding-right: .5rem; }
table.fit { font-variant-numeric: tabular-nums; }
table.fit th, table.fit td { padding-top: .3rem; padding-bottom: .3rem; }
table.claims { width: 100%; min-width: 46rem; }
table.claims thead th { white-space: nowrap; font-size: .82rem; }
table.claims td, table.claims thead th { padding-left: .3rem; padding-right: .3rem; }
table.claims tbody th { width: 27%; min-width: 10.5rem; }
table.claims .text, table.claims .note, table.claims .number { display: block; }
.note { color: var(--soft); font-size: .78rem; line-height: 1.35; margin-top: .15rem; font-weight: normal; }
.number { white-space: nowrap; font-variant-numeric: tabular-nums; font-size: .77rem; color: var(--quiet); }
.verdict { display: inline-block; white-space: nowrap; padding: .05rem .35rem; border-radius: .25rem; font-size: .76rem;
  font-weight: 600; border: 1px solid; margin-bottom: .15rem; -webkit-print-color-adjust: exact;
  print-color-adjust: exact; }
.holds { color: var(--holds); background: var(--holds-on); border-color: var(--holds-edge); }
.fails { color: var(--fails); background: var(--fails-on); border-color: var(--fails-edge); }
.undecided { color: var(--undecided); background: var(--undecided-on); border-color: var(--undecided-edge); }
td.none { color: var(--soft); }
table.differences tbody th { max-width: 34rem; }
figure { margin: 1.6rem 0 2.4rem; }
figure .wide { margin: 0; }
figure img { display: block; width: 100%; min-width: 640px; height: auto; }
figure.half img { max-width: 620px; min-width: 520px; }
figure.small { max-width: 460px; }
figure.small img { min-width: 0; }
.panels { display: flex; flex-wrap: wrap; gap: 1rem 2.2rem; align-items: flex-start; }
.panels figure { flex: 1 1 340px; min-width: 0; margin: .6rem 0 1rem; }
figcaption { font-size: .88rem; line-height: 1.45; color: var(--quiet); max-width: 60rem; margin-top: .6rem; }
figcaption .files { color: var(--soft); }
dt { font-weight: 600; font-size: .92rem; margin-top: .7rem; }
dl.roles { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; max-width: 60rem; margin: 1rem 0; }
dl.roles dt, dl.roles dd { margin: 0; }
dl.roles dt { line-height: 1.75; }
dt:target, dt:target + dd { background: var(--verdict); }
dd { margin: 0 0 0 1.1rem; }
pre { background: var(--pale); border: 1px solid var(--line); padding: .8rem 1rem; white-space: pre-wrap;
  font-size: .86rem; }
code { font-size: .92em; overflow-wrap: anywhere; }
@media (max-width: 720px) {
  body { padding: 1.2rem 1rem 3rem; font-size: 16px; }
  h1 { font-size: 1.6rem; }
  .said { padding: .1rem .8rem; }
  nav a { line-height: 2; }
  table:has(thead tr) td { white-space: nowrap; }
  table:has(thead tr) tbody th { min-width: 6.5rem; }
  table.differences tbody th { min-width: 12rem; }
  table:not(:has(thead tr)) td { overflow-wrap: anywhere; }
  table.numbers td .note { display: block; min-width: 14rem; white-space: normal; }
  table.claims { min-width: 0; }
  table.claims, table.claims tbody, table.claims tr, table.claims th, table.claims td { display: block; width: auto; }
  table.claims tbody th { width: auto; min-width: 0; }
  table.claims thead { display: none; }
  table.claims tbody tr { border-bottom: 2px solid var(--line); padding: .5rem 0; }
  table.claims tbody th, table.claims td { border: 0; padding: .25rem 0; }
  table.claims td::before { content: attr(data-label) ": "; color: var(--soft); font-size: .8rem; }
  table.claims td.none { display: none; }
  table.claims td { white-space: normal; }
  table.claims td .number { display: inline; margin-left: .3rem; }
}
"""
PRINT = """
@media print {
  @page { size: A4; margin: 14mm; }
  @page across { size: A4 landscape; margin: 12mm; }
  html { color-scheme: light; }
  body { padding: 0; max-width: none; font-size: 10pt; orphans: 3; widows: 3; }
  nav { display: none; }
  a, a.term { color: inherit; text-decoration: none; }
  p, dl, ul, figcaption, .said { max-width: none; }
  h2 { margin-top: 1.6rem; }
  h2, h3, dl:not(.roles) dt, thead { break-after: avoid; }
  figure, tr, li, .said, dd, p.warning, pre { break-inside: avoid; }
  table:not(:has(tbody tr:nth-child(30))) { break-inside: avoid; }
  p:has(+ .wide table) { break-after: avoid; }
  .wide, .wide:has(table) { overflow: visible; background: none; }
  table { font-size: 7.5pt; }
  figcaption { font-size: 8.5pt; }
  .said p { font-size: 11pt; }
  .said p:first-child { font-size: 12pt; }
  section:has(table.claims) { page: across; }
  table.claims { min-width: 0; }
  table.claims tbody th { min-width: 38mm; }
  table.claims thead th { font-size: 7.5pt; }
  th, td { padding: .25rem .35rem; }
  .number, .note, .verdict { font-size: 6.8pt; }
  figure { margin: .8rem 0 1.2rem; }
  figure img, figure.half img, figure.small img { min-width: 0; max-height: 175mm; object-fit: contain;
    object-position: left; }
  .panels { display: block; }
  .panels figure.small { display: inline-block; vertical-align: top; width: 48%; margin-right: 1.5%; }
  .panels:has(figure.small:nth-child(3)) figure.small { width: 31.5%; }
}
"""
CSS = (
    f":root {{ {css_variables(LIGHT)} }}\n"
    f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {css_variables(DARK)} }} }}\n"
    f"{LAYOUT.strip()}\n{PRINT.strip()}\n"
)
