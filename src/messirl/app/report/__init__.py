"""Figures and pages made from results. This package reads tables and draws; it neither fits nor computes statistics."""
