"""The laboratory: a page on this machine that fits while you drag; `messirl lab` opens it.

app/cli/lab.py → app.py (routes) behind guard.py; what the page asks is checked in requests.py
fitting.py hands it to a process of its own, worker.py, which alone reads data and computes:
scenes.py (what can be picked) → methods.py (one fit) → pictures.py (numbers for the page); results.py, fitted.py
"""
