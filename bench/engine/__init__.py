"""Speed, growth and footprint of the engine and its peers. Run it with `python -m bench.engine`."""
