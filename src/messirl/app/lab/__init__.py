"""Interactive page on this machine that refits while sliders move; `messirl lab` opens it.

app/cli/lab.py → routes.py (routes) behind security.py (security); requests.py validates the requests of the page
job_queue.py queues requests for one worker process, worker.py, which reads all data and runs all computations:
catalog.py (available problems) → live_fit.py (one fit) → json_views.py (numbers for the page); reproduction_view.py,
saved_fit_view.py
"""
