"""Tables: what files and data frames hold, read into columns and checked."""
