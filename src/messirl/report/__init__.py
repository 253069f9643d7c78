"""Figures and pages made from results. This room reads tables and draws; it never trains and computes no statistics."""
