"""Three small problems with a known truth, for examples, documents and tests: a museum, roads and a maze.

`write_example` writes one as a problem folder, with its truth and a README of commands that find it again; so does
`messirl example`.
"""

from messirl.paper.synthetic.example_folder import write_example
from messirl.paper.synthetic.maze import maze
from messirl.paper.synthetic.museum import museum
from messirl.paper.synthetic.roads import roads
from messirl.paper.synthetic.synthetic_problem import Example

__all__ = ["Example", "maze", "museum", "roads", "write_example"]
