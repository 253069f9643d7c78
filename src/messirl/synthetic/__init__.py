"""Three small problems with a known truth, for examples, documents and tests: a museum, roads and a maze.

`write_example` writes one as a problem folder, with the true weights and a README of commands that recover them; so
does `messirl example`.
"""

from messirl.synthetic.base import Example
from messirl.synthetic.maze import maze
from messirl.synthetic.museum import museum
from messirl.synthetic.roads import roads
from messirl.synthetic.writing import write_example

__all__ = ["Example", "maze", "museum", "roads", "write_example"]
