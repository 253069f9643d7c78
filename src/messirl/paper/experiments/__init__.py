"""The paper's experimental section (section 4 and App. B) as data, a runner with a store, and its claims as tests."""
