"""Raw recordings: from tables of positions or places to trajectories, cells and transitions."""
