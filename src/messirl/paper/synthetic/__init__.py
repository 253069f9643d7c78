"""Three small problems with a known truth, for examples, documents and tests: a museum, roads and a maze.

`write_example` writes one as a problem folder, with the true weights and a README of commands that recover them; so
does `messirl example`.
"""

from messirl.paper.synthetic.example_folder import write_example
from messirl.paper.synthetic.maze import maze
from messirl.paper.synthetic.museum import museum
from messirl.paper.synthetic.roads import roads
from messirl.paper.synthetic.synthetic_problem import Example

__all__ = ["Example", "maze", "museum", "roads", "write_example"]
