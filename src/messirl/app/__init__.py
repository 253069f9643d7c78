"""The program around the library: workflows, reports, the lab and the command line."""
