"""Raw recordings: from tables of positions or places to trips, places and moves."""
