"""Tables: files and data frames, read into columns and checked."""
