"""Interactive page on this machine that refits while sliders move; `messirl lab` opens it.

app/cli/lab.py → app.py (routes) behind guard.py (security); requests.py validates the requests of the page
fitting.py queues requests for one worker process, worker.py, which reads all data and runs all computations:
scenes.py (available problems) → fits.py (one fit) → pictures.py (numbers for the page); results.py, fitted.py
"""
